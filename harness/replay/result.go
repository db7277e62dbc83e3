package replay

import (
	"fmt"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// Schema names the format of a Result in JSON (docs/formats/replay.md).
const Schema = "leakgate.replay/1"

// Result is what the recordings say, in JSON as docs/formats/replay.md has it.
type Result struct {
	Schema string `json:"schema"`
	Policy string `json:"policy"`
	// Base is the recording that all others were compared with; empty for none.
	Base string `json:"base,omitempty"`
	// Processes are those of all recordings, in the order of their first rows.
	Processes []Process `json:"processes"`
	// Warnings name what of the recordings belongs to no process.
	Warnings []string `json:"warnings"`
}

// Process is one process of a recording and its verdict. Times are seconds from its
// first sample.
type Process struct {
	File string `json:"file"`
	record.Process
	// Base is the recording with which the process was compared; nil where it was
	// judged alone.
	Base *string `json:"base"`
	// Marks is how many marks were on its time axis.
	Marks int `json:"marks"`
	// Looks are only there where they were asked for.
	Looks []Look `json:"looks,omitempty"`
}

// Look is one look of policy "robust" at one series.
type Look struct {
	T      float64 `json:"t_s"`
	Series string  `json:"series"`
	Window float64 `json:"window_s"`
	Fired  bool    `json:"fired"`
	Text   string  `json:"text"`
}

// looks keeps the looks at one process.
type looks struct {
	kept []Look
	more int
}

const (
	// maxLooks bounds the looks of one process, maxExplained the processes that are
	// explained: a look takes some 300 bytes.
	maxLooks     = 10_000
	maxExplained = 50
)

func (l *looks) add(t float64, seen detector.Look) {
	if len(l.kept) == maxLooks {
		l.more++
		return
	}
	l.kept = append(l.kept, Look{
		T: t, Series: seen.Series, Window: record.Round(seen.Window.Seconds(), 3), Fired: seen.Fired, Text: seen.Text,
	})
}

// leftOut says what is missing; empty for nothing.
func (l *looks) leftOut() []string {
	if l.more == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d later looks are left out", l.more)}
}

// compared puts the verdict on the difference from a base in the place of the one on
// the process alone. What the process did live, and its jumps, are still its own.
func (p *Process) compared(v detector.Verdict) {
	ledger.SetVerdict(&p.Process, v)
}
