package analysis

import (
	"bytes"
	"reflect"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// suspects returns the suspects in the dump of an app after add has modified
// its heap.
func suspects(t *testing.T, add func(h *hproftest.Heap)) []Leak {
	t.Helper()
	dump := appWith(t, add)
	r, err := Analyze(t.Context(), bytes.NewReader(dump), int64(len(dump)), Options{Top: 10})
	if err != nil {
		t.Fatal(err)
	}
	return r.Suspects
}

// Accumulations at GC roots are named after the kind of root and the class,
// with the trace of the largest object, even if other paths lead to it.
func TestSuspectOfRoots(t *testing.T) {
	var largest hprof.ID
	dump := appWith(t, func(h *hproftest.Heap) {
		rootedBy(hprof.SubRootJNIGlobal, sessions)(h)
		s := h.New(h.Class("com.shop.Session"), hproftest.Fields{"data": h.Padding(700)})
		h.Root(hprof.SubRootMonitorUsed, s)
		h.Root(hprof.SubRootJNIGlobal, s)
		h.Hold("com.shop.Sessions", "sLast", s)
	})
	g := loaded(t, dump)
	for _, o := range g.Exactly("com.shop.Session") {
		if g.Retained(o).Total() > 600 {
			largest = g.ID(o)
		}
	}
	r, err := Analyze(t.Context(), bytes.NewReader(dump), int64(len(dump)), Options{Top: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Suspects) != 1 {
		t.Fatalf("%+v", r.Suspects)
	}
	s := r.Suspects[0]
	text := []string{"JNI_GLOBAL accumulates com.shop.Session"}
	if !slices.Equal(s.KeyText, text) || s.Key != trace.KeyOf(text[0]+"\n") || s.Fingerprint != "" {
		t.Errorf("key %s of %q, fingerprint %q", s.Key, s.KeyText, s.Fingerprint)
	}
	if s.GCRoot != "JNI_GLOBAL" || s.GCRootText != "Global variable in native code" || s.Class != "com.shop.Session" ||
		s.Library || s.Instances != 1 {
		t.Errorf("%+v", s)
	}
	if !slices.Equal(s.Objects, []string{Hex(largest)}) || len(s.Trace) != 1 || s.Trace[0].Object != Hex(largest) ||
		s.Trace[0].Leaking != "UNKNOWN" || s.Trace[0].Type != "instance" {
		t.Errorf("objects %q, trace %+v", s.Objects, s.Trace)
	}
	a, one := s.Accumulates, g.Retained(g.Exactly("com.shop.Session")[0]).Total()
	want := Accumulation{
		Class: "com.shop.Session", Count: sessions + 1, Root: "JNI_GLOBAL", Bytes: sessions*one +
			*s.Trace[0].RetainedBytes, Share: a.Share,
		Holds: "byte[]", Held: sessions + 1, HeldBytes: sessions*500 + 700}
	if !reflect.DeepEqual(*a, want) || s.RetainedBytes != a.Bytes || a.Share < 0.05 || a.Share > 1 {
		t.Errorf("%d bytes, %+v\nwant %+v", s.RetainedBytes, *a, want)
	}
}

// A list that begins at a native global is not the same suspect as many native
// globals of its class. The keys of roots are as stable as other keys.
func TestSuspectKeysOfRoots(t *testing.T) {
	node := func(h *hproftest.Heap, class string) func(next hproftest.Ref) hproftest.Ref {
		c := h.Declare(class, nil, "object next", "object data")
		return func(next hproftest.Ref) hproftest.Ref {
			return h.New(c, hproftest.Fields{"next": next, "data": h.Padding(500)})
		}
	}
	apart := func(kind hprof.SubTag, class string) []Leak {
		return suspects(t, func(h *hproftest.Heap) {
			next := node(h, class)
			for range sessions {
				h.Root(kind, next(0))
			}
		})
	}
	linked := suspects(t, func(h *hproftest.Heap) {
		next, head := node(h, "com.shop.Node"), hproftest.Ref(0)
		for range sessions {
			head = next(head)
		}
		h.Root(hprof.SubRootJNIGlobal, head)
	})
	keys := map[string]string{}
	for name, list := range map[string][]Leak{
		"linked": linked, "globals": apart(hprof.SubRootJNIGlobal, "com.shop.Node"),
		"monitors": apart(hprof.SubRootMonitorUsed, "com.shop.Node"),
		"first":    apart(hprof.SubRootJNIGlobal, "com.shop.Cart$$ExternalSyntheticLambda0"),
		"second":   apart(hprof.SubRootJNIGlobal, "com.shop.Cart$$ExternalSyntheticLambda7"),
	} {
		if len(list) != 1 {
			t.Fatalf("%s: %+v", name, list)
		}
		keys[name] = list[0].Key
	}
	if keys["first"] != keys["second"] {
		t.Error("the key contains the number of a lambda")
	}
	different := []string{keys["linked"], keys["globals"], keys["monitors"], keys["first"]}
	slices.Sort(different)
	if len(slices.Compact(different)) != 4 {
		t.Errorf("%v", keys)
	}
	if want := []string{
		"JNI_GLOBAL com.shop.Node", "accumulates com.shop.Node",
	}; !slices.Equal(linked[0].KeyText, want) || linked[0].Accumulates.Root != "" {
		t.Errorf("%q", linked[0].KeyText)
	}
}

// Other classes in a place are reported, but do not change the identity of the
// place.
func TestSuspectBeside(t *testing.T) {
	list := func(photos int) Leak {
		found := suspects(t, func(h *hproftest.Heap) {
			next, list, photo := session(h), h.ArrayList(), h.Declare("com.shop.Photo", nil, "object data")
			for range sessions {
				list.Add(next())
			}
			for range photos {
				list.Add(h.New(photo, hproftest.Fields{"data": h.Padding(1000)}))
			}
			h.Hold("com.shop.Sessions", "sAll", list.Ref)
		})
		if len(found) != 1 {
			t.Fatalf("%+v", found)
		}
		return found[0]
	}
	alone, beside := list(0), list(1000)
	if alone.Key != beside.Key || alone.Fingerprint != beside.Fingerprint || alone.Accumulates.OtherClasses != nil {
		t.Errorf("%q with %+v, %q", alone.KeyText, alone.Accumulates, beside.KeyText)
	}
	a := beside.Accumulates
	want := []ClassSum{{"com.shop.Photo", 1000, a.OtherClasses[0].Bytes}}
	if !slices.Equal(a.OtherClasses, want) || a.OtherClasses[0].Bytes < 1_000_000 ||
		a.OtherClasses[0].Bytes+a.Bytes > beside.RetainedBytes || a.Class != "com.shop.Session" {
		t.Errorf("%+v", a)
	}
}

// Numbers about roots cover only the app's heap: no heap.Accumulation includes
// bytes of the system heaps.
func TestSuspectsOfRootsInTheApp(t *testing.T) {
	g := loaded(t, appWith(t, func(h *hproftest.Heap) {
		rootedBy(hprof.SubRootJNIGlobal, sessions)(h)
		h.In(hproftest.Zygote, func() {
			for range sessions {
				h.Root(hprof.SubRootJNIGlobal,
					h.New(h.Class("com.shop.Session"), hproftest.Fields{"data": h.Padding(300)}))
			}
		})
	}))
	list, err := (&dump{graph: g}).accumulations(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	inApp, bytes := int64(0), heap.Size{}
	for _, o := range g.Exactly("com.shop.Session") {
		if !isSystemHeap(g.Heaps[g.HeapOf(o)]) {
			inApp++
			bytes.Java += g.Retained(o).Java
		}
	}
	if len(list) != 1 || list[0].Count != inApp || inApp != sessions || list[0].Size != bytes {
		t.Errorf("%+v, want %d of %+v", list, inApp, bytes)
	}
}
