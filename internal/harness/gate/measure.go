package gate

import (
	"math"

	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// measure describes how many objects each loop of one run leaked at one place.
type measure struct {
	// added is the difference between the numbers of objects at the last and
	// the first moment; exposure is the number of loops between these moments.
	added    int64
	exposure float64
	// steady is the rate without the interval that added the most, so neither a
	// single burst nor objects in flight at the last moment can raise it.
	steady float64
	// even means that every interval added the same number of objects per loop.
	even bool
}

// rate returns the average number of objects that each loop leaves.
func (m measure) rate() float64 {
	if m.exposure == 0 {
		return 0
	}
	return float64(m.added) / m.exposure
}

// measured returns the measure of a place in a series. A nil place means that
// the place is missing. ok is false if the series has fewer than two moments.
func measured(p *Place, s Timeline) (m measure, ok bool) {
	m.exposure = s.exposure()
	if m.exposure == 0 {
		return m, false
	}
	m.even = true
	if p == nil {
		return m, true
	}
	added, loops := intervals(p.Counts, s)
	most := 0
	for i := range added {
		m.added += added[i]
		if float64(added[i])*loops[most] > float64(added[most])*loops[i] {
			most = i
		}
		m.even = m.even && float64(added[i])*loops[0] == float64(added[0])*loops[i]
	}
	m.steady = m.rate()
	if left := m.exposure - loops[most]; len(added) > 1 && left > 0 {
		m.steady = float64(m.added-added[most]) / left
	}
	return m, true
}

// intervals returns the number of objects that each interval added, and the
// number of loops in it. Each life counts as an interval of one loop.
func intervals(counts []int64, s Timeline) (added []int64, loops []float64) {
	if s.SeparateLives {
		loops = make([]float64, len(counts))
		for i := range loops {
			loops[i] = 1
		}
		return counts, loops
	}
	for i := 1; i < len(counts); i++ {
		added, loops = append(added, counts[i]-counts[i-1]), append(loops, s.Exposure[i]-s.Exposure[i-1])
	}
	return added, loops
}

// enough reports whether a series has as many dumps as are needed to prove a
// leak.
func (s Timeline) enough() bool { return len(s.Exposure) >= ledger.FewestDumps(s.Settled) }

// accumulates reports whether the counts of one life prove a leak: there are
// enough moments, with more objects at each than at the previous one.
func (p *Place) accumulates(s Timeline) bool {
	return !s.SeparateLives && ledger.Proves(p.Counts, s.Settled)
}

// stays reports whether there are enough moments and the objects exist at all
// of them.
func (p *Place) stays(s Timeline) bool {
	for _, n := range p.Counts {
		if n <= 0 {
			return false
		}
	}
	return s.enough()
}

// each returns how much memory one object retains after at most the given
// number of loops, and reports whether this is known. Runs of different lengths
// are compared after the same number of loops, because an object may retain
// more and more memory.
func (p *Place) each(s Timeline, loops float64) (bytes float64, known bool) {
	for i := range p.Counts {
		if i > 0 && !s.SeparateLives && s.Exposure[i]-s.Exposure[0] > loops {
			break
		}
		if p.Counts[i] > 0 {
			bytes, known = float64(p.Bytes[i])/float64(p.Counts[i]), true
		}
	}
	return bytes, known
}

// instances returns the number of objects after at most the given number of
// loops, and the memory that they retain.
func (p *Place) instances(s Timeline, loops float64) (count, bytes int64) {
	for i := range p.Counts {
		if i > 0 && !s.SeparateLives && s.Exposure[i]-s.Exposure[0] > loops {
			break
		}
		count, bytes = p.Counts[i], p.Bytes[i]
	}
	return count, bytes
}

// commonExposure returns the number of loops that all given series reach.
func commonExposure(series ...Timeline) float64 {
	least := math.Inf(1)
	for _, s := range series {
		least = min(least, s.exposure())
	}
	return least
}
