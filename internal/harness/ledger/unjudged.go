package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// TrendNeeds is the minimum length of a stretch that can be judged by its
// trend. A stretch is a sequence of samples without a restart or a long gap.
const TrendNeeds = 30 * time.Minute

const (
	// stretchSlack is how much shorter than TrendNeeds a stretch may be. In a
	// run of exactly that length, the first sample is taken shortly after the
	// start and the last one shortly before the end.
	stretchSlack = time.Minute
	// A process without a verdict makes a run unjudged if it was present for
	// more than materialShare of the run, or for more than materialTime if that
	// is less. Therefore a helper process that runs for 20 s does not make a
	// whole overnight run fail.
	materialShare = 0.1
	materialTime  = 5 * time.Minute
	// maxUnjudged is the maximum number of processes without a verdict in
	// run.json.
	maxUnjudged = 1000
)

// presence records how long a process has been present, and the stretches of
// its series.
type presence struct {
	// since is the t_s at which the current life appeared; nil if there is no
	// current life. before is the total duration of earlier lives in seconds.
	since  *float64
	before float64
	// begun and last are the times (t_s) of the first and the latest sample of
	// the current stretch, if there is one; longest is the length in seconds of
	// the longest stretch.
	open        bool
	begun, last float64
	longest     float64
}

// arrive records that the process has appeared.
func (l *presence) arrive(t float64) {
	if l.since == nil {
		l.since = &t
	}
}

// depart records that the process has ended.
func (l *presence) depart(t float64) {
	if l.since != nil {
		l.before += max(0, t-*l.since)
	}
	l.since, l.open = nil, false
}

// sample adds a sample to the current stretch. A stretch ends at a gap that is
// longer than gap seconds.
func (l *presence) sample(t, gap float64) {
	if !l.open || t-l.last > gap {
		l.open, l.begun = true, t
	}
	l.last = t
	l.longest = max(l.longest, t-l.begun)
}

// alive returns how long the process was present until a time of the run, in
// seconds.
func (l *presence) alive(until float64) float64 {
	if l.since == nil {
		return l.before
	}
	return l.before + max(0, until-*l.since)
}

// Unjudged returns why there is no verdict on a process in a run of the given
// length in seconds, and what is needed for a verdict. It returns "" if there
// is a verdict, if the process was present for too short a time to matter, or
// if its series is long enough but its growth is ambiguous.
func Unjudged(p record.Process, seconds float64) string {
	switch {
	case Judged(p), !tooShort(p), p.Alive <= min(materialShare*seconds, materialTime.Seconds()):
		return ""
	}
	name := text.Head(p.Process, maxText)
	needs := "a trend needs " + minutes(TrendNeeds.Seconds())
	const atMarks = "dump heaps at marks (`diagnose.dump: at_marks`)"
	if n := len(p.AtMarks); n > 0 {
		return fmt.Sprintf("%s %s; %s: set more marks in one life of the process", name, describeLives(p, seconds),
			p.AtMarks[n-1].Reason)
	}
	switch {
	case p.Samples == 0:
		return fmt.Sprintf("%s was running for %s and could not be read: `leakgate doctor` reports what is missing",
			name, minutes(p.Alive))
	case p.Restarts > 0:
		return fmt.Sprintf("%s %s; %s without a restart: %s, or keep the process alive for that long", name,
			describeLives(p, seconds), needs, atMarks)
	}
	return fmt.Sprintf("%s %s; %s: run for 30m or longer, or %s", name, describeLives(p, seconds), needs, atMarks)
}

// tooShort reports whether even the longest stretch of a process is too short
// for a trend.
func tooShort(p record.Process) bool { return p.LongestStretch < (TrendNeeds - stretchSlack).Seconds() }

