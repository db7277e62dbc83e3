package detector

import (
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// Detector is the state machine of one process. Make one with [New].
type Detector struct {
	policy    Policy
	machine   machine
	badPolicy error
	// absent is how much of the time watched had no samples.
	absent, watched time.Duration
	// mustSee is in bytes per hour, 0 for no demand.
	mustSee float64
}

// machine is what a policy must answer. The methods are those of [Detector].
type machine interface {
	addSample(Sample) []Transition
	addBreakdown(Breakdown) []Transition
	diagnosisDone(at time.Duration) []Transition
	restart(at time.Duration) []Transition
	gap(at time.Duration) []Transition
	change(at time.Duration) []Transition
	mark(Mark)
	collected(Sample)
	death(at time.Duration, c Cause)
	endWorkload(at time.Duration)
	measure(Quantity)
	among(processes int)
	explain(func(Look))
	demand() Demand
	verdict() Verdict
}

// New makes a detector for one process. A policy that [Policy.Validate] refuses is
// replaced by [DefaultPolicy], and every verdict warns of it.
func New(p Policy) *Detector {
	d := &Detector{policy: p}
	if err := p.Validate(); err != nil {
		d.policy = DefaultPolicy()
		d.badPolicy = fmt.Errorf("apply policy, used %q with its defaults: %w", d.policy.Name, err)
	}
	if d.policy.Name == PolicyArticle {
		d.machine = newArticleMachine(d.policy)
	} else {
		d.machine = newRobustMachine(d.policy)
	}
	return d
}

// AddSample hears one reading of the fast channel and gives the steps it caused. A
// sample that is not newer than the last one, or of no bytes (no living process has
// none), is ignored and counted in the warnings of the verdict. Policy "article" keeps
// a number of samples: those that come faster than [Demand] asks for make its window
// shorter.
func (d *Detector) AddSample(s Sample) []Transition { return d.machine.addSample(s) }

// AddBreakdown hears one reading of dumpsys meminfo and gives the steps it caused. It
// is ignored and counted like a sample; breakdowns and samples may overtake each other.
func (d *Detector) AddBreakdown(b Breakdown) []Transition { return d.machine.addBreakdown(b) }

// DiagnosisDone says that the diagnosis which [Demand] asked for, or any other of this
// process, is complete. The cooldown runs from here.
func (d *Detector) DiagnosisDone(at time.Duration) []Transition { return d.machine.diagnosisDone(at) }

// Restart says that the process has a new identity, or the device a new clock, from at
// on: everything known of the old one is forgotten but the worst state, its times, the
// verdict on what has ended, and the cooldown.
func (d *Detector) Restart(at time.Duration) []Transition { return d.machine.restart(at) }

// Gap says that the process was not watched until at. Policy "article" concludes
// nothing across any gap: its windows are emptied as after a restart, and suspicion
// starts over; a leak that was found stays found. Policy "robust" does so for a gap
// longer than [Policy.MaxGap]: the same process has the same memory after a short one.
func (d *Detector) Gap(at time.Duration) []Transition { return d.machine.gap(at) }

// Change says that from at on samples are of another quantity (Pss, RssAnon), which is
// compared with nothing before it.
func (d *Detector) Change(at time.Duration) []Transition { return d.machine.change(at) }

// AddMark records a mark on the time axis. Policy "article" ignores it.
func (d *Detector) AddMark(m Mark) { d.machine.mark(m) }

// AddCollected records the level of the process once a forced garbage collection has settled: a
// sample that was added before. With at least 12 of them the levels after collections are judged.
// Unlike the mark "gc", after which the mean of a minute is taken, it is the level of one moment, so
// loops of half a minute have levels of their own. Policy "article" ignores it.
func (d *Detector) AddCollected(s Sample) { d.machine.collected(s) }

// AddDeath records why the incarnation ended that was last seen at a time of the device's clock. It may come
// before or after the Restart that follows. Policy "article" ignores it.
func (d *Detector) AddDeath(at time.Duration, c Cause) { d.machine.death(at, c) }

// EndWorkload records that the workload ended: what happens later does not speak against a leak.
// Policy "article" ignores it.
func (d *Detector) EndWorkload(at time.Duration) { d.machine.endWorkload(at) }

// SetQuantity sets what the samples from now on measure. It does not end a series; [Detector.Change]
// does.
func (d *Detector) SetQuantity(q Quantity) { d.machine.measure(q) }

// SetMustSee sets the rate in bytes per hour of the slowest leak that a pass must rule out: a pass
// that could have missed it is inconclusive. 0, the default, demands nothing.
func (d *Detector) SetMustSee(rate float64) { d.mustSee = rate }

// Among says with how many processes, this one included, this one is judged together:
// the false alarms of all of them are what a gate answers for. 1 unless told.
func (d *Detector) Among(processes int) { d.machine.among(max(1, processes)) }

// SetCoverage sets how long the process was watched, and for how much of that time
// there are no samples. Less than half of a run is not enough for a pass.
func (d *Detector) SetCoverage(absent, watched time.Duration) { d.absent, d.watched = absent, watched }

// Explain has each look of policy "robust" told to f while inputs are heard.
func (d *Detector) Explain(f func(Look)) { d.machine.explain(f) }

// Demand is what the machine wants next.
func (d *Detector) Demand() Demand { return d.machine.demand() }

// Verdict is what the machine knows now; its gate is what it would be if the run ended now.
func (d *Detector) Verdict() Verdict {
	v := d.machine.verdict()
	if d.policy.Revision != policyRevision {
		v.Warnings = append([]error{fmt.Errorf("judge by policy %q: recorded by revision %d of its rules, judged by revision %d",
			d.policy.Name, d.policy.Revision, policyRevision)}, v.Warnings...)
	}
	if v.Gate == Pass && d.absent > d.watched/2 {
		v.Gate = Inconclusive
		v.Because = fmt.Sprintf("no samples for %s of %s: %s", text.Span(d.absent.Seconds()), text.Span(d.watched.Seconds()), v.Because)
	}
	v = d.withoutBlindPass(v)
	if d.badPolicy != nil {
		v.Warnings = append([]error{d.badPolicy}, v.Warnings...)
	}
	return v
}

// Against is the verdict on the difference between this process and the same process
// of base runs that were judged by the same policy: floors less floors, aligned by
// loops where both have them, else by the time since their series began. Several base
// runs show by how much runs of one build differ. All detectors stay as they are.
func (d *Detector) Against(bases ...*Detector) (Verdict, error) {
	head, ok := d.machine.(*robustMachine)
	if !ok {
		return Verdict{}, fmt.Errorf("compare with a base run: policy %q cannot; use %q", d.policy.Name, PolicyRobust)
	}
	if len(bases) == 0 {
		return Verdict{}, errors.New("compare with base runs: no base run given")
	}
	of := make([]*robustMachine, len(bases))
	for i, base := range bases {
		if of[i], ok = base.machine.(*robustMachine); !ok {
			return Verdict{}, fmt.Errorf("compare with a base run: it was judged by policy %q; use %q", base.policy.Name, PolicyRobust)
		}
	}
	return d.withoutBlindPass(head.against(of)), nil
}

// withoutBlindPass makes a pass inconclusive that could have missed a leak that must be seen.
func (d *Detector) withoutBlindPass(v Verdict) Verdict {
	if v.Gate == Pass && d.mustSee > 0 && v.MinDetectable > d.mustSee {
		v.Gate = Inconclusive
		v.Because = fmt.Sprintf("a leak of %s MB/h must be ruled out, and one of %s MB/h could have been missed: %s", number(d.mustSee/MB), number(v.MinDetectable/MB), v.Because)
	}
	return v
}
