package thread

import (
	"errors"
	"fmt"
	"slices"
)

const (
	// maxThreads bounds what is compared: more than a kernel has (PID_MAX_LIMIT is
	// 4,194,304 with 64 bits, Android's pid_max 32,768 or 65,536).
	maxThreads = 100_000
	// maxParts bounds the parts of a group.
	maxParts = 5
	// maxKB is a petabyte.
	maxKB = 1 << 40
)

// Thread is a thread by its id and its name, as the kernel has it.
type Thread struct {
	TID  int64
	Name string
}

// Value is a number of kB that a phone may not say. The zero Value is unknown.
type Value struct {
	N     int64 `json:"kb"`
	Known bool  `json:"known"`
}

// Known is a number that a phone said.
func Known(n int64) Value { return Value{N: n, Known: true} }

// Reading is the threads of a process at one moment. Of two threads with the same id the
// first counts.
type Reading struct {
	Threads []Thread
	// Stack is the memory of all stacks.
	Stack Value
}

// Part is threads whose names have one pattern.
type Part struct {
	Pattern string `json:"pattern"`
	Before  int    `json:"before"`
	After   int    `json:"after"`
	Delta   int    `json:"delta"`
	// New have ids that were not there before, Ended are those whose ids are gone. A
	// thread that has another name now is neither.
	New   int `json:"new"`
	Ended int `json:"ended"`
}

// Group is threads whose names differ only in numbers. Each thread is in one group.
type Group struct {
	Part
	// Example is one of the names, printable.
	Example string `json:"example"`
	// Parts are, where several numbers differ, the threads that differ in the last of
	// them only: those that grew most, five at most.
	Parts []Part `json:"parts,omitempty"`
}

// Growth is how the threads of two moments differ.
type Growth struct {
	// Groups begin with the one that grew most. Their numbers sum up to those below.
	Groups []Group `json:"groups"`
	Before int     `json:"before"`
	After  int     `json:"after"`
	New    int     `json:"new"`
	Ended  int     `json:"ended"`

	StackBefore Value `json:"stack_before"`
	StackAfter  Value `json:"stack_after"`
	// Warnings say what is not known.
	Warnings []error `json:"-"`
}

// Compare says which groups of threads grew between two moments of one process.
//
// The kernel keeps 15 bytes of a name. pool-12-thread-148 is then "pool-12-thread-", and
// of pool-3-thread-12 and pool-3-thread-1 is left the same. So a name of 15 bytes belongs
// to the longer names that it may have been cut out of, and a number at its end is taken
// for one that differs.
func Compare(before, after Reading) Growth {
	g := Growth{StackBefore: before.Stack.sane(), StackAfter: after.Stack.sane()}
	old, now := g.index(before, "before"), g.index(after, "after")
	names := map[string]*count{}
	of := func(name string) *count {
		if names[name] == nil {
			names[name] = new(count)
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
	slices.SortStableFunc(g.Groups, func(a, b Group) int { return byGrowth(a.Part, b.Part) })
	return g
}

// index gives the names by ids.
func (g *Growth) index(r Reading, when string) map[int64]string {
	names := make(map[int64]string, min(len(r.Threads), maxThreads))
	if len(r.Threads) == 0 {
		g.Warnings = append(g.Warnings, errors.New(when+": no thread is known"))
	}
	for i, t := range r.Threads {
		if len(names) == maxThreads {
			g.Warnings = append(g.Warnings, fmt.Errorf("%s: %d threads beyond the first %d are left out", when, len(r.Threads)-i, maxThreads))
			break
		}
		if _, there := names[t.TID]; !there {
			names[t.TID] = t.Name[:min(len(t.Name), maxName)]
		}
	}
	return names
}

// sane is unknown for what no memory has.
func (v Value) sane() Value {
	if !v.Known || v.N < 0 || v.N > maxKB {
		return Value{}
	}
	return v
}

// PerThread is what the stack of a thread costs on average at the second moment.
func (g *Growth) PerThread() Value {
	if !g.StackAfter.Known || g.After == 0 {
		return Value{}
	}
	return Known(g.StackAfter.N / int64(g.After))
}
