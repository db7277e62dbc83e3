package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/growth"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/jvmtest"
)

// grow returns the report about dumps of a program that repeats its scenario
// loops times before each dump.
func grow(t *testing.T, p *jvmtest.Process, dumps, loops int) *Growth {
	t.Helper()
	s := NewGrowthSeries(loops)
	for range dumps {
		p.Do(t, loops)
		path := p.Dump(t)
		dump, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(t.Context(), filepath.Base(path), bytes.NewReader(dump), int64(len(dump)),
			Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return s.Report(100)
}

// For a program with a leak that adds objects, three dumps are enough to find
// which objects it adds, below the field that holds them. For a program without
// leaks, no places are reported.
func TestGrowthOfPrograms(t *testing.T) {
	j := jvmtest.New(t)
	jar := j.Compile(t, jvmtest.Shop())
	const loops = 5
	var names []string
	for _, l := range jvmtest.ShopLeaks() {
		names = append(names, l.Name)
	}
	shop := grow(t, j.Start(t, jar, jvmtest.ShopMain, names...), 3, loops)
	checkLeaks(t, shop, jvmtest.ShopLeaks(), loops)
	mall := grow(t, j.Start(t, j.Compile(t, jvmtest.Mall()), jvmtest.MallMain, "1", "0"), 3, loops)
	checkLeaks(t, mall, jvmtest.MallLeaks(), loops)
	steady := grow(t, j.Start(t, jar, jvmtest.SteadyMain), 4, loops)
	if steady.Found != 0 || len(steady.Growth) != 0 {
		t.Errorf("got %d growing places, want none: %+v", steady.Found, steady.Growth)
	}
}

func checkLeaks(t *testing.T, r *Growth, leaks []jvmtest.Leak, loops int) {
	t.Helper()
	expected := 0
	for _, l := range leaks {
		if l.Each == 0 {
			continue
		}
		expected++
		place, child := findChild(r.Growth, l.Class)
		if child == nil {
			t.Errorf("%s not found", l.Class)
			continue
		}
		if n := len(child.Objects) - 1; child.Delta < int64(n*loops*l.Each)*4/5 || child.RetainedDelta <= 0 ||
			place.GrowthBytes < child.RetainedDelta {
			t.Errorf("%s: %+v", l.Class, child)
		}
		if !strings.Contains(fields(place), l.Owner+"."+l.Field+"\n") {
			t.Errorf("%s: no %s.%s among\n%s", l.Class, l.Owner, l.Field, fields(place))
		}
	}
	// Nothing else grows.
	for i := range r.Growth {
		leaking := func(l jvmtest.Leak) bool { _, child := findChild(r.Growth[i:i+1], l.Class); return child != nil }
		if !slices.ContainsFunc(leaks, leaking) {
			t.Errorf("got growth without a known leak: %+v", r.Growth[i])
		}
	}
	if r.Found > expected || len(r.Growth) != r.Found {
		t.Errorf("got %d growing places for %d leaks", r.Found, expected)
	}
}

func findChild(places []growth.Place, class string) (*growth.Place, *growth.Child) {
	var in func([]growth.Child) *growth.Child
	in = func(list []growth.Child) *growth.Child {
		for i := range list {
			if list[i].Class == class {
				return &list[i]
			}
			if c := in(list[i].Children); c != nil {
				return c
			}
		}
		return nil
	}
	for i := range places {
		if c := in(places[i].Children); c != nil {
			return &places[i], c
		}
	}
	return nil, nil
}

// fields returns the fields on the path to a place and below it, one per line.
func fields(p *growth.Place) string {
	var b strings.Builder
	line := func(s growth.PathEdge) { fmt.Fprintf(&b, "%s.%s\n", s.Owner, s.Name) }
	for _, s := range p.Path {
		line(s)
	}
	var below func([]growth.Child)
	below = func(list []growth.Child) {
		for _, c := range list {
			line(c.PathEdge)
			below(c.Children)
		}
	}
	below(p.Children)
	return b.String()
}

// grownHeap returns a heap with a list of n elements.
func grownHeap(t testing.TB, elements int, form hproftest.Form) []byte {
	t.Helper()
	h := hproftest.Java(1)
	item := h.Declare("com.shop.Item", nil, "object picture")
	list := h.ArrayList()
	for range elements {
		list.Add(h.New(item, hproftest.Fields{"picture": h.Bytes(make([]byte, 1000))}))
	}
	h.Hold("com.shop.Cache", "all", list.Ref)
	dump, _, err := h.Dump(form)
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// TestGrowthWarnings checks the warnings about a series.
func TestGrowthWarnings(t *testing.T) {
	first, second := hproftest.Form{Runtime: hproftest.HotSpot}, hproftest.Form{Runtime: hproftest.HotSpot, IDSize: 4}
	second.Time = hproftest.Form{}.Time.AddDate(2000, 0, 0)
	s := NewGrowthSeries(1)
	add := func(name string, dump []byte, o Options) error {
		return s.Add(t.Context(), name, bytes.NewReader(dump), int64(len(dump)), o)
	}
	whole := grownHeap(t, 9, first)
	if err := add("one", grownHeap(t, 5, first), Options{}); err != nil {
		t.Fatal(err)
	}
	if len(s.Report(9).Growth) != 0 {
		t.Errorf("%+v", s.Report(9))
	}
	if err := add("two", grownHeap(t, 9, second), Options{}); err != nil {
		t.Fatal(err)
	}
	r := s.Report(9)
	text := strings.Join(r.Warnings, "\n")
	for _, want := range []string{
		"two: it was taken before one", "two: its IDs differ in size from those of one", "two dumps prove little",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if len(r.Growth) != 1 || r.Growth[0].Delta != 4 || r.Growth[0].GrowthBytes < 3900 || r.Found != 1 {
		t.Errorf("%+v", r.Growth)
	}
	if err := add("three", hproftest.Truncate(whole, len(whole)-300), Options{}); err != nil {
		t.Fatal(err)
	}
	r = s.Report(0)
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "three: the dump is truncated") ||
		strings.Contains(text, "two dumps prove little") || len(r.Growth) != 0 || len(r.Dumps) != 3 {
		t.Errorf("%s\n%+v", text, r)
	}
	before := r.Dumps
	// With this memory limit the graph fits, but nothing else does.
	limit := 30 * before[0].Objects
	var memory *heap.MemoryError
	if err := add("four", whole, Options{Memory: limit}); !errors.As(err, &memory) || memory.Limit != limit ||
		memory.Need <= limit {
		t.Errorf("%v", err)
	}
	if err := add("four", whole[:20], Options{}); err == nil {
		t.Error("a truncated header was accepted as a dump")
	}
	if len(s.Report(0).Dumps) != len(before) {
		t.Error("an unreadable dump is in the report")
	}
}

// A dump without a date is neither before nor after another dump.
func TestGrowthWithoutDate(t *testing.T) {
	dated := grownHeap(t, 5, hproftest.Form{Runtime: hproftest.HotSpot})
	undated := slices.Clone(dated)
	copy(undated[len("JAVA PROFILE 1.0.2\x00")+4:], bytes.Repeat([]byte{0x7f}, 8)) // far beyond the year 9999
	for name, dumps := range map[string][][]byte{
		"after":   {dated, undated},
		"before":  {undated, dated},
		"between": {dated, undated, dated},
		"none":    {undated, undated},
	} {
		s := NewGrowthSeries(1)
		for i, dump := range dumps {
			if err := s.Add(t.Context(), fmt.Sprint("dump", i), bytes.NewReader(dump), int64(len(dump)),
				Options{}); err != nil {
				t.Fatal(err)
			}
		}
		r := s.Report(1)
		if text := strings.Join(r.Warnings, "\n"); strings.Contains(text, "it was taken before") {
			t.Errorf("%s: %s", name, text)
		}
		for i, d := range r.Dumps {
			got, err := json.Marshal(d)
			want := `"time":"2026-01-02T03:04:05Z"`
			if &dumps[i][0] == &undated[0] {
				want = `"time":null`
			}
			if err != nil || !strings.Contains(string(got), want) {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		}
	}
}

// A value that is missing from one dump does not count as a difference; two
// different values do.
func TestGrowthOfMixedDumps(t *testing.T) {
	app := func(process string) []byte {
		h := hproftest.Android(hproftest.Phone{SDK: 34, Process: process})
		dump, _, err := h.Dump(hproftest.Form{})
		if err != nil {
			t.Fatal(err)
		}
		return dump
	}
	whole := grownHeap(t, 9, hproftest.Form{})
	for name, c := range map[string]struct {
		first, second []byte
		want          []string
	}{
		"same process": {app("com.shop"), app("com.shop"), nil},
		"other process": {
			app("com.shop"), app("com.shop:push"),
			[]string{
				`two: it is from the process "com.shop:push", but one is from "com.shop"; ` +
					"all dumps of a series must be from one process",
			},
		},
		"unknown process second": {app("com.shop"), whole, nil},
		"unknown process first":  {whole, app("com.shop"), nil},
		"JVM": {
			app("com.shop"), grownHeap(t, 9, hproftest.Form{Runtime: hproftest.HotSpot, IDSize: 4}),
			[]string{
				"two: it is from a JVM, but one is from Android; all dumps of a series must be from one process",
			},
		},
		"truncated before the platform classes": {
			app("com.shop"), headOf(t, app("com.shop")),
			[]string{"two: either it or one is incomplete: objects missing from the incomplete one look gone or new"},
		},
		"truncated at the end": {
			whole, hproftest.Truncate(whole, len(whole)-100),
			[]string{"two: either it or one is incomplete: objects missing from the incomplete one look gone or new"},
		},
	} {
		s := NewGrowthSeries(1)
		for i, dump := range [][]byte{c.first, c.second} {
			if err := s.Add(t.Context(), []string{"one", "two"}[i], bytes.NewReader(dump), int64(len(dump)),
				Options{}); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, text := range s.Report(1).Warnings {
			if strings.Contains(text, "one") && strings.HasPrefix(text, "two: ") {
				got = append(got, text)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// headOf returns the beginning of a dump, truncated before the classes that
// identify the platform.
func headOf(t testing.TB, dump []byte) []byte {
	t.Helper()
	for size := len(dump); size > 0; size -= len(dump) / 50 {
		head := hproftest.Truncate(dump, size)
		s, err := Summarize(t.Context(), bytes.NewReader(head), int64(len(head)), Options{})
		if err == nil && s.dump.Android == nil && s.dump.Truncated {
			return head
		}
	}
	t.Fatal("found no truncated dump without platform classes")
	return nil
}
