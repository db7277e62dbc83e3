package detector

import (
	"math"
	"slices"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

const (
	// The search tries leaks with rates between slowestTried and fastestTried,
	// in MB/h. rateStep is the factor between two adjacent rates.
	slowestTried, fastestTried, rateStep = 1.0, 1 << 15, 1.1892071150027210667 // the fourth root of 2
	// fasterFound is the number of adjacent rates, starting with the reported
	// one, at which a leak must be found. One rate is not enough, because the
	// rate alone does not determine whether a leak is found.
	fasterFound = 3
	// detectableSafety is a factor: in 95 of 100 other runs, whose noise
	// differs, a leak is found if it is this many times as fast as the slowest
	// leak found in this run. Calibrated.
	detectableSafety = 1.15
	// latelyTime is the time between the beginning of a late leak and the end
	// of the stretch.
	latelyTime = time.Hour
)

// onsetParts are the points at which the added leaks begin, as fractions of the
// window. All of these leaks must be found.
var onsetParts = [...]float64{0, 0.05, 0.1}

// setDetectable computes the rate of the slowest leak that would have been
// detected: one rate for leaks that last for the whole window, and one for
// leaks that begin late. It adds leaks to the judged levels and judges them
// again. Unlike a formula for noise, this accounts for steps and plateaus in
// the levels.
func (m *robustMachine) setDetectable(j *judgement, aligned bool) {
	j.detectable, j.lately = math.Inf(1), math.Inf(1)
	if !j.known || j.leading != totalTrack {
		return
	}
	if m.detectable.isValid(m, j.gate) {
		j.detectable, j.lately = m.detectable.rate, m.detectable.lately
		return
	}
	windows := []detectableWindow{{finding: j.finding}}
	switch {
	case j.gate == Leak:
		windows[0].levels = withoutLine(j.levels)
		windows[0].early = false
	case !aligned:
		windows = m.detectableWindows()
	}
	var scratch finding
	find := func(rate float64, from time.Duration) bool {
		return slices.ContainsFunc(windows,
			func(w detectableWindow) bool { return w.finds(&scratch, rate, from, m.families()) })
	}
	begin := m.axis.at() - j.window
	j.detectable = detectableSafety * slowestFound(needed(j.window.Hours())/max(j.window.Hours(), 0.1),
		func(rate float64) bool {
			return !slices.ContainsFunc(onsetParts[:], func(part float64) bool {
				return !find(rate, begin+time.Duration(part*float64(j.window)))
			})
		})
	if m.axis.length() >= 2*latelyTime && j.gate != Leak {
		j.lately = detectableSafety * slowestFound(needed(1),
			func(rate float64) bool { return find(rate, m.axis.at()-latelyTime) })
	}
	m.detectable = detectableCache{
		at: m.axis.closed / firstBin, stretches: m.stretches, family: m.family, gate: j.gate, rate: j.detectable,
		lately: j.lately,
	}
}

// withoutLine returns the levels minus their fitted line.
func withoutLine(y []float64) []float64 {
	slope := trend.Slope(y)
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = v - slope*float64(i)
	}
	return out
}

// detectableCache is the detection limit that was computed last. It is valid
// until the next floor is added, or until the stretch, the number of processes
// or the gate changes.
type detectableCache struct {
	at, stretches, family int
	gate                  Gate
	rate, lately          float64
}

// isValid reports whether the cached limit is still valid.
func (r *detectableCache) isValid(m *robustMachine, g Gate) bool {
	return r.at == m.axis.closed/firstBin && r.stretches == m.stretches && r.family == m.family && r.gate == g
}

// detectableWindow is one part of the stretch; leaks are added to its levels.
type detectableWindow struct {
	finding
	// lowest is the lowest level, in MB, after a part that ends early.
	lowest float64
	// unexplained reports whether the reason for the early end is unknown.
	unexplained bool
	// first and second are the slopes in MB/h before and after the fall of a
	// spliced part.
	first, second float64
	spliced       bool
}

