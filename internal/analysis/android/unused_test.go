package android_test

import (
	"math/rand/v2"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// TestUnusedSlots checks that random collections increase the counts of an
// empty app by the amounts that their description implies.
func TestUnusedSlots(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		app, form := func() *hproftest.Heap { return hproftest.Java(seed) }, hproftest.Form{Runtime: hproftest.HotSpot}
		if seed%3 > 0 {
			app, form = func() *hproftest.Heap {
				return hproftest.Android(hproftest.Phone{SDK: 34, Harmony: seed%3 == 1})
			}, hproftest.Form{}
		}
		size, array := int64(4), "elementData"
		switch seed % 3 {
		case 0:
			size = 8
		case 1:
			array = "array"
		}
		var want android.UnusedSlots
		h := app()
		object := h.Class("java.lang.Object")
		own := h.Declare("com.shop.Sessions", h.Class("java.util.HashMap"))
		shared := h.Objects(object, 0, 0, 0)
		var all []hproftest.Ref
		for i := range 200 {
			slots, class, field := r.IntN(30), h.Class("java.util.ArrayList"), array
			used := r.IntN(slots + 1)
			if r.IntN(2) == 0 {
				used = r.IntN(slots/4 + 1)
			}
			if r.IntN(2) == 0 {
				class, field = []*hproftest.Class{h.Class("java.util.HashMap"), own}[r.IntN(2)], "table"
			}
			content := h.Objects(object, make([]hproftest.Ref, slots)...)
			switch i {
			case 0, 1, 2:
				// The first three collections share one array, which is counted
				// once.
				slots, used, content = 3, 0, shared
			case 3:
				content, slots = 0, 0
			}
			ref := h.New(class, hproftest.Fields{field: content, "size": used})
			if i == 4 {
				// This collection is garbage.
				continue
			}
			all = append(all, ref)
			if slots == 0 || i == 1 || i == 2 {
				continue
			}
			want.Collections++
			unused := size * int64(slots-used)
			switch {
			case used == 0:
				want.Empty++
				want.EmptyBytes += unused
			case float64(used)/float64(slots) <= 0.25:
				want.Sparse++
				want.SparseBytes += unused
			}
		}
		h.Hold("com.shop.All", "all", h.Objects(object, all...))
		// The class loader of a JVM holds a list of all classes.
		without := app()
		without.Declare("com.shop.Sessions", without.Class("java.util.HashMap"))
		without.Hold("com.shop.All", "all", without.Objects(without.Class("java.lang.Object")))
		got, empty := unusedIn(t, h, form), unusedIn(t, without, form)
		got.Collections -= empty.Collections
		got.Empty -= empty.Empty
		got.EmptyBytes -= empty.EmptyBytes
		got.Sparse -= empty.Sparse
		got.SparseBytes -= empty.SparseBytes
		if *got != want {
			t.Errorf("seed %d: %+v, want %+v", seed, *got, want)
		}
	}
}

func unusedIn(t *testing.T, h *hproftest.Heap, form hproftest.Form) *android.UnusedSlots {
	t.Helper()
	dump, _, err := h.Dump(form)
	if err != nil {
		t.Fatal(err)
	}
	g := load(t, dump)
	u, err := android.ReadUnused(t.Context(), g, android.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}
