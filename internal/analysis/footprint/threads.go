package footprint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/leakgate/leakgate/internal/known"
)

const (
	// maxThreads is the maximum number of threads compared. It exceeds
	// Android's pid_max (32,768 or 65,536), although 64-bit kernels allow up to
	// 4,194,304 (PID_MAX_LIMIT).
	maxThreads = 100_000
	// maxParts is the maximum number of parts of a group.
	maxParts = 5
)

// Thread is a thread, with its ID and its name in the kernel.
type Thread struct {
	TID  int64
	Name string
}

func (t Thread) bounded() string { return t.Name[:min(len(t.Name), maxThreadName)] }

// ThreadReading holds the threads of a process at one point in time. If two
// threads have the same ID, only the first one counts.
type ThreadReading struct {
	Threads []Thread
	// Stack is the memory of all stacks.
	Stack known.Int
}

// ThreadPart stands for the threads whose names match one pattern.
type ThreadPart struct {
	Pattern string
	Before  int
	After   int
	Delta   int
	// New is the number of IDs that did not exist before; Ended is the number
	// of IDs that no longer exist. A renamed thread is counted in neither.
	New   int
	Ended int
}

// ThreadGroup stands for threads whose names differ only in numbers. Each
// thread is in exactly one group.
type ThreadGroup struct {
	ThreadPart
	// Example is one of the names, made printable.
	Example string
	// Parts is set if several numbers differ: each part contains the threads
	// that differ only in the last number. It lists at most the five parts that
	// grew most.
	Parts []ThreadPart
}

// ThreadGrowth is the difference between the threads of two snapshots.
type ThreadGrowth struct {
	// Groups are sorted by growth, largest first. The numbers of all groups add
	// up to the totals below.
	Groups []ThreadGroup
	Before int
	After  int
	New    int
	Ended  int

	StackBefore known.Int
	StackAfter  known.Int
	// Warnings describe what is unknown.
	Warnings []error
}

// CompareThreads returns the groups of threads that grew between two snapshots
// of one process.
//
// The kernel keeps only 15 bytes of a name. pool-12-thread-148 then becomes
// "pool-12-thread-", and pool-3-thread-12 and pool-3-thread-1 become the same.
// Therefore a name of 15 bytes is grouped with the longer names of which it may
// be a truncated form, and a number at its end is assumed to differ between
// threads.
func CompareThreads(before, after ThreadReading) ThreadGrowth {
	g := ThreadGrowth{StackBefore: sane(before.Stack, maxKB), StackAfter: sane(after.Stack, maxKB)}
	old, now := g.index(before, "before"), g.index(after, "after")
	names := map[string]*counts{}
	of := func(name string) *counts {
		if names[name] == nil {
			names[name] = new(counts)
		}
		return names[name]
	}
	for tid, name := range old {
		c := of(name)
		c.before++
		c.threads++
		if _, there := now[tid]; !there {
			c.ended++
		}
	}
	for tid, name := range now {
		c := of(name)
		c.after++
		was, there := old[tid]
		if !there {
			c.fresh++
		}
		if !there || was != name {
			c.threads++
		}
	}
	for _, f := range families(names) {
		group := f.group()
		g.Groups = append(g.Groups, group)
		g.Before += group.Before
		g.After += group.After
		g.New += group.New
		g.Ended += group.Ended
	}
	slices.SortStableFunc(g.Groups, func(a, b ThreadGroup) int { return byThreads(a.ThreadPart, b.ThreadPart) })
	return g
}

// Patterns returns, for each thread, the pattern of its group and the number of
// threads in the group.
func Patterns(threads []Thread) (patterns []string, sizes []int) {
	names := map[string]*counts{}
	for _, t := range threads {
		name := t.bounded()
		if names[name] == nil {
			names[name] = new(counts)
		}
		names[name].after++
		names[name].threads++
	}
	groups := make(map[string]ThreadPart, len(names))
	for _, f := range families(names) {
		part := f.group().ThreadPart
		for _, m := range f.members {
			groups[m.text] = part
		}
	}
	for _, t := range threads {
		part := groups[t.bounded()]
		patterns, sizes = append(patterns, part.Pattern), append(sizes, part.After)
	}
	return patterns, sizes
}

// Rename replaces the pattern and the example of each group with the pattern
// that shown returns; threads is the larger of the two numbers of threads in
// the group. If the pattern of a group changes, Rename removes all its parts;
// otherwise it removes each part whose own pattern would change.
func (g *ThreadGrowth) Rename(shown func(pattern string, threads int) string) {
	for i := range g.Groups {
		x := &g.Groups[i]
		pattern := shown(x.Pattern, max(x.Before, x.After))
		if pattern != x.Pattern {
			x.Pattern, x.Example, x.Parts = pattern, pattern, nil
			continue
		}
		x.Example = pattern
		x.Parts = slices.DeleteFunc(x.Parts,
			func(p ThreadPart) bool { return shown(p.Pattern, max(p.Before, p.After)) != p.Pattern })
	}
}

// index returns the names of the threads by ID.
func (g *ThreadGrowth) index(r ThreadReading, when string) map[int64]string {
	names := make(map[int64]string, min(len(r.Threads), maxThreads))
	if len(r.Threads) == 0 {
		g.Warnings = append(g.Warnings, errors.New(when+": no threads recorded"))
	}
	for i, t := range r.Threads {
		if len(names) == maxThreads {
			g.Warnings = append(g.Warnings,
				fmt.Errorf("%s: %d threads beyond the first %d are omitted", when, len(r.Threads)-i, maxThreads))
			break
		}
		if _, there := names[t.TID]; !there {
			names[t.TID] = t.bounded()
		}
	}
	return names
}

// PerThread returns the average stack memory per thread in the second snapshot.
func (g *ThreadGrowth) PerThread() known.Int {
	if !g.StackAfter.Known || g.After == 0 {
		return known.Int{}
	}
	return known.Of(g.StackAfter.N / int64(g.After))
}
