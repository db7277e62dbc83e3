package record

// ReplaySchema names the format of a Replay in JSON (docs/formats/replay.md).
const ReplaySchema = "leakgate.replay/1"

// Replay is the result of judging recordings again.
type Replay struct {
	Schema string `json:"schema"`
	Policy string `json:"policy"`
	// Bases lists the recordings that all others were compared with. If there
	// is exactly one, it is also stored in Base; otherwise, Base is empty.
	Base  string   `json:"base,omitempty"`
	Bases []string `json:"bases,omitempty"`
	// Processes lists the processes of all recordings, in the order of their
	// first rows.
	Processes []ReplayProcess `json:"processes"`
	// Apps lists the apps of all recordings that had two processes at the same
	// time.
	Apps []ReplayApp `json:"apps"`
	// Warnings lists the parts of the recordings that cannot be attributed to a
	// process.
	Warnings []string `json:"warnings"`
}

// ReplayProcess is one process of a recording and its verdict. Times are
// seconds from its first sample.
type ReplayProcess struct {
	File string `json:"file"`
	Process
	// Bases lists the recordings that the process was compared with. It is
	// empty if the process was judged alone. If there is exactly one, it is
	// also stored in Base; otherwise, Base is nil.
	Base  *string  `json:"base"`
	Bases []string `json:"bases,omitempty"`
	// Unjudged explains why there is no verdict on the process, and states the
	// minimum that a verdict requires. It is "" if there is a verdict or if no
	// verdict is needed.
	Unjudged string `json:"unjudged,omitempty"`
	// Marks is the number of marks on the time axis of the process.
	Marks int `json:"marks"`
	// Looks are present only on request.
	Looks []ReplayLook `json:"looks,omitempty"`
}

// ReplayApp is the verdict on an app in a recording, based on the sum of the
// memory of its processes. Times are seconds from the first sum.
type ReplayApp struct {
	File string `json:"file"`
	AppVerdict
	// Base and Bases have the same meaning as in ReplayProcess.
	Base  *string      `json:"base"`
	Bases []string     `json:"bases,omitempty"`
	Looks []ReplayLook `json:"looks,omitempty"`
}

// ReplayLook is one look of policy robust at one series.
type ReplayLook struct {
	T      float64 `json:"t_s"`
	Series string  `json:"series"`
	Window float64 `json:"window_s"`
	Fired  bool    `json:"fired"`
	Text   string  `json:"text"`
}
