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
	// evidence holds the numbers that support the last leak; because is the
	// sentence that explains it.
	evidence []Evidence

	// now is the latest timestamp received; readings older than epoch are
	// ignored.
	now, epoch                time.Duration
	lastSample, lastBreakdown known.Duration
	diagnosed                 known.Duration
	// firstSuspicious and firstLeaking never change once set.
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

// addSample records a reading of the fast channel and returns the resulting
// transitions. It ignores a sample of 0 bytes (a living process uses more) and
// a sample that is not newer than the previous one. A warning in the verdict
// states the number of ignored readings. The window is a fixed number of
// samples, so samples that arrive faster than [Demand] requests make it
// shorter.
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

// addBreakdown records a reading of dumpsys meminfo and returns the resulting
// transitions. It ignores a breakdown that is not newer than the previous one;
// a warning in the verdict states the number of ignored readings. A breakdown
// may be older than a sample that was added before it, and vice versa.
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

// diagnosisFinished records that the diagnosis requested by [Demand], or any
// other diagnosis of this process, has finished. The cooldown starts here.
func (d *articleMachine) diagnosisFinished(at time.Duration) []Transition {
	d.now = max(d.now, at)
	d.diagnosed = known.OfDuration(max(at, d.diagnosed.N))
	d.look.pending = false
	return d.step(onDiagnosis)
}

// restart records that the process was replaced by a new one at the given time,
// or that the device's clock was reset. It resets everything except the worst
// state, the times at which SUSPICIOUS and LEAKING were first reached, and the
// cooldown.
func (d *articleMachine) restart(at time.Duration) []Transition {
	d.restarts++
	if d.diagnosed.Known && d.diagnosed.N > at {
		// The clock was reset, so the age of the last diagnosis is unknown.
		d.diagnosed = known.Duration{}
	}
	d.endSeries(at)
	d.now = at
	d.series.driver = driverMemory{}
	d.history.newProcess()
	return d.step(onRestart)
}

// gap records that the device was not watched for some time; at is the end of
// this gap. No conclusion crosses a gap: the windows are emptied as after a
// restart and suspicion starts over. The state LEAKING is kept.
func (d *articleMachine) gap(at time.Duration) []Transition {
	// A clock that goes backwards means a restart, not a gap. A breakdown that
	// was added before the gap may be newer than the sample that ends it.
	if d.lastSample.Known && at <= d.lastSample.N {
		at = d.now
	}
	at = max(at, d.epoch)
	d.now = max(d.now, at)
	d.endSeries(at)
	return d.step(onGap)
}

// endSeries empties the windows and starts a new series at the given time.
// Readings with an earlier timestamp are ignored from then on.
func (d *articleMachine) endSeries(at time.Duration) {
	d.history.close(&d.a, d.series, d.look)
	d.series.reset()
	d.epoch = at
	d.lastSample, d.lastBreakdown = known.Duration{}, known.Duration{}
	d.look = look{spikeArmed: true, event: d.look.event, pending: d.look.pending}
}

// demand returns what the detector needs next.
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

// accept reports whether a reading at the given time belongs to this series and
// is newer than the last one of its type. It records the time of an accepted
// reading.
func (d *articleMachine) accept(at time.Duration, last *known.Duration) bool {
	if at < 0 || at < d.epoch || last.Known && at <= last.N {
		return false
	}
	*last = known.OfDuration(at)
	d.now = max(d.now, at)
	return true
}

// inCooldown reports whether the time since the last diagnosis is shorter than
// the cooldown.
func (d *articleMachine) inCooldown() bool {
	return d.diagnosed.Known && d.now-d.diagnosed.N < d.policy.Cooldown
}

// step finds the first row of the table that matches the state and the input
// and whose condition holds, and performs its transition.
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

// take performs the transition of a row.
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

// change handles a change of the quantity: it ends the series in the same way
// as a gap.
func (d *articleMachine) change(at time.Duration) []Transition { return d.gap(at) }

// Policy "article" ignores marks, the number of processes, causes of death, the
// end of the workload and the quantity, and it calls no function for looks.
func (d *articleMachine) mark(Mark)                  {}
func (d *articleMachine) setFamilySize(int)          {}
func (d *articleMachine) death(time.Duration, Cause) {}
func (d *articleMachine) endWorkload(time.Duration)  {}
func (d *articleMachine) measure(Quantity)           {}
func (d *articleMachine) onLook(func(Look))          {}
