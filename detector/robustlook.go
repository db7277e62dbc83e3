package detector

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// maxLevels is the largest number of levels of a window.
const maxLevels = 64

// quantiles holds quantiles of Student's t distribution, indexed by the number
// of levels. They are computed once, because computing one takes as long as an
// entire look.
type quantiles struct {
	look, keep, end, rate, share [maxLevels + 1]float64
}

var students = sync.OnceValue(func() *quantiles {
	q := &quantiles{}
	for n := 3; n <= maxLevels; n++ {
		df := float64(n - 2)
		q.look[n] = trend.StudentQuantile(1-lookP, df)
		q.keep[n] = trend.StudentQuantile(1-keepP, df)
		q.end[n] = trend.StudentQuantile(1-endP, df)
		q.rate[n] = trend.StudentQuantile(0.5+confidence/2, df)
		q.share[n] = trend.StudentQuantile(1-shareP/(wholeTrack-1), df)
	}
	return q
})

// reason says why a window shows no leak.
type reason uint8

const (
	fires reason = iota
	tooShort
	gaps
	small
	noise
	fallsBack
	visited
	curved
	stepped
	scattered
	slowed
	spread
	early
	late
	slowing
)

var reasonTexts = [...]string{
	fires:     "shows a leak",
	tooShort:  "is longer than the series",
	gaps:      "has too many gaps",
	small:     "does not grow enough",
	noise:     "does not grow beyond the noise",
	fallsBack: "does not grow at its end",
	visited:   "returns to an earlier level",
	curved:    "levels off",
	stepped:   "rises in steps",
	scattered: "does not grow linearly",
	slowed:    "has slowed down since the first look",
	spread:    "grows only as much as other memory shrinks",
	early:     "does not grow in its last part",
	late:      "does not grow in its first part",
	slowing:   "grows more slowly than before",
}

// lookResult is the result of a look at one window.
type lookResult struct {
	window time.Duration
	reason reason
	drift  trend.Drift
	// growth is the growth over the window, and need is the required growth,
	// both in MB.
	growth, need float64
	// blocks is the number of blocks in the window.
	blocks int
}

// perHour returns the slope in MB/h.
func (s lookResult) perHour() float64 {
	if s.window <= 0 {
		return 0
	}
	return s.growth / s.window.Hours()
}

func (s lookResult) text(series string) string {
	if s.reason == tooShort {
		return fmt.Sprintf("%s: needs at least %s of data", series, minutesText(s.window))
	}
	t := s.drift.T()
	if s.blocks == 0 || math.IsNaN(t) {
		return fmt.Sprintf("%s over %s %s", series, minutesText(s.window), reasonTexts[s.reason])
	}
	return fmt.Sprintf("%s over %s: %s MB (a leak needs %s MB), %s MB/h, t-value %s: %s", series, minutesText(s.window),
		signed(s.growth), number(s.need), number(s.perHour()), tText(finite(t)), reasonTexts[s.reason])
}

// stage is the number of consecutive looks that fired before this one.
type stage int

// look tests all windows of one track and returns the result of the first that
// shows a leak, or of the one that came closest to showing one. If the track is
// a dimension, others is the total, and the test is for growth that is not
// visible in the total. A dimension has too few readings for short windows.
func (m *robustMachine) look(t *track, s stage, others *track) lookResult {
	best := lookResult{reason: tooShort, window: time.Duration(lookWindows[0].minutes) * time.Minute}
	if others != nil {
		best.window = dimensionMinutes * time.Minute
	}
	rank := 0
	for i := range lookWindows {
		w := &lookWindows[i]
		slots := w.minutes * int(time.Minute/slotTime)
		if slots > m.axis.closed {
			break
		}
		if others != nil && w.minutes < dimensionMinutes {
			continue
		}
		got, passed := m.lookAt(t, s, others, w, slots)
		if got.reason == fires {
			return got
		}
		if passed >= rank {
			best, rank = got, passed
		}
	}
	return best
}

// dimensionMinutes is the shortest window for a dimension.
const dimensionMinutes = 60

