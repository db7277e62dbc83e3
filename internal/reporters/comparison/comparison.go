package comparison

import "time"

// Schema names the format of gate.json (docs/formats/gate.md).
const Schema = "leakgate.gate/1"

// FileName is the file of a run directory that has the comparison.
const FileName = "gate.json"

// Comparison is the result of the gate for one run.
type Comparison struct {
	Schema string `json:"schema"`
	Tool   string `json:"tool"`
	// Verdict is pass, fail or neutral; Text explains it in one sentence.
	Verdict Result `json:"verdict"`
	Text    string `json:"text"`
	// Judged reports that the run has evidence to judge, Informational that the
	// rules are only reported and never fail.
	Judged        bool `json:"judged"`
	Informational bool `json:"informational,omitempty"`
	// ExitCode is that of the gate.
	ExitCode int `json:"exit_code"`
	// Reasons are the violated rules, each with what violates it.
	Reasons []Reason `json:"reasons"`
	Base    Base     `json:"base"`
	Head    Head     `json:"head"`
	// Processes are those of the run, by name.
	Processes []ProcessRow `json:"processes"`
	// Leaks has failures first, then by status and bytes.
	Leaks []Row `json:"leaks"`
	// LeaksOmitted counts the leaks beyond the limit of the list.
	LeaksOmitted int      `json:"leaks_omitted,omitempty"`
	Warnings     []string `json:"warnings"`
	// Unfailed has the verdict, exit code and text if every rule held, which
	// count if a second run does not confirm the reasons. nil in a file that
	// was read.
	Unfailed *Comparison `json:"-"`
}

// Result is the answer of the gate.
type Result string

// The verdicts. Neutral means that no rule is violated and that the run was not
// compared: there is no baseline, or nothing could be judged, or the rules are
// informational.
const (
	Pass    Result = "pass"
	Fail    Result = "fail"
	Neutral Result = "neutral"
)

