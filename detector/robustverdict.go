package detector

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
	"github.com/leakgate/leakgate/internal/text"
)

// judgement is the end verdict on one stretch, or on all lives together.
type judgement struct {
	gate    Gate
	leading int
	finding
	shares  shares
	because string
	// length is the duration of the stretch.
	length time.Duration
	// flat is how long the levels have been flat at the end, if they settled.
	flat time.Duration
	// jump is the largest jump in the stretch; jumps of which less than half
	// remains at the end are ignored.
	jump *Jump
	// lives is the number of lives judged together; 0 for a stretch.
	lives int
	// loops is the number of loops whose levels after a collection were judged;
	// 0 if there were none.
	loops int
	// fell is the size of a recent sudden fall, in MB.
	fell float64
	// rising reports whether the verdict is undecided because memory grew,
	// rather than because there is too little data.
	rising bool
}

// past is the most significant verdict on the stretches that have ended.
type past struct {
	judgement
	any bool
	// watched is the total length of all stretches; judged is the total length
	// of the stretches that were long enough to be judged.
	watched, judged time.Duration
	// quiet is the length of the longest stretch that passed or settled.
	quiet time.Duration
}

// weight ranks a judgement by its significance for the run, from 0 to 4. A
// later flat stretch does not outweigh unexplained growth.
func (j *judgement) weight() int {
	switch {
	case j.gate == Leak:
		return 4
	case j.gate == Inconclusive && j.rising:
		return 3
	case j.gate == Settled:
		return 2
	case j.gate == Pass:
		return 1
	}
	return 0
}

// add adds the judgement on a stretch.
func (p *past) add(j judgement) {
	p.watched += j.length
	if j.length >= shortest || j.loops > 0 {
		p.judged += j.length
	}
	if j.gate == Pass || j.gate == Settled {
		p.quiet = max(p.quiet, j.length)
	}
	if !p.any || j.weight() > p.weight() {
		p.judgement, p.any = j, true
	}
}

// close judges the stretch that ends.
func (m *robustMachine) close() {
	if m.axis.closed > 0 {
		m.past.add(m.judge())
	}
}

// families returns the number of judgements that share the probability of a
// false alarm: the number of processes times the number of stretches of this
// process that are long enough to be judged.
func (m *robustMachine) families() float64 { return float64(m.family) * float64(m.stretches) }

// critical returns the t above which growth is significant, for the given
// degrees of freedom.
func (m *robustMachine) critical(df float64) float64 {
	return trend.StudentQuantile(1-endP/m.families(), df)
}

// familiesOf returns the result of families, multiplied by the number of series
// that are judged in addition to the total.
func (m *robustMachine) familiesOf(series int) float64 { return m.families() * float64(series) }

// judge returns the end verdict on the current stretch.
func (m *robustMachine) judge() judgement {
	j := judgement{leading: totalTrack, length: m.axis.length()}
	if m.judgeCollected(&j) {
		return j
	}
	levels, hours, name, aligned := m.loops.judged(m)
	if aligned {
		j.finding = m.judgeLevels(levels, hours, m.families())
	} else {
		j.finding = m.ends(m.tracks[totalTrack], nil, m.families())
	}
	if j.reason != fires {
		m.judgeHidden(&j)
	}
	j.gate = m.gateOf(&j)
	switch j.gate {
	case Leak:
		m.refit(&j)
		fallthrough
	case Settled:
		j.shares = m.sharesOver(min(j.window, m.axis.length(), m.axis.at()-j.fellAt))
	}
	m.setDetectable(&j, aligned)
	if j.gate == Pass && math.IsInf(j.detectable, 1) {
		j.gate = Inconclusive // it could have missed any leak
	}
	j.because = m.because(&j, name)
	return j
}

