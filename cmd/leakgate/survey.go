package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/analysis/android"
	"github.com/leakgate/leakgate/analysis/heap"
	"github.com/leakgate/leakgate/internal/text"
)

const (
	// shownLines bounds the lines of each list, shownFrames those of a stack.
	shownLines  = 10
	shownFrames = 8
)

// tellSurvey prints what the contents of the objects say, but for what a dump does
// not have.
func tellSurvey(b *strings.Builder, r *analysis.Report) {
	tellBitmaps(b, r.Bitmaps)
	tellStrings(b, r.Strings)
	tellThreads(b, r.Threads)
	tellExhaustion(b, r.Exhaustion)
}

// tellApp prints whose dump it is.
func tellApp(b *strings.Builder, m *android.Metadata) {
	if m == nil {
		return
	}
	process := m.Process
	if m.Bound != "" {
		process = m.Bound
	}
	parts := []string{"Android"}
	if m.SDK > 0 {
		parts = append(parts, fmt.Sprintf("API %d", m.SDK))
	}
	for _, text := range []string{m.Manufacturer, m.Model} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	if process == "" {
		process = "a process without a name"
	}
	put(b, "%s on %s", process, strings.Join(parts, ", "))
}

func tellBitmaps(b *strings.Builder, m *android.Bitmaps) {
	if m == nil || m.Count == 0 {
		return
	}
	b.WriteByte('\n')
	estimated := ""
	if m.EstimatedBytes > 0 {
		estimated = fmt.Sprintf(", %s of it estimated", text.Size(m.EstimatedBytes))
	}
	put(b, "BITMAPS: %s, %s%s", text.Grouped(m.Count), text.Size(m.Bytes), estimated)
	if m.Larger != nil && *m.Larger > 0 {
		put(b, "  %s are larger than the screen: %s", text.Grouped(*m.Larger), text.Size(m.LargerBytes))
	}
	if m.DuplicatesBy == android.ByNothing {
		put(b, "  the dump does not tell which are the same; on Android 15 and later `am dumpheap -b png` does")
	}
	for _, d := range first(m.Duplicates) {
		put(b, "%14s wasted  %d x %d, %d copies of %s bytes", text.Grouped(d.WastedBytes), d.Width, d.Height, d.Copies, text.Grouped(d.BytesEach))
	}
	for _, l := range first(m.List) {
		owner := ""
		if l.Owner != nil {
			owner = "  held by " + shown(l.Owner.Class)
		}
		if l.Reachability != heap.Strong.String() {
			owner = "  " + l.Reachability
		}
		put(b, "%14s bytes   %d x %d %s%s", text.Grouped(l.Bytes), l.Width, l.Height, address(l.Object), owner)
	}
}

func address(id android.ID) string { return fmt.Sprintf("%#x", uint64(id)) }

// first gives the lines that are shown of a list.
func first[T any](list []T) []T { return list[:min(len(list), shownLines)] }

func tellStrings(b *strings.Builder, s *android.Strings) {
	if s == nil || s.Count == 0 {
		return
	}
	b.WriteByte('\n')
	if !s.Compared {
		put(b, "STRINGS: %s, not compared; --strings does", text.Grouped(s.Count))
		return
	}
	put(b, "STRINGS: %s, %s different; %s wasted on repeated ones", text.Grouped(s.Count), text.Grouped(s.Distinct), text.Size(s.WastedBytes))
	for _, r := range first(s.Wasteful) {
		put(b, "%14s wasted  %s times %q", text.Grouped(r.WastedBytes), text.Grouped(r.Count), r.Value)
	}
}

func tellComponents(b *strings.Builder, c *android.Components) {
	if c == nil {
		return
	}
	for _, g := range []struct {
		name  string
		group android.Group
	}{{"ACTIVITIES", c.Activities}, {"FRAGMENTS", c.Fragments}, {"SERVICES", c.Services}} {
		if g.group.Count == 0 {
			continue
		}
		b.WriteByte('\n')
		put(b, "%s: %s", g.name, states(g.group.States))
		for _, l := range first(g.group.List) {
			put(b, "%14s bytes   %s %s, %s, %s", text.Grouped(l.RetainedBytes), shown(l.Class), address(l.Object), l.State, l.Reachability)
		}
	}
	if c.Databases.Open > 0 {
		put(b, "DATABASES: %s open", text.Grouped(c.Databases.Open))
	}
}

// states lists counts by their names, in the order of those.
func states(counts map[string]int64) string {
	var list []string
	for name, n := range counts {
		if n > 0 {
			list = append(list, fmt.Sprintf("%s %s", text.Grouped(n), name))
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return strings.Join(list, ", ")
}

func tellThreads(b *strings.Builder, threads []android.Thread) {
	if len(threads) == 0 {
		return
	}
	b.WriteByte('\n')
	put(b, "THREADS: %d", len(threads))
	for _, t := range threads {
		locals := ""
		if t.Locals.Count > 0 {
			locals = ", objects held by its frames: " + text.Grouped(t.Locals.Count)
		}
		put(b, "%14s bytes   %s %s%s", text.Grouped(t.RetainedBytes), shown(t.Name), address(t.Object), locals)
		for _, f := range t.Frames[:min(len(t.Frames), shownFrames)] {
			put(b, "%22s  at %s", "", shown(f))
		}
	}
}

func tellExhaustion(b *strings.Builder, e *android.Exhaustion) {
	if e == nil {
		return
	}
	shown := false
	for _, c := range e.Causes {
		if !c.Near {
			continue
		}
		if !shown {
			b.WriteByte('\n')
			put(b, "NEAR A LIMIT")
			shown = true
		}
		put(b, "  %s: %s", c.Cause, c.Note)
	}
}