// Reason is a violated rule.
type Reason struct {
	// Rule is that of the configuration, such as "leak.per_loop: new == 0".
	Rule    string `json:"rule"`
	Process string `json:"process"`
	// Key is that of the leak, "" if the rule is not about one.
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Base is what the run was compared with.
type Base struct {
	// Runs counts the earlier runs, Observed those of them that failed
	// themselves and only excuse what they show.
	Runs     int `json:"runs"`
	Observed int `json:"observed"`
	// Commit and Branch are those of the newest run, Time when it started;
	// Behind is how many commits it is behind the merge base of head, nil if
	// unknown.
	Commit string    `json:"commit,omitempty"`
	Branch string    `json:"branch,omitempty"`
	Time   time.Time `json:"time,omitzero"`
	Behind *int      `json:"behind"`
	// Pinned is the name of the release that the run is also compared with, ""
	// for none, and PinnedRuns the number of its runs.
	Pinned     string `json:"pinned,omitempty"`
	PinnedRuns int    `json:"pinned_runs,omitempty"`
	// Store is where the baseline is kept, without credentials.
	Store string `json:"store,omitempty"`
	// Incomparable is why the runs of the baseline are not compared with this
	// run, such as "different workload" or "the baseline has only this run"; ""
	// if some are, or without base runs.
	Incomparable string `json:"incomparable,omitempty"`
	// Others is how many runs of the baseline were not compared for that
	// reason.
	Others int `json:"other_runs,omitempty"`
}

// Head is the judged run.
type Head struct {
	// Run is the name of its directory; "" for heap dumps alone.
	Run         string    `json:"run,omitempty"`
	Started     time.Time `json:"started,omitzero"`
	App         string    `json:"app"`
	Variant     string    `json:"variant,omitempty"`
	Version     string    `json:"version,omitempty"`
	Commit      string    `json:"commit,omitempty"`
	Branch      string    `json:"branch,omitempty"`
	PullRequest int       `json:"pull_request,omitempty"`
	// Workload is what was done in each loop, in words; Duration is in seconds.
	Workload string      `json:"workload,omitempty"`
	Duration float64     `json:"duration_s,omitempty"`
	Devices  []DeviceRow `json:"devices"`
}

// DeviceRow is one device of the run.
type DeviceRow struct {
	Device   string `json:"device"`
	Model    string `json:"model"`
	API      int    `json:"api"`
	ABI      string `json:"abi,omitempty"`
	Emulator bool   `json:"emulator,omitempty"`
}

// ProcessRow is one process of the run: what was judged and by which evidence.
type ProcessRow struct {
	Device  string `json:"device,omitempty"`
	Process string `json:"process"`
	// Dumps is how many heap dumps at marks were compared, Settled reports that
	// the app was idle before each; Loops is how many loops lie between the
	// first and the last.
	Dumps   int     `json:"dumps"`
	Settled bool    `json:"settled"`
	Loops   float64 `json:"loops"`
	// Reachable is the reachable heap in bytes at each dump, BaseReachable its
	// minimum and maximum in the base runs after as many loops, nil if unknown.
	Reachable     []int64 `json:"reachable_bytes"`
	BaseReachable []int64 `json:"base_reachable_bytes"`
	// Gate is the verdict of the run on the process, Trend the result of its
	// trend or why it was not judged, Judged reports that its dumps or its
	// trend were.
	Gate   string `json:"gate"`
	Trend  string `json:"trend"`
	Judged bool   `json:"judged"`
	// Deaths counts ends by reason.
	Deaths map[string]int `json:"deaths,omitempty"`
}

// Row is one thing that a run leaves behind, compared with the base.
type Row struct {
	Device  string `json:"device"`
	Process string `json:"process"`
	// Type is leak, threads, native, graphics (kinds of leaks), measure, what
	// grows with each loop of a trip, or trend, the growth of a process.
	Type string `json:"type"`
	// Class is that of most of the objects, Classes has all in both, the most
	// frequent first.
	Class   string        `json:"class"`
	Classes []ClassCounts `json:"classes,omitempty"`
	// Key is the same from build to build. MovedFrom is its key in the base if
	// something else holds the objects now, MovedClass what leaked there if the
	// class differs.
	Key        string `json:"key"`
	MovedFrom  string `json:"moved_from,omitempty"`
	MovedClass string `json:"moved_class,omitempty"`
	// HeldBy is the reference that holds the objects, such as
	// "EventBus.listeners"; "" if unknown.
	HeldBy       string   `json:"held_by"`
	Library      bool     `json:"library,omitempty"`
	Fingerprints []string `json:"fingerprints"`
	// Unit is that of PerLoop: loop, event (of monkey), hour (for trends) or
	// run (presence alone).
	Unit string `json:"unit"`
	// Evidence describes what shows the leak.
	Evidence string `json:"evidence"`
	Status   Status `json:"status"`
	// Fails reports that the leak is a reason of the verdict, StatusReason
	// explains its status.
	Fails        bool   `json:"fails"`
	StatusReason string `json:"status_reason,omitempty"`
	// PerLoop is how many objects each loop leaves (MB for trends); nil if
	// unknown.
	PerLoop Sides `json:"per_loop"`
	// BytesEach is what one object retains: retained bytes divided by the
	// number of objects.
	BytesEach Sides `json:"bytes_each"`
	// BaseBytes and HeadBytes are what all objects retain after the last loop.
	BaseBytes int64 `json:"base_bytes"`
	HeadBytes int64 `json:"head_bytes"`
	// Counts and Bytes are those of head at its marks.
	Counts []int64 `json:"counts_at_marks,omitempty"`
	Bytes  []int64 `json:"bytes_at_marks,omitempty"`
	// Trace is the path from the GC root, in lines; Suspects are the references
	// on it one of which must change, the nearest to the GC root first.
	Trace    []string  `json:"trace,omitempty"`
	Suspects []Suspect `json:"suspects,omitempty"`
	// Owners are the code owners of the file of the first suspect.
	Owners []string `json:"owners,omitempty"`
	// FirstSeen is the earliest base run that had the leak.
	FirstSeen *Sighting `json:"first_seen,omitempty"`
	// Accepted is who accepted the leak, why and until when.
	Accepted *Acceptance `json:"accepted,omitempty"`
	// Pinned is how it compares with the pinned release if that is worse,
	// otherwise "".
	Pinned string `json:"pinned,omitempty"`
}

// Sides is a number of base and head; nil if unknown.
type Sides struct {
	Base *float64 `json:"base"`
	Head *float64 `json:"head"`
}

// ClassCounts is a class of a leak and how many of its objects leak at the end.
type ClassCounts struct {
	Class string `json:"class"`
	Base  int64  `json:"base"`
	Head  int64  `json:"head"`
}

// Suspect is a reference on a leak trace that should not be there.
type Suspect struct {
	// Class declares the field Field.
	Class string `json:"class"`
	Field string `json:"field"`
	// File and Line are its position in the checkout; "" if it was not found,
	// or found in several files.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Changed is whether the pull request changes the file, Added whether it
	// adds the line; nil if unknown.
	Changed *bool `json:"changed,omitempty"`
	Added   *bool `json:"added,omitempty"`
}

// Sighting is a commit at which a leak was seen.
type Sighting struct {
	Commit string    `json:"commit"`
	Time   time.Time `json:"time"`
}

// Acceptance is an entry of the file of accepted leaks.
type Acceptance struct {
	Reason string `json:"reason"`
	Owner  string `json:"owner"`
	// Until is the last day, such as 2027-03-31.
	Until   string `json:"until"`
	Expired bool   `json:"expired,omitempty"`
}

// Status is how a leak compares with the base.
type Status string

// The statuses. docs/formats/gate.md describes how each is decided.
const (
	New       Status = "new"
	Grown     Status = "grown"
	Heavier   Status = "heavier"
	Wider     Status = "wider"
	Moved     Status = "moved"
	Accepted  Status = "accepted"
	Known     Status = "known"
	Transient Status = "transient"
	Shrunk    Status = "shrunk"
	Gone      Status = "gone"
	// Present leaks are in head and there is nothing to compare them with.
	Present Status = "present"
)

// Statuses are all of them, in the order of a report.
func Statuses() []Status {
	return []Status{New, Wider, Grown, Heavier, Moved, Present, Accepted, Known, Transient, Shrunk, Gone}
}
