package scenario

import (
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
)

// boot is the device's clock when a run begins.
const boot = 1000 * time.Second

// Conditions describes how a path is watched.
type Conditions struct {
	// Processes is the number of processes that share the detail channel, which
	// reads one process every 30 s; 0 means 3.
	Processes int
	// Interval is the time between two samples; 0 means the interval that the
	// detector demands.
	Interval time.Duration
	// Drop is the probability that a sample is lost.
	Drop float64
	// Diagnosis is the duration of a diagnosis. If it is 0, demands for a
	// diagnosis are never met.
	Diagnosis time.Duration
	// NoBreakdowns disables the detail channel.
	NoBreakdowns bool
	// Anonymous reads only RssAnon and VmSwap: the samples then lack the memory
	// of Code, Other and System.
	Anonymous bool
	// LoopEvery is the time between the marks that begin a loop of the
	// workload; 0 means no marks.
	LoopEvery time.Duration
}

// at returns the device time of a grid point.
func at(i int) time.Duration { return boot + time.Duration(i)*Grid }

// Sample returns what the fast channel reads at a point: everything but
// Graphics.
func (p *Path) Sample(i int) detector.Sample {
	return detector.Sample{At: at(i), Bytes: int64((p.total(i) - p.Dims[Graphics][i]) * detector.MB)}
}

// anonymous returns what the fast channel reads if only /proc/PID/status is
// readable.
func (p *Path) anonymous(i int) detector.Sample {
	return detector.Sample{
		At: at(i), Bytes: int64((p.Dims[Java][i] + p.Dims[Native][i] + p.Dims[Stack][i]) * detector.MB),
	}
}

func (p *Path) total(i int) float64 {
	sum := 0.0
	for d := range p.Dims {
		sum += p.Dims[d][i]
	}
	return sum
}

// Breakdown returns what dumpsys meminfo reports at a point. All of Graphics is
// EGL mtrack.
func (p *Path) Breakdown(i int) detector.Breakdown {
	b := detector.Breakdown{At: at(i), GL: known.Of(0), GfxDev: known.Of(0)}
	for d := range p.Dims {
		b.Dim[d] = known.Of(int64(max(0, p.Dims[d][i]) * detector.MB)) // noise may make it negative
	}
	b.EGL = b.Dim[detector.Graphics]
	b.Dim[detector.Total] = known.Of(int64(p.total(i) * detector.MB))
	return b
}

// Play feeds a path to a detector and returns its transitions, with times
// counted from the beginning of the path. The function chance returns random
// numbers from 0 to 1, which determine whether a sample is lost; it may be nil
// if no samples are lost.
func Play(p *Path, d *detector.Detector, c Conditions, chance func() float64) []detector.Transition {
	w := NewWatch(p, d, c, chance)
	w.Until(p.Len())
	return w.Steps()
}

// Watch is a path that is being fed to a detector, for callers that use the
// detector during the run. Create one with [NewWatch].
type Watch struct {
	p      *Path
	d      *detector.Detector
	c      Conditions
	chance func() float64
	steps  []detector.Transition

	// next is the next point to play; sampleDue, turnDue, extraDue and loopDue
	// are the points at which these events are due.
	next                                  int
	sampleDue, turnDue, extraDue, loopDue int
	// diagnosed is the point at which the diagnosis in progress ends; 0 if
	// there is none.
	diagnosed int
	restarts  int
	blind     bool
	// idle reports whether the workload has ended.
	idle bool
}

// NewWatch returns a Watch at the beginning of a path. With [Watch.Until], a
// path can be played in several calls, with the same result as [Play].
func NewWatch(p *Path, d *detector.Detector, c Conditions, chance func() float64) *Watch {
	if c.Processes == 0 {
		c.Processes = 3
	}
	if c.Anonymous {
		d.SetQuantity(detector.Anonymous)
	}
	return &Watch{p: p, d: d, c: c, chance: chance}
}

// Until plays the path up to the point n of the grid, exclusive.
func (w *Watch) Until(n int) {
	for ; w.next < min(n, w.p.Len()); w.next++ {
		w.point(w.next)
	}
}

// Steps returns the transitions of the detector so far, with times counted from
// the beginning of the path.
func (w *Watch) Steps() []detector.Transition { return w.steps }

// points returns the number of grid steps that is closest to a duration.
func points(d time.Duration) int { return max(1, int((d+Grid/2)/Grid)) }

func (w *Watch) take(steps []detector.Transition) {
	for _, s := range steps {
		s.At -= boot
		w.steps = append(w.steps, s)
	}
}

func (w *Watch) point(i int) {
	if w.away(minuteOf(i)) {
		w.blind = true
		return
	}
	born := w.p.Scenario.Restarts
	if w.restarts < len(born) && minuteOf(i) >= born[w.restarts] {
		w.restarts++
		w.diagnosed = 0
		w.take(w.d.Restart(at(i)))
		w.d.AddDeath(at(i)-Grid, w.p.Scenario.Dies)
	}
	if end := w.p.Scenario.WorkEnd; end > 0 && !w.idle && minuteOf(i) >= end {
		w.idle = true
		w.d.EndWorkload(at(i))
	}
	if w.blind {
		w.blind = false
		w.take(w.d.Gap(at(i)))
	}
	if w.c.LoopEvery > 0 && i >= w.loopDue {
		w.d.AddMark(detector.Mark{At: at(i), Text: "loop"})
		w.loopDue = i + points(w.c.LoopEvery)
	}
	w.detail(i)
	w.fast(i)
	w.diagnose(i)
}

func (w *Watch) away(minute float64) bool {
	for _, g := range w.p.Scenario.Gaps {
		if minute >= g.From && minute < g.To {
			return true
		}
	}
	return false
}

func (w *Watch) detail(i int) {
	if w.c.NoBreakdowns {
		return
	}
	want := w.d.Demand()
	switch {
	case i >= w.turnDue:
		w.turnDue = i + points(time.Duration(w.c.Processes)*30*time.Second)
	case want.Breakdowns > 0 && i >= w.extraDue:
	default:
		return
	}
	w.extraDue = i + points(want.Spacing)
	w.take(w.d.AddBreakdown(w.p.Breakdown(i)))
}

func (w *Watch) fast(i int) {
	if i < w.sampleDue {
		return
	}
	if w.c.Drop == 0 || w.chance() >= w.c.Drop {
		s := w.p.Sample(i)
		if w.c.Anonymous {
			s = w.p.anonymous(i)
		}
		w.take(w.d.AddSample(s))
	}
	interval := w.c.Interval
	if interval == 0 {
		interval = w.d.Demand().Interval
	}
	w.sampleDue = i + points(interval)
}

func (w *Watch) diagnose(i int) {
	switch {
	case w.c.Diagnosis == 0:
	case w.d.Demand().Diagnose == detector.None:
		w.diagnosed = 0
	case w.diagnosed == 0:
		w.diagnosed = i + points(w.c.Diagnosis)
	case i >= w.diagnosed:
		w.diagnosed = 0
		w.take(w.d.DiagnosisFinished(at(i)))
	}
}
