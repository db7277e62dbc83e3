package detector

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// judgement is the end verdict on one stretch.
type judgement struct {
	gate    Gate
	leading int
	finding
	shares  shares
	because string
}

// past is the verdict on the stretches that have ended: the one that says most.
type past struct {
	judgement
	any bool
}

// weight orders gates by what they say of a run as a whole.
func weight(g Gate) int {
	switch g {
	case Leak:
		return 3
	case Settled:
		return 2
	case Pass:
		return 1
	}
	return 0
}

// close judges the stretch that ends.
func (m *robustMachine) close() {
	if m.axis.closed == 0 {
		return
	}
	j := m.judge()
	if !m.past.any || weight(j.gate) > weight(m.past.gate) {
		m.past.judgement, m.past.any = j, true
	}
}

// families is how many judgements share the chance of a false alarm: processes and
// stretches of this one.
func (m *robustMachine) families() float64 { return float64(m.family) * float64(m.stretches) }

// judge is the end verdict on the present stretch.
func (m *robustMachine) judge() judgement {
	j := judgement{leading: totalTrack}
	levels, hours, name, aligned := m.loops.judged(m)
	if aligned {
		j.finding = m.judgeLevels(levels, hours, m.families())
	} else {
		j.finding = m.ends(m.tracks[totalTrack], nil, m.families())
	}
	if j.reason != fires {
		m.judgeHidden(&j)
	}
	j.gate = m.gateOf(&j, levels)
	if j.gate == Leak || j.gate == Settled {
		j.shares = m.sharesOver(min(j.window, m.axis.length()))
	}
	j.because = m.because(&j, name)
	return j
}

func (m *robustMachine) judgeLevels(levels []float64, hours, family float64) finding {
	window := time.Duration(hours * float64(time.Hour))
	f := finding{sight: sight{window: window}, begins: m.axis.at() - window}
	f.judge(levels, scale{hours: hours, need: needed(hours), family: family, before: noRecord})
	return f
}

// judgeHidden looks for a dimension that leaks while the total does not grow.
func (m *robustMachine) judgeHidden(j *judgement) {
	for _, i := range hiddenTracks {
		if m.tracks[i].values < leastLoops {
			continue
		}
		f := m.ends(m.tracks[i], m.tracks[totalTrack], m.families()*float64(len(hiddenTracks)))
		if f.reason == fires {
			f.detectable = j.detectable
			j.finding, j.leading = f, i
			return
		}
	}
}

func (m *robustMachine) gateOf(j *judgement, levels []float64) Gate {
	switch {
	case m.axis.length() < shortest || !j.known:
		return Inconclusive
	case j.reason == fires:
		return Leak
	case m.row >= 2 || m.undecided(j, levels):
		return Inconclusive
	}
	_, jumped := m.jumps.stayed()
	if m.heard == Leaking || j.rises || jumped > 0 {
		return Settled
	}
	return Pass
}

// undecided says whether all but the length of the run speaks for a leak.
func (m *robustMachine) undecided(j *judgement, levels []float64) bool {
	if j.reason != small || j.growth < leastGrowth {
		return false
	}
	var scratch [maxLevels]float64
	if levels == nil {
		at, n, _ := m.cut(m.axis.closed - int(j.window/slotTime))
		var ok bool
		if levels, ok = m.tracks[j.leading].levels(scratch[:], at, n); !ok || n < 8 {
			return false
		}
	}
	f := j.finding
	if j.window < undecidedUpTo {
		return f.rises && stillRising(levels)
	}
	return f.decide(levels, scale{hours: j.window.Hours(), need: leastGrowth, family: m.families(), before: noRecord}) == fires
}

// undecidedUpTo is the length of a run in which a rise to the end is never called
// settled: nobody can tell yet.
const undecidedUpTo = 3 * time.Hour

// stillRising says whether levels rise in the last quarter as before and do not clearly
// level off.
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

// onset is when the growth began, on the device's clock, where a flat part before it
// shows clearly; else when the window begins.
func (m *robustMachine) onset(j *judgement) time.Duration {
	var scratch [maxLevels]float64
	at, n, hours := m.cut(max(0, m.axis.closed-int(j.window/slotTime)))
	y, ok := m.tracks[j.leading].levels(scratch[:], at, max(n, 1))
	if !ok || n < 8 {
		return j.begins
	}
	shapes := trend.FitShapes(y)
	if shapes.BIC(shapes.Onset, 3) > shapes.BIC(shapes.Line, 2)-curveBetter {
		return j.begins
	}
	return j.begins + time.Duration(float64(shapes.OnsetAt)/float64(n)*hours*float64(time.Hour))
}

