package detector

import (
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// Detector is the state machine of one process. Create one with [New].
type Detector struct {
	policy    Policy
	machine   machine
	badPolicy error
	// absent is the part of the watched time that has no samples.
	absent, watched time.Duration
	// mustSee is the rate, in bytes per hour, of the slowest leak that a pass
	// must rule out; 0 means no requirement.
	mustSee float64
}

// machine is the interface of a policy. Its methods correspond to those of
// [Detector].
type machine interface {
	addSample(Sample) []Transition
	addBreakdown(Breakdown) []Transition
	diagnosisFinished(at time.Duration) []Transition
	restart(at time.Duration) []Transition
	gap(at time.Duration) []Transition
	change(at time.Duration) []Transition
	mark(Mark)
	collected(Sample)
	death(at time.Duration, c Cause)
	endWorkload(at time.Duration)
	measure(Quantity)
	setFamilySize(processes int)
	onLook(func(Look))
	demand() Demand
	verdict() Verdict
}

// New returns a detector for one process. If [Policy.Validate] rejects the
// policy, New uses [DefaultPolicy], and every verdict contains a warning.
func New(p Policy) *Detector {
	d := &Detector{policy: p}
	if err := p.Validate(); err != nil {
		d.policy = DefaultPolicy()
		d.badPolicy = fmt.Errorf("invalid policy; used %q with its defaults instead: %w", d.policy.Name, err)
	}
	if d.policy.Name == PolicyArticle {
		d.machine = newArticleMachine(d.policy)
	} else {
		d.machine = newRobustMachine(d.policy)
	}
	return d
}

// AddSample records a reading of the fast channel and returns the resulting
// transitions. It ignores a sample of 0 bytes (a living process uses more) and
// a sample that is not newer than the previous one. A warning in the verdict
// states the number of ignored readings. The window of policy "article" is a
// fixed number of samples, so samples that arrive faster than [Demand] requests
// make it shorter.
func (d *Detector) AddSample(s Sample) []Transition { return d.machine.addSample(s) }

// AddBreakdown records a reading of dumpsys meminfo and returns the resulting
// transitions. It ignores a breakdown that is not newer than the previous one;
// a warning in the verdict states the number of ignored readings. A breakdown
// may be older than a sample that was added before it, and vice versa.
func (d *Detector) AddBreakdown(b Breakdown) []Transition { return d.machine.addBreakdown(b) }

// DiagnosisFinished records that the diagnosis requested by [Demand], or any
// other diagnosis of this process, has finished. The cooldown starts here.
func (d *Detector) DiagnosisFinished(at time.Duration) []Transition {
	return d.machine.diagnosisFinished(at)
}

// Restart records that the process was replaced by a new one at the given time,
// or that the device's clock was reset. It resets everything except the worst
// state, the times at which SUSPICIOUS and LEAKING were first reached, the
// verdict on the stretches that have ended, and the cooldown.
func (d *Detector) Restart(at time.Duration) []Transition { return d.machine.restart(at) }

// Gap records that the process was not watched for some time; at is the end of
// this gap. In policy "article" no conclusion crosses a gap: its windows are
// emptied as after a restart and suspicion starts over, but a leak that was
// found stays found. In policy "robust" the same applies only to a gap longer
// than [Policy.MaxGap], because after a short gap the process still has the
// same memory.
func (d *Detector) Gap(at time.Duration) []Transition { return d.machine.gap(at) }

// ChangeQuantity records that samples taken at the given time or later measure
// another quantity, such as RssAnon instead of Pss. These samples are not
// compared with earlier ones.
func (d *Detector) ChangeQuantity(at time.Duration) []Transition { return d.machine.change(at) }

// AddMark records a mark on the time axis. Policy "article" ignores it.
func (d *Detector) AddMark(m Mark) { d.machine.mark(m) }

// AddCollected records the level of the process once a forced garbage
// collection has settled. The level must be a sample that was added before. If
// there are at least 12 such levels, they are judged. After a mark "gc", the
// level is a mean over one minute instead. AddCollected adds the level at one
// point in time, so that every loop has a level, even if it lasts only half a
// minute. Policy "article" ignores it.
func (d *Detector) AddCollected(s Sample) { d.machine.collected(s) }

// AddDeath records the cause of death of the life that was last seen at the
// given time on the device's clock. It may be called before or after Restart
// records the next life. Policy "article" ignores it.
func (d *Detector) AddDeath(at time.Duration, c Cause) { d.machine.death(at, c) }

// EndWorkload records that the workload ended. What happens later is not
// evidence against a leak. Policy "article" ignores it.
func (d *Detector) EndWorkload(at time.Duration) { d.machine.endWorkload(at) }

// SetQuantity sets what samples measure from now on. It does not end a series;
// [Detector.ChangeQuantity] does.
func (d *Detector) SetQuantity(q Quantity) { d.machine.measure(q) }

// SetMustSee sets the rate in bytes per hour of the slowest leak that a pass
// must rule out. A pass that could have missed such a leak becomes
// inconclusive. With 0, the default, a pass need not rule out any leak.
func (d *Detector) SetMustSee(rate float64) { d.mustSee = rate }

// SetFamilySize sets the number of processes, including this one, that are
// judged together. The allowed probability of a false alarm is divided among
// these processes. The default is 1.
func (d *Detector) SetFamilySize(processes int) { d.machine.setFamilySize(max(1, processes)) }

// SetCoverage sets how long the process was watched and how much of that time
// has no samples. A process covered for less than half of a run cannot pass.
func (d *Detector) SetCoverage(absent, watched time.Duration) { d.absent, d.watched = absent, watched }

// OnLook sets a function that policy "robust" calls for each look while inputs
// are added.
func (d *Detector) OnLook(f func(Look)) { d.machine.onLook(f) }

// Demand returns what the detector needs next: samples, breakdowns or a
// diagnosis.
func (d *Detector) Demand() Demand { return d.machine.demand() }

// Verdict returns the present verdict. The gate is the one that would apply if
// the run ended now.
func (d *Detector) Verdict() Verdict {
	v := d.machine.verdict()
	if d.policy.Revision != policyRevision {
		v.Warnings = append([]error{
			fmt.Errorf("policy %q: recorded with revision %d of its rules, judged with revision %d",
				d.policy.Name, d.policy.Revision, policyRevision)}, v.Warnings...)
	}
	if v.Gate == Pass && d.absent > d.watched/2 {
		v.Gate = Inconclusive
		v.Because = fmt.Sprintf("no samples for %s of %s: %s", text.Span(d.absent.Seconds()),
			text.Span(d.watched.Seconds()), v.Because)
	}
	v = d.withoutBlindPass(v)
	if d.badPolicy != nil {
		v.Warnings = append([]error{d.badPolicy}, v.Warnings...)
	}
	return v
}

// CompareTo returns the verdict on the difference between this process and the
// same process in base runs that were judged by the same policy. It compares
// floors. Floors are aligned by loop if both runs have loops, and otherwise by
// the time since the beginning of the series. Several base runs show how much
// runs of one build differ. CompareTo does not change any of the detectors.
func (d *Detector) CompareTo(bases ...*Detector) (Verdict, error) {
	head, ok := d.machine.(*robustMachine)
	if !ok {
		return Verdict{}, fmt.Errorf("compare with a base run: policy %q does not support it; use %q",
			d.policy.Name, PolicyRobust)
	}
	if len(bases) == 0 {
		return Verdict{}, errors.New("compare with base runs: no base run given")
	}
	of := make([]*robustMachine, len(bases))
	for i, base := range bases {
		if of[i], ok = base.machine.(*robustMachine); !ok {
			return Verdict{}, fmt.Errorf("compare with a base run: it was judged by policy %q; use %q",
				base.policy.Name, PolicyRobust)
		}
	}
	return d.withoutBlindPass(head.compareTo(of)), nil
}

// withoutBlindPass turns a pass into an inconclusive verdict if the run could
// have missed a leak of the required rate.
func (d *Detector) withoutBlindPass(v Verdict) Verdict {
	if v.Gate == Pass && d.mustSee > 0 && v.MinDetectable > d.mustSee {
		v.Gate = Inconclusive
		v.Because = fmt.Sprintf("must rule out a leak of %s MB/h, but one of %s MB/h could have been missed: %s",
			number(d.mustSee/MB), number(v.MinDetectable/MB), v.Because)
	}
	return v
}
