package monitor

import (
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters"
)

// subject is one process name under watch, across its restarts.
type subject struct {
	capture.Process
	probe    capture.Probe
	detector *detector.Detector
	present  bool
	restarts int

	// due is when the next sample is wanted, in device time since the start.
	due time.Duration
	// lastUp is the device's clock at the latest sample; 0 for none.
	lastUp time.Duration

	samples, details int
	last             capture.Reading
	lastBytes        int64
	costMS           float64

	// failures counts readings in a row that gave no sample; said has the text of
	// the last fault of each channel, so that one fault is told once.
	failures int
	said     [2]string
	// hung counts rounds in a row in which the process alone did not answer.
	hung int

	transitions []reporters.Transition
	warnings    []string

	// told is the verdict of the row shown last; fitting anew for every row would
	// cost more than all else.
	told   detector.Verdict
	toldAt int
}

// channel is one of the two ways to read a process.
type channel int

const (
	fastChannel channel = iota
	detailChannel
)

const maxWarnings = 50

func (s *subject) warn(err error) {
	text := err.Error()
	for _, have := range s.warnings {
		if have == text {
			return
		}
	}
	if len(s.warnings) < maxWarnings {
		s.warnings = append(s.warnings, text)
	}
}

// target is the subject as the fast channel reads it.
func (s *subject) target() capture.Target {
	return capture.Target{Process: s.Process, Level: s.probe.Level}
}

func (s *subject) row(device string, now time.Duration) Row {
	if news := 1 + s.samples + s.details + s.restarts; s.toldAt != news {
		s.told, s.toldAt = s.detector.Verdict(), news
	}
	r := Row{
		Device: device, Process: s.Key().String(), PID: s.PID, Present: s.present,
		Source: s.probe.Level.Source, Verdict: s.told,
		MB: mb(s.lastBytes), Threads: -1, Next: max(0, s.due-now), CostMS: s.costMS,
	}
	if s.last.Threads.Known {
		r.Threads = s.last.Threads.N
	}
	return r
}

// record is the subject as run.json has it; begun is the device's clock at t_s 0.
func (s *subject) record(device string, begun time.Duration) reporters.Process {
	v := s.detector.Verdict()
	p := reporters.Process{
		Device: device, User: s.User, Process: s.Name, PID: s.PID,
		Source: string(s.probe.Level.Source), Reasons: present(s.probe.Reasons()),
		Restarts: s.restarts, Samples: s.samples, Details: s.details,
		Duration: round(v.Duration.Seconds(), 3),
		State:    v.State.String(), Worst: v.Worst.String(), Gate: string(v.Gate), Kind: v.Kind.String(),
		FirstSuspicious: since(v.FirstSuspicious, begun), FirstLeaking: since(v.FirstLeaking, begun),
		Growth: round(mb(v.Growth), 2), Because: v.Because,
		Transitions: present(s.transitions), Warnings: present(slices.Clone(s.warnings)), Evidence: []reporters.Evidence{},
	}
	if s.samples > 0 {
		p.LastMB = new(round(mb(s.lastBytes), 2))
	}
	if v.RateKnown {
		p.Rate = new(perHour(v.Rate))
		p.RateInterval = []float64{perHour(v.RateLow), perHour(v.RateHigh)}
	}
	if v.MinDetectable > 0 {
		p.MinDetectable = new(perHour(v.MinDetectable))
	}
	for _, e := range v.Evidence {
		if !math.IsNaN(e.Value) && !math.IsInf(e.Value, 0) {
			p.Evidence = append(p.Evidence, reporters.Evidence{Name: e.Name, Value: e.Value, Unit: e.Unit})
		}
	}
	for _, w := range v.Warnings {
		p.Warnings = append(p.Warnings, w.Error())
	}
	return p
}

// present makes an empty list of none: in JSON a list is a list.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func since(m detector.Moment, begun time.Duration) *float64 {
	if !m.Known {
		return nil
	}
	return new(round((m.At - begun).Seconds(), 3))
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// perHour makes MB/h of bytes per hour, to a tenth of a kB.
func perHour(bytes float64) float64 { return round(bytes/(1<<20), 4) }

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(x*p) / p
}
