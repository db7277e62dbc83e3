package detector

import (
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// articleMachine is the state machine of policy "article".
type articleMachine struct {
	policy Policy
	a      articleRules
	series *series

	state, worst State
	// entered is when the present state began, on the device's clock.
	entered time.Duration
	kind    LeakKind
	because string
	// evidence stands behind the last leak, because its sentence.
	evidence []Evidence

	// now is the latest time heard of; epoch the earliest that still counts.
	now, epoch                time.Duration
	lastSample, lastBreakdown known.Duration
	diagnosed                 known.Duration
	// firstSuspicious and firstLeaking never change once known.
	firstSuspicious, firstLeaking known.Duration

	look    look
	history history

	restarts, ignored, breakdowns int
}

func newArticleMachine(p Policy) *articleMachine {
	d := &articleMachine{policy: p, a: defaultArticle()}
	d.series = newSeries(&d.a)
	d.look.spikeArmed = true
	return d
}

// addSample hears one reading of the fast channel and gives the steps it caused. A
// sample that is not newer than the last one, or of no bytes (no living process has
// none), is ignored and counted in the warnings of the verdict. Samples that come
// faster than [Demand] asks for make the window, which is a number of samples, shorter.
func (d *articleMachine) addSample(s Sample) []Transition {
	if s.Bytes <= 0 || !d.accept(s.At, &d.lastSample) {
		d.ignored++
		return nil
	}
	d.series.addSample(s)
	d.history.sample(&d.a, d.series)
	d.observe()
	return d.step(onSample)
}

// addBreakdown hears one reading of dumpsys meminfo and gives the steps it caused. It
// is ignored and counted like a sample; breakdowns and samples may overtake each other.
func (d *articleMachine) addBreakdown(b Breakdown) []Transition {
	if !d.accept(b.At, &d.lastBreakdown) {
		d.ignored++
		return nil
	}
	d.breakdowns++
	if raised := d.series.addBreakdown(b); raised != 0 {
		d.look.level += raised
		d.history.raise(raised)
	}
	if d.state == Confirming && b.At >= d.entered {
		d.look.fresh++
	}
	d.look.gpuDue = true
	return d.step(onBreakdown)
}

// diagnosisDone says that the diagnosis which [Demand] asked for, or any other of this
// process, is complete. The cooldown runs from here.
func (d *articleMachine) diagnosisDone(at time.Duration) []Transition {
	d.now = max(d.now, at)
	d.diagnosed = known.OfDuration(max(at, d.diagnosed.N))
	d.look.pending = false
	return d.step(onDiagnosis)
}

// restart says that the process has a new identity, or the device a new clock, from at
// on: everything known of the old one is forgotten but the worst state, its times and
// the cooldown.
func (d *articleMachine) restart(at time.Duration) []Transition {
	d.restarts++
	if d.diagnosed.Known && d.diagnosed.N > at {
		// The clock began anew: how long ago the diagnosis was is not known.
		d.diagnosed = known.Duration{}
	}
	d.breakOff(at)
	d.now = at
	d.series.driver = driverMemory{}
	d.history.newProcess()
	return d.step(onRestart)
}

// gap says that the device was not watched until at: nothing is concluded across it.
// The windows are emptied as after a restart, and suspicion starts over; a leak that
// was found stays found.
func (d *articleMachine) gap(at time.Duration) []Transition {
	// A clock that goes back is a restart, not a gap. A breakdown may have overtaken
	// the sample that ends the gap, which counts all the same.
	if d.lastSample.Known && at <= d.lastSample.N {
		at = d.now
	}
	at = max(at, d.epoch)
	d.now = max(d.now, at)
	d.breakOff(at)
	return d.step(onGap)
}

// breakOff ends the series; inputs from before at do not count any more.
func (d *articleMachine) breakOff(at time.Duration) {
	d.history.close(&d.a, d.series, d.look)
	d.series.reset()
	d.epoch = at
	d.lastSample, d.lastBreakdown = known.Duration{}, known.Duration{}
	d.look = look{spikeArmed: true, event: d.look.event, pending: d.look.pending}
}

// demand is what the machine wants next.
func (d *articleMachine) demand() Demand {
	switch d.state {
	case Suspicious:
		return Demand{Interval: d.policy.SuspiciousInterval}
	case Confirming:
		return Demand{
			Interval:   d.policy.SuspiciousInterval,
			Breakdowns: max(0, d.a.extraBreakdowns-d.look.fresh),
			Spacing:    d.a.extraSpacing,
		}
	case Leaking:
		want := Demand{Interval: d.policy.LeakingInterval}
		if d.look.pending {
			want.Diagnose = d.kind
		}
		return want
	}
	return Demand{Interval: d.policy.NormalInterval}
}

// accept says whether a reading at a time is new, and takes the time.
func (d *articleMachine) accept(at time.Duration, last *known.Duration) bool {
	if at < 0 || at < d.epoch || last.Known && at <= last.N {
		return false
	}
	*last = known.OfDuration(at)
	d.now = max(d.now, at)
	return true
}

// cooling says whether the last diagnosis is less than the cooldown ago.
func (d *articleMachine) cooling() bool {
	return d.diagnosed.Known && d.now-d.diagnosed.N < d.policy.Cooldown
}

// step takes the first row of the table that starts in the present state, listens to
// the input and holds.
func (d *articleMachine) step(in input) []Transition {
	for i := range articleTable {
		row := &articleTable[i]
		if row.from != d.state || row.on&in == 0 {
			continue
		}
		if because, ok := row.holds(d); ok {
			return []Transition{d.take(row, because)}
		}
	}
	return nil
}

// take goes where a row leads.
func (d *articleMachine) take(r *row, because string) Transition {
	t := Transition{At: d.now, From: d.state, To: r.to, Rule: r.rule, Because: because}
	d.leave(r)
	d.state, d.entered = r.to, d.now
	d.worst = max(d.worst, r.to)
	switch r.to {
	case Suspicious:
		d.look.level = d.series.current()
		d.look.suspected = known.OfDuration(d.now)
		if !d.firstSuspicious.Known {
			d.firstSuspicious = known.OfDuration(d.now)
		}
	case Leaking:
		t.Kind, d.because = d.kind, because
		t.Because += d.enterLeaking()
	}
	return t
}

// change ends the series like a gap.
func (d *articleMachine) change(at time.Duration) []Transition { return d.gap(at) }

// Marks, the number of processes and looks have no meaning in the article.
func (d *articleMachine) mark(Mark)                  {}
func (d *articleMachine) among(int)                  {}
func (d *articleMachine) death(time.Duration, Cause) {}
func (d *articleMachine) endWorkload(time.Duration)  {}
func (d *articleMachine) measure(Quantity)           {}
func (d *articleMachine) explain(func(Look))         {}
