package monitor

import (
	"cmp"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
)

// twins numbers processes with the same Android user and name.
type twins struct {
	*port
	// seen holds the device time at which a scan first found an unwatched
	// process that is either the second process with its name, or a child with
	// the name of its parent.
	seen map[capture.Process]time.Duration
}

// number numbers the processes with the same Android user and name that run at
// the same time, so that each process has its own series. A process keeps its
// number as long as it lives. The next process with the same name gets a free
// number, preferably that of a process with the same UID. If a process with the
// same name is already running, the new one must be seen twice, because a life
// that is about to end is not a twin.
func (t *twins) number(found capture.Found) []capture.Process {
	t.forgetUnseen(found)
	var out []capture.Process
	for group := range groups(found.Processes) {
		out = append(out, t.numberGroup(group)...)
	}
	return out
}

// groups yields the processes of each Android user and name, which are adjacent
// in the list.
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
		if x := t.subjects.life(p); x != nil {
			p.Twin = x.Twin
			taken[p.Twin] = true
			out = append(out, p)
		} else {
			fresh = append(fresh, p)
		}
	}
	// If several processes are new, the latest is the current life of the app.
	slices.SortFunc(fresh, func(a, b capture.Process) int {
		return cmp.Or(-cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID))
	})
	for _, p := range fresh {
		if len(taken) > 0 && t.seenFor(p) < rescanDelay {
			t.loop.scanBy(t.clock.now() + rescanDelay)
			continue
		}
		p.Twin = t.freeNumber(p, taken)
		taken[p.Twin] = true
		out = append(out, p)
	}
	return out
}

// freeNumber returns a number for a new process.
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
			continue // the first process has number 0, the second 2
		}
		if !taken[n] {
			return n
		}
	}
	return len(taken) + 1
}

// seenFor returns the device time since a scan first found an unwatched
// process.
func (t *twins) seenFor(p capture.Process) time.Duration {
	now := t.clock.now()
	first, ok := t.seen[p]
	if !ok {
		t.seen[p] = now
		return 0
	}
	return now - first
}

// forgetUnseen removes processes that no longer exist.
func (t *twins) forgetUnseen(found capture.Found) {
	for p := range t.seen {
		if !slices.Contains(found.Processes, p) && !slices.Contains(found.Children, p) {
			delete(t.seen, p)
		}
	}
}

// restarted discards what was seen before the reboot.
func (t *twins) restarted() { clear(t.seen) }
