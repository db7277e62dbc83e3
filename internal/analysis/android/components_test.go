package android_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

func TestActivities(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	alive := h.Activity("com.shop.Main", hproftest.Attached)
	gone := h.Activity("com.shop.Detail", hproftest.Destroyed)
	h.Activity("com.shop.Detail", hproftest.Destroyed) // garbage
	finished := h.Activity("com.shop.Login", hproftest.Attached)
	h.Set(finished.Ref, "mFinished", true)
	// A field of the same name in a class of the app does not count.
	own := h.Declare("com.shop.Own", h.Class("android.app.Activity"), "boolean mDestroyed")
	shadow := h.New(own, nil)
	h.SetIn(shadow, own, "mDestroyed", true)
	h.Hold("com.shop.Cache", "sActivities", h.ArrayList(alive.Ref, gone.Ref, finished.Ref, shadow).Ref)
	s, ids := made(t, h, hproftest.Form{}, android.Options{})
	g := s.Components.Activities
	if g.Count != 5 || g.Held != 1 ||
		!maps.Equal(g.States, map[string]int64{android.Alive: 2, android.Destroyed: 2, android.Finished: 1}) ||
		g.Omitted != 0 {
		t.Errorf("%s", text(t, g))
	}
	if c := g.List[0]; c.Object != ids.Of(gone.Ref) || c.Class != "com.shop.Detail" || c.State != android.Destroyed ||
		c.Reachability != "strong" || c.RetainedBytes < 100 {
		t.Errorf("first %s", text(t, c))
	}
	if c := g.List[1]; c.State != android.Destroyed || c.Reachability != "unreachable" || c.RetainedBytes != 0 {
		t.Errorf("second %s", text(t, c))
	}
	for _, c := range g.List {
		if c.Object == ids.Of(shadow) && c.State != android.Alive {
			t.Errorf("activity with its own field mDestroyed: got %s, want it alive", text(t, c))
		}
	}
	// Each of the four activities created with Activity has 3 views and a
	// ContextImpl; each attached one has a ViewRootImpl, and the application
	// has a ContextImpl too.
	n := s.Components.Counts
	if n["Activities"] != 5 || n["Views"] != 12 || n["ViewRootImpl"] != 2 || n["AppContexts"] != 5 ||
		n["WebViews"] != 0 {
		t.Errorf("counts %v", n)
	}
	s, _ = made(t, h, hproftest.Form{}, android.Options{Top: 2})
	if g := s.Components.Activities; len(g.List) != 2 || g.Omitted != 3 || g.Count != 5 {
		t.Errorf("%s", text(t, g))
	}
}

func TestFragments(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	want := map[hproftest.Ref]string{}
	add := func(class, state string, f hproftest.Fragment) hproftest.Ref {
		r := h.Fragment(class, f)
		want[r] = state
		return r
	}
	for i, kind := range []hproftest.FragmentKind{hproftest.AndroidX, hproftest.Support, hproftest.Framework} {
		add(fmt.Sprintf("com.shop.A%d", i), android.Alive, hproftest.Fragment{Kind: kind})
		add(fmt.Sprintf("com.shop.B%d", i), android.Destroyed,
			hproftest.Fragment{Kind: kind, State: hproftest.Destroyed})
		add(fmt.Sprintf("com.shop.C%d", i), android.NotAttached,
			hproftest.Fragment{Kind: kind, State: hproftest.NotYet})
	}
	// These fragments were reset after they were destroyed, or are kept
	// although their views are gone.
	add("com.shop.D", android.Destroyed, hproftest.Fragment{State: hproftest.Destroyed, Lifecycle: "INITIALIZED"})
	add("com.shop.E", android.Alive, hproftest.Fragment{State: hproftest.Attached, Lifecycle: "INITIALIZED"})
	add("com.shop.F", android.Alive, hproftest.Fragment{State: hproftest.Destroyed, Lifecycle: "CREATED"})
	h.Set(add("com.shop.G", android.Unknown, hproftest.Fragment{State: hproftest.Destroyed}), "mLifecycleRegistry", nil)
	var refs []hproftest.Ref
	for r := range want {
		refs = append(refs, r)
	}
	h.Hold("com.shop.Cache", "sFragments", h.ArrayList(refs...).Ref)
	s, ids := made(t, h, hproftest.Form{}, android.Options{})
	g := s.Components.Fragments
	got := map[hprof.ID]string{}
	for _, c := range g.List {
		got[c.Object] = c.State
	}
	for r, state := range want {
		if got[ids.Of(r)] != state {
			t.Errorf("object %#x: %q, want %q", uint64(ids.Of(r)), got[ids.Of(r)], state)
		}
	}
	if g.Count != int64(len(want)) || len(g.List) != len(want) || g.Held != 4 {
		t.Errorf("%s", text(t, g))
	}
}

