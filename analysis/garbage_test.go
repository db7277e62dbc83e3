package analysis

import (
	"bytes"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

func analyzed(t *testing.T, data []byte, o Options) *Report {
	t.Helper()
	o.Top = 5
	r, err := Analyze(t.Context(), bytes.NewReader(data), int64(len(data)), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Destroyed activities that nothing holds are not leaks; they are listed by
// class. The list excludes destroyed activities that a field holds, and live
// ones.
func TestGarbage(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 30})
	declare := func(name string) *hproftest.Class { return h.Declare(name, h.Class("android.app.Activity")) }
	gone, held, watched := declare("com.example.GoneActivity"), declare("com.example.HeldActivity"),
		declare("com.example.WatchedActivity")
	dead := func(c *hproftest.Class) hproftest.Ref { return h.New(c, hproftest.Fields{"mDestroyed": true}) }
	for range 12 {
		dead(gone)
	}
	h.Hold("com.example.Registry", "sHeld", dead(held))
	// A weak reference does not hold its referent.
	h.Hold("com.example.Watcher", "sReference", h.Weak(dead(watched)))
	h.New(gone, hproftest.Fields{"mDestroyed": false})
	data, _, err := h.Dump(hproftest.Form{Format: hprof.Format103, IDSize: 4})
	if err != nil {
		t.Fatal(err)
	}
	r := analyzed(t, data, Options{})
	if len(r.Leaks) != 1 || r.Leaks[0].Class != "com.example.HeldActivity" {
		t.Errorf("got leaks %+v", r.Leaks)
	}
	if len(r.Unreachable) != 2 {
		t.Fatalf("got unreachable objects %+v", r.Unreachable)
	}
	const reason = "Activity#mDestroyed is true"
	many, one := r.Unreachable[0], r.Unreachable[1]
	if many.Class != "com.example.GoneActivity" || many.Instances != 12 || len(many.Objects) != shownGarbage ||
		many.Reason != reason {
		t.Errorf("first unreachable group: %+v", many)
	}
	if unique := slices.Compact(slices.Sorted(slices.Values(many.Objects))); len(unique) != len(many.Objects) {
		t.Errorf("an object is listed twice: %v", many.Objects)
	}
	if one.Class != "com.example.WatchedActivity" || one.Instances != 1 || len(one.Objects) != 1 ||
		one.Reason != reason {
		t.Errorf("second unreachable group: %+v", one)
	}
}

// Shark reports the same object as unreachable in its recorded output for this
// dump.
func TestRecordedGarbage(t *testing.T) {
	r := analyzed(t, recorded.Read(t, "hprof", "leak_service_binder.hprof"), Options{})
	if len(r.Unreachable) != 1 || !slices.Equal(r.Unreachable[0].Objects, []string{"0xb0f766d0"}) ||
		r.Unreachable[0].Class != "android.view.ViewRootImpl" {
		t.Errorf("got unreachable objects %+v", r.Unreachable)
	}
	if r = analyzed(t, recorded.Read(t, "hprof", "ahat-O.hprof"), Options{}); r.Unreachable == nil ||
		len(r.Unreachable) != 0 {
		t.Errorf("got unreachable objects %+v, want an empty list", r.Unreachable)
	}
}
