package detector

import (
	"errors"
	"fmt"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
)

// confidence is the confidence level of the interval of a rate.
const confidence = 0.95

// history is the data that a verdict needs and that the windows no longer
// contain. A stretch is the time between two restarts or gaps.
type history struct {
	// floor is the P25 of the first segment of this stretch.
	floor      float64
	floorKnown bool
	// ready is when this stretch had enough points for the first windows.
	ready known.Duration
	// began and samples describe the present process, across gaps.
	began   known.Duration
	samples int
	last    time.Duration
	// enough, unconfirmed and growth summarize the stretches that have ended:
	// whether any was long enough, whether any lacked breakdowns, and how many
	// bytes a stretch grew before it settled.
	enough, unconfirmed bool
	growth              float64
	longest             time.Duration
}

func (h *history) sample(a *articleRules, s *series) {
	if !h.began.Known {
		h.began = known.OfDuration(seconds(s.last()))
	}
	h.samples++
	h.last = seconds(s.last())
	if s.count == a.firstPoints() {
		h.ready = known.OfDuration(h.last)
	}
	if end := s.start + a.segment.Seconds(); !h.floorKnown && s.last() >= end {
		x, y := s.total.X(), s.total.Y()
		n := len(x)
		for n > 0 && x[n-1] >= end {
			n--
		}
		h.floor, h.floorKnown = trend.P25(y[:n])
	}
}

// raise adds delta bytes to the stored floor: the driver memory that was first
// read after the floor was computed.
func (h *history) raise(delta float64) { h.floor += delta }

// longEnough reports whether this stretch could have reached LEAKING.
func (h *history) longEnough(a *articleRules) bool {
	return h.ready.Known && h.last-h.ready.N >= a.stages()
}

// settled returns the rise of a suspected stretch in bytes, from its beginning
// to its end. It returns 0 if the rise does not exceed the policy's minimum
// growth.
func (h *history) settled(a *articleRules, s *series, l look) float64 {
	if !l.suspected.Known || !h.floorKnown {
		return 0
	}
	end, n := s.recentFloor(a.segment)
	if n == 0 || end-h.floor <= float64(a.minGrowth) {
		return 0
	}
	return end - h.floor
}

// close ends a stretch.
func (h *history) close(a *articleRules, s *series, l look) {
	h.growth = max(h.growth, h.settled(a, s, l))
	h.enough = h.enough || h.longEnough(a)
	h.unconfirmed = h.unconfirmed || l.unconfirmed
	h.longest = max(h.longest, h.stretch(s))
	h.floor, h.floorKnown, h.ready = 0, false, known.Duration{}
}

func (h *history) stretch(s *series) time.Duration {
	return seconds(max(0, s.last()-s.start))
}

func (h *history) newProcess() { h.began, h.samples, h.last = known.Duration{}, 0, 0 }

// verdict returns the present verdict.
//
// The gate is "leak" if LEAKING was ever reached. It is "inconclusive" if the
// run ended in SUSPICIOUS or CONFIRMING, if CONFIRMING did not get its
// breakdowns, or if no stretch without restart or gap was long enough to reach
// LEAKING (minTime). The gate is "settled" if a suspicion was dropped and the
// last floor is above the first by more than minGrowth. Otherwise it is "pass".
func (d *articleMachine) verdict() Verdict {
	h := &d.history
	l := trend.Fit(d.series.total.X(), d.series.total.Y())
	v := Verdict{
		State: d.state, Worst: d.worst, Kind: d.kind,
		Samples:         h.samples,
		FirstSuspicious: d.firstSuspicious, FirstLeaking: d.firstLeaking,
		Restarts: d.restarts,
		Warnings: d.warnings(),
	}
	if h.samples > 0 {
		v.Duration = h.last - h.began.N
	}
	if low, high, ok := l.Interval(confidence); ok && l.N >= d.a.minPoints {
		v.RateKnown = true
		v.Rate, v.RateLow, v.RateHigh = perHour(l.Slope), perHour(low), perHour(high)
		v.Growth = int64(l.Growth())
		v.Evidence = lineEvidence(l)
	}
	v.Evidence = append(v.Evidence, d.evidence...)
	v.Gate, v.Because = d.gate(l)
	return v
}

func lineEvidence(l trend.Line) []Evidence {
	return []Evidence{
		{Name: "t", Value: finite(l.T)},
		{Name: "R2", Value: l.R2},
		{Name: "points", Value: float64(l.N)},
		{Name: "window", Value: l.Span / 60, Unit: "min"},
		{Name: "noise", Value: l.ResidualSD / MB, Unit: "MB"},
	}
}

func (d *articleMachine) gate(l trend.Line) (Gate, string) {
	h := &d.history
	switch {
	case d.worst == Leaking:
		return Leak, d.because
	case d.state != Normal:
		return Inconclusive, "still " + d.state.String() + " after " + minutesText(d.now-d.entered) +
			": watch longer to confirm or clear it"
	case h.unconfirmed || d.look.unconfirmed:
		return Inconclusive, fmt.Sprintf("growth could not be confirmed: "+
			"fewer than %d breakdowns arrived in CONFIRMING", d.a.extraBreakdowns)
	case !h.enough && !h.longEnough(&d.a):
		return Inconclusive, d.shortText()
	}
	growth := max(h.growth, h.settled(&d.a, d.series, d.look))
	if growth > 0 {
		return Settled, "memory grew " + mbText(growth) + " and was SUSPICIOUS, but did not keep growing"
	}
	if !l.Fitted() {
		return Pass, "no sustained growth found"
	}
	return Pass, trendText("memory", l) + ": no sustained growth"
}

// minTime returns the earliest time at which a slow leak can reach LEAKING: the
// points of the first windows, the floors, and the extra breakdowns. With the
// article's constants, this takes 21 minutes.
func (d *articleMachine) minTime() time.Duration {
	return time.Duration(d.a.firstPoints()-1)*d.policy.NormalInterval + d.a.stages()
}

// shortText returns a message that says which data the policy still lacked.
func (d *articleMachine) shortText() string {
	watched := max(d.history.longest, d.history.stretch(d.series))
	if !d.history.ready.Known {
		return fmt.Sprintf("only %d uninterrupted samples in %s; first evidence needs %d, and LEAKING at least %s",
			d.series.count, minutesText(watched), d.a.firstPoints(), minutesText(d.minTime()))
	}
	needed := d.history.ready.N - seconds(d.series.start) + d.a.stages()
	return fmt.Sprintf("only %s of uninterrupted data; LEAKING needs at least %s", minutesText(watched),
		minutesText(needed))
}

func (d *articleMachine) warnings() []error {
	var list []error
	if d.ignored > 0 {
		list = append(list,
			fmt.Errorf("%s ignored: not newer than the previous one, or 0 bytes",
				text.Plural(d.ignored, "reading", "readings")))
	}
	if d.breakdowns == 0 && d.history.samples > 0 {
		list = append(list, errNoBreakdown)
	}
	return list
}

var errNoBreakdown = errors.New("no breakdowns arrived: growth cannot be confirmed and graphics memory is not measured")