func (m *robustMachine) because(j *judgement, loops string) string {
	switch j.gate {
	case Leak:
		return m.leakText(j, loops)
	case Settled:
		return m.settledText(j)
	case Pass:
		return fmt.Sprintf("no lasting rise in %s; a leak of %s MB/h or more would have shown", minutesText(m.axis.length()), number(j.detectable))
	}
	switch {
	case m.axis.length() < shortest:
		return fmt.Sprintf("watched %s without a break: a verdict needs at least %s", minutesText(m.axis.length()), minutesText(shortest))
	case !j.known:
		return fmt.Sprintf("%s over %s %s", seriesName(j.leading), minutesText(m.axis.length()), reasonTexts[j.reason])
	case m.row >= 2:
		return fmt.Sprintf("still %v at the end, %s MB/h in the last %s: %s", m.state, number(m.first.perHour()), minutesText(m.first.window), longerText(m.first.perHour(), m.axis.length()))
	}
	return fmt.Sprintf("grew %s MB in %s (%s MB/h), as a leak does and as a cache that fills: %s",
		number(j.growth), minutesText(j.window), number(j.rate), longerText(j.rate, m.axis.length()))
}

// longerText says how long a run must be to show a leak of a rate in MB/h: needed()
// solved for the hours, and longer than the present one.
func longerText(rate float64, present time.Duration) string {
	rate = max(rate, leastGrowth/8) // nobody runs for more than a few nights
	hours := shortGrowth / (hourGrowth + rate)
	if hours*rate < leastGrowth {
		hours = leastGrowth / rate
	}
	hours = 1.25 * max(hours, present.Hours())
	return fmt.Sprintf("a run of %s, or a base run to compare with, tells", minutesText(time.Duration(hours*float64(time.Hour)).Round(10*time.Minute)))
}

func (m *robustMachine) leakText(j *judgement, loops string) string {
	since := m.onset(j) - m.axis.origin
	text := fmt.Sprintf("%s grows %s MB/h (95 %% interval %s to %s): %s MB in the last %s, since %s",
		seriesName(j.leading), number(j.rate), number(j.low), number(j.high), number(j.growth), minutesText(j.window), sinceText(since))
	if loops != "" {
		text += ", judged by " + loops
	}
	if j.leading != totalTrack {
		text += ", hidden in a total that does not grow"
	}
	return text + "; " + j.shares.text()
}

func sinceText(since time.Duration) string {
	if since <= 15*time.Minute {
		return "the start"
	}
	return "about " + minutesText(since) + " after the start"
}

func (m *robustMachine) settledText(j *judgement) string {
	bytes, count := m.jumps.stayed()
	end := "over " + minutesText(j.window) + " it " + reasonTexts[j.reason]
	switch {
	case m.heard == Leaking && !j.rises:
		return fmt.Sprintf("memory grew %s MB in %s and was LEAKING, then went back: %s", number(m.first.growth), minutesText(m.first.window), end)
	case count > 0 && m.heard < Leaking:
		return fmt.Sprintf("memory jumped %s and stayed there; it does not go on: %s", mbText(float64(bytes)), end)
	case m.heard > Normal:
		return fmt.Sprintf("memory ends %s MB higher than it began and was %v, then settled: %s", number(j.higher), m.heard, end)
	}
	return fmt.Sprintf("memory ends %s MB higher than it began, as no leak does: %s", number(j.higher), end)
}

// verdict is what the machine knows now; its gate is that of a run that ends now.
//
// "leak" where any stretch between restarts and long gaps is a leak. "inconclusive"
// where none is long enough, or where the present one still rises but is too short to
// tell why. "settled" where one grew, then settled. Else "pass".
func (m *robustMachine) verdict() Verdict {
	j := m.judge()
	if m.past.any && (weight(m.past.gate) > weight(j.gate) && !m.rising(&j) || m.axis.closed == 0) {
		j = m.past.judgement
	}
	v := Verdict{
		State: m.state, Worst: m.worst, Kind: m.kind, Gate: j.gate, Because: j.because,
		Samples: m.samples, FirstSuspicious: m.firstSuspicious, FirstLeaking: m.firstLeaking, Restarts: m.restarts,
		Jumps: append([]Jump(nil), m.jumps.list...), Shares: j.shares.list, Warnings: m.warnings(&j),
	}
	if j.gate == Leak {
		v.Kind = j.shares.kind()
	}
	if m.lastSample.Known && m.began.Known {
		v.Duration = max(0, m.lastSample.N-m.began.N)
	}
	v.finding(&j)
	return v
}