// judgeCollected judges the levels after forced collections, and returns false
// if there are too few of them or they do not represent the stretch. The same
// work should leave the same amount of memory in use, so growth is measured per
// loop, and twelve minutes can be long enough. The first third of the levels is
// skipped as warm-up.
func (m *robustMachine) judgeCollected(j *judgement) bool {
	a := &m.loops.after
	if len(a.levels) < leastLoops || !m.covered(m.loops.firstAfter, a.last) {
		return false
	}
	y := a.from(len(a.levels) / 3)
	per := float64(a.each*len(a.levels)-a.each*(len(a.levels)/3)) / float64(len(y)) // loops per level
	loops := per * float64(len(y))
	// each is the time per loop.
	each := time.Duration(a.last-m.loops.firstAfter) * slotTime / time.Duration(max(1, len(a.levels)*a.each-1))
	window := time.Duration(loops * float64(each))
	j.finding = finding{
		lookResult: lookResult{window: window}, begins: m.axis.at() - window, ends: m.axis.at(), before: noRecord,
	}
	s := scale{
		hours: max(window.Hours(), 1e-3), need: max(leastCollected, perLoop*loops), family: m.families(),
		before: noRecord,
	}
	j.judge(y, s)
	j.loops = int(loops)
	switch {
	case j.reason == fires:
		j.gate = Leak
		j.shares = m.sharesOver(min(window, m.axis.length()))
	case j.low > 0 && j.growth >= s.need:
		j.gate, j.rising = Inconclusive, true
	default:
		j.gate = Pass
	}
	j.lately = math.Inf(1)
	levels := j.levels
	if j.gate == Leak {
		levels = withoutLine(levels)
	}
	j.detectable = detectableSafety * slowestFound(s.need/s.hours, func(rate float64) bool {
		f, grown := finding{}, slices.Clone(levels)
		for k := range grown {
			grown[k] += rate * (float64(k) + 0.5) * j.apart
		}
		f.judge(grown, s)
		return f.reason == fires
	})
	if j.gate == Pass && math.IsInf(j.detectable, 1) {
		j.gate = Inconclusive
	}
	j.because = m.collectedText(j, each)
	return true
}

func (m *robustMachine) judgeLevels(levels []float64, hours, family float64) finding {
	window := time.Duration(hours * float64(time.Hour))
	f := finding{
		lookResult: lookResult{window: window}, begins: m.axis.at() - window, ends: m.axis.at(), before: noRecord,
	}
	f.judge(levels, scale{hours: hours, need: needed(hours), family: family, before: noRecord})
	return f
}

// judgeHidden looks for a dimension that leaks while the total does not grow.
// If the samples do not include all memory, it also judges the total of the
// breakdowns.
func (m *robustMachine) judgeHidden(j *judgement) {
	if t := m.tracks[wholeTrack]; m.quantity != WholeMemory && t.values >= leastLoops {
		if f := m.ends(t, nil, m.familiesOf(len(hiddenTracks)+1)); f.reason == fires || f.known && f.rises && !j.rises {
			j.finding, j.leading = f, wholeTrack
			return
		}
	}
	for _, i := range hiddenTracks {
		if m.tracks[i].values < leastLoops {
			continue
		}
		if f := m.ends(m.tracks[i], m.tracks[totalTrack], m.familiesOf(len(hiddenTracks))); f.reason == fires {
			j.finding, j.leading = f, i
			return
		}
	}
}

func (m *robustMachine) gateOf(j *judgement) Gate {
	switch {
	case m.axis.length() < shortest || !j.known:
		return Inconclusive
	case j.reason == fires:
		return Leak
	case m.row >= 2 || j.undecided(m.families()):
		j.rising = true
		return Inconclusive
	}
	if at := m.jumps.lasting(m); at >= 0 {
		j.jump = &m.jumps.list[at]
	}
	switch {
	case m.fellLately(j):
		j.rising = true
		return Inconclusive
	case m.stretchWorst == Leaking && j.gaveBack():
		return Settled
	case j.settled():
		return Settled
	case m.stretchWorst == Leaking || j.rises || j.jump != nil || j.grows() || j.ratchet >= 2:
		j.rising = true
		return Inconclusive
	}
	return Pass
}

// gaveBack reports whether memory that grew was freed again: the levels do not
// rise, and the growth that remains at the end is less than leastGrowth or less
// than keptPart of the largest growth.
func (j *judgement) gaveBack() bool {
	n := len(j.levels)
	k := max(1, n/6)
	begin, top := median(j.levels[:k]), math.Inf(-1)
	for to := n; to-k >= 0; to -= k {
		top = max(top, median(j.levels[to-k:to]))
	}
	return !j.rises && j.higher < max(leastGrowth, keptPart*(top-begin))
}

// fellLately reports whether the memory of a leak was freed suddenly, and so
// late that there was no time to see whether it grows again.
func (m *robustMachine) fellLately(j *judgement) bool {
	if m.stretchWorst != Leaking {
		return false
	}
	t := m.tracks[totalTrack]
	at, fall, ok := fallOf(t.bins)
	if !ok || time.Duration((len(t.bins)-at)*m.axis.binSlots)*slotTime >= settledTime {
		return false
	}
	if f := m.endingAt(t, nil, (at-1)*m.axis.binSlots, m.families()); f.reason != fires {
		return false
	}
	j.fell = fall
	return true
}

