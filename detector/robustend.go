package detector

import (
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// finding is the end verdict on one series.
type finding struct {
	lookResult
	// begins and ends delimit the window on the device's clock; early reports
	// whether the window ends before the stretch does.
	begins, ends time.Duration
	early        bool
	// trimmed is the size in MB of a sudden fall within the window that was
	// undone before the levels were judged; fellAt is the time of the fall on
	// the device's clock.
	trimmed float64
	fellAt  time.Duration
	// rate is in MB/h; low and high are its 95 % interval. known reports
	// whether there is a rate.
	rate, low, high float64
	known           bool
	// sigma is the standard deviation of the levels about the line, in MB. se
	// is the standard error of the rate, in MB/h.
	sigma, se float64
	// detectable is the slowest leak in MB/h that would have been detected in
	// the series; lately is the same for a leak that began an hour before the
	// end. Both are 0 if unknown, and infinite if no leak would have been
	// detected.
	detectable, lately float64
	// higher is the difference between the last sixth of the levels and the
	// first sixth, in MB. rises reports whether this difference exceeds the
	// noise.
	higher float64
	rises  bool
	// levels are the judged levels; apart is the time between two adjacent
	// levels in hours.
	levels []float64
	apart  float64
	// before is the highest level before the window; minus infinity if there is
	// none.
	before float64
	// ratchet counts the rises of a series that hardly ever falls; even reports
	// whether each third of the series has some of these rises. lumps reports
	// whether these rises alone make the series a leak.
	ratchet int
	even    bool
	lumps   bool
}

// scale holds the parameters by which levels are judged.
type scale struct {
	// hours is the time that the levels cover; need is the required growth in
	// MB.
	hours, need float64
	// family is the number of judgements that share the probability of a false
	// alarm.
	family float64
	// before is the highest level before the judged ones; minus infinity if
	// there is none.
	before float64
}

// needed returns the growth in MB that a window must show.
func needed(hours float64) float64 {
	return max(leastGrowth, shortGrowth-hourGrowth*hours)
}

// slotsOf returns the number of slots in a duration.
func slotsOf(d time.Duration) int { return int(d / slotTime) }

// skipped returns the first slot that is judged. The first tenth, at most 15
// min, is considered warm-up in every process.
func (m *robustMachine) skipped() int {
	return min(m.axis.closed/10, slotsOf(15*time.Minute))
}

// ends judges one track over the entire stretch except its beginning, and over
// parts that begin later. It also judges parts that end earlier, if their
// growth remains until the end of the stretch. It returns the result for the
// first part that shows a leak, or otherwise for the entire stretch.
func (m *robustMachine) ends(t *track, others *track, family float64) finding {
	whole := m.endingAt(t, others, m.axis.closed, family)
	if whole.reason == fires || others != nil {
		return whole
	}
	for _, to := range m.knownEnds() {
		if got := m.endingAt(t, nil, to, family); got.reason == fires && m.stays(t, &got, to) {
			return got
		}
	}
	for _, part := range earlyEnds {
		to := int(part * float64(m.axis.closed))
		got := m.endingAt(t, nil, to, family)
		if got.reason == fires && got.growth >= uncached && got.window >= uncachedTime && m.stays(t, &got, to) {
			return got
		}
	}
	if got, ok := m.spliced(t, family); ok {
		return got
	}
	return whole
}

// endingAt judges the parts of a track that end at the given slot.
func (m *robustMachine) endingAt(t *track, others *track, to int, family float64) finding {
	var whole finding
	for i, from := range m.starts(to) {
		got := m.part(t, others, from, to, family)
		if i == 0 {
			whole = got
		}
		if got.reason == fires {
			return got
		}
	}
	return whole
}

// starts returns the first slots of the parts that end at the given slot, the
// longest part first.
func (m *robustMachine) starts(to int) []int {
	out := append(make([]int, 0, 1+len(endParts)), m.skipped())
	for _, p := range endParts {
		from := int(p * float64(to))
		if time.Duration(to-from)*slotTime < shortestPart {
			break
		}
		if from > out[0] {
			out = append(out, from)
		}
	}
	return out
}

// knownEnds returns the slots in which the workload ended and the latest loop
// began. It omits unknown slots and those at the end of the stretch.
func (m *robustMachine) knownEnds() []int {
	var out []int
	for _, slot := range []int{m.workEnd, m.loops.lastMark} {
		if time.Duration(slot)*slotTime >= shortest && slot < m.axis.closed-firstBin {
			out = append(out, slot)
		}
	}
	return out
}

// stays reports whether the growth up to a slot remains in all later levels.
func (m *robustMachine) stays(t *track, f *finding, to int) bool {
	k := max(1, len(f.levels)/6)
	begin, end := median(f.levels[:k]), median(f.levels[len(f.levels)-k:])
	return m.lowestAfter(t, to)-begin >= stillThere*(end-begin)
}

// lowestAfter returns the lowest level in MB after a slot, or infinity if there
// is no level. Each level is the median of three floors.
func (m *robustMachine) lowestAfter(t *track, to int) float64 {
	lowest := math.Inf(1)
	bins := t.bins[min(len(t.bins), (to+m.axis.binSlots-1)/m.axis.binSlots):]
	for i := range bins {
		var scratch [3]float64
		if around := appendKnown(scratch[:0], bins[max(0, i-1):min(len(bins), i+2)]); len(around) > 0 {
			lowest = min(lowest, middle(around))
		}
	}
	return lowest
}

// part judges the part of a track between two slots.
func (m *robustMachine) part(t *track, others *track, from, to int, family float64) finding {
	f, scratch := finding{}, [maxLevels]float64{}
	y, at, ok := m.levelsOf(t, scratch[:], from, to, &f)
	if !ok {
		return f
	}
	if others != nil {
		// Growth that is visible in the total is found by judging the total.
		switch end := highEnd(y); {
		case end < needed(f.window.Hours())/2:
			f.reason = small
			return f
		case !m.hidden(others, at, len(y), end):
			f.reason = spread
			return f
		}
	}
	f.before = noRecord
	if from > m.skipped() {
		f.before, _ = levelsBefore(t, from/m.axis.binSlots, max(1, int(f.window.Hours()*2)))
	}
	f.judge(y, scale{hours: f.window.Hours(), need: needed(f.window.Hours()), family: family, before: f.before})
	return f
}

// levelsOf divides the stretch between two slots into levels. If gaps leave too
// many levels empty, it uses fewer levels. It sets the window of f, or the
// reason why there are no levels.
func (m *robustMachine) levelsOf(t *track, scratch []float64, from, to int, f *finding) (y []float64, at stretch,
	ok bool) {
	for most := endBlocks; most >= leastBlocks; most -= leastBlocks {
		n, hours := 0, 0.0
		at, n, hours = m.cut(from, to, most)
		f.window = time.Duration(hours * float64(time.Hour))
		f.ends = m.axis.origin + time.Duration(to)*slotTime
		f.begins, f.early = f.ends-f.window, to < m.axis.closed
		if n < 8 {
			f.reason = tooShort
			return nil, at, false
		}
		if y, ok = t.levels(scratch, at, n); ok {
			return y, at, true
		}
	}
	f.reason = gaps
	return nil, at, false
}

// cut returns the stretch between two slots, the number of blocks to divide it
// into (at most the given number), and its length in hours. A stretch within
// the ring is measured in slots. A longer one is measured in floors, and each
// of its blocks has the same number of floors.
func (m *robustMachine) cut(from, to, most int) (at stretch, n int, hours float64) {
	slots := to - from
	if slots <= 0 {
		return stretch{}, 0, 0
	}
	if m.axis.closed-from <= ringSlots {
		return stretch{from: from, to: to}, min(most, slots), float64(slots) * slotTime.Hours()
	}
	last := min(m.axis.binned, to/m.axis.binSlots)
	bins := last - (from+m.axis.binSlots-1)/m.axis.binSlots
	each := (bins + most - 1) / most
	if each <= 0 {
		return stretch{}, 0, 0
	}
	n = bins / each
	at = stretch{from: last - n*each, to: last, floors: true}
	return at, n, float64(n*each*m.axis.binSlots) * slotTime.Hours()
}

// judge sets the results for levels at equal intervals of time.
func (f *finding) judge(y []float64, s scale) {
	n := len(y)
	f.need, f.blocks = s.need, n
	f.apart = s.hours / float64(n)
	f.levels = append([]float64(nil), y...)
	f.drift = trend.FitDrift(y, endRaise)
	f.growth = f.drift.Slope * float64(n)
	f.interval(y, f.apart)
	f.higher = highEnd(y)
	f.rises = f.higher >= leastGrowth && f.higher > riseSigmas*f.sigma
	f.reason = f.decide(y, s)
	f.lumps = f.inLumps(y, s) && f.reason != fires
	if f.lumps {
		f.reason = fires
	}
}

// inLumps counts the rises of the series and reports whether they show a leak:
// there are enough rises, each third of the series has one, and the growth is
// large enough.
func (f *finding) inLumps(y []float64, s scale) bool {
	if s.hours < ratchetTime.Hours() {
		return false
	}
	f.ratchet, f.even = ratchet(y)
	enough := f.ratchet >= provedRises || f.ratchet >= undecidedRises && highEnd(y) >= uncached
	return enough && f.even && f.growth >= s.need
}

// interval sets the rate with its 95 % interval.
func (f *finding) interval(y []float64, each float64) {
	d := trend.FitDrift(y, rateRaise)
	half := students().rate[d.N] * d.SE
	f.rate, f.low, f.high = d.Slope/each, (d.Slope-half)/each, (d.Slope+half)/each
	f.se, f.known = d.SE/each, true
	shapes := trend.FitShapes(y)
	f.sigma = math.Sqrt(shapes.Line / float64(len(y)-2))
}

// ratchet counts the rises of a series that rises in steps and hardly ever
// falls, such as the memory of an activity that keeps its images each time it
// is opened. Adjacent rises count as one. The count is 0 if the falls exceed
// ratchetFalls of the rises, or if less than ratchetKept of the rises remains
// at the end. even reports whether each third of the series has a rise.
func ratchet(y []float64) (rises int, even bool) {
	noise := max(leastRise, ratchetSigmas*math.Sqrt2*noiseOf(y))
	var thirds [3]int
	up, down := 0.0, 0.0
	rising := false
	for i := 1; i < len(y); i++ {
		d := y[i] - y[i-1]
		if d <= -noise {
			down -= d
		}
		if d < noise {
			rising = false
			continue
		}
		up += d
		if !rising {
			thirds[(i-1)*3/(len(y)-1)]++
		}
		rising = true
	}
	if down > ratchetFalls*up || highEnd(y) < ratchetKept*up {
		return 0, false
	}
	return thirds[0] + thirds[1] + thirds[2], thirds[0] > 0 && thirds[1] > 0 && thirds[2] > 0
}

// noiseOf returns the standard deviation of levels about their trend. It uses
// the median change between neighbors, which is hardly affected by steps or a
// linear trend.
func noiseOf(y []float64) float64 {
	var scratch [maxLevels]float64
	changes := scratch[:0]
	for i := 1; i < len(y); i++ {
		changes = append(changes, math.Abs(y[i]-y[i-1]))
	}
	return normalMAD * middle(changes) / math.Sqrt2
}

// splice is a track from which one sudden fall (a trim, a screen that closed)
// has been removed. at is the floor of the fall, fall is its height in MB, and
// first and second are the slopes before and after it, per floor.
type splice struct {
	track         *track
	at            int
	fall          float64
	first, second float64
}

// starts returns the slots at which the judged parts begin.
func (s *splice) starts(m *robustMachine) [2]int { return [2]int{m.skipped(), m.axis.closed / 4} }

// splice finds the single fall of a track. A series that falls more than once
// is a sawtooth.
func (m *robustMachine) splice(t *track) (splice, bool) {
	if m.axis.length() < spliceTime {
		return splice{}, false
	}
	at, fall, ok := fallOf(t.bins)
	hour := int(shortestSide / (time.Duration(m.axis.binSlots) * slotTime))
	if !ok || at < hour || len(t.bins)-at < hour {
		return splice{}, false
	}
	s := splice{
		at: at, fall: fall, first: binSlope(t.bins[m.skipped()/m.axis.binSlots : at]), second: binSlope(t.bins[at+2:]),
	}
	copied := *t
	copied.bins = slices.Clone(t.bins)
	for i := at; i < len(copied.bins); i++ {
		copied.bins[i] += float32(fall)
	}
	copied.bins[at] = nan32
	s.track = &copied
	return s, true
}

// alike reports whether two slopes are positive and similar enough to belong to
// one leak.
func alike(first, second float64) bool {
	return first > 0 && second >= first*alikeSlopes && first >= second*alikeSlopes
}

// spliced judges a track without its single fall. A leak grows at about the
// same rate before and after the fall.
func (m *robustMachine) spliced(t *track, family float64) (finding, bool) {
	s, ok := m.splice(t)
	if !ok || !alike(s.first, s.second) || m.isSawtooth(t, &s) {
		return finding{}, false
	}
	for _, from := range s.starts(m) {
		if f := m.part(s.track, nil, from, m.axis.closed, family); f.reason == fires {
			f.trimmed, f.fellAt = s.fall, m.axis.origin+time.Duration((s.at+2)*m.axis.binSlots)*slotTime
			return f, true
		}
	}
	return finding{}, false
}

// isSawtooth reports whether the fall is about as large as the growth before
// it, as when a full cache is emptied.
func (m *robustMachine) isSawtooth(t *track, s *splice) bool {
	var scratch [8]float64
	skip := m.skipped() / m.axis.binSlots
	begin := middle(appendKnown(scratch[:0], t.bins[skip:min(skip+3, s.at)]))
	top := middle(appendKnown(scratch[:0], t.bins[max(skip, s.at-3):s.at]))
	return math.Abs(s.fall-(top-begin)) <= toothPart*(top-begin)
}

// fallOf finds the one fall that is far larger than every other change. Changes
// are measured between floors that are two positions apart.
func fallOf(bins []float32) (at int, fall float64, ok bool) {
	change := func(i int) float64 { return float64(bins[i+1] - bins[i-1]) }
	largest := 0.0
	for i := 1; i+1 < len(bins); i++ {
		if d := -change(i); d > largest {
			largest, at = d, i
		}
	}
	if largest < 2*leastGrowth || at < 4 || at+4 >= len(bins) {
		return 0, 0, false
	}
	for i := 1; i+1 < len(bins); i++ {
		if (i < at-2 || i > at+2) && math.Abs(change(i)) > largest*otherChanges {
			return 0, 0, false
		}
	}
	var scratch [8]float64
	before := middle(appendKnown(scratch[:0], bins[at-3:at]))
	after := middle(appendKnown(scratch[:0], bins[at+1:at+4]))
	return at, before - after, before-after >= largest/2
}

// binSlope returns the slope of floors, per floor.
func binSlope(bins []float32) float64 {
	y := make([]float64, len(bins))
	for i, v := range bins {
		y[i] = float64(v)
	}
	bridge(y)
	return trend.Slope(y)
}

const (
	// A rise is reported only if it is at least riseSigmas times the standard
	// deviation of the levels about their line.
	riseSigmas = 3.0
)

// highEnd returns by how much the last sixth of the levels is above the first
// sixth.
func highEnd(y []float64) float64 {
	k := max(1, len(y)/6)
	return median(y[len(y)-k:]) - median(y[:k])
}

// decide returns fires if the levels show a leak, and otherwise the reason why
// they do not. It tests the conditions that are cheap to compute first.
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
	case dominatedByJumps(y, f.growth):
		return stepped
	case !f.endsHighest(y, s.before):
		return visited
	}
	return f.shape(y, s)
}

