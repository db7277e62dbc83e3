package trace_test

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/trace"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// says holds the results of inspectors for objects of some classes.
type says struct{ leaking, needed []string }

// inspect returns inspections like those of Shark's test inspectors
// (LeakStatusTest.kt): the results for the given classes and, if requested,
// that the leaking object is watched and that class objects never leak.
func (s says) inspect(w *world, watched, classes bool) trace.Describe {
	return trace.Describe{Inspect: func(o heap.Object) (n trace.Inspection) {
		name := w.graph.Class(o)
		if w.graph.IsClass(o) {
			name = w.graph.ClassName(o)
		}
		if slices.Contains(s.leaking, name) {
			n.Leaking = append(n.Leaking, name+" is leaking")
		}
		if slices.Contains(s.needed, name) {
			n.NotLeaking = append(n.NotLeaking, name+" is not leaking")
		}
		if watched && name == "Leaking" {
			n.Leaking = append(n.Leaking, "it is watched")
		}
		if classes && w.graph.IsClass(o) {
			n.NotLeaking = append(n.NotLeaking, "a class is never leaking")
		}
		return n
	}}
}

// chainOf returns a heap and its instances of Leaking. A static field of GcRoot
// holds, through named fields, a chain of instances of Class1, Class2 and so
// on, which ends with an instance of Leaking. Additional fields of the last
// Class hold additional instances.
func chainOf(t *testing.T, fields []string, more ...string) (*world, []heap.Object) {
	t.Helper()
	h := hproftest.Java(1)
	leaking := h.Declare("Leaking", nil, "int n")
	leak := h.New(leaking, nil)
	leaks := []hproftest.Ref{leak}
	at := leak
	for i := len(fields) - 1; i > 0; i-- {
		members := []string{"object " + fields[i]}
		if i == len(fields)-1 {
			for _, m := range more {
				members = append(members, "object "+m)
			}
		}
		at = h.New(h.Declare("Class"+string(rune('0'+i)), nil, members...), hproftest.Fields{fields[i]: at})
		if i == len(fields)-1 {
			for _, m := range more {
				other := h.New(leaking, nil)
				h.Set(at, m, other)
				leaks = append(leaks, other)
			}
		}
	}
	root := h.Declare("GcRoot", nil, "static object "+fields[0])
	h.SetStatic(root, fields[0], at)
	h.Root(hprof.SubRootStickyClass, root)
	w := load(t, h, hproftest.Form{Runtime: hproftest.HotSpot}, trace.Rules{})
	return w, w.objects(leaks...)
}

var (
	short = []string{"staticField1"}
	one   = []string{"staticField1", "field1"}
	long  = []string{"staticField1", "field1", "field2", "field3"}
)

