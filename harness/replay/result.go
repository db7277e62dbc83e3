package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/detector"
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
		T: t, Series: seen.Series, Window: round(seen.Window.Seconds(), 3), Fired: seen.Fired, Text: seen.Text,
	})
}

// leftOut says what is missing; empty for nothing.
func (l *looks) leftOut() []string {
	if l.more == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d later looks are left out", l.more)}
}

// judged puts a verdict into the record of a process. first is the detector's time
// of the first sample.
func judged(p *record.Process, v detector.Verdict, first time.Duration) {
	p.State, p.Worst, p.Gate, p.Kind = v.State.String(), v.Worst.String(), string(v.Gate), v.Kind.String()
	p.Growth, p.Because = round(mb(v.Growth), 2), v.Because
	p.Rate, p.RateInterval, p.MinDetectable = nil, nil, nil
	if v.RateKnown {
		p.Rate = new(perHour(v.Rate))
		p.RateInterval = []float64{perHour(v.RateLow), perHour(v.RateHigh)}
	}
	if v.MinDetectable > 0 {
		p.MinDetectable = new(perHour(v.MinDetectable))
	}
	p.Shares = make([]record.Share, len(v.Shares))
	for i, s := range v.Shares {
		p.Shares[i] = record.Share{
			Dimension: s.Dimension.String(), Growth: round(mb(s.Growth), 2), Share: round(s.Share, 4), Rate: perHour(s.Rate),
		}
	}
	p.Jumps = make([]record.Jump, len(v.Jumps))
	for i, j := range v.Jumps {
		p.Jumps[i] = record.Jump{T: round((j.At - first).Seconds(), 3), MB: round(mb(j.Bytes), 2), Stayed: j.Stayed}
	}
	p.Evidence = []record.Evidence{}
	for _, e := range v.Evidence {
		if !math.IsNaN(e.Value) && !math.IsInf(e.Value, 0) {
			p.Evidence = append(p.Evidence, record.Evidence{Name: e.Name, Value: e.Value, Unit: e.Unit})
		}
	}
	for _, w := range v.Warnings {
		if !slices.Contains(p.Warnings, w.Error()) {
			p.Warnings = append(p.Warnings, w.Error())
		}
	}
}

// compared puts the verdict on the difference from a base in the place of the one on
// the process alone. What the process did live, and its jumps, are still its own.
func (p *Process) compared(v detector.Verdict) {
	alone := p.Process
	judged(&p.Process, v, 0)
	p.State, p.Worst, p.Jumps = alone.State, alone.Worst, alone.Jumps
}

func mb(bytes int64) float64 { return float64(bytes) / detector.MB }

// perHour makes MB/h of bytes per hour, to a tenth of a kB.
func perHour(bytes float64) float64 { return round(bytes/detector.MB, 4) }

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(x*p) / p
}
