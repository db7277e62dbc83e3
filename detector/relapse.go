package detector

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/text"
)

// relapse is what the deaths of memory so far make likely for the present life: another one.
type relapse struct {
	// deaths are those of memory, less than leastMemoryDeaths where nothing is to be expected.
	deaths int
	// begins and ends are the levels of the lives that ended so, in MB.
	begins, ends float64
	shares       shares
}

const (
	// relapseHeight is how far up from begins to ends a life must be to be called a relapse: high enough
	// that a heap dump holds most of what leaks, low enough that there is time for one.
	relapseHeight = 0.75
	// relapseLives is how many of the latest lives make the levels: a suite changes what it does.
	relapseLives = 5
)

// expect returns what the lives so far make likely.
func (m *robustMachine) expect() relapse {
	p, pooled := m.poolLives()
	r := relapse{deaths: m.memoryDeaths(p, pooled), shares: p.shares}
	var begins, ends []float64
	for i := len(m.lives.list) - 1; i >= 0 && len(ends) < relapseLives; i-- {
		x := &m.lives.list[i]
		if x.cause == OutOfMemory || x.cause == LowMemory && pooled && p.taken() {
			begins, ends = append(begins, x.first), append(ends, x.last)
		}
	}
	if len(ends) == 0 {
		return relapse{} // too short to have levels
	}
	r.begins, r.ends = median(begins), median(ends)
	return r
}

// near reports whether a level in MB is one at which the process has nearly died.
func (r *relapse) near(mb float64) bool {
	height := r.ends - r.begins
	return r.deaths >= leastMemoryDeaths && height >= leastGrowth && mb >= r.begins+relapseHeight*height
}

// relapsed is the alarm of a process that died of memory again and again, in lives that may be too short
// for any look, and is on its way to the next death. There is one in a life, and none in the cooldown of a
// diagnosis.
func (m *robustMachine) relapsed() []Transition {
	l := &m.lives
	if l.causes[OutOfMemory]+l.causes[LowMemory] < leastMemoryDeaths || m.state == Leaking || m.cooling() {
		return nil
	}
	if l.changed {
		l.changed, l.expected = false, m.expect()
	}
	r := &l.expected
	if !r.near(m.latest) {
		return nil
	}
	m.kind, m.pending, m.relapsing = r.shares.kind(), true, true
	return m.enter(Leaking, "relapse", fmt.Sprintf("%s of memory, and %s MB again: the lives that ended so began at about %s MB and ended at %s; %s",
		text.Count(r.deaths, "death", "deaths"), number(m.latest), number(r.begins), number(r.ends), r.shares.text()))
}
