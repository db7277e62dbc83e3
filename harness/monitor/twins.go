package monitor

import (
	"cmp"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
)

// twins numbers processes of one user and name.
type twins struct {
	*port
	// seen is the device time at which a look first found a process that is not watched: a second
	// one of a name, or a child with its parent's name.
	seen map[capture.Process]time.Duration
}

// number numbers the processes of one user and name that run at the same time, so that each
// has a series of its own. A process keeps its number as long as it lives; the next of that name
// takes a number that is free, before all that of a process with its uid. One that runs beside
// another must be seen twice: an incarnation that is about to end is no twin.
func (t *twins) number(found capture.Found) []capture.Process {
	t.forgetUnseen(found)
	var out []capture.Process
	for group := range groups(found.Processes) {
		out = append(out, t.numberGroup(group)...)
	}
	return out
}

// groups yields the processes of each user and name, which stand together.
func groups(ps []capture.Process) func(func([]capture.Process) bool) {
	return func(yield func([]capture.Process) bool) {
		for len(ps) > 0 {
			n := slices.IndexFunc(ps, func(p capture.Process) bool { return p.Key() != ps[0].Key() })
			if n < 0 {
				n = len(ps)
			}
			if !yield(ps[:n]) {
				return
			}
			ps = ps[n:]
		}
	}
}

func (t *twins) numberGroup(group []capture.Process) []capture.Process {
	var out, fresh []capture.Process
	taken := map[int]bool{}
	for _, p := range group {
		if x := t.subjects.incarnation(p); x != nil {
			p.Twin = x.Twin
			taken[p.Twin] = true
			out = append(out, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	// Of several that are new at once the latest is what the app is now.
	slices.SortFunc(fresh, func(a, b capture.Process) int {
		return cmp.Or(-cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
	for _, p := range fresh {
		if len(taken) > 0 && t.seenFor(p) < discoverSoon {
			t.loop.lookBy(t.clock.now() + discoverSoon)
			continue
		}
		p.Twin = t.freeNumber(p, taken)
		taken[p.Twin] = true
		out = append(out, p)
	}
	return out
}

// freeNumber is the number of a process that is new among those of its name.
func (t *twins) freeNumber(p capture.Process, taken map[int]bool) int {
	free := -1
	for _, x := range t.subjects.order {
		if x.User != p.User || x.Name != p.Name || taken[x.Twin] {
			continue
		}
		if x.UID == p.UID {
			return x.Twin
		}
		if free < 0 {
			free = x.Twin
		}
	}
	if free >= 0 {
		return free
	}
	for n := range len(taken) + 1 {
		if n == 1 {
			continue // the first is 0, the second 2
		}
		if !taken[n] {
			return n
		}
	}
	return len(taken) + 1
}

// seenFor is the device time since a look first found a process that is not watched.
func (t *twins) seenFor(p capture.Process) time.Duration {
	now := t.clock.now()
	first, ok := t.seen[p]
	if !ok {
		t.seen[p] = now
		return 0
	}
	return now - first
}

// forgetUnseen forgets processes that are gone.
func (t *twins) forgetUnseen(found capture.Found) {
	for p := range t.seen {
		if !slices.Contains(found.Processes, p) && !slices.Contains(found.Children, p) {
			delete(t.seen, p)
		}
	}
}

// restarted forgets what was seen before the device restarted.
func (t *twins) restarted() { clear(t.seen) }