// rising says whether the present stretch must not be forgotten for an earlier one.
func (m *robustMachine) rising(j *judgement) bool {
	return j.gate == Inconclusive && m.axis.length() >= shortest && m.past.gate != Leak
}

// finding puts the numbers of a judgement into a verdict.
func (v *Verdict) finding(j *judgement) {
	if !j.known || math.IsNaN(j.rate+j.low+j.high) {
		return
	}
	v.RateKnown = true
	v.Rate, v.RateLow, v.RateHigh = j.rate*MB, j.low*MB, j.high*MB
	v.Growth = int64(j.rate * j.window.Hours() * MB)
	if j.gate != Inconclusive || j.window >= shortest/2 {
		v.MinDetectable = j.detectable * MB
	}
	v.Evidence = []Evidence{
		{Name: "t", Value: finite(j.drift.T())},
		{Name: "autocorrelation", Value: j.drift.Alpha},
		{Name: "levels", Value: float64(j.blocks)},
		{Name: "window", Value: j.window.Minutes(), Unit: "min"},
		{Name: "noise", Value: j.sigma, Unit: "MB"},
	}
	if j.gate == Leak && j.shares.readings >= leastReadings {
		v.Evidence = append(v.Evidence, Evidence{Name: "kind certainty", Value: 100 * j.shares.certainty, Unit: "%"})
	}
}

var errNoDimensions = errors.New("hear breakdowns: none came, so the kind of a leak cannot be told and graphics memory is not seen")

func (m *robustMachine) warnings(j *judgement) []error {
	var list []error
	if m.ignored > 0 {
		list = append(list, fmt.Errorf("hear %d readings: ignored, not newer than the one before", m.ignored))
	}
	if m.empty > 0 {
		list = append(list, fmt.Errorf("hear %d values: ignored, no process has so little or so much memory", m.empty))
	}
	if m.holes > 0 {
		list = append(list, fmt.Errorf("watch without a break: %d times nothing was measured for more than %s; nothing is concluded across that", m.holes, minutesText(m.policy.MaxGap)))
	}
	switch {
	case m.samples == 0:
	case m.breakdowns == 0:
		list = append(list, errNoDimensions)
	case !m.graphicsSeen:
		list = append(list, errNoGraphics)
	}
	if j.gate == Inconclusive && j.known && m.axis.length() >= shortest {
		list = append(list, fmt.Errorf("tell a leak from memory that fills: %s", j.because))
	}
	return list
}

var errNoGraphics = errors.New("read graphics memory: this device shows none for this process, so a leak of it cannot be seen")

// baseNeed in MB is the growth of a difference that counts in a run of any length:
// what both builds do is not in it.
const baseNeed = 30.0

// against judges the difference between two processes.
func (m *robustMachine) against(base *robustMachine) Verdict {
	v := m.verdict()
	j := judgement{leading: totalTrack}
	levels, hours, name := m.difference(base)
	if levels == nil {
		v.Gate, v.RateKnown, v.MinDetectable = Inconclusive, false, 0
		v.Because = fmt.Sprintf("the two runs have less than %s in common without a break", minutesText(shortest))
		return v
	}
	window := time.Duration(hours * float64(time.Hour))
	j.finding = finding{sight: sight{window: window}, begins: m.axis.origin}
	j.judge(levels, scale{hours: hours, need: baseNeed, family: m.families(), before: noRecord})
	v.Gate = Pass
	v.Because = fmt.Sprintf("against the base run no lasting rise in %s %s; a leak of %s MB/h or more would have shown", minutesText(window), name, number(j.detectable))
	if j.reason == fires {
		v.Gate = Leak
		j.shares = m.sharesOver(min(window, m.axis.length()))
		v.Shares, v.Kind = j.shares.list, j.shares.kind()
		v.Because = fmt.Sprintf("grows %s MB/h (95 %% interval %s to %s) more than the base run: %s MB in %s %s; %s",
			number(j.rate), number(j.low), number(j.high), number(j.growth), minutesText(window), name, j.shares.text())
	}
	j.gate = v.Gate
	v.Warnings = m.warnings(&j)
	v.finding(&j)
	return v
}

// difference is the floors of both less each other, aligned by loops or by time.
func (m *robustMachine) difference(base *robustMachine) (levels []float64, hours float64, name string) {
	if diff, part := m.loops.floors.against(&base.loops.floors); diff != nil {
		slots := float64(m.loops.floors.last - m.loops.began)
		return diff, part * slots * slotTime.Hours(), "by loops"
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

// floorAt is the mean of so many floors.
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