// describeLives returns the reason why the longest stretch of a process is too
// short for a trend, such as restarts or gaps. The run lasts the given number
// of seconds.
func describeLives(p record.Process, seconds float64) string {
	switch {
	case p.Restarts > 0 && p.LongestStretch == 0:
		return fmt.Sprintf("restarted %s, no life long enough for two samples", text.Count(p.Restarts, "time", "times"))
	case p.Restarts > 0:
		return fmt.Sprintf("restarted %s, longest life %s", text.Count(p.Restarts, "time", "times"),
			minutes(p.LongestStretch))
	case p.Gaps > 0 && p.Alive > 2*p.LongestStretch:
		return fmt.Sprintf("could not be read for %s of %s, longest stretch %s", minutes(p.Missing), minutes(p.Alive),
			minutes(p.LongestStretch))
	case p.Alive < seconds-TrendNeeds.Seconds():
		return fmt.Sprintf("was running for only %s of %s", minutes(p.Alive), minutes(seconds))
	}
	return fmt.Sprintf("was watched for only %s", minutes(p.LongestStretch))
}

// minutes formats a duration as in a verdict: 40 s, 9 min, 8.0 h.
func minutes(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 2*3600:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.1f h", seconds/3600)
}

// runReason returns the reason for the verdict on a process whose longest
// stretch is too short for a trend. The detector's reason is added if the rate
// is known.
func runReason(p record.Process, v detector.Verdict, seconds float64) string {
	because := fmt.Sprintf("%s; a trend needs %s", describeLives(p, seconds), minutes(TrendNeeds.Seconds()))
	if v.RateKnown {
		because += "; " + v.Because
	}
	return because
}

// unjudged returns the processes and the devices without a verdict. A verdict
// from a check or a window is sufficient.
func unjudged(r record.Run) []record.Unjudged {
	out := []record.Unjudged{}
	seconds := map[string]float64{}
	for _, d := range r.Devices {
		seconds[d.Device] = d.Duration
	}
	for _, p := range r.Processes {
		if why := Unjudged(p, seconds[p.Device]); why != "" && len(out) < maxUnjudged && !judgedWithin(r, p) {
			out = append(out, record.Unjudged{Device: p.Device, User: p.User, Process: p.Process, Text: why})
		}
	}
	if len(r.Processes) == 0 || len(r.Devices) < 2 {
		return out // already reported for the entire run
	}
	for _, d := range r.Devices {
		listed := slices.ContainsFunc(out, func(u record.Unjudged) bool { return u.Device == d.Device })
		if why := deviceUnjudged(r, d); why != "" && !listed && d.Error == "" {
			out = append(out, record.Unjudged{Device: d.Device, Text: why})
		}
	}
	return out
}

// judgedWithin reports whether a check or a window produced a verdict on a
// process.
func judgedWithin(r record.Run, p record.Process) bool {
	verdicts := []record.CheckVerdict{record.VerdictPass, record.VerdictKnown, record.VerdictLeak}
	return slices.ContainsFunc(r.Checks, func(c record.Check) bool {
		return c.Device == p.Device && slices.ContainsFunc(c.Processes, func(x record.CheckedProcess) bool {
			return x.User == p.User && x.Process == p.Process && slices.Contains(verdicts, x.Verdict)
		})
	}) || slices.ContainsFunc(r.Windows, func(w record.JudgedWindow) bool {
		return w.Device == p.Device && slices.ContainsFunc(w.Processes, func(x record.WindowProcess) bool {
			return x.User == p.User && x.Process == p.Process && x.Gate != detector.Inconclusive
		})
	})
}

// deviceUnjudged returns why there is no verdict at all on a device; "" if
// something on the device has a verdict.
func deviceUnjudged(r record.Run, d record.Device) string {
	because := fmt.Sprintf("no process of the app was seen in %s: is the app installed and started there?",
		minutes(d.Duration))
	for _, p := range r.Processes {
		switch {
		case p.Device != d.Device:
		case Judged(p), judgedWithin(r, p):
			return ""
		default:
			because = fmt.Sprintf("no process has a verdict; %s: %s", text.Head(p.Process, maxText),
				cmp.Or(p.Reason, string(p.Gate)))
		}
	}
	if slices.ContainsFunc(r.Checks,
		func(c record.Check) bool { return c.Device == d.Device && c.Verdict == record.VerdictPass }) {
		return ""
	}
	return because
}