// TestStatus runs the cases of LeakStatusTest.kt.
func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name    string
		fields  []string
		says    says
		watched bool
		classes bool
		// at is the index of the element; status and reason are the expected
		// values. "*" matches any reason.
		at             int
		status, reason string
	}{
		{"gcRootClassNotLeaking", short, says{}, true, true, 0, "NO", "a class is never leaking"},
		{"leakingInstanceLeaking", short, says{}, true, false, 1, "YES", "it is watched"},
		{"defaultsToUnknown", one, says{}, true, false, 1, "UNKNOWN", ""},
		{"inspectorNotLeaking", one, says{needed: []string{"Class1"}}, true, false, 1, "NO", "Class1 is not leaking"},
		{"inspectorLeaking", one, says{leaking: []string{"Class1"}}, true, false, 1, "YES", "Class1 is leaking"},
		{"leakingWinsUnknown", one, says{leaking: []string{"Class1"}}, true, false, 1, "YES", "*"},
		{
			"notLeakingWhenNextIsNotLeaking", long, says{needed: []string{"Class3"}}, true, false, 2, "NO",
			"Class3↓ is not leaking",
		},
		{
			"leakingWhenPreviousIsLeaking", long, says{leaking: []string{"Class1"}}, true, false, 2, "YES",
			"Class1↑ is leaking",
		},
		{
			"middleUnknown", long, says{needed: []string{"Class1"}, leaking: []string{"Class3"}}, true, false, 2,
			"UNKNOWN", "",
		},
		{
			"gcRootClassNotLeakingConflictingWithInspector", short, says{leaking: []string{"GcRoot"}}, true, true, 0,
			"NO", "a class is never leaking. Conflicts with GcRoot is leaking",
		},
		{
			"gcRootClassNotLeakingAgreesWithInspector", short, says{needed: []string{"GcRoot"}}, true, true, 0, "NO",
			"GcRoot is not leaking and a class is never leaking",
		},
		{
			"leakingInstanceLeakingConflictingWithInspector", short, says{needed: []string{"Leaking"}}, true, false, 1,
			"YES", "it is watched. Conflicts with Leaking is not leaking",
		},
		{
			"leakingInstanceLeakingAgreesWithInspector", short, says{leaking: []string{"Leaking"}}, true, false, 1,
			"YES", "Leaking is leaking and it is watched",
		},
		{
			"conflictNotLeakingWins", one, says{needed: []string{"Class1"}, leaking: []string{"Class1"}}, true, false,
			1, "NO", "Class1 is not leaking. Conflicts with Class1 is leaking",
		},
		{
			"notLeakingWhenFurtherDownIsNotLeaking", long, says{needed: []string{"Class3"}}, true, false, 1, "NO",
			"Class3↓ is not leaking",
		},
		{
			"leakingWhenFurtherUpIsLeaking", long, says{leaking: []string{"Class1"}}, true, false, 3, "YES",
			"Class1↑ is leaking",
		},
		// Additional cases: how RealLeakTracerFactory treats an object without
		// any reasons, and an object between objects with reasons of both
		// kinds.
		{"lastUnknown", short, says{}, false, false, 1, "YES", "This is the leaking object"},
		{
			"lastNotLeaking", short, says{needed: []string{"Leaking"}}, false, false, 1, "YES",
			"This is the leaking object. Conflicts with Leaking is not leaking",
		},
		{
			"needed above needed", long, says{needed: []string{"Class1", "Class3"}}, true, false, 1, "NO",
			"Class3↓ is not leaking and Class1 is not leaking",
		},
		{
			"leaking above needed", long, says{needed: []string{"Class3"}, leaking: []string{"Class1"}}, true, false, 1,
			"NO", "Class3↓ is not leaking. Conflicts with Class1 is leaking",
		},
		{
			"leaking below leaking", long, says{leaking: []string{"Class1", "Class3"}}, true, false, 3, "YES",
			"Class1↑ is leaking and Class3 is leaking",
		},
		{
			"nearest of two leaking objects", long, says{leaking: []string{"Class1", "Class2"}}, true, false, 3, "YES",
			"Class2↑ is leaking",
		},
		{
			"nearest of two needed objects", long, says{needed: []string{"Class2", "Class3"}}, true, false, 0, "NO",
			"Class2↓ is not leaking",
		},
		{
			"needed below leaking", long, says{needed: []string{"Class2"}, leaking: []string{"Class1"}}, true, false, 3,
			"UNKNOWN", "",
		},
		{"root", long, says{needed: []string{"Class1"}}, true, false, 0, "NO", "Class1↓ is not leaking"},
	} {
		w, targets := chainOf(t, c.fields)
		x := w.traces(targets, c.says.inspect(w, c.watched, c.classes))[0]
		if len(x.Elements) != len(c.fields)+1 {
			t.Fatalf("%s: %d elements", c.name, len(x.Elements))
		}
		e := x.Elements[c.at]
		if e.Status.String() != c.status || e.Reason != c.reason && c.reason != "*" {
			t.Errorf("%s: %s is %s (%s), want %s (%s)", c.name, e.Class, e.Status, e.Reason, c.status, c.reason)
		}
		w.checkStatuses(c.name, &x)
	}
}

func (w *world) traces(targets []heap.Object, d trace.Describe) []trace.Trace {
	w.Helper()
	s := w.find(targets, trace.Options{})
	list, err := s.Traces(w.Context(), s.Found(), d)
	if err != nil {
		w.Fatal(err)
	}
	return list
}

