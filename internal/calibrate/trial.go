package main

import (
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

// usual holds the conditions under which a process is watched unless a table
// states otherwise: it is one of three processes.
var usual = scenario.Conditions{Processes: 3, Diagnosis: 2 * time.Minute}

// trial is one way to watch and judge a process.
type trial struct {
	policy  detector.Policy
	watched scenario.Conditions
	// among is the number of processes judged together; 0 means 1.
	among int
	// hours are the times at which the verdict is read during the run.
	hours []float64
}

// ending is the result of one run.
type ending struct {
	// early holds the gates at the trial's hours; gate is the gate at the end.
	early []detector.Gate
	gate  detector.Gate
	worst detector.State
	kind  detector.LeakKind
	// low and high are the bounds of the interval of the rate in MB/h.
	low, high float64
	rateKnown bool
	// detectable is in MB/h, 0 if unknown.
	detectable float64
	// suspicious and leaking are times in minutes, or never.
	suspicious, leaking float64
}

// found reports whether there was an alarm, either during the run or at the
// end.
func (e ending) found() bool { return e.gate == detector.Leak || e.worst == detector.Leaking }

// play feeds a path to a detector, and returns the detector and the result.
func (t trial) play(p *scenario.Path, r *rand.Rand) (*detector.Detector, ending) {
	d := detector.New(t.policy)
	d.SetFamilySize(max(1, t.among))
	w := scenario.NewWatch(p, d, t.watched, r.Float64)
	var e ending
	for _, h := range t.hours {
		w.Until(int(h*3600/scenario.Grid.Seconds()) + 1)
		e.early = append(e.early, d.Verdict().Gate)
	}
	w.Until(p.Len())
	e.settle(d.Verdict())
	e.follow(w.Steps())
	return d, e
}

func (e *ending) settle(v detector.Verdict) {
	e.gate, e.worst, e.kind = v.Gate, v.Worst, v.Kind
	e.low, e.high, e.rateKnown = v.RateLow/detector.MB, v.RateHigh/detector.MB, v.RateKnown
	e.detectable = v.MinDetectable / detector.MB
}

func (e *ending) follow(steps []detector.Transition) {
	e.suspicious, e.leaking = never, never
	for _, s := range steps {
		if s.To >= detector.Suspicious {
			e.suspicious = min(e.suspicious, s.At.Minutes())
		}
		if s.To == detector.Leaking {
			e.leaking = min(e.leaking, s.At.Minutes())
		}
	}
}

// end is like play, for callers that need only the ending.
func (t trial) end(s *scenario.Scenario, r *rand.Rand) ending {
	_, e := t.play(s.Simulate(r), r)
	return e
}

// robust and article return the trials of the two policies, with a process that
// is watched as usual.
func robust() trial  { return trial{policy: detector.RobustPolicy(), watched: usual} }
func article() trial { return trial{policy: detector.ArticlePolicy(), watched: usual} }

// pair holds the results of the same process judged by policy "robust" and, if
// twice is set, also by policy "article", which is only included for comparison
// and needs fewer runs.
type pair struct {
	robust, article ending
	twice           bool
}

// judge returns the results of the given trial on a path and, if twice is set,
// also those of policy "article".
func judge(p *scenario.Path, how trial, twice bool, r *rand.Rand) pair {
	out := pair{twice: twice}
	_, out.robust = how.play(p, r)
	if twice {
		how.policy, how.hours = detector.ArticlePolicy(), nil
		_, out.article = how.play(p, r)
	}
	return out
}

func gateIs(g detector.Gate) func(ending) bool { return func(e ending) bool { return e.gate == g } }

func worstIs(s detector.State) func(ending) bool { return func(e ending) bool { return e.worst >= s } }

// ofRobust and ofArticle return the results of one policy from all pairs that
// have such a result.
func ofRobust(all []pair) []ending {
	out := make([]ending, len(all))
	for i, p := range all {
		out[i] = p.robust
	}
	return out
}

func ofArticle(all []pair) []ending {
	var out []ending
	for _, p := range all {
		if p.twice {
			out = append(out, p.article)
		}
	}
	return out
}

func suspicions(all []ending) []float64 {
	return pick(all, func(e ending) float64 { return e.suspicious })
}

func leakings(all []ending) []float64 { return pick(all, func(e ending) float64 { return e.leaking }) }
