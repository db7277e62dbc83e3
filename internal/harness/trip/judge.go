package trip

import (
	"fmt"
	"math"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// rule defines how one measure is judged. The constants were chosen by
// simulation: docs/formats/trip.md has the rates of wrong verdicts.
type rule struct {
	unit string
	// noise is the usual scatter of the readings of an idle process.
	noise float64
	// least is the minimum rate per loop that counts as a leak; found is the
	// rate that a trip of ten loops with the usual noise can detect.
	least, found float64
	// every requires growth in every interval between readings, as for objects
	// that no pool keeps.
	every bool
	// java marks measures that heap dumps judge better.
	java bool
	// shown marks measures that are reported but not judged.
	shown bool
}

// memory returns the rule for a dimension, in kB. Native memory of an idle app
// scatters by about 150 kB; the other limits are proportional to the scatter.
func memory(noise float64) rule {
	return rule{unit: record.UnitKB, noise: noise, least: noise * 2 / 3, found: noise * 4 / 3}
}

// quietShare limits the rate of a quiet measure: the upper bound on its rate
// must be below this share of rule.found, unless its growth has settled.
const quietShare = 0.85

// These are the rules for counts. Screens and their contexts are objects that
// no pool keeps. Threads, files and other objects may come from pools, and
// count as a leak if they grow by one per loop or more.
var (
	screens = rule{unit: record.UnitCount, noise: 0.3, least: 0.3, found: 0.5, every: true}
	pooled  = rule{unit: record.UnitCount, noise: 0.3, least: 0.75, found: 1}
)

// inJava marks a measure of Java memory.
func inJava(r rule) rule { r.java = true; return r }

// shownOnly marks a measure that is not judged.
func shownOnly(r rule) rule { r.shown = true; return r }

// These are the conditions for a leak.
const (
	// leastMemory is the minimum number of intervals between readings that a
	// leak of memory requires. leastCounts is the same for counts.
	leastMemory, leastCounts = 4, 3
	// leastQuiet is the number of intervals after which a measure with noise
	// may count as quiet.
	leastQuiet = 3
	// confidence is the required confidence that a rate is above 0. noisyT is
	// the t value that is used if the scatter of readings exceeds noisy times
	// the usual noise.
	confidence    = 0.99
	noisy, noisyT = 1.2, 8
	// Growth slows if the rate in the latest two intervals is less than slowing
	// times the rate in the first two. Growth has settled if the latest rate is
	// less than settled times the first rate. Differences within slowingZ or
	// settledZ standard deviations count as noise.
	slowing, slowingZ = 0.6, 1.64
	settled, settledZ = 1.0 / 3, 2.5
	// lastShare is the minimum growth in the latest interval, as a share of the
	// mean growth.
	lastShare = 1.0 / 3
)

// state is the state of a measure according to its readings so far.
type state int

const (
	// unread means too few readings. quiet means no growth, or too little to
	// matter. growing counts as a leak if the trip ends in this state. rising
	// and open are undecided.
	unread state = iota
	quiet
	open
	rising
	growing
)

// judgment is the result of judging the readings of one measure.
type judgment struct {
	state state
	// fitted reports whether a line was fitted, with its 95 % interval.
	fitted    bool
	line      line
	curve     curve
	low, high float64
	// flattened reports whether growth has slowed down or stopped.
	flattened bool
	// readings is the number of readings of the measure.
	readings int
}

// judge judges the readings y taken after x loops.
func (r rule) judge(x, y []float64) judgment {
	j := judgment{readings: len(y)}
	if len(y) < 3 {
		return j
	}
	j.line, j.fitted = fit(x, y, r.noise), true
	j.low, j.high = j.line.bounds(0.975)
	c := curveOf(x, y, scatterOf(x, y, r.noise))
	j.curve = c
	intervals := len(y) - 1
	switch {
	case r.quiet(j, c, intervals):
		j.state = quiet
	case r.grows(j.line, c, intervals):
		j.state = growing
	case c.risesNow(j.line.slope, r.least):
		j.state = rising
	default:
		j.state = open
	}
	j.flattened = c.slower(settled, settledZ) || c.slower(slowing, slowingZ)
	return j
}

// quiet reports whether the measure no longer grows at a relevant rate.
func (r rule) quiet(j judgment, c curve, intervals int) bool {
	switch {
	case r.every:
		// Counts that must grow in every interval have no noise: a single
		// interval without growth means that the growth has ended.
		return c.last <= 0
	case intervals < leastQuiet:
		return false
	case r.unit == record.UnitCount:
		return c.last < r.least && c.latest < r.least
	}
	return j.high < quietShare*r.found || intervals >= leastMemory && c.slower(settled, settledZ)
}

// grows reports whether the measure grows like a leak.
func (r rule) grows(l line, c curve, intervals int) bool {
	least, rises := leastMemory, intervals-1
	if r.unit == record.UnitCount {
		least = leastCounts
	}
	low, _ := l.bounds(confidence)
	switch {
	case intervals < least, l.slope < r.least, low <= 0, c.last < lastShare*l.slope, c.slower(slowing, slowingZ):
		return false
	case intervals < 5 || r.every || l.own > noisy*r.noise && r.unit == record.UnitKB:
		rises = intervals
	}
	if r.unit == record.UnitKB && l.own > noisy*r.noise && l.slope < noisyT*l.se {
		return false
	}
	return c.rises >= rises
}

// curve describes the growth of a measure over its readings. Rates are per
// loop.
type curve struct {
	// rises is the number of intervals in which the measure grows.
	rises, intervals int
	// first and latest are the rates over the first two and the latest two
	// intervals. last is the rate of the latest interval; before is the rate of
	// the interval before it.
	first, latest, last, before float64
	// sd is the standard deviation of the difference between first and latest.
	sd float64
}

func curveOf(x, y []float64, scatter float64) curve {
	n := len(y) - 1
	rate := func(i, k int) float64 { return (y[k] - y[i]) / (x[k] - x[i]) }
	c := curve{intervals: n, first: rate(0, 2), latest: rate(n-2, n), last: rate(n-1, n), before: rate(n-2, n-1)}
	a, b := x[2]-x[0], x[n]-x[n-2]
	c.sd = scatter * math.Sqrt(2/(a*a)+2/(b*b))
	for i := range n {
		if y[i+1] > y[i] {
			c.rises++
		}
	}
	return c
}

// slower reports whether the latest rate is below a share of the first rate,
// and the difference exceeds the noise.
func (c curve) slower(share, z float64) bool {
	return c.intervals >= 3 && c.first > 0 && c.latest < share*c.first && c.first-c.latest > z*c.sd
}

// risesNow reports whether the measure still grows and may leak: its slope is
// at least the given rate, it grows in more than half of the intervals, and the
// latest rate is at least half of the given one.
func (c curve) risesNow(slope, least float64) bool {
	return slope >= least && 2*c.rises > c.intervals && c.latest >= least/2
}

func scatterOf(x, y []float64, noise float64) float64 {
	if len(y) < 4 {
		return noise
	}
	return scatter(x, y, noise)
}

// perLoop formats a rate.
func (r rule) perLoop(rate float64) string {
	if r.unit == record.UnitKB {
		return text.SignedKB(int64(math.Round(rate))) + " per loop"
	}
	return fmt.Sprintf("%+.2g per loop", rate)
}

// level formats a rate without its sign.
func (r rule) level(rate float64) string {
	if r.unit == record.UnitKB {
		return text.KB(int64(math.Ceil(rate))) + " per loop"
	}
	return fmt.Sprintf("%.2g per loop", rate)
}
