package analysis

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// observers creates objects that retain 10 kB each.
func observers(h *hproftest.Heap, n int) (list []hproftest.Ref) {
	c := h.Declare("com.shop.Observer", nil, "object screen")
	for range n {
		list = append(list, h.New(c, hproftest.Fields{"screen": h.Bytes(make([]byte, 10_000))}))
	}
	return list
}

// catalog creates large lists, each held by one class, so that the sums for a
// class loader include unrelated bytes.
func catalog(h *hproftest.Heap) {
	for i := range 3 {
		h.Hold(fmt.Sprintf("com.shop.Catalog%c", 'A'+i), "all", h.ArrayList(h.Bytes(make([]byte, 1_500_000))).Ref)
	}
}

// Objects that several classes hold together are reported with the static
// fields that hold them, both in dumps in which the class loader dominates them
// and in dumps in which nothing does.
func TestSharedSuspects(t *testing.T) {
	t.Parallel()
	type form struct {
		name string
		heap *hproftest.Heap
		hproftest.Form
	}
	tests := []struct {
		name string
		want []string
		hold func(h *hproftest.Heap, all []hproftest.Ref)
	}{
		{
			"two", []string{"com.shop.CartViewModel.PRICES", "com.shop.VM.disposables"},
			func(h *hproftest.Heap, all []hproftest.Ref) {
				h.Hold("com.shop.VM", "disposables", h.HashSet(all...))
				h.Hold("com.shop.CartViewModel", "PRICES", h.ArrayList(all...).Ref)
			}},
		{
			"three", []string{"com.shop.A.a", "com.shop.B.b", "com.shop.C.c"},
			func(h *hproftest.Heap, all []hproftest.Ref) {
				h.Hold("com.shop.A", "a", h.ArrayList(all...).Ref)
				h.Hold("com.shop.B", "b", h.LinkedList(all...))
				h.Hold("com.shop.C", "c", h.Objects(h.Class("java.lang.Object"), all...))
			}},
		// The holder of most of the objects comes first; a holder of only a few
		// objects is not named.
		{"unequal", []string{"com.shop.Z.all", "com.shop.A.most"}, func(h *hproftest.Heap, all []hproftest.Ref) {
			h.Hold("com.shop.A", "most", h.ArrayList(all[:180]...).Ref)
			h.Hold("com.shop.Z", "all", h.ArrayList(all...).Ref)
			h.Hold("com.shop.F", "few", h.ArrayList(all[180:]...).Ref)
		}},
		{"four", nil, func(h *hproftest.Heap, all []hproftest.Ref) {
			for i := range 4 {
				h.Hold(fmt.Sprintf("com.shop.H%c", 'A'+i), "all", h.ArrayList(all...).Ref)
			}
		}},
		// If there is a single holder, it dominates the objects.
		{"one", nil, func(h *hproftest.Heap, all []hproftest.Ref) {
			h.Hold("com.shop.VM", "disposables", h.ArrayList(all...).Ref)
		}},
		{
			"root",
			[]string{"com.shop.CartViewModel.PRICES", "com.shop.VM.disposables", "JNI_GLOBAL java.util.ArrayList"},
			func(h *hproftest.Heap, all []hproftest.Ref) {
				h.Hold("com.shop.VM", "disposables", h.ArrayList(all...).Ref)
				h.Hold("com.shop.CartViewModel", "PRICES", h.ArrayList(all...).Ref)
				h.Root(hprof.SubRootJNIGlobal, h.ArrayList(all...).Ref)
			}},
		// The structure resembles the queue of an executor, to which each of
		// its threads has a path.
		{
			"threads", []string{"com.shop.VM.disposables", "THREAD_OBJECT com.shop.Worker"},
			func(h *hproftest.Heap, all []hproftest.Ref) {
				h.Hold("com.shop.VM", "disposables", h.ArrayList(all...).Ref)
				queue := h.LinkedList(all...)
				class := h.Declare("com.shop.Worker", h.Class("java.lang.Thread"), "object queue")
				for range 8 {
					h.Root(hprof.SubRootThreadObject, h.New(class, hproftest.Fields{"queue": queue}))
				}
			}},
		// Objects that a debugger or the virtual machine holds say nothing
		// about the app.
		{"debugger", nil, func(h *hproftest.Heap, all []hproftest.Ref) {
			h.Hold("com.shop.VM", "disposables", h.ArrayList(all...).Ref)
			h.Root(hprof.SubRootDebugger, h.ArrayList(all...).Ref)
		}},
		// Without the static field of VM and without the JNI global, holders
		// that are not named would still hold the objects.
		{"more", nil, func(h *hproftest.Heap, all []hproftest.Ref) {
			h.Hold("com.shop.VM", "disposables", h.ArrayList(all...).Ref)
			h.Root(hprof.SubRootJNIGlobal, h.ArrayList(all...).Ref)
			for i := range 4 {
				h.Hold(fmt.Sprintf("com.shop.H%c", 'A'+i), "part", h.ArrayList(all[i*50:(i+1)*50]...).Ref)
			}
		}},
	}
	for _, test := range tests {
		for _, f := range []form{
			{"jvm", hproftest.Java(1), hproftest.Form{Runtime: hproftest.HotSpot}},
			{"android 5", hproftest.Android(hproftest.Phone{SDK: 22}), hproftest.Form{}},
			{"android 14", hproftest.Android(hproftest.Phone{SDK: 34}), hproftest.Form{}},
		} {
			catalog(f.heap)
			test.hold(f.heap, observers(f.heap, 200))
			file, _, err := f.heap.Dump(f.Form)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Analyze(t.Context(), bytes.NewReader(file), int64(len(file)), Options{Top: 10})
			if err != nil {
				t.Fatal(err)
			}
			checkShared(t, test.name+" on "+f.name, r, test.want)
		}
	}
}

func checkShared(t *testing.T, name string, r *Report, want []string) {
	t.Helper()
	if want == nil {
		for _, s := range r.Suspects {
			if s.Accumulates.Sharers != nil {
				t.Errorf("%s: %+v", name, s.Accumulates)
			}
		}
		return
	}
	if len(r.Suspects) != 1 {
		t.Fatalf("%s: %d suspects", name, len(r.Suspects))
	}
	s := r.Suspects[0]
	a := s.Accumulates
	if !slices.Equal(a.Sharers, want) || a.Class != "com.shop.Observer" || a.Count != 200 || a.Bytes < 200*10_000 ||
		a.Holds != "byte[]" || a.Held != 200 || a.HeldBytes != 200*10_000 {
		t.Errorf("%s: %+v", name, a)
	}
	// Removing the reported holders frees the objects, except for those that
	// another holder holds as well. The path leads to the first object.
	if s.RetainedBytes < a.Bytes*9/10 || s.RetainedBytes > a.Bytes+20_000 ||
		len(s.Objects) != len(slices.Compact(slices.Clone(s.Objects))) || len(s.Trace) < 2 {
		t.Errorf("%s: %d bytes retained by %q, path of %d elements", name, s.RetainedBytes, s.Objects, len(s.Trace))
	}
	first := s.Trace[len(s.Trace)-2]
	if got := first.Owner + "." + first.Reference; got != want[0] || s.Trace[len(s.Trace)-1].Object != s.Objects[0] {
		t.Errorf("%s: the path ends with %s", name, got)
	}
	if key := strings.Join(s.KeyText, "\n"); !strings.HasSuffix(key, "\naccumulates com.shop.Observer") ||
		!strings.Contains(key, want[0]) {
		t.Errorf("%s: key text %q", name, key)
	}
}
