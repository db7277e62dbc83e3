package ledger

import (
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// Judged reports whether the app has a series that can be judged.
func (x *AppSum) Judged() bool { return x.Samples > 0 && !x.disordered }

// CountJudged returns the number of apps with a series that can be judged.
func CountJudged(apps []*AppSum) int {
	n := 0
	for _, x := range apps {
		if x.Judged() {
			n++
		}
	}
	return n
}

// maxNamed is the maximum number of processes of an app that run.json names.
const maxNamed = 50

// Record returns the record of the app for run.json, with the app's own
// verdict, in a run with the given number of series. [RelateApps] adds how the
// verdict relates to those on the app's processes.
func (x *AppSum) Record(together int) record.AppVerdict {
	// If the app has no sum at the end of the run, the time since the latest
	// sum also counts as a gap, unless the app has ended.
	absent, last := x.absent, x.Last
	for _, m := range x.members {
		last = max(last, m.part.last)
	}
	if gap := last - x.Last; x.living() > 0 && gap > maxHold.Seconds() {
		x.absent += gap
	}
	p := x.Account.Record(together)
	x.absent = absent
	out := record.AppVerdict{
		Device: p.Device, User: p.User, App: p.Process, Processes: []string{}, Leaking: []string{},
		Samples: p.Samples, Details: p.Details, Restarts: p.Restarts, Gaps: p.Gaps, Missing: p.Missing,
		Duration: p.Duration, LastMB: p.LastMB,
		State: p.State, Worst: p.Worst, Gate: p.Gate, Kind: p.Kind, FirstSuspicious: p.FirstSuspicious,
		FirstLeaking: p.FirstLeaking,
		Rate:         p.Rate, RateInterval: p.RateInterval, MinDetectable: p.MinDetectable, Growth: p.Growth,
		Shares: p.Shares, Jumps: p.Jumps,
		Reason: p.Reason, Evidence: p.Evidence, Transitions: p.Transitions, Warnings: p.Warnings,
	}
	for _, m := range x.members {
		if len(out.Processes) < maxNamed && !slices.Contains(out.Processes, m.Key().Name) {
			out.Processes = append(out.Processes, m.Key().Name)
		}
	}
	x.Explain(&out)
	return out
}

// Explain adds the growth of each process to the record of an app. It withdraws
// a leak verdict if at least half of the growth belongs to processes that
// started meanwhile. It must be called after every new verdict on the app.
func (x *AppSum) Explain(out *record.AppVerdict) {
	switch {
	case x.disordered:
		out.Gate = detector.Inconclusive
		out.Reason = "its processes are not added up: the rows are not in time order; sort the table by t_s"
	case x.Samples == 0 && x.mixed:
		out.Reason = "its processes are not added up: some are measured in Pss, others in RssAnon"
	case x.Samples == 0:
		out.Reason = "its processes were never read in the same round"
	}
	list, grown, born := x.since(x.windowOf(out))
	out.ByProcess = present(list)
	if out.Gate == detector.Leak && grown > 0 && born >= grown/2 {
		out.Gate = detector.Inconclusive
		out.Reason = fmt.Sprintf(
			"%.0f of %.0f MB belong to processes that started during the growth: the number of processes grew, "+
				"which is not a leak; %s", born,
			grown, out.Reason)
	}
}

// windowOf returns t_s at the beginning of the growth on which a verdict is
// based, computed from the rate of this growth.
func (x *AppSum) windowOf(out *record.AppVerdict) float64 {
	if out.Rate == nil || *out.Rate <= 0 || out.Growth <= 0 {
		return x.First
	}
	return max(x.First, x.Last - out.Growth / *out.Rate * 3600)
}

// RelateApps compares the verdicts on apps with those on their processes. It
// lists the leaking processes of each app, because they explain the growth of
// the sum. If a process leaks while the sum does not grow, it may have taken
// over the memory of another process; the verdict on the process then mentions
// this.
func RelateApps(apps []*record.AppVerdict, processes []*record.Process) {
	for _, x := range apps {
		for _, p := range processes {
			if p.Device != x.Device || p.User != x.User || p.Gate != detector.Leak ||
				(capture.Process{Name: p.Process}).Package() != x.App {
				continue
			}
			if !slices.Contains(x.Leaking, p.Process) && len(x.Leaking) < maxNamed {
				x.Leaking = append(x.Leaking, p.Process)
			}
			if flat(x, p) {
				p.Warnings = append(p.Warnings,
					fmt.Sprintf(
						"all processes of %s together do not grow (at most %.1f MB/h): the memory may have moved "+
							"here from another process", text.Printable(x.App), max(0, x.RateInterval[1])))
			}
		}
	}
}

// flat reports whether the sum grows more slowly than a leaking process.
func flat(x *record.AppVerdict, p *record.Process) bool {
	if x.Gate != detector.Pass && x.Gate != detector.Settled || len(x.RateInterval) != 2 || len(p.RateInterval) != 2 {
		return false
	}
	return x.RateInterval[1] < p.RateInterval[0]
}