// grows reports whether the growth is at least leastGrowth and the 95 %
// interval of the rate is above 0.
func (f *finding) grows() bool { return f.low > 0 && f.growth >= leastGrowth }

// settled reports whether levels that grew were then flat for a long time until
// the end, and records for how long.
func (j *judgement) settled() bool {
	lumps := j.ratchet >= undecidedRises || j.ratchet >= 2 && j.higher >= undecidedSteps
	if !j.rises && j.jump == nil && !j.grows() || lumps {
		return false
	}
	n := len(j.levels)
	for k := n; k >= 6 && j.flat == 0; k-- { // find the longest flat part at the end
		if isFlat(j.levels[n-k:]) {
			j.flat = time.Duration(float64(k) * j.apart * float64(time.Hour))
		}
	}
	// Growth that is too large for a cache is not a warm-up either, unless a
	// jump accounts for half of it.
	much := j.higher >= uncached && j.window-j.flat >= uncachedTime &&
		(j.jump == nil || float64(j.jump.Bytes)/MB < j.higher/2)
	least := max(settledTime, time.Duration(settledPart*float64(j.window)))
	if much {
		j.flat = 0
	}
	return j.flat >= least-time.Duration(j.apart*float64(time.Hour))/2
}

// isFlat reports whether levels do not grow: their fitted rise and the
// difference between their last and their first sixth are less than
// leastGrowth, and the rise is within the noise or less than half of
// leastGrowth. The first three levels must not be far below the median.
func isFlat(y []float64) bool {
	d := trend.FitDrift(y, rateRaise)
	growth, half := d.Slope*float64(len(y)), students().rate[d.N]*d.SE*float64(len(y))
	if meanOf(y[:3]) < median(y)-leastGrowth/2-noiseOf(y) {
		return false // still rising
	}
	return growth < leastGrowth && highEnd(y) < leastGrowth && (growth-half <= 0 || growth < leastGrowth/2)
}

// undecided reports whether everything except the length of the run suggests a
// leak.
func (j *judgement) undecided(family float64) bool {
	if j.reason != small || j.growth < leastGrowth {
		return false
	}
	if j.window < undecidedUpTo {
		return j.rises && stillRising(j.levels)
	}
	f := j.finding
	return f.decide(j.levels,
		scale{hours: j.window.Hours(), need: leastGrowth, family: family, before: noRecord}) == fires
}

// undecidedUpTo is the length of the shortest run in which growth that lasts
// until the end can be reported as settled.
const undecidedUpTo = 3 * time.Hour

// stillRising reports whether levels still rise fast enough in the last quarter
// and do not clearly level off.
func stillRising(y []float64) bool {
	q := len(y) / 4
	m1, m3, m4 := meanOf(y[:q]), meanOf(y[len(y)-2*q:len(y)-q]), meanOf(y[len(y)-q:])
	if m4-m3 < leastPace*(m4-m1)/3 {
		return false
	}
	s := trend.FitShapes(y)
	line := min(s.BIC(s.Line, 2), s.BIC(s.Onset, 3))
	return line <= min(s.BIC(s.Saturating, 3), s.BIC(s.Filled, 3), s.BIC(s.Step, 3))+curveBetter
}

// refit recomputes the rate of a leak from its onset if a flat part clearly
// precedes the onset.
func (m *robustMachine) refit(j *judgement) {
	n := len(j.levels)
	if n < leastBlocks || j.lumps || j.trimmed > 0 {
		return
	}
	shapes := trend.FitShapes(j.levels)
	if shapes.BIC(shapes.Onset, 3) > shapes.BIC(shapes.Line, 2)-onsetBetter || n-shapes.OnsetAt < 8 {
		return
	}
	begins := j.begins + time.Duration(float64(shapes.OnsetAt)*j.apart*float64(time.Hour))
	var scratch [maxLevels]float64
	g := finding{}
	from, to := m.axis.slot(begins), m.axis.slot(j.ends)
	y, _, ok := m.levelsOf(m.tracks[j.leading], scratch[:], from, to, &g)
	if !ok || len(y) < 8 {
		return
	}
	g.interval(y, g.window.Hours()/float64(len(y)))
	drift := trend.FitDrift(y, endRaise)
	if !(g.low > 0) {
		return
	}
	j.begins, j.window, j.rate, j.low, j.high, j.se = g.begins, g.window, g.rate, g.low, g.high, g.se
	j.drift, j.growth, j.blocks = drift, drift.Slope*float64(len(y)), len(y)
}