// ending returns the stretch that ends now and spans the given number of slots,
// and the number of blocks into which to divide it. It uses slots if floors
// would be too coarse and the ring is long enough, and floors otherwise.
func (m *robustMachine) ending(slots, blocks int, floors bool) (stretch, int) {
	bins := slots / m.axis.binSlots
	if !floors && bins < blocks && slots <= ringSlots {
		return stretch{from: m.axis.closed - slots, to: m.axis.closed}, blocks
	}
	return stretch{from: m.axis.binned - bins, to: m.axis.binned, floors: true}, min(blocks, bins)
}

// leastBlocks is the minimum number of blocks of a window.
const leastBlocks = 12

// lookAt tests one window. The cheapest tests come first; passed is the number
// of tests that the window passed.
func (m *robustMachine) lookAt(t *track, s stage, others *track, w *lookWindow, slots int) (out lookResult,
	passed int) {
	var scratch [maxLevels]float64
	out = lookResult{window: time.Duration(w.minutes) * time.Minute, need: w.need}
	refuse := func(r reason) (lookResult, int) { out.reason = r; return out, passed }
	if s > 1 && w.minutes <= shortMinutes {
		out.need *= shortProof
	}
	at, n := m.ending(slots, w.blocks, others != nil)
	if at.from < 0 || n < leastBlocks {
		return refuse(tooShort)
	}
	// Most windows are rejected here. Half of the required rise is enough at
	// this point, because the exact test follows.
	if t.rise(slots/m.axis.binSlots) < out.need/4 {
		return refuse(small)
	}
	y, ok := t.levels(scratch[:], at, n)
	if !ok {
		return refuse(gaps)
	}
	q := n / 4
	out.blocks = n
	passed++
	out.drift = trend.FitDrift(y, noiseRaise)
	out.growth = out.drift.Slope * float64(n)
	if out.growth < out.need {
		return refuse(small)
	}
	passed++
	crit := m.student.look[n]
	if s > 0 {
		crit = m.student.keep[n]
	}
	if out.drift.T() < crit && (m.state == Leaking || !m.pooled(t, y, w, slots, crit, &out)) {
		return refuse(noise)
	}
	passed++
	first, last := quarters(y)
	if last <= median(y[n-2*q:n-q]) || last-first < out.growth/2 {
		return refuse(fallsBack)
	}
	passed++
	if !m.record(t, y, w, out.growth) {
		return refuse(visited)
	}
	passed++
	if others != nil && !m.hidden(others, at, n, out.growth) {
		return refuse(spread)
	}
	passed++
	if r := shapeOf(y, s, w); r != fires && !(r == curved && steady(y, out.drift)) {
		return refuse(r)
	}
	out.reason = fires
	return out, passed
}

// pooled tests a short window again with the noise of the windows before it. If
// the noise changes on a time scale as long as the window, the window itself
// cannot show the change.
func (m *robustMachine) pooled(t *track, y []float64, w *lookWindow, slots int, crit float64, out *lookResult) bool {
	if w.minutes > pooledMinutes || len(y) < w.blocks || m.axis.closed < (1+pooledWindows)*slots ||
		(1+pooledWindows)*slots > ringSlots {
		return false
	}
	var noise trend.Noise
	noise.Add(y)
	var scratch [maxLevels]float64
	for k := 1; k <= pooledWindows; k++ {
		end := m.axis.closed - k*slots
		before, ok := t.levels(scratch[:], stretch{from: end - slots, to: end}, len(y))
		if !ok {
			return false
		}
		noise.Add(before)
	}
	d := trend.FitDriftWith(y, noise.Alpha(pooledRaise))
	if growth := d.Slope * float64(len(y)); d.T() < crit || growth < out.need {
		return false
	}
	out.drift, out.growth = d, d.Slope*float64(len(y))
	return true
}

// record reports whether the level at the end of a window is clearly above
// every level before the window. Each of these levels covers a sixth of the
// window's length.
func (m *robustMachine) record(t *track, y []float64, w *lookWindow, growth float64) bool {
	n := len(y)
	end := m.axis.binned
	bins := (w.minutes*int(time.Minute/slotTime) + m.axis.binSlots - 1) / m.axis.binSlots
	top, sigma := levelsBefore(t, end-bins, max(1, bins/6))
	if math.IsInf(top, -1) {
		return true
	}
	return median(y[n-n/6:]) >= top+recordPart*growth+recordSigmas*sigma
}

