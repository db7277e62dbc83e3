package android

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/analysis/heap"
)

const (
	threadLocalEntry = "java.lang.ThreadLocal$ThreadLocalMap$Entry"
	// mostThreadLocals is the maximum number of static fields that are listed
	// for one variable; mostPatterns is the maximum number of thread names that
	// are listed.
	mostThreadLocals = 3
	mostPatterns     = 3
	// threadAbove is the number of references from a thread down to its
	// entries: thread, map, table, entry.
	threadAbove = 3
)

// inspectThreadLocal labels an entry with the static field that holds the
// entry's thread-local variable, and with the threads that are known to have a
// value of the variable.
func (i *Inspector) inspectThreadLocal(o heap.Object, r *report) {
	if i.outbound == nil {
		return
	}
	variable, ok := i.variableOf(o)
	if !ok {
		return
	}
	threads := i.threadsWith(variable)
	for _, s := range i.graph.StaticsTo(variable, mostThreadLocals) {
		r.label("value of ThreadLocal %s.%s%s", simple(s.Class), s.Name, threads)
	}
}

// variableOf returns the thread-local variable that an entry references weakly.
func (i *Inspector) variableOf(entry heap.Object) (heap.Object, bool) {
	places := i.outbound.Places(entry)
	for f := i.outbound.Of(entry); f.Next(); {
		if places[f.Place].Name == "referent" {
			return f.To, true
		}
	}
	return 0, false
}

// threadsWith describes the threads that have a value of a variable: " in
// thread main", " in 4 threads pool-1-thread-*", or "" if no such thread is
// known.
func (i *Inspector) threadsWith(variable heap.Object) string {
	if i.valued == nil {
		i.findValues()
	}
	threads := i.valued[variable]
	if len(threads) == 1 {
		if name := i.hide.Thread(i.ThreadName(threads[0])); name != "" {
			return " in thread " + name
		}
		return ""
	}
	patterns := map[string]int{}
	for _, t := range threads {
		name := i.ThreadName(t)
		last, _ := pattern(name)
		patterns[cmp.Or(last, name, "without a name")]++
	}
	counts := map[string]int{}
	for p, n := range patterns {
		counts[i.hide.ThreadGroup(p, n)] += n
	}
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a, b))
	})
	switch len(names) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" in %d threads %s", len(threads), names[0])
	}
	for n, name := range names {
		names[n] = fmt.Sprintf("%s (%d)", name, counts[name])
	}
	more := ""
	if left := len(names) - mostPatterns; left > 0 {
		more = fmt.Sprintf(" and %d more", left)
	}
	return fmt.Sprintf(" in %d threads: %s%s", len(threads), strings.Join(names[:min(len(names), mostPatterns)], ", "),
		more)
}

// findValues finds the threads of all entries whose references are known. An
// entry is held only by the map of a thread, and the map is held only by the
// thread.
func (i *Inspector) findValues() {
	i.valued = map[heap.Object][]heap.Object{}
	for _, entry := range i.graph.InstancesOf(threadLocalEntry) {
		variable, ok := i.variableOf(entry)
		if !ok {
			continue
		}
		at := entry
		for range threadAbove {
			if at, ok = i.graph.Dominator(at); !ok {
				break
			}
			if i.graph.InstanceOf(at, threadClass) {
				i.valued[variable] = append(i.valued[variable], at)
				break
			}
		}
	}
	for variable, threads := range i.valued {
		slices.Sort(threads)
		i.valued[variable] = slices.Compact(threads)
	}
}
