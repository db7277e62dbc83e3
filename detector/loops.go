package detector

import (
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// loops holds the floors of the loops of a suite, or the levels after forced
// garbage collections. The same work between two marks should leave the same
// memory, so the load and the sawtooth of the garbage collector affect these
// values less than floors by time.
type loops struct {
	// family is the text of the marks that begin a loop, without digits. known
	// reports whether there is such a family.
	family string
	known  bool
	// others lists the other families whose marks were added before any family
	// occurred twice.
	others []string
	// begun counts the marks of the family.
	begun int
	// lastMark is the slot of the latest mark of the family.
	lastMark int
	// from is the slot in which the present loop began; began is the slot in
	// which the first loop began.
	from, began int
	open        bool
	floors      aligned
	// The level after a mark "gc" is read once the slot with the number
	// collected is complete; the number is 0 if no level is awaited. live
	// contains these levels.
	collected, firstCollected int
	live                      aligned
	// after contains the levels after forced collections that the caller added;
	// they take precedence over live. firstAfter is the slot of the first of
	// these levels.
	after      aligned
	firstAfter int
}

// aligned is a list of levels in MB, each over the same number of loops.
type aligned struct {
	levels []float32
	each   int
	sum    float64
	n      int
	last   int
}

const (
	// maxAligned is the maximum number of levels. When the list is full,
	// adjacent levels are merged in pairs.
	maxAligned = 256
	// leastLoops is the minimum number of loops for a judgement by loops.
	leastLoops = 12
	// maxFamily is the maximum length of the stored name of a family, in bytes.
	maxFamily = 64
	// maxOthers bounds the number of families that await their second mark.
	maxOthers = 8
	// The level after a collection is read settleSlots later: by then the
	// collector has finished, but the app has not yet allocated much.
	settleSlots = 2
)

func (a *aligned) add(level float64, slot int) {
	a.each = max(a.each, 1)
	a.last = slot
	a.sum += level
	if a.n++; a.n < a.each {
		return
	}
	a.levels = append(a.levels, float32(a.sum/float64(a.n)))
	a.sum, a.n = 0, 0
	if len(a.levels) < maxAligned {
		return
	}
	for i := range maxAligned / 2 {
		a.levels[i] = (a.levels[2*i] + a.levels[2*i+1]) / 2
	}
	a.levels, a.each = a.levels[:maxAligned/2], 2*a.each
}

func (l *loops) reset() {
	*l = loops{
		family: l.family, known: l.known, begun: l.begun, others: l.others,
		floors: aligned{levels: l.floors.levels[:0]}, live: aligned{levels: l.live.levels[:0]},
		after: aligned{levels: l.after.levels[:0]},
	}
}

// shift updates the slot numbers when the axis drops its first slots.
func (l *loops) shift(gone int) {
	for _, slot := range []*int{
		&l.from, &l.began, &l.collected, &l.firstCollected, &l.lastMark, &l.floors.last, &l.live.last, &l.firstAfter,
		&l.after.last,
	} {
		if *slot != 0 { // none
			*slot -= gone
		}
	}
}

// familyOf returns the name of a mark in lower case, without its digits and
// truncated to maxFamily bytes.
func familyOf(text string) string {
	folded := func(r rune) bool { return r >= utf8.RuneSelf || unicode.IsDigit(r) || unicode.IsUpper(r) }
	if len(text) <= maxFamily && !strings.ContainsFunc(text, folded) {
		return text
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, text)
	// Cloning the prefix allows the rest of a long name to be freed.
	return strings.Clone(text[:min(len(text), maxFamily)])
}

func (l *loops) mark(m *robustMachine, k Mark) {
	if !m.started || k.At < m.axis.origin {
		return
	}
	slot := max(m.axis.closed, m.axis.slot(k.At))
	if time.Duration(slot-m.axis.closed)*slotTime > m.policy.MaxGap {
		return
	}
	family := strings.TrimSpace(familyOf(k.Text))
	switch {
	case family == "gc":
		l.collected = slot + settleSlots
		return
	case !l.known || l.begun < 2 && slices.Contains(l.others, family):
		// A family that occurred only once, such as "start", is replaced by a
		// family that occurs again.
		l.family, l.known, l.open, l.begun, l.others = family, true, false, 0, nil
	case family != l.family:
		if l.begun < 2 && len(l.others) < maxOthers {
			l.others = append(l.others, family)
		}
		return
	}
	l.begun++
	l.lastMark = slot
	l.begin(m, slot)
}

func (m *robustMachine) collected(s Sample) { m.loops.settled(m, s) }

func (d *articleMachine) collected(Sample) {}

// settled adds the level at a point in time after a forced collection, in MB.
func (l *loops) settled(m *robustMachine, s Sample) {
	if !m.started || s.At < m.axis.origin || s.Bytes <= 0 {
		return
	}
	slot := max(m.axis.closed, m.axis.slot(s.At))
	if time.Duration(slot-m.axis.closed)*slotTime > m.policy.MaxGap {
		return
	}
	if len(l.after.levels) == 0 && l.after.n == 0 {
		l.firstAfter = slot
	}
	l.after.add((float64(s.Bytes)+m.driver.offset)/MB, slot)
}

// begin ends the open loop and opens the next. A loop that lies within one slot
// cannot be distinguished from its neighbors, so it is not ended.
func (l *loops) begin(m *robustMachine, slot int) {
	if !l.open {
		l.from, l.began, l.open = slot, slot, true
		return
	}
	if m.axis.closed-l.from < 1 {
		return
	}
	var scratch [ringSlots]float64
	slots := min(m.axis.closed-l.from, ringSlots)
	if v, ok := levelOf(m.tracks[totalTrack].recent(scratch[:0], m.axis.closed, slots)); ok {
		l.floors.add(v, slot)
	}
	l.from = slot
}

// close is called after each complete slot. It adds the level after a mark "gc"
// once that level is known.
func (l *loops) close(m *robustMachine) {
	if l.collected == 0 || m.axis.closed < l.collected {
		return
	}
	var scratch [settleSlots]float64
	if values := m.tracks[totalTrack].recent(scratch[:0], m.axis.closed, settleSlots); len(values) > 0 {
		if len(l.live.levels) == 0 && l.live.n == 0 {
			l.firstCollected = m.axis.closed
		}
		l.live.add(meanOf(values), m.axis.closed)
	}
	l.collected = 0
}

// judged returns the levels by loops or after collections, at most endBlocks,
// and the hours that they cover. name is "collections" or "loops". ok is false
// if the run must be judged by time because it has fewer than leastLoops loops,
// or because the loops do not represent it (see covered).
func (l *loops) judged(m *robustMachine) (levels []float64, hours float64, name string, ok bool) {
	for _, c := range []struct {
		a     *aligned
		began int
		name  string
	}{{&l.after, l.firstAfter, "collections"}, {&l.live, l.firstCollected, "collections"},
		{&l.floors, l.began, "loops"}} {
		slots := c.a.last - c.began
		if len(c.a.levels)*max(1, c.a.each) >= leastLoops && len(c.a.levels) >= leastLoops &&
			m.covered(c.began, c.a.last) {
			levels = c.a.blocks()
			// Levels that are skipped at the beginning, or still pending at the
			// end, do not count toward the hours. Collections are points in
			// time, so there is one interval fewer than collections.
			per := (len(c.a.levels) + endBlocks - 1) / endBlocks
			all := len(c.a.levels)*c.a.each + c.a.n
			if c.name == "collections" {
				all--
			}
			hours = float64(slots) * slotTime.Hours() * float64(len(levels)*per*c.a.each) / float64(all)
			return levels, hours, c.name, true
		}
	}
	return nil, 0, "", false
}

// raise adds the given number of MB to all levels.
func (a *aligned) raise(mb float64) {
	for i := range a.levels {
		a.levels[i] += float32(mb)
	}
	a.sum += mb * float64(a.n)
}

// covered reports whether loops from one slot to another represent the stretch.
// The loops must cover at least half of the stretch. The last loop must end at
// most 5 min (or an eighth of the stretch, if that is longer) before the end of
// the stretch or of the workload.
func (m *robustMachine) covered(from, to int) bool {
	end := m.axis.closed
	if m.workEnd > 0 {
		end = min(end, m.workEnd)
	}
	return 2*(to-from) >= m.axis.closed && end-to <= max(end/8, firstBin)
}

// from returns the levels from an index to the end, averaged over neighbors if
// there are too many.
func (a *aligned) from(first int) []float64 {
	rest := aligned{levels: a.levels[first:]}
	return rest.blocks()
}

// blocks returns the levels, averaged over neighbors if there are too many.
func (a *aligned) blocks() []float64 {
	each := (len(a.levels) + endBlocks - 1) / endBlocks
	n := len(a.levels) / each
	skip := len(a.levels) - n*each
	out := make([]float64, n)
	for i := range out {
		for _, v := range a.levels[skip+i*each : skip+(i+1)*each] {
			out[i] += float64(v) / float64(each)
		}
	}
	return out
}

// against returns the levels of a minus those of b, loop by loop, and the
// fraction of a's loops that the result covers, or nil if there are too few
// loops.
func (a *aligned) against(b *aligned) (levels []float64, part float64) {
	each := max(a.each, b.each)
	x, y := a.coarse(each), b.coarse(each)
	n := min(len(x), len(y))
	if n < leastLoops {
		return nil, 0
	}
	diff := aligned{levels: make([]float32, n)}
	for i := range diff.levels {
		diff.levels[i] = x[i] - y[i]
	}
	return diff.blocks(), float64(n) / float64(len(x))
}

// coarse returns the levels of a, merged so that each covers the given number
// of loops. The given number must be the number of loops that a level now
// covers, times a power of two.
func (a *aligned) coarse(each int) []float32 {
	if a.each == each || a.each == 0 {
		return a.levels
	}
	k := each / a.each
	out := make([]float32, len(a.levels)/k)
	for i := range out {
		for _, v := range a.levels[i*k : (i+1)*k] {
			out[i] += v / float32(k)
		}
	}
	return out
}

var noRecord = math.Inf(-1)
