package android_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// nulls returns a stripped string: it is as long as the original and consists
// only of NULs.
func nulls(text string) string { return strings.Repeat("\x00", len(text)) }

// inspectorOf returns the Inspector of a heap. A string of NULs has the hash 0,
// which can also mean that the hash was never computed.
func inspectorOf(t *testing.T, h *hproftest.Heap, o android.InspectorOptions) (*heap.Graph, *android.Inspector,
	func(hproftest.Ref) heap.Object) {
	t.Helper()
	data, ids, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	g := load(t, data)
	i, err := android.NewInspector(t.Context(), g, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return g, i, func(r hproftest.Ref) heap.Object {
		o, ok := g.Find(ids.Of(r))
		if !ok {
			t.Fatalf("object %d not found", r)
		}
		return o
	}
}

// A thread is identified by the field that references it only if its name was
// stripped and is as long as the expected name; Shark 2.14 does not identify
// such threads.
func TestThreadsByPlace(t *testing.T) {
	for _, c := range []struct {
		name, want, old string
		place           bool
	}{
		{nulls("main"), "main", "\uFFFD\uFFFD\uFFFD\uFFFD", true},
		{nulls("main"), "", "\uFFFD\uFFFD\uFFFD\uFFFD", false},
		{nulls("ui"), "", "\uFFFD\uFFFD", true},
		{"\x00\x00\x00n", "\uFFFD\uFFFD\uFFFDn", "\uFFFD\uFFFD\uFFFDn", true},
		{"work", "work", "work", true},
		{"main", "main", "main", false},
		{"", "", "", true},
	} {
		for _, old := range []bool{false, true} {
			h := hproftest.Android(hproftest.Phone{})
			thread := h.Thread(c.name)
			if c.place {
				looper := h.Class("android.os.Looper")
				h.SetStatic(looper, "sMainLooper", h.New(looper, hproftest.Fields{"mThread": thread.Ref}))
			}
			_, i, find := inspectorOf(t, h, android.InspectorOptions{Shark214: old})
			want := c.want
			if old {
				want = c.old
			}
			if got := i.ThreadName(find(thread.Ref)); got != want {
				t.Errorf("thread %q (of the main looper: %v; rules of Shark 2.14: %v): got name %q, want %q", c.name,
					c.place, old, got, want)
			}
			said := i.Inspect(find(thread.Ref))
			if got := len(said.NotLeaking) > 0; got != (want == "main") {
				t.Errorf("thread %q (of the main looper: %v; rules of Shark 2.14: %v): got reasons %q", c.name, c.place,
					old, said.NotLeaking)
			}
		}
	}
}

// For each manufacturer: if its name was stripped from a dump, its matchers
// apply if and only if the dump declares the classes and fields that they name.
func TestMatchersWithoutMaker(t *testing.T) {
	var makers []string
	for _, b := range builds() {
		if b.SDK == 1 && b.ID == "" && b.Manufacturer != "" {
			makers = append(makers, b.Manufacturer)
		}
	}
	for _, sdk := range []int{19, 21, 22, 23, 24, 25, 27, 28, 29, 30, 31, 36} {
		for _, maker := range makers {
			whole := android.Matchers(trace.Build{SDK: sdk, Manufacturer: maker})
			known := android.Matchers(trace.Build{SDK: sdk})
			h := hproftest.Android(hproftest.Phone{})
			build := h.Class("android.os.Build")
			h.SetStatic(build, "MANUFACTURER", h.String(nulls(maker)))
			var own []trace.Matcher
			for _, m := range whole {
				if !slices.ContainsFunc(known, func(k trace.Matcher) bool { return k.Pattern == m.Pattern }) {
					own = append(own, m)
				}
			}
			_, i, _ := inspectorOf(t, h, android.InspectorOptions{})
			meta := &android.Metadata{SDK: int64(sdk)}
			if got := lineOf(i.Matchers(android.Shark3, meta)); !slices.Equal(got, lineOf(known)) {
				t.Errorf("API %d, %s: unexpected matchers for missing fields: %q", sdk, maker,
					without(got, lineOf(known)))
			}
			declare(h, own)
			_, i, _ = inspectorOf(t, h, android.InspectorOptions{})
			want := slices.DeleteFunc(lineOf(whole),
				func(line string) bool { return strings.HasSuffix(line, "AwResource#sResources") })
			if got := lineOf(i.Matchers(android.Shark3, meta)); !slices.Equal(got, want) {
				t.Errorf("API %d, %s: missing %q, unexpected %q", sdk, maker, without(want, got), without(got, want))
			}
			_, i, _ = inspectorOf(t, h, android.InspectorOptions{Shark214: true})
			if got, want := lineOf(i.Matchers(android.Shark214, meta)),
				lineOf(android.MatchersOf(android.Shark214, trace.Build{SDK: sdk})); !slices.Equal(got, want) {
				t.Errorf("API %d, %s: unexpected matchers of Shark 2.14: %q", sdk, maker, without(got, want))
			}
		}
	}
}

// declare adds to a heap the classes and fields that patterns name.
func declare(h *hproftest.Heap, matchers []trace.Matcher) {
	members := map[string][]string{}
	for _, m := range matchers {
		switch m.Kind {
		case trace.InstanceField:
			members[m.Class] = append(members[m.Class], "object "+m.Name)
		case trace.StaticField:
			members[m.Class] = append(members[m.Class], "static object "+m.Name)
		case trace.NativeGlobal:
			members[m.Class] = append(members[m.Class], "int mNative")
		}
	}
	for class, list := range members {
		// If the heap already has a class of this name, there are now two.
		h.Declare(class, nil, list...)
	}
}
