package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Record returns the account's entry in run.json. processes is the number of
// processes in the run.
func (a *Account) Record(processes int) record.Process {
	a.Detector.SetFamilySize(processes)
	a.Detector.SetCoverage(clockOf(a.absent), clockOf(max(a.part.last, a.Last)-max(a.part.since, a.opened)))
	if a.part.workloadEnded() != nil {
		// The detector is notified of the end of a workload only here, because
		// another workload could have followed.
		a.Detector.EndWorkload(a.part.load.up)
	}
	v := a.Detector.Verdict()
	p := record.Process{
		Device: a.Device(), User: a.User, Process: a.Key().Name, PID: a.PID,
		Source: string(a.source), Reasons: present(a.reasons),
		Restarts: a.restarts, Samples: a.Samples, Details: a.details,
		Missed: a.missed, Gaps: a.gaps, Missing: record.Round(a.absent, 3), Paused: record.Round(a.paused, 3),
		Duration:        record.Round(v.Duration.Seconds(), 3),
		FirstSuspicious: a.firstSuspicious, FirstLeaking: a.firstLeaking,
		Headroom: a.limits.standings(), HeadroomReasons: present(a.limits.reasons), Limits: present(a.limits.warnings),
		Transitions: present(a.transitions), Warnings: append([]string{}, a.warnings...),
	}
	p.AtMarks, p.CountsAtMarks, p.Objects = a.seriesAtMarks(), a.countsAtMarks(), a.objectCounts()
	if n := a.part.skippedMarks; n > 0 && len(p.AtMarks)+len(p.CountsAtMarks) > 0 {
		p.Warnings = append(p.Warnings,
			fmt.Sprintf("its results at marks are incomplete: %s skipped because they came too fast",
				text.Count(n, "mark was", "marks were")))
	}
	p.Deaths, p.DeathsByReason = append([]record.Death{}, a.deaths...), map[string]int{}
	p.Faults, p.FaultCount = append([]record.Death{}, a.faults...), a.faultCount
	maps.Copy(p.DeathsByReason, a.reasonsOfDeath)
	p.Findings = a.incidents.list()
	p.Alive, p.LongestStretch = record.Round(a.presence.alive(a.part.last), 3), record.Round(a.presence.longest, 3)
	if v.Gate == detector.Inconclusive && p.Restarts == 0 && p.Gaps > 0 && tooShort(p) {
		v.Because = runReason(p, v, a.watched())
	}
	SetVerdict(&p, v)
	p.State, p.Worst, p.Jumps = v.State, v.Worst, a.jumpsOf(v.Jumps)
	if a.Samples > 0 {
		p.LastMB = new(mb(a.LastBytes))
	}
	if a.impossible > 0 {
		p.Warnings = append(p.Warnings,
			text.Plural(a.impossible, "value is impossible and counts", "values are impossible and count")+
				" as missing: a process has more than 0 kB, and no more than its device")
	}
	if n := a.limits.dropped; n > 0 {
		p.Warnings = append(p.Warnings,
			text.Plural(n, "more early warning about limits is skipped",
				"more early warnings about limits are skipped"))
	}
	if a.dropped > 0 {
		p.Warnings = append(p.Warnings,
			text.Plural(a.dropped, "earlier transition is skipped here; samples.ndjson has it",
				"earlier transitions are skipped here; samples.ndjson has them"))
	}
	for _, u := range a.part.usage.Apps {
		if u.Process == a.Key().Name && u.User == a.User {
			p.CPU, p.CostCPU = u.CPU, u.Cost
		}
	}
	return p
}

// AliveUntil returns the total time, in seconds, for which the process was
// present before time t of the run.
func (a *Account) AliveUntil(t float64) float64 { return a.presence.alive(t) }

// watched returns how long the device has been watched, in seconds.
func (a *Account) watched() float64 { return a.part.last - a.part.since }

// Unjudged returns why there is no verdict on the process with the record p. It
// returns "" if there is a verdict, or if a missing verdict does not matter.
func (a *Account) Unjudged(p record.Process) string { return Unjudged(p, a.watched()) }

// SetVerdict replaces the verdict in the record of a process, but not its
// states and jumps. A leak that is proved by dumps or counts at marks is kept.
func SetVerdict(p *record.Process, v detector.Verdict) {
	p.Gate, p.TrendGate, p.Kind, p.Reason = v.Gate, v.Gate, v.Kind, v.Because
	p.Flat = record.Round(v.Flat.Seconds(), 3)
	p.Growth, p.Shares, p.Evidence = mb(v.Growth), shares(v.Shares), []record.Evidence{}
	p.Rate, p.RateInterval, p.MinDetectable, p.MinDetectableLately = nil, nil, nil, nil
	if v.RateKnown {
		p.Rate = new(perHour(v.Rate))
		p.RateInterval = []float64{perHour(v.RateLow), perHour(v.RateHigh)}
	}
	if v.MinDetectable > 0 {
		p.MinDetectable = new(perHour(v.MinDetectable))
	}
	if v.MinDetectableLately > 0 {
		p.MinDetectableLately = new(perHour(v.MinDetectableLately))
	}
	for _, e := range v.Evidence {
		if finite(e.Value) {
			p.Evidence = append(p.Evidence, record.Evidence{Name: e.Name, Value: e.Value, Unit: e.Unit})
		}
	}
	judgeAtMarks(p)
	judgeByCounts(p)
	for _, w := range v.Warnings {
		if text := w.Error(); !slices.Contains(p.Warnings, text) {
			p.Warnings = append(p.Warnings, text)
		}
	}
}

// jumpsOf converts the jumps of a verdict to the run's time axis. For the
// latest jumps, t_s is computed from the reading of the device's clock that was
// recorded with the jump; for earlier jumps, from the current one.
func (a *Account) jumpsOf(jumps []detector.Jump) []record.Jump {
	out := make([]record.Jump, len(jumps))
	for i, j := range jumps {
		zero := a.part.begun
		if recorded := len(a.jumps) - len(jumps) + i; recorded >= 0 {
			zero = a.jumps[recorded]
		}
		out[i] = record.Jump{T: record.Round((j.At - zero).Seconds(), 3), Size: mb(j.Bytes), Sustained: j.Stayed}
	}
	return out
}

func shares(of []detector.Share) []record.Share {
	out := make([]record.Share, len(of))
	for i, s := range of {
		out[i] = record.Share{
			Dimension: s.Dimension.String(), Growth: mb(s.Growth), Share: record.Round(s.Share, 4),
			Rate: perHour(s.Rate),
		}
	}
	return out
}

// present replaces nil with an empty list, so that JSON contains a list and not
// null.
func present[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// mb converts bytes to MB, rounded to two decimal places.
func mb(bytes int64) float64 { return record.Round(float64(bytes)/detector.MB, 2) }

// perHour converts bytes per hour to MB/h, rounded to four decimal places.
func perHour(bytes float64) float64 { return record.Round(bytes/detector.MB, 4) }