// verdict returns the current verdict; its gate is the one that would apply if
// the run ended now.
//
// The gate is "leak" if there is a leak in any stretch between restarts and
// long gaps, or in all lives of the process taken together. It is
// "inconclusive" if no stretch is long enough, or if memory grew for an unknown
// reason. It is "settled" if memory grew and then was flat for a long time or
// fell again. Otherwise it is "pass".
func (m *robustMachine) verdict() Verdict {
	j := m.whole()
	v := Verdict{
		State: m.state, Worst: m.worst, Kind: m.kind, Gate: j.gate, Because: j.because,
		Samples: m.samples, FirstSuspicious: m.firstSuspicious, FirstLeaking: m.firstLeaking, Restarts: m.restarts,
		Jumps: append([]Jump(nil), m.jumps.list...), Shares: j.shares.measured(), Warnings: m.warnings(&j),
	}
	if j.gate == Leak {
		v.Kind = j.shares.kind()
	}
	if m.lastSample.Known && m.began.Known {
		v.Duration = max(0, m.lastSample.N-m.began.N)
	}
	v.finding(&j)
	if j.gate != Leak {
		v.Flat = j.flat
	}
	return v
}

// whole returns the judgement on the entire run, based on its stretches and on
// all lives together.
func (m *robustMachine) whole() judgement {
	all := m.past
	if m.axis.closed > 0 || !all.any {
		all.add(m.judge())
	}
	j := all.judgement
	if m.restarts == 0 && m.lives.count == 0 {
		if j.gate != Pass && j.length < all.watched && j.length >= shortest {
			j.because = fmt.Sprintf("in %s without a gap: %s", minutesText(j.length), j.because)
		}
		return j
	}
	return m.together(j, &all)
}

// finding copies the numbers of a judgement to a verdict.
func (v *Verdict) finding(j *judgement) {
	if !j.known || math.IsNaN(j.rate+j.low+j.high) {
		return
	}
	v.RateKnown = true
	v.Rate, v.RateLow, v.RateHigh = j.rate*MB, j.low*MB, j.high*MB
	v.Growth = int64(j.rate * j.window.Hours() * MB)
	if !math.IsInf(j.detectable, 1) && (j.gate != Inconclusive || j.window >= shortest/2) {
		v.MinDetectable = j.detectable * MB
	}
	if !math.IsInf(j.lately, 1) {
		v.MinDetectableLately = j.lately * MB
	}
	v.Evidence = []Evidence{{Name: "t", Value: finite(j.drift.T())}}
	window := Evidence{Name: "window", Value: j.window.Minutes(), Unit: "min"}
	if j.lives > 0 {
		v.Evidence = append(v.Evidence, Evidence{Name: "lives", Value: float64(j.lives)}, window)
	} else {
		v.Evidence = append(v.Evidence, Evidence{Name: "autocorrelation", Value: j.drift.Alpha},
			Evidence{Name: "levels", Value: float64(j.blocks)},
			window, Evidence{Name: "noise", Value: j.sigma, Unit: "MB"})
	}
	if j.gate == Leak && j.shares.readings >= leastReadings {
		v.Evidence = append(v.Evidence, Evidence{Name: "kind certainty", Value: 100 * j.shares.certainty, Unit: "%"})
	}
}

var (
	errNoDimensions = errors.New(
		"no breakdowns arrived: the kind of a leak is unknown, and graphics memory was not measured")
	errNoGraphics = errors.New(
		"this device reports no graphics memory for this process: graphics leaks cannot be detected")
	errNoSwap    = errors.New("swapped memory was not measured: this kernel does not report SwapPss")
	errAnonymous = errors.New("only anonymous memory was measured between breakdowns: " +
		"files, ashmem and drivers are missing")
)

func (m *robustMachine) warnings(j *judgement) []error {
	var list []error
	if m.ignored > 0 {
		list = append(list,
			fmt.Errorf("%s ignored: not newer than the previous one", text.Plural(m.ignored, "reading", "readings")))
	}
	if m.empty > 0 {
		list = append(list,
			fmt.Errorf("%s ignored: implausibly low or high memory", text.Plural(m.empty, "value", "values")))
	}
	if m.gaps > 0 {
		list = append(list,
			fmt.Errorf("nothing was measured for more than %s, %s: no trend spans these gaps",
				minutesText(m.policy.MaxGap),
				text.Count(m.gaps, "time", "times")))
	}
	switch {
	case m.samples == 0:
	case m.breakdowns == 0:
		list = append(list, errNoDimensions)
	case !m.graphicsSeen:
		list = append(list, errNoGraphics)
	}
	switch m.quantity {
	case WithoutSwap:
		list = append(list, errNoSwap)
	case Anonymous:
		list = append(list, errAnonymous)
	}
	return list
}
