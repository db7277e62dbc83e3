package detector

import (
	"fmt"

	"github.com/leakgate/leakgate/internal/text"
)

// relapse describes the lives that ended with an out-of-memory death. It is
// used to recognize when the current life is about to end for the same reason.
type relapse struct {
	// deaths is the number of out-of-memory deaths. No alarm is raised if there
	// are fewer than leastMemoryDeaths.
	deaths int
	// begins and ends are the median levels in MB at which these lives began
	// and ended.
	begins, ends float64
	shares       shares
}

const (
	// relapseHeight is the fraction of the growth from begins to ends above
	// which a life counts as a relapse. At this level, a heap dump contains
	// most of the leak, and there is still time to take it.
	relapseHeight = 0.75
	// The levels are taken from the latest relapseLives lives, because a suite
	// may change its behavior.
	relapseLives = 5
)

// relapseOf returns the relapse that the past lives predict.
func (m *robustMachine) relapseOf() relapse {
	p, pooled := m.poolLives()
	r := relapse{deaths: m.memoryDeaths(p, pooled), shares: p.shares}
	var begins, ends []float64
	for i := len(m.lives.list) - 1; i >= 0 && len(ends) < relapseLives; i-- {
		x := &m.lives.list[i]
		if x.cause == OutOfMemory || x.cause == LowMemory && pooled && p.killsCount() {
			begins, ends = append(begins, x.first), append(ends, x.last)
		}
	}
	if len(ends) == 0 {
		return relapse{} // every life is too short to have levels
	}
	r.begins, r.ends = median(begins), median(ends)
	return r
}

// near reports whether a process at a level in MB is close to another
// out-of-memory death.
func (r *relapse) near(mb float64) bool {
	height := r.ends - r.begins
	return r.deaths >= leastMemoryDeaths && height >= leastGrowth && mb >= r.begins+relapseHeight*height
}

// relapsed raises the alarm for a process that repeatedly ran out of memory and
// is about to do so again. Such a process may die each time before its first
// look. The alarm is raised once per life, and not during the cooldown after a
// diagnosis.
func (m *robustMachine) relapsed() []Transition {
	l := &m.lives
	if l.causes[OutOfMemory]+l.causes[LowMemory] < leastMemoryDeaths || m.state == Leaking || m.inCooldown() {
		return nil
	}
	if l.changed {
		l.changed, l.expected = false, m.relapseOf()
	}
	r := &l.expected
	if !r.near(m.latest) {
		return nil
	}
	m.kind, m.pending, m.relapsing = r.shares.kind(), true, true
	return m.enter(Leaking, "relapse",
		fmt.Sprintf("%s, and memory is back at %s MB: the processes that died had started at about %s MB and ended at "+
			"about %s; %s",
			text.Count(r.deaths, "out-of-memory death", "out-of-memory deaths"), number(m.latest), number(r.begins),
			number(r.ends), r.shares.text()))
}