// checkStatuses checks properties that every trace must have: objects that are
// not leaking come first, then unknown ones, then leaking ones, and the suspect
// references are in between.
func (w *world) checkStatuses(name string, x *trace.Trace) {
	w.Helper()
	rank := map[trace.Status]int{trace.NotLeaking: 0, trace.Unknown: 1, trace.Leaking: 2}
	last := len(x.Elements) - 1
	for i, e := range x.Elements[:last] {
		next := x.Elements[i+1].Status
		if rank[e.Status] > rank[next] {
			w.Errorf("%s: element %d is %s, but the next one is %s", name, i, e.Status, next)
		}
		if suspect := e.Status == trace.Unknown || e.Status == trace.NotLeaking &&
			next != trace.NotLeaking; e.Suspect != suspect {
			w.Errorf("%s: got suspect %t for the reference of element %d, want %t", name, e.Suspect, i, suspect)
		}
	}
	if x.Leaking().Status != trace.Leaking || x.Leaking().Suspect {
		w.Errorf("%s: the last element has status %s and suspect %t, want %s and false", name, x.Leaking().Status,
			x.Leaking().Suspect, trace.Leaking)
	}
}

// TestSuspects is Shark's test leakCausesAreLastNotLeakingAndUnknown.
func TestSuspects(t *testing.T) {
	w, targets := chainOf(t, long)
	x := w.traces(targets, says{needed: []string{"Class1"}, leaking: []string{"Class3"}}.inspect(w, true, false))[0]
	var got []bool
	for _, e := range x.Elements {
		got = append(got, e.Suspect)
	}
	if want := []bool{false, true, true, false, false}; !slices.Equal(got, want) {
		t.Errorf("suspects = %t, want %t", got, want)
	}
}

// TestUnreachable is Shark's test unreachableInstanceLeaking.
func TestUnreachable(t *testing.T) {
	h := hproftest.Java(1)
	c := h.Declare("SomeClass", nil, "object other")
	a := h.New(c, nil)
	b := h.New(c, hproftest.Fields{"other": a})
	w := load(t, h, hproftest.Form{}, trace.Rules{})
	r := w.leaks(w.find(w.objects(a, b), trace.Options{}))
	if len(r.Leaks) != 0 || !slices.Equal(r.Unreachable, w.objects(a, b)) {
		t.Errorf("%d leaks, unreachable %v", len(r.Leaks), r.Unreachable)
	}
}

// TestFingerprints runs Shark's tests sameLeakTraceSameLeakFingerprint,
// differentLeakTraceDifferentLeakFingerprint, sameCausesSameLeakFingerprint and
// sameCausesSameApplicationLeak.
func TestFingerprints(t *testing.T) {
	known := says{needed: []string{"Class1"}, leaking: []string{"Class3"}}
	of := func(fields []string, more ...string) *trace.Leak {
		w, targets := chainOf(t, fields, more...)
		r, err := w.find(targets, trace.Options{}).Leaks(w.Context(), known.inspect(w, true, false))
		if err != nil || len(r.Leaks) != 1 {
			t.Fatalf("%d leaks, %v", len(r.Leaks), err)
		}
		return &r.Leaks[0]
	}
	first := of(long)
	for _, c := range []struct {
		fields []string
		same   bool
	}{
		{long, true},
		{[]string{"staticField1", "field1b", "field2", "field3"}, false},
		{[]string{"staticField1", "field1", "field2", "field3b"}, true},
		{[]string{"another", "field1", "field2", "field3"}, true},
	} {
		l := of(c.fields)
		if same := l.Fingerprint() == first.Fingerprint(); same != c.same {
			t.Errorf("%q and %q have the same fingerprint: %t, want %t", c.fields, long, same, c.same)
		}
		if same := l.Traces[0].Key() == first.Traces[0].Key(); same != c.same {
			t.Errorf("%q and %q have the same key: %t, want %t", c.fields, long, same, c.same)
		}
	}
	if l := of(long, "field3c"); len(l.Traces) != 2 || l.Fingerprint() != first.Fingerprint() {
		t.Errorf("two objects with the same path result in a leak with %d traces, want 2", len(l.Traces))
	}
	sum := sha1.Sum([]byte("Class1field1Class2field2"))
	if want := hex.EncodeToString(sum[:]); first.Fingerprint() != want {
		t.Errorf("fingerprint %s, want %s", first.Fingerprint(), want)
	}
	if want := "Class1.field1\nClass2.field2\n"; first.Traces[0].KeyText() != want ||
		first.Traces[0].Key() != trace.KeyOf(want) {
		t.Errorf("key text %q, want %q", first.Traces[0].KeyText(), want)
	}
}