// detectableWindows returns the parts that [robustMachine.ends] judges, with
// their levels.
func (m *robustMachine) detectableWindows() []detectableWindow {
	t := m.tracks[totalTrack]
	out := m.partsUntil(t, m.axis.closed, detectableWindow{})
	for _, to := range m.knownEnds() {
		out = append(out, m.partsUntil(t, to, detectableWindow{lowest: m.lowestAfter(t, to)})...)
	}
	for _, part := range earlyEnds {
		to := int(part * float64(m.axis.closed))
		out = append(out, m.partsUntil(t, to, detectableWindow{lowest: m.lowestAfter(t, to), unexplained: true})...)
	}
	if s, ok := m.splice(t); ok {
		perHour := 1 / (float64(m.axis.binSlots) * slotTime.Hours())
		w := detectableWindow{spliced: true, first: s.first * perHour, second: s.second * perHour}
		for _, from := range s.starts(m) {
			w.finding = m.part(s.track, nil, from, m.axis.closed, m.families())
			out = append(out, w)
		}
	}
	return out
}

// partsUntil returns the parts of a track that end at the given slot.
func (m *robustMachine) partsUntil(t *track, to int, w detectableWindow) []detectableWindow {
	var out []detectableWindow
	for _, from := range m.starts(to) {
		w.finding = m.part(t, nil, from, to, m.families())
		out = append(out, w)
	}
	return out
}

// finds reports whether a leak of the given rate in MB/h would have been found
// in the part. The leak begins at the given time, or at the beginning of the
// part if that is later.
func (w *detectableWindow) finds(f *finding, rate float64, from time.Duration, family float64) bool {
	n := len(w.levels)
	if n == 0 {
		return false
	}
	began := 0.0
	if from > w.begins {
		began = (from - w.begins).Hours()
	}
	grown := func(hours float64) float64 { return rate * max(0, hours-began) }
	y := append(f.levels[:0], w.levels...)
	for k := range y {
		y[k] += grown((float64(k) + 0.5) * w.apart)
	}
	hours := float64(n) * w.apart
	*f = finding{levels: y}
	f.drift = trend.FitDrift(y, endRaise)
	f.growth = f.drift.Slope * float64(n)
	s := scale{hours: hours, need: needed(hours), family: family, before: w.before}
	switch {
	case f.decide(y, s) != fires && !f.inLumps(y, s):
		return false
	case w.spliced:
		return alike(w.first+rate, w.second+rate)
	case w.early:
		k := max(1, n/6)
		begin, end := median(y[:k]), median(y[n-k:])
		return w.lowest+grown(hours)-begin >= stillThere*(end-begin) &&
			(!w.unexplained || f.growth >= uncached && hours >= uncachedTime.Hours())
	}
	return true
}

// slowestFound returns the lowest rate in MB/h that starts a sequence of
// fasterFound adjacent rates at which a leak is found. It searches in steps,
// starting with a guess. The result is infinite if even the fastest rate is not
// found.
func slowestFound(guess float64, found func(float64) bool) float64 {
	steps := int(math.Round(math.Log(fastestTried/slowestTried) / math.Log(rateStep)))
	rate := func(i int) float64 { return slowestTried * math.Pow(rateStep, float64(i)) }
	known := make(map[int]bool, 16)
	at := func(i int) bool {
		i = min(i, steps)
		yes, ok := known[i]
		if !ok {
			yes = found(rate(i))
			known[i] = yes
		}
		return yes
	}
	all := func(i int) bool {
		for k := range fasterFound {
			if !at(i + k) {
				return false
			}
		}
		return true
	}
	i := max(0, min(steps, int(math.Round(math.Log(max(guess, slowestTried)/slowestTried)/math.Log(rateStep)))))
	for stride := 4; !all(i); {
		if i == steps {
			return math.Inf(1)
		}
		i = min(steps, i+stride)
	}
	for i > 0 && all(i-1) {
		i--
	}
	return rate(i)
}
