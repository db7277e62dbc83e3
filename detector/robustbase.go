package detector

import (
	"fmt"
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

const (
	// baseNeed is the growth in MB that a difference must have in a run of any
	// length. Growth that both builds have cancels out in the difference.
	baseNeed = 30.0
	// If a process grows and its difference is at least baseNeed with a t above
	// undecidedT, the verdict is not a pass.
	undecidedT = 2.0
	// A base run has the same leak if its rate is at least matchingPart of the
	// rate of this run.
	matchingPart = 0.5
	// With at least runsForSpread base runs, the spread among runs of one build
	// is known. A difference must exceed the spread with probability
	// spreadCertainty; if the probability is above 1-endP, the difference alone
	// proves a leak.
	runsForSpread   = 3
	spreadCertainty = 0.95
)

// compareTo judges the difference between a process and the same process in
// base runs. If the run proves a leak by itself and the base runs do not grow
// in the same way, the verdict remains a leak.
func (m *robustMachine) compareTo(bases []*robustMachine) Verdict {
	v := m.verdict()
	alone := m.whole()
	d, ok := m.compare(bases)
	switch {
	case !ok && alone.gate == Leak:
		v.Because += "; the base run has too little in common with this run for a comparison"
		return v
	case !ok:
		v.Gate, v.RateKnown, v.MinDetectable, v.MinDetectableLately = Inconclusive, false, 0, 0
		v.Because = fmt.Sprintf("the two runs have less than %s of uninterrupted data in common",
			minutesText(30*time.Minute))
		return v
	}
	j := judgement{leading: totalTrack, finding: d.finding}
	switch {
	case d.proved && d.headRises:
		j.gate = Leak
		j.shares = d.shares
		j.because = fmt.Sprintf("grows %s MB/h (95 %% interval %s) more than %s: %s MB in %s %s; %s",
			number(j.rate), intervalText(j.low, j.high), d.bases, number(j.growth), minutesText(j.window), d.how,
			j.shares.text())
	case alone.gate == Leak && !d.matched:
		v.Because += fmt.Sprintf("; %s more than %s (95 %% interval %s) %s", rateWord(j.rate), d.bases,
			intervalText(j.low, j.high), d.how)
		v.MinDetectable = 0
		return v
	case d.headRises && d.t > undecidedT && j.growth >= baseNeed:
		j.gate = Inconclusive
		j.because = fmt.Sprintf(
			"grows %s MB/h (95 %% interval %s) more than %s, %s MB in %s %s: too little for a leak, too much to rule "+
				"one out; run longer, or add base runs",
			number(j.rate), intervalText(j.low, j.high), d.bases, number(j.growth), minutesText(j.window), d.how)
	case math.IsInf(j.detectable, 1):
		j.gate = Inconclusive
		j.because = fmt.Sprintf(
			"no difference from %s in %s %s, but no leak of any rate would have been detected: too much noise", d.bases,
			minutesText(j.window), d.how)
	default:
		j.gate = Pass
		j.because = fmt.Sprintf("grows no more than %s in %s %s; a leak of %s MB/h or more would have been detected",
			d.bases, minutesText(j.window), d.how, number(j.detectable))
		if d.matched && alone.gate == Leak {
			j.because = fmt.Sprintf(
				"grows %s MB/h, like %s: no difference in %s %s; an additional leak of %s MB/h or more would have "+
					"been detected",
				number(alone.rate), d.does, minutesText(j.window), d.how, number(j.detectable))
		}
	}
	v.Gate, v.Because = j.gate, j.because
	v.Shares, v.Kind = j.shares.measured(), m.kind
	if j.gate == Leak {
		v.Kind = j.shares.kind()
	}
	v.RateKnown, v.MinDetectable, v.MinDetectableLately, v.Flat = false, 0, 0, 0
	v.Warnings = m.warnings(&j)
	v.finding(&j)
	return v
}

func rateWord(rate float64) string { return signed(rate) + " MB/h" }

// contrast is the difference between a process and the same process in base
// runs.
type contrast struct {
	finding
	t float64
	// These are phrases for messages: how says how the runs were aligned, bases
	// names the base runs ("the base run"), and does adds a verb ("the base run
	// does").
	how, bases, does string
	// proved reports whether the difference shows a leak, regardless of the
	// process's own growth. headRises reports whether the process itself grows;
	// matched reports whether the base runs grow in the same way.
	proved, headRises, matched bool
	shares                     shares
}

// compare compares a process with the same process in base runs. The runs are
// aligned by loops, by time or, if the process restarts, by age.
func (m *robustMachine) compare(bases []*robustMachine) (contrast, bool) {
	d := contrast{bases: "the base run", does: "the base run does"}
	if len(bases) > 1 {
		d.bases, d.does = fmt.Sprintf("%d base runs", len(bases)), fmt.Sprintf("%d base runs do", len(bases))
	}
	if m.lives.count > 0 { // the current life is only one of several lives
		if lives, ok := m.compareLives(d, bases); ok {
			return lives, true
		}
		if 2*m.axis.length() < m.past.watched+m.axis.length() {
			return d, false
		}
	}
	levels, hours, how := m.differences(bases)
	if levels == nil {
		return d, false
	}
	d.how = how
	window := time.Duration(hours * float64(time.Hour))
	d.finding = finding{
		lookResult: lookResult{window: window}, begins: m.axis.origin, ends: m.axis.at(), before: noRecord,
	}
	s := scale{hours: hours, need: baseNeed, family: m.families(), before: noRecord}
	d.judge(levels, s)
	d.t = d.drift.T()
	d.proved = d.reason == fires
	d.lately = math.Inf(1)
	quiet := levels
	if d.proved {
		quiet = withoutLine(levels)
	}
	d.detectable = detectableSafety * slowestFound(baseNeed/hours, func(rate float64) bool {
		var f finding
		y := append([]float64(nil), quiet...)
		for i := range y {
			y[i] += rate * (float64(i) + 0.5) * d.apart
		}
		f.judge(y, s)
		return f.reason == fires
	})
	m.spread(&d, bases)
	own := m.ends(m.tracks[totalTrack], nil, m.families())
	d.headRises = own.known && (own.rises || own.grows() || own.reason == fires)
	d.matched = m.matches(&d, bases)
	d.shares = m.sharesOver(min(window, m.axis.length()))
	return d, true
}

// matches reports whether base runs grow in the same way: their mean rate is at
// least matchingPart of the rate of this run, and the remaining difference is
// not significant.
func (m *robustMachine) matches(d *contrast, bases []*robustMachine) bool {
	if d.t > undecidedT && d.growth >= baseNeed {
		return false
	}
	rates := make([]float64, len(bases))
	for i, b := range bases {
		own := b.ends(b.tracks[totalTrack], nil, b.families())
		rates[i] = own.rate
	}
	own := m.ends(m.tracks[totalTrack], nil, m.families())
	return m.lives.count == 0 && own.low > 0 && meanOf(rates) >= matchingPart*own.rate
}

// spread compares a difference with the differences among the base runs: t =
// (head - mean) / (sd sqrt(1 + 1/k)) follows Student's t distribution with k-1
// degrees of freedom.
func (m *robustMachine) spread(d *contrast, bases []*robustMachine) {
	k := len(bases)
	if k < runsForSpread {
		return
	}
	rates, errors := make([]float64, k), make([]float64, k)
	for i, b := range bases {
		own := b.ends(b.tracks[totalTrack], nil, 1)
		rates[i], errors[i] = own.rate, own.se
	}
	t, df := beyondSpread(m.ends(m.tracks[totalTrack], nil, 1).rate, rates, errors)
	beyond := t > trend.StudentQuantile(spreadCertainty, df)
	d.proved = d.proved && beyond || d.growth >= baseNeed && t > m.critical(df)
	if !beyond {
		d.t = min(d.t, t)
	}
}

// beyondSpread returns t, the number of standard deviations by which a rate is
// above the mean rate of base runs, and the degrees of freedom of t. errors are
// the standard errors of the base rates. A few runs may agree by chance, so the
// standard deviation is at least as large as the noise of the rates. If the
// base runs differ by little more than their noise, df is that of the noise,
// which is estimated from many levels.
func beyondSpread(rate float64, rates, errors []float64) (t, df float64) {
	k := float64(len(rates))
	noise := 0.0
	for _, se := range errors {
		noise += se * se / k
	}
	mean, se := meanAndError(rates)
	spread := se * se * k
	t = (rate - mean) / math.Sqrt(max(spread, noise)*(1+1/k))
	if spread <= 2*noise {
		return t, endBlocks - 2
	}
	return t, k - 1
}

// differences returns the levels of a process minus the mean levels of the base
// runs.
func (m *robustMachine) differences(bases []*robustMachine) (levels []float64, hours float64, how string) {
	var sum []float64
	n := 0
	for _, b := range bases {
		diff, h, by := m.difference(b)
		switch {
		case diff == nil:
			continue
		case sum == nil:
			sum, hours, how, n = diff, h, by, 1
		case len(diff) == len(sum) && by == how:
			for i := range sum {
				sum[i] += diff[i]
			}
			n++
		}
	}
	for i := range sum {
		sum[i] /= float64(n)
	}
	return sum, hours, how
}

// compareLives compares processes that restart by the rates of their lives. A
// warm-up at the beginning of every life does not affect the result, because it
// occurs in both runs.
func (m *robustMachine) compareLives(d contrast, bases []*robustMachine) (contrast, bool) {
	p, ok := m.poolLives()
	if !ok {
		return d, false
	}
	age := p.age
	var of []robustLives
	for _, b := range bases {
		if q, ok := b.poolLives(); ok {
			age = min(age, q.age)
			of = append(of, robustLives{b, q})
		}
	}
	skip := min(p.skip, age/4)
	head, ok := m.pool(m.livesOf(age), skip, age)
	if len(of) == 0 || !ok {
		return d, false
	}
	var rate, square, lives float64
	for _, x := range of {
		base, ok := x.machine.pool(x.machine.livesOf(age), skip, age)
		if !ok {
			return d, false
		}
		k := float64(len(of))
		rate, square, lives = rate+base.all.rate/k, square+base.all.se*base.all.se/(k*k), lives+float64(base.lives)
	}
	d.finding = head.finding(m)
	d.rate, d.se = head.all.rate-rate, math.Hypot(head.all.se, math.Sqrt(square))
	df := float64(head.lives) + lives - 2
	half := trend.StudentQuantile(0.5+confidence/2, df) * d.se
	d.low, d.high = d.rate-half, d.rate+half
	d.growth = d.rate * head.hours()
	d.t = d.rate / d.se
	d.drift = trend.Drift{Slope: d.rate, SE: d.se, N: head.lives}
	crit := m.critical(df)
	d.proved = d.t > crit && d.growth >= leastGrowth/2
	d.headRises = head.grows
	// A warm-up does not explain repeated out-of-memory deaths, so a process
	// with at least leastMemoryDeaths of them does not match its base runs.
	d.matched = d.t <= undecidedT && m.lives.causes[OutOfMemory] < leastMemoryDeaths
	d.detectable = max(leastGrowth/2/head.hours(), (crit+certain)*d.se)
	d.shares = head.shares
	d.how = fmt.Sprintf("of each life (%d lives, base %.0f)", head.lives, lives)
	return d, true
}

type robustLives struct {
	machine *robustMachine
	pool    pool
}

// difference returns the floors of this process minus the floors of the process
// in a base run, aligned by loops or by time.
func (m *robustMachine) difference(base *robustMachine) (levels []float64, hours float64, name string) {
	if diff, part := m.loops.floors.against(&base.loops.floors); diff != nil {
		slots := float64(m.loops.floors.last - m.loops.began)
		return diff, part * slots * slotTime.Hours(), "by loops"
	}
	if levels, hours = m.minutesApart(base); levels != nil {
		return levels, hours, "by time"
	}
	a, b := m.tracks[totalTrack], base.tracks[totalTrack]
	size := max(m.axis.binSlots, base.axis.binSlots)
	n := min(m.axis.binned*m.axis.binSlots, base.axis.binned*base.axis.binSlots) / size
	if n == 0 || time.Duration(n*size)*slotTime < shortest {
		return nil, 0, ""
	}
	diff := make([]float64, 0, n)
	for i := range n {
		diff = append(diff, a.floorAt(i, size/m.axis.binSlots)-b.floorAt(i, size/base.axis.binSlots))
	}
	bridge(diff)
	each := (n + endBlocks - 1) / endBlocks
	count := n / each
	if math.IsNaN(diff[0]) || count < 6 {
		return nil, 0, ""
	}
	for i := range count {
		levels = append(levels, meanOf(diff[n-(count-i)*each:n-(count-i-1)*each]))
	}
	return levels, float64(count*each*size) * slotTime.Hours(), "by time"
}

// minutesApart compares two runs minute by minute if they have at most two
// hours in common. For a run of half an hour, floors would be too coarse.
func (m *robustMachine) minutesApart(base *robustMachine) (levels []float64, hours float64) {
	n := min(m.axis.closed, base.axis.closed) / lifeSlots
	if n > lifeLevels || time.Duration(n*lifeSlots)*slotTime < shortest {
		return nil, 0
	}
	diff := make([]float64, n)
	for i := range diff {
		diff[i] = m.minute(m.tracks[totalTrack], i) - base.minute(base.tracks[totalTrack], i)
	}
	bridge(diff)
	each := (n + endBlocks - 1) / endBlocks
	count := n / each
	if math.IsNaN(diff[0]) {
		return nil, 0
	}
	for i := range count {
		levels = append(levels, meanOf(diff[n-(count-i)*each:n-(count-i-1)*each]))
	}
	return levels, float64(count*each*lifeSlots) * slotTime.Hours()
}

// floorAt returns the mean of the known floors of group i, or NaN if none is
// known; each is the number of floors per group.
func (t *track) floorAt(i, each int) float64 {
	sum, n := 0.0, 0.0
	for _, v := range t.bins[i*each : (i+1)*each] {
		if v == v {
			sum += float64(v)
			n++
		}
	}
	return sum / n
}