// TestRecordedFingerprints checks the fingerprints in LeakCanary's
// documentation (including the zeros that LeakCanary dropped at that time), and
// those of both paths in a real dump.
func TestRecordedFingerprints(t *testing.T) {
	suspect := func(pairs ...string) *trace.Trace {
		x := &trace.Trace{}
		for i := 0; i < len(pairs); i += 2 {
			x.Elements = append(x.Elements, trace.Element{Class: pairs[i], Field: pairs[i+1], Suspect: true})
		}
		// References that are not suspect do not affect the fingerprint.
		x.Elements = slices.Insert(x.Elements, 0, trace.Element{Class: "a.Needed", Field: "x"})
		x.Elements = append(x.Elements, trace.Element{Class: "a.Leaking"})
		return x
	}
	for _, c := range []struct {
		x    *trace.Trace
		want string
	}{
		{
			suspect("com.example.leakcanary.LeakingSingleton", "leakedViews", "java.util.ArrayList", "elementData",
				"java.lang.Object[]", "[x]"), "ce9dee03a1feb859fd3b3a09ff51e3ddfd8efbc6",
		},
		{suspect(), "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
	} {
		if got := c.x.Fingerprint(); got != c.want {
			t.Errorf("fingerprint %s, want %s", got, c.want)
		}
	}
}

// TestRecordedLeak checks Shark 2.14's signatures for a real dump of Android
// 4.4, in which a service leaks through two paths.
func TestRecordedLeak(t *testing.T) {
	g, b, err := opened(t.Context(), recorded.Read(t, "hprof", "leak_service_binder.hprof"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close(); g.Close() })
	referent := func(class, field string) trace.Matcher {
		return trace.Matcher{
			Pattern: trace.Pattern{Kind: trace.InstanceField, Class: class, Name: field}, Ignored: true,
		}
	}
	r := trace.NewReader(g, b, trace.Rules{Matchers: []trace.Matcher{
		referent("java.lang.ref.WeakReference", "referent"), referent("java.lang.ref.SoftReference", "referent"),
		referent("java.lang.ref.PhantomReference", "referent"),
		referent("java.lang.ref.FinalizerReference", "prev"), referent("java.lang.ref.FinalizerReference", "element"),
		referent("java.lang.ref.FinalizerReference", "next"),
	}})
	w := &world{TB: t, graph: g, reader: r}
	var targets []heap.Object
	for _, id := range []hprof.ID{0xb0f83300, 0xb0fa7cb0} {
		o, ok := g.Find(id)
		if !ok {
			t.Fatalf("object %#x not found", id)
		}
		targets = append(targets, o)
	}
	result, err := w.find(targets, trace.Options{}).
		Leaks(t.Context(), trace.Describe{Inspect: func(o heap.Object) (n trace.Inspection) {
			if g.IsClass(o) || g.InstanceOf(o, "java.lang.ClassLoader") {
				n.NotLeaking = []string{"a class is never leaking"}
			}
			return n
		}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range result.Leaks {
		got = append(got, fmt.Sprintf("%s %d bytes", l.Fingerprint(), l.Credited.Java))
	}
	if want := []string{
		"ef9d39eb400396891e65dd2cd441b7a862892ef9 378 bytes", "95c1f7fe8770552234910749f0a4e0b7d44a6f50 378 bytes",
	}; !slices.Equal(got, want) {
		t.Errorf("leaks %q, want %q", got, want)
	}
}