// dominatedByJumps reports whether one or two rises between adjacent levels
// (medians of three) are too large a part of the growth.
func dominatedByJumps(y []float64, growth float64) bool {
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

// endsHighest reports whether the last sixth of the levels is at least as high
// as every other sixth, and clearly above all levels before the window. In a
// slow sawtooth, the end of a tooth is no higher than the end of the previous
// tooth.
func (f *finding) endsHighest(y []float64, before float64) bool {
	n := len(y)
	k := n / 6
	top := before + aboveBefore*f.growth
	for to := n - k; to-k >= 0; to -= k {
		top = max(top, median(y[to-k:to]))
	}
	return median(y[n-k:]) >= top
}

func (f *finding) shape(y []float64, s scale) reason {
	shapes := trend.FitShapes(y)
	// Among many processes without leaks, the levels of one may form a straight
	// line by chance.
	strictness := math.Log(s.family)
	if shapes.Line > (1-endExplained-strictness/50)*shapes.Constant {
		return scattered
	}
	line := min(shapes.BIC(shapes.Line, 2), shapes.BIC(shapes.Onset, 3))
	curve := curveBetter - strictness
	if line > min(shapes.BIC(shapes.Saturating, 3), shapes.BIC(shapes.Filled, 3))+curve && !steady(y, f.drift) {
		return slowing // the pace rule above already rejects levels that flatten out
	}
	if line > shapes.BIC(shapes.Step, 3) ||
		line > min(shapes.BIC(shapes.TwoSteps, 5), shapes.BIC(shapes.ThreeSteps, 7))+stepsBetter {
		return stepped
	}
	return fires
}