// levelsBefore returns the highest level before the floor with index end, and
// the root mean square of the changes from one level to the next. Each level is
// a median of the given number of floors. sigma is 0 if fewer than two changes
// are known; top is minus infinity if no level is known.
func levelsBefore(t *track, end, size int) (top, sigma float64) {
	var scratch [maxBins]float64
	top, squares, changes := math.Inf(-1), 0.0, 0
	before := math.NaN()
	for hi := min(end, len(t.bins)); hi-size >= 0; hi -= size {
		values := appendKnown(scratch[:0], t.bins[hi-size:hi])
		if len(values) == 0 {
			continue
		}
		v := middle(values)
		top = max(top, v)
		if before == before {
			squares += (v - before) * (v - before)
			changes++
		}
		before = v
	}
	if changes < 2 {
		return top, 0
	}
	return top, math.Sqrt(squares / float64(changes))
}

// hidden reports whether the total grew by less than a quarter of the growth of
// a dimension, because other memory shrank. Growth that is visible in the total
// is found when the total is judged.
func (m *robustMachine) hidden(total *track, at stretch, n int, growth float64) bool {
	var scratch [maxLevels]float64
	y, ok := total.levels(scratch[:], at, n)
	if !ok {
		return false
	}
	return median(y[n-n/4:])-median(y[:n/4]) < growth/4
}

// shapeOf returns fires if a line, or a line after a flat part, describes the
// levels of a window better than every shape that is not a leak. Otherwise it
// returns the reason why the levels do not show a leak.
func shapeOf(y []float64, s stage, w *lookWindow) reason {
	shapes := trend.FitShapes(y)
	line := min(shapes.BIC(shapes.Line, 2), shapes.BIC(shapes.Onset, 3))
	better, steps := lineBetter, lineBetter
	if s > 0 {
		better, steps = keepBetter, -keepSteps
		if w.minutes >= keepLong {
			better = -keepWorse
		}
	}
	if s > 1 && shapes.Line > (1-explained)*shapes.Constant {
		return scattered
	}
	if line > min(shapes.BIC(shapes.Saturating, 3), shapes.BIC(shapes.Filled, 3),
		shapes.BIC(shapes.Constant, 1))-better {
		return curved
	}
	if line > stepsBIC(shapes)-steps || s > 1 && line > shapes.BIC(shapes.Step, 3) {
		return stepped
	}
	return fires
}

// steady reports whether the levels still grow evenly, even though a curve fits
// them better than a line does. If there is little noise, even a negligible
// curvature improves the BIC.
func steady(y []float64, d trend.Drift) bool {
	q := len(y) / 4
	early, late := meanOf(y[q:2*q])-meanOf(y[:q]), meanOf(y[len(y)-q:])-meanOf(y[len(y)-2*q:len(y)-q])
	return d.T() >= steadyT && late >= steadyPace*early
}

func stepsBIC(s trend.Shapes) float64 {
	return min(s.BIC(s.Step, 3), s.BIC(s.TwoSteps, 5), s.BIC(s.ThreeSteps, 7)+threeStepsCost)
}

// keepsPace reports whether the latest floors rise as fast as the first look
// predicted, within their noise. Missing floors do not count as slower growth.
func (m *robustMachine) keepsPace(t *track) bool {
	n := len(t.bins)
	if n < 5 || m.axis.binSlots != firstBin {
		return true
	}
	rise := pairRise(t, n-1)
	if rise != rise {
		return true
	}
	predicted := m.first.perHour() * (2 * firstBin * slotTime).Hours()
	sigmas := paceSigmas
	if m.first.window <= pooledMinutes*time.Minute {
		sigmas = paceShortSigmas
	}
	return rise >= pacePart*predicted-sigmas*m.firstSigma
}

// pairRise returns the mean of floors k-1 and k minus the mean of the two
// floors before them, in MB.
func pairRise(t *track, k int) float64 {
	b := t.bins
	return float64(b[k]+b[k-1]-b[k-2]-b[k-3]) / 2
}

// pairSigma returns the standard deviation of pairRise over the floors of a
// window.
func pairSigma(t *track, window time.Duration) float64 {
	n := len(t.bins)
	var sum, square, count float64
	for k := max(4, n-int(window/(firstBin*slotTime))); k < n; k++ {
		if v := pairRise(t, k); v == v {
			sum += v
			square += v * v
			count++
		}
	}
	if count < 2 {
		return 0
	}
	mean := sum / count
	return math.Sqrt(max(0, square/count-mean*mean))
}