func TestOldFragments(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	h.Hold("com.shop.Cache", "sFragment",
		h.Fragment("com.shop.A",
			hproftest.Fragment{State: hproftest.Destroyed, Lifecycle: "INITIALIZED", NoMaxState: true}))
	s, _ := made(t, h, hproftest.Form{}, android.Options{})
	if g := s.Components.Fragments; g.States[android.Alive] != 1 || g.Count != 1 {
		t.Errorf("%s", text(t, g))
	}
}

func TestServices(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	h.Service("com.shop.Sync", hproftest.Attached)
	h.Service("com.shop.Push", hproftest.Attached)
	gone := h.Service("com.shop.Sync", hproftest.Destroyed)
	h.Hold("com.shop.Cache", "sService", gone)
	s, ids := made(t, h, hproftest.Form{}, android.Options{})
	g := s.Components.Services
	if g.Count != 3 || g.Held != 1 || g.States[android.Alive] != 2 || g.List[0].Object != ids.Of(gone) {
		t.Errorf("%s", text(t, g))
	}
	// Without the ActivityThread's map, the state of services is unknown.
	h.SetStatic(h.Class("android.app.ActivityThread"), "sCurrentActivityThread", h.Application())
	if s, _ = made(t, h, hproftest.Form{}, android.Options{}); s.Components.Services.States[android.Unknown] != 3 {
		t.Errorf("%s", text(t, s.Components.Services))
	}
}

func TestDatabases(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	config := h.Declare("android.database.sqlite.SQLiteDatabaseConfiguration", nil, "object path", "object label")
	base := h.Declare("android.database.sqlite.SQLiteClosable", nil, "int mReferenceCount")
	db := h.Declare("android.database.sqlite.SQLiteDatabase", base, "object mConnectionPoolLocked",
		"object mConfigurationLocked")
	var refs []hproftest.Ref
	for i, path := range []string{"/data/user/0/com.shop/databases/a.db", ":memory:", "/data/\x1b[2Jb.db"} {
		f := hproftest.Fields{"mConfigurationLocked": h.New(config, hproftest.Fields{"path": path})}
		if i != 1 {
			f["mConnectionPoolLocked"] = h.ArrayList().Ref
		}
		refs = append(refs, h.New(db, f))
	}
	h.Hold("com.shop.Cache", "sDatabases", h.ArrayList(refs...).Ref)
	s, _ := made(t, h, hproftest.Form{}, android.Options{})
	paths := map[string]bool{}
	for _, d := range s.Components.Databases.List {
		paths[d.Path] = d.Open
	}
	want := map[string]bool{
		"/data/user/0/com.shop/databases/a.db": true, ":memory:": false, "/data/\uFFFD[2Jb.db": true,
	}
	if d := s.Components.Databases; d.Count != 3 || d.Open != 2 || !maps.Equal(paths, want) || d.List[2].Open {
		t.Errorf("%s", text(t, d))
	}
}

func TestFinalizers(t *testing.T) {
	for _, android26 := range []bool{true, false} {
		h, form := hproftest.Java(3), hproftest.Form{Runtime: hproftest.HotSpot}
		if android26 {
			h, form = hproftest.Android(hproftest.Phone{}), hproftest.Form{}
		}
		c := h.Declare("com.shop.Handle", nil, "long pointer", "object data")
		other := h.Declare("com.shop.Other", nil, "int n")
		// Three objects wait for their finalizer, together with what they hold;
		// two are still in use.
		for range 3 {
			h.Finalizable(h.New(c, hproftest.Fields{"data": h.Bytes(make([]byte, 100))}))
		}
		for i := range 2 {
			used := h.New(other, nil)
			h.Finalizable(used)
			h.Hold(fmt.Sprintf("com.shop.Use%d", i), "sUsed", used)
		}
		s, _ := made(t, h, form, android.Options{})
		f := s.Finalizers
		if f.Registered != 5 || f.Pending != 3 || f.Queued != 0 || f.PendingBytes <= 0 || len(f.Classes) != 2 {
			t.Fatalf("%s", text(t, f))
		}
		if a, b := f.Classes[0], f.Classes[1]; a.Class != "com.shop.Handle" || a.Pending != 3 || a.Registered != 3 ||
			b.Class != "com.shop.Other" || b.Pending != 0 || b.Registered != 2 {
			t.Errorf("%s", text(t, f))
		}
	}
}

// TestZombies checks Android's zombie field: the next object to be finalized is
// in this field and no longer in the referent.
func TestZombies(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	r := h.New(h.Class("java.lang.ref.FinalizerReference"), hproftest.Fields{"zombie": h.Integer(5)})
	h.Root(hprof.SubRootJNIGlobal, r)
	s, _ := made(t, h, hproftest.Form{}, android.Options{})
	if f := s.Finalizers; f.Registered != 1 || f.Pending != 1 || f.Queued != 1 ||
		f.Classes[0].Class != "java.lang.Integer" {
		t.Errorf("%s", text(t, f))
	}
}
