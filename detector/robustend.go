package detector

import (
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// finding is what the end verdict says of one series.
type finding struct {
	sight
	// begins is where the window begins on the device's clock.
	begins time.Duration
	// rate in MB/h with its 95 % interval; known says that there is one.
	rate, low, high float64
	known           bool
	// sigma is the standard deviation of the levels about the line in MB, se the
	// standard error of the rate in MB/h.
	sigma, se float64
	// alpha is the autocorrelation of the noise behind se.
	alpha float64
	// detectable in MB/h is the slowest leak that the window would have shown.
	detectable float64
	// higher is how much higher the last sixth of the levels is than the first, in MB;
	// rises says that this is more than noise.
	higher float64
	rises  bool
}

// scale says how levels become a judgement.
type scale struct {
	// hours that the levels cover, need in MB of growth.
	hours, need float64
	// family is how many judgements share the chance of a false alarm.
	family float64
	// before is the highest level from before, minus infinity for none.
	before float64
}

// needed is the growth in MB that a window must show.
func needed(hours float64) float64 {
	return max(leastGrowth, shortGrowth-hourGrowth*hours)
}

// ends judges one track over the whole stretch without its begin, then over later
// parts of it, and gives the first that shows a leak, or else the whole. The begin of
// a tenth, at most 15 min, is every process's warm-up.
func (m *robustMachine) ends(t *track, others *track, family float64) finding {
	skip := min(m.axis.closed/10, int(15*time.Minute/slotTime))
	whole := m.part(t, others, skip, skip, family)
	if whole.reason == fires {
		return whole
	}
	for _, p := range endParts {
		from := int(p * float64(m.axis.closed))
		if time.Duration(m.axis.closed-from)*slotTime < shortestPart {
			break
		}
		if got := m.part(t, others, from, skip, family); got.reason == fires {
			return got
		}
	}
	return whole
}

// part judges the slots from one on; skip is where the series begins to count.
func (m *robustMachine) part(t *track, others *track, from, skip int, family float64) finding {
	at, n, hours := m.cut(from)
	var scratch [maxLevels]float64
	f := finding{sight: sight{window: time.Duration(hours * float64(time.Hour))}, begins: m.axis.at() - time.Duration(hours*float64(time.Hour))}
	if n < 8 {
		f.reason = tooShort
		return f
	}
	y, ok := t.levels(scratch[:], at, n)
	if !ok {
		f.reason = holes
		return f
	}
	if others != nil {
		// What shows in the total is found there.
		switch end := highEnd(y); {
		case end < needed(hours)/2:
			f.reason = small
			return f
		case !m.hidden(others, at, n, end):
			f.reason = spread
			return f
		}
	}
	before, _ := levelsBefore(t, from/m.axis.binSlots, max(1, int(hours*2)))
	if from <= skip {
		before = math.Inf(-1)
	}
	f.judge(y, scale{hours: hours, need: needed(hours), family: family, before: before})
	return f
}

// cut is the stretch from a slot on, into how many blocks to cut it, and its hours. Two
// hours are cut by slots; more than that by floors, each block of equally many.
func (m *robustMachine) cut(from int) (at stretch, n int, hours float64) {
	slots := m.axis.closed - from
	if slots <= ringSlots {
		return stretch{from: from, to: m.axis.closed}, min(endBlocks, slots), float64(slots) * slotTime.Hours()
	}
	bins := m.axis.binned - (from+m.axis.binSlots-1)/m.axis.binSlots
	each := (bins + endBlocks - 1) / endBlocks
	if each == 0 {
		return stretch{}, 0, 0
	}
	n = bins / each
	at = stretch{from: m.axis.binned - n*each, to: m.axis.binned, floors: true}
	return at, n, float64(n*each*m.axis.binSlots) * slotTime.Hours()
}

// judge decides about levels that are equally far apart.
func (f *finding) judge(y []float64, s scale) {
	n := len(y)
	f.need, f.blocks = s.need, n
	each := s.hours / float64(n)
	f.drift = trend.FitDrift(y, endRaise)
	f.growth = f.drift.Slope * float64(n)
	f.interval(y, each)
	f.detectable = f.slowest(s)
	f.higher = highEnd(y)
	f.rises = f.higher >= leastGrowth && f.higher > riseSigmas*f.sigma
	f.reason = f.decide(y, s)
}

// interval is the rate with its 95 % interval.
func (f *finding) interval(y []float64, each float64) {
	d := trend.FitDrift(y, rateRaise)
	half := students().rate[d.N] * d.SE
	f.rate, f.low, f.high = d.Slope/each, (d.Slope-half)/each, (d.Slope+half)/each
	f.se, f.alpha, f.known = d.SE/each, d.Alpha, true
	shapes := trend.FitShapes(y)
	f.sigma = math.Sqrt(shapes.Line / float64(len(y)-2))
}

const (
	// detectableErrors is how many standard errors of the rate a leak must have to be
	// told in 95 of 100 runs: the rules about shape need that many where the growth
	// does not decide, and correlatedErrors more in the noise of a random walk, which
	// has more shapes. Calibrated.
	detectableErrors, correlatedErrors = 19.0, 6.0
	// riseSigmas of the levels about their line is a rise worth telling.
	riseSigmas = 3.0
	// certain is the 95 % quantile of the normal distribution.
	certain = 1.645
)

// slowest is the slowest leak in MB/h that these levels would have shown with 95 %.
func (f *finding) slowest(s scale) float64 {
	errors := detectableErrors + correlatedErrors*max(0, f.alpha)
	return max(s.need/s.hours+certain*f.se, errors*f.se*(1+math.Log(s.family)/20))
}

// highEnd is how much higher the last sixth of the levels is than the first.
func highEnd(y []float64) float64 {
	k := max(1, len(y)/6)
	return median(y[len(y)-k:]) - median(y[:k])
}

// decide is the end verdict: all that a leak must show, the cheap tests first.
func (f *finding) decide(y []float64, s scale) reason {
	n := len(y)
	if f.growth < s.need {
		return small
	}
	crit := students().end[n]
	if s.family > 1 {
		crit = trend.StudentQuantile(1-endP/s.family, float64(n-2))
	}
	if f.drift.T() < crit {
		return noise
	}
	q := n / 4
	m1, m2, m3, m4 := meanOf(y[:q]), meanOf(y[q:2*q]), meanOf(y[n-2*q:n-q]), meanOf(y[n-q:])
	even := (m4 - m1) / 3
	switch {
	case m3+m4 <= m1+m2 || m4-m3 < leastPace*even:
		return early
	case m2-m1 < leastStart*even:
		return late
	case jumpy(y, f.growth):
		return stepped
	case !f.tops(y, s.before):
		return visited
	}
	return f.shape(y, s)
}

// jumpy says whether one or two rises between neighbouring levels, each the median of
// three, are too much of the growth.
func jumpy(y []float64, growth float64) bool {
	n := len(y)
	before, largest, second := 0.0, 0.0, 0.0
	for i := range y {
		v := median(y[max(0, i-1):min(n, i+2)])
		rise := v - before
		before = v
		switch {
		case i == 0:
		case rise > largest:
			largest, second = rise, largest
		case rise > second:
			second = rise
		}
	}
	return largest > largestRise*growth || largest+second > 1.5*largestRise*growth
}

// tops says whether the last sixth is above all others and all levels from before.
func (f *finding) tops(y []float64, before float64) bool {
	n := len(y)
	k := n / 6
	top := before
	for to := n - k; to-k >= 0; to -= k {
		top = max(top, median(y[to-k:to]))
	}
	return median(y[n-k:]) >= top
}

func (f *finding) shape(y []float64, s scale) reason {
	shapes := trend.FitShapes(y)
	// Of many leak-free processes one looks straight by chance.
	strictness := math.Log(s.family)
	if shapes.Line > (1-endExplained-strictness/50)*shapes.Constant {
		return scattered
	}
	line := min(shapes.BIC(shapes.Line, 2), shapes.BIC(shapes.Onset, 3))
	curve := curveBetter - strictness
	if line > min(shapes.BIC(shapes.Saturating, 3), shapes.BIC(shapes.Filled, 3))+curve && !steady(y, f.drift) {
		return curved
	}
	if line > shapes.BIC(shapes.Step, 3) || line > min(shapes.BIC(shapes.TwoSteps, 5), shapes.BIC(shapes.ThreeSteps, 7))+stepsBetter {
		return stepped
	}
	return fires
}
