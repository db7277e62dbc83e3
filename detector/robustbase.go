package detector

import (
	"fmt"
	"math"
	"time"
)

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
