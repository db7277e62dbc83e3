package android_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// judged holds a heap and an inspector for each of the two sets of rules.
type judged struct {
	graph    *heap.Graph
	ids      hproftest.IDs
	now, old *android.Inspector
}

func judge(tb testing.TB, h *hproftest.Heap, f hproftest.Form) judged {
	tb.Helper()
	dump, ids, err := h.Dump(f)
	if err != nil {
		tb.Fatal(err)
	}
	g := load(tb, dump)
	return judged{
		g, ids, inspect(tb, g, android.InspectorOptions{}), inspect(tb, g, android.InspectorOptions{Shark214: true}),
	}
}

func (j judged) object(tb testing.TB, r any) heap.Object {
	tb.Helper()
	o, ok := j.graph.Find(j.ids.Of(r))
	if !ok {
		tb.Fatalf("object %v not found", r)
	}
	return o
}

// says checks the remarks of each set of rules about an object, given as lines.
// + marks a reason why the object leaks, - a reason why it does not, and = a
// label.
func (j judged) says(t *testing.T, name string, r any, now, old string) {
	t.Helper()
	o := j.object(t, r)
	for _, c := range []struct {
		rules     string
		inspector *android.Inspector
		want      string
	}{{"rules", j.now, now}, {"rules of Shark 2.14", j.old, old}} {
		want := strings.ReplaceAll(c.want, "; ", "\t")
		if got := lineOfInspection(c.inspector.Inspect(o)); got != want {
			t.Errorf("%s, %s: %q, want %q", name, c.rules, got, want)
		}
	}
}

// leaks checks whether an object leaks according to each set of rules.
func (j judged) leaks(t *testing.T, name string, r any, now, old bool) {
	t.Helper()
	o := j.object(t, r)
	if got := slices.Contains(leaking(t, j.now), o); got != now {
		t.Errorf("%s leaks: got %v, want %v", name, got, now)
	}
	if got := slices.Contains(leaking(t, j.old), o); got != old {
		t.Errorf("%s leaks by the rules of Shark 2.14: got %v, want %v", name, got, old)
	}
}

// TestInspectorOfKitKat checks that the inspector finds what Shark found in a
// recorded dump.
func TestInspectorOfKitKat(t *testing.T) {
	g := loadRecorded(t, "leak_service_binder.hprof")
	i := inspect(t, g, android.InspectorOptions{})
	if got, want := idsOf(g, leaking(t, i)), []uint64{0xb0f766d0, 0xb0f83300, 0xb0fa7cb0}; !slices.Equal(got, want) {
		t.Errorf("leaking %x, want %x", got, want)
	}
	if got, want := idsOf(g, i.Watched()), []uint64{0xb0fa7cb0}; !slices.Equal(got, want) {
		t.Errorf("watched %x, want %x", got, want)
	}
	service, _ := g.Find(0xb0fa7cb0)
	want := "+ObjectWatcher was watching this; +Service not held by ActivityThread; =key = " +
		"b3abfae6-2c53-42e1-b8c1-96b0558dbeae; =mApplication instance of com.example.leakcanary.ExampleApplication; " +
		"=mBase instance of android.app.ContextImpl"
	if got := lineOfInspection(i.Inspect(service)); got != strings.ReplaceAll(want, "; ", "\t") {
		t.Errorf("%q", got)
	}
}

// TestInspectorOfJVM checks that no object in the dump of a JVM leaks, and that
// threads have their names.
func TestInspectorOfJVM(t *testing.T) {
	for _, name := range []string{
		"ahat-RI.hprof", "hprof-32.bin", "hprof-64.bin", "pyhprof-example-java.hprof", "mat-sun_jdk6_32bit.hprof",
		"mat-sun_jdk6_30_x64_compressedOops.hprof",
	} {
		t.Run(name, func(t *testing.T) {
			g := loadRecorded(t, name)
			i := inspect(t, g, android.InspectorOptions{})
			if list := leaking(t, i); len(list) != 0 {
				t.Errorf("%d objects leak", len(list))
			}
			var names []string
			for _, o := range g.InstancesOf("java.lang.Thread") {
				names = append(names, i.Inspect(o).Labels...)
			}
			var want []string
			for _, thread := range read(t, g, android.Options{Top: 1000}).Threads.List {
				want = append(want, "Thread name: '"+thread.Name+"'")
			}
			for _, w := range want {
				if !slices.Contains(names, w) {
					t.Errorf("%s is missing from %q", w, names)
				}
			}
			if o, ok := g.Find(g.ID(0)); ok && g.IsClass(o) &&
				lineOfInspection(i.Inspect(o)) != "-a class is never leaking" {
				t.Errorf("class: %+v", i.Inspect(o))
			}
		})
	}
}

// TestWatchedInJVM checks objects that LeakCanary watches in a JVM.
func TestWatchedInJVM(t *testing.T) {
	h := hproftest.Java(1)
	screen := h.New(h.Declare("com.shop.Screen", nil, "object next"), nil)
	kept := h.New(h.Class("com.shop.Screen"), nil)
	h.Watch(screen,
		hproftest.Watched{Key: "k1", Description: "it was closed", WatchedAt: 3_500_000, RetainedAt: 3_550_000})
	h.Watch(kept, hproftest.Watched{Key: "k2", WatchedAt: 3_599_000, RetainedAt: -1})
	j := judge(t, h, hproftest.Form{Runtime: hproftest.HotSpot})
	text := "+ObjectWatcher was watching this because it was closed; =key = k1; =watchDurationMillis = 100000; " +
		"=retainedDurationMillis = 50000"
	j.says(t, "retained", screen, text, text)
	text = "+ObjectWatcher was watching this; =key = k2; =watchDurationMillis = 1000; =retainedDurationMillis = -1"
	j.says(t, "not retained", kept, text, text)
	j.leaks(t, "retained", screen, true, true)
	j.leaks(t, "not retained", kept, false, false)
	if got := j.now.Watched(); !slices.Equal(got, []heap.Object{j.object(t, screen)}) {
		t.Errorf("watched %v", got)
	}
}

// TestWatchedWithoutUptime checks a dump that was not taken by LeakCanary and
// therefore does not contain its uptime.
func TestWatchedWithoutUptime(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	screen := h.New(h.Declare("com.shop.Screen", nil, "object next"), nil)
	h.Watch(screen, hproftest.Watched{Key: "k1", WatchedAt: 1000, RetainedAt: 6000})
	h.SetStatic(h.Class("leakcanary.KeyedWeakReference"), "heapDumpUptimeMillis", 0)
	message := h.New(h.Class("android.os.Message"), hproftest.Fields{"when": 5000, "what": 2})
	j := judge(t, h, hproftest.Form{})
	j.says(t, "retained", screen, "+ObjectWatcher was watching this; =key = k1",
		"+ObjectWatcher was watching this; =key = k1; =watchDurationMillis = -1000; =retainedDurationMillis = -6000")
	const rest = "; =Message.obj = null; =Message.callback = null; =Message.target = null"
	j.says(t, "message", message, "=Message.what = 2; =Message.when = 5000"+rest,
		"=Message.what = 2; =Message.when = 5000 (5000 ms after heap dump)"+rest)
	j.leaks(t, "retained", screen, true, true)
}

// TestWatchedWithoutTimes checks references without a watch time: our rules
// consider an object retained if retainedUptimeMillis says so, and Shark 2.14
// considers every such object retained.
func TestWatchedWithoutTimes(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	c := h.Declare("leakcanary.KeyedWeakReference", h.Class("java.lang.ref.WeakReference"), "object key",
		"object description", "long retainedUptimeMillis")
	screen := h.Declare("com.shop.Screen", nil, "object next")
	a, b := h.New(screen, nil), h.New(screen, nil)
	h.New(c, hproftest.Fields{"referent": a, "key": "k1", "description": "", "retainedUptimeMillis": 5})
	h.New(c, hproftest.Fields{"referent": b, "key": "k2", "retainedUptimeMillis": -1})
	h.New(c, hproftest.Fields{"key": "k3", "retainedUptimeMillis": 5})
	j := judge(t, h, hproftest.Form{})
	j.says(t, "watched", a, "+ObjectWatcher was watching this; =key = k1",
		"+ObjectWatcher was watching this; =key = k1")
	text := "+ObjectWatcher was watching this because Unknown (legacy); =key = k2"
	j.says(t, "watched without a description", b, text, text)
	j.leaks(t, "retained", a, true, true)
	j.leaks(t, "not retained", b, false, true)
}

func TestInspectedFragments(t *testing.T) {
	const state = "Fragment.mLifecycleRegistry.state is "
	for _, c := range []struct {
		name      string
		fragment  hproftest.Fragment
		now, old  string
		leak, was bool
	}{
		{
			"new", hproftest.Fragment{State: hproftest.NotYet},
			"-" + state + "INITIALIZED and the fragment was never attached", "-" + state + "INITIALIZED", false, false,
		},
		{"reset", hproftest.Fragment{State: hproftest.Destroyed, Lifecycle: "INITIALIZED", Tag: "list"},
			"+Fragment.mLifecycleRegistry.state was reset to INITIALIZED by Fragment#initState() after " +
				"Fragment#onDestroy(); =Fragment.mTag = list", "-" + state + "INITIALIZED; =Fragment.mTag = list", true,
			false},
		{
			"attached", hproftest.Fragment{Lifecycle: "INITIALIZED"},
			"-" + state + "INITIALIZED and Fragment.mFragmentManager is set", "-" + state + "INITIALIZED", false, false,
		},
		{
			"old version", hproftest.Fragment{State: hproftest.Destroyed, Lifecycle: "INITIALIZED", NoMaxState: true},
			"-" + state + "INITIALIZED", "-" + state + "INITIALIZED", false, false,
		},
		{
			"destroyed", hproftest.Fragment{State: hproftest.Destroyed}, "+" + state + "DESTROYED",
			"+" + state + "DESTROYED", true, true,
		},
		{"resumed", hproftest.Fragment{}, "-" + state + "RESUMED", "-" + state + "RESUMED", false, false},
		{
			"unattached platform fragment",
			hproftest.Fragment{Kind: hproftest.Framework, State: hproftest.NotYet, Tag: "a"},
			"=Fragment#mFragmentManager is null; =Fragment.mTag=a",
			"+Fragment#mFragmentManager is null; =Fragment.mTag=a", false, true},
		{
			"destroyed platform fragment", hproftest.Fragment{Kind: hproftest.Framework, State: hproftest.Destroyed},
			"+Fragment#mFragmentManager is null", "+Fragment#mFragmentManager is null", true, true,
		},
		{
			"unattached support library fragment", hproftest.Fragment{Kind: hproftest.Support, State: hproftest.NotYet},
			"=Fragment#mFragmentManager is null", "+Fragment#mFragmentManager is null", false, true,
		},
		{
			"support library fragment", hproftest.Fragment{Kind: hproftest.Support},
			"-Fragment#mFragmentManager is not null", "-Fragment#mFragmentManager is not null", false, false,
		},
	} {
		h := hproftest.Android(hproftest.Phone{})
		r := h.Fragment("com.shop.Detail", c.fragment)
		j := judge(t, h, hproftest.Form{})
		j.says(t, c.name, r, c.now, c.old)
		j.leaks(t, c.name, r, c.leak, c.was)
	}
}

// TestFragmentWithoutFields checks that the state of a fragment is unknown if
// the dump lacks the fields that hold it.
func TestFragmentWithoutFields(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	c := h.Declare("androidx.fragment.app.Fragment", nil, "object mLifecycleRegistry", "object mMaxState")
	r := h.New(c, hproftest.Fields{"mLifecycleRegistry": h.Lifecycle("INITIALIZED")})
	none := h.New(c, nil)
	j := judge(t, h, hproftest.Form{})
	j.says(t, "fragment", r,
		"=Fragment.mLifecycleRegistry.state is INITIALIZED and the Fragment.mCalled field could not be found",
		"-Fragment.mLifecycleRegistry.state is INITIALIZED")
	j.says(t, "fragment without a registry", none, "=Fragment.mLifecycleRegistry = null",
		"=Fragment.mLifecycleRegistry = null")
	j.leaks(t, "fragment", r, false, false)
}

// TestInspectorAndComponents checks that destroyed activities, services and
// fragments are reported as leaking, and that others are not.
func TestInspectorAndComponents(t *testing.T) {
	destroyed := 0
	for seed := range uint64(24) {
		dump, _, err := hproftest.LeakMix(seed).Heap().Dump(hproftest.Form{})
		if err != nil {
			t.Fatal(err)
		}
		g := load(t, dump)
		i := inspect(t, g, android.InspectorOptions{})
		components := read(t, g, android.Options{Top: 100000}).Components
		list, watched := leaking(t, i), i.Watched()
		for _, group := range []android.ComponentGroup{
			components.Activities, components.Services, components.Fragments,
		} {
			for _, c := range group.List {
				o, _ := g.Find(c.Object)
				if slices.Contains(watched, o) {
					continue
				}
				if c.State == android.Destroyed {
					destroyed++
				}
				if got := slices.Contains(list, o); got != (c.State == android.Destroyed) {
					t.Errorf("seed %d: %s %s is leaking: %v", seed, c.State, c.Class, got)
				}
			}
		}
	}
	if destroyed < 24 {
		t.Errorf("got %d destroyed components, want at least 24", destroyed)
	}
}

func TestInspectedCompositions(t *testing.T) {
	for state, want := range []string{
		"-Composition running", "=Composition deactivated", "=Composition inconsistent", "+Composition disposed",
		"=Composition state: 4",
	} {
		h := hproftest.Android(hproftest.Phone{})
		r := h.CompositionState(0, state)
		judge(t, h, hproftest.Form{}).says(t, want, r, want, "")
	}
	h := hproftest.Android(hproftest.Phone{})
	r := h.New(h.Declare("androidx.compose.runtime.CompositionImpl", nil, "object parent"), nil)
	judge(t, h, hproftest.Form{}).says(t, "composition", r,
		"=Composition disposal state unknown (no disposed or state field)", "")
}

// TestRenamedFlow checks that the state is read from the field under the name
// that it has in kotlinx.coroutines 1.9.
func TestRenamedFlow(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	enum := h.Declare("androidx.compose.runtime.Recomposer$State", h.Class("java.lang.Enum"))
	flow := h.Declare("kotlinx.coroutines.flow.StateFlowImpl", nil, "object _state$volatile")
	c := h.Declare("androidx.compose.runtime.Recomposer", nil, "object _state")
	state := h.New(enum, hproftest.Fields{"name": "ShutDown"})
	r := h.New(c, hproftest.Fields{"_state": h.New(flow, hproftest.Fields{"_state$volatile": state})})
	judge(t, h, hproftest.Form{}).says(t, "recomposer", r, "+Recomposer is in state ShutDown", "")
}

func TestInspectedViewModels(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	base := h.Declare("androidx.lifecycle.ViewModel", nil, "object mBagOfTags", "boolean mCleared")
	c := h.Declare("com.shop.CartModel", base)
	cleared, used := h.New(c, hproftest.Fields{"mCleared": true}), h.New(c, nil)
	j := judge(t, h, hproftest.Form{})
	j.says(t, "cleared", cleared, "+ViewModel#mCleared is true", "")
	j.says(t, "in use", used, "=ViewModel#mCleared is false", "")
	j.leaks(t, "cleared", cleared, true, false)
	j.leaks(t, "in use", used, false, false)

	h = hproftest.Android(hproftest.Phone{})
	impl := h.Declare("androidx.lifecycle.viewmodel.internal.ViewModelImpl", nil, "object keyToCloseables",
		"boolean isCleared")
	c = h.Declare("com.shop.CartModel", h.Declare("androidx.lifecycle.ViewModel", nil, "object impl"))
	cleared = h.New(c, hproftest.Fields{"impl": h.New(impl, hproftest.Fields{"isCleared": true})})
	used, mocked := h.New(c, hproftest.Fields{"impl": h.New(impl, nil)}), h.New(c, nil)
	j = judge(t, h, hproftest.Form{})
	j.says(t, "cleared", cleared, "+ViewModelImpl#isCleared is true", "")
	j.says(t, "in use", used, "=ViewModelImpl#isCleared is false", "")
	j.says(t, "mocked", mocked, "", "")
	j.leaks(t, "cleared", cleared, true, false)
	j.leaks(t, "mocked", mocked, false, false)
}

func TestInspectedPackageManager(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	gone, here := h.Activity("com.shop.Gone", hproftest.Destroyed), h.Activity("com.shop.Here", hproftest.Attached)
	c := h.Declare("android.app.ApplicationPackageManager", nil, "object mContext")
	a, b := h.New(c, hproftest.Fields{"mContext": gone.Context}), h.New(c, hproftest.Fields{"mContext": here.Context})
	own := h.New(h.Class("android.app.ContextImpl"), nil)
	h.Set(own, "mOuterContext", own)
	itself, none := h.New(c, hproftest.Fields{"mContext": own}), h.New(c, nil)
	j := judge(t, h, hproftest.Form{})
	const prefix, field = "ApplicationPackageManager.mContext.mOuterContext",
		"; =mContext instance of android.app.ContextImpl"
	j.says(t, "manager of a destroyed activity", a,
		"+"+prefix+" is an instance of com.shop.Gone with Activity.mDestroyed true"+
			field, field[2:])
	j.says(t, "manager of an activity", b, "-"+prefix+" is an instance of com.shop.Here with Activity.mDestroyed false"+
		field,
		field[2:])
	j.says(t, "manager without a component", itself, "="+field[3:]+"; ="+prefix+
		" == ContextImpl.this: not tied to any particular lifecycle", field[2:])
	j.says(t, "manager without a context", none, "", "")
	j.leaks(t, "manager of a destroyed activity", a, true, false)
	j.leaks(t, "manager of an activity", b, false, false)
}

// TestDecorContexts checks that the DecorContext of a dialog whose context is
// wrapped leads to the dialog's activity.
func TestDecorContexts(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	gone := h.Activity("com.shop.Gone", hproftest.Destroyed)
	themed := h.New(h.Class("android.view.ContextThemeWrapper"), hproftest.Fields{"mBase": gone.Ref})
	window := h.New(h.Class("com.android.internal.policy.PhoneWindow"), hproftest.Fields{"mContext": themed})
	decor := h.New(h.Class("com.android.internal.policy.DecorContext"),
		hproftest.Fields{"mBase": h.Application(), "mPhoneWindow": window})
	lone := h.New(h.Class("com.android.internal.policy.DecorContext"), hproftest.Fields{"mBase": h.Application()})
	j := judge(t, h, hproftest.Form{})
	const base = "=mBase instance of com.example.App"
	j.says(t, "decor", decor, "+DecorContext wraps an Activity with Activity.mDestroyed true; "+base,
		base+"; =DecorContext wraps a Service context")
	j.says(t, "decor without a window", lone, base+"; =DecorContext wraps an Application context",
		base+"; =DecorContext wraps an Application context")
	j.leaks(t, "decor", decor, true, false)
}

// TestResourceNames checks the names of the app's IDs, which LeakCanary saves
// before a dump.
func TestResourceNames(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	c := h.Declare("shark.AndroidResourceIdNames", nil, "object resourceIds", "object names",
		"static object holderField")
	names := h.Objects(h.Class("java.lang.String"), h.String("title"), h.String("list"))
	h.SetStatic(c, "holderField",
		h.New(c, hproftest.Fields{"resourceIds": h.Ints(0x7f080001, 0x7f080002), "names": names}))
	view := func(id int) hproftest.Ref {
		return h.New(h.Class("android.widget.TextView"), hproftest.Fields{"mID": id, "mContext": h.Application()})
	}
	named, unknown, none := view(0x7f080002), view(0x01020002), view(-1)
	j := judge(t, h, hproftest.Form{})
	const before = "=mContext instance of com.example.App"
	const about = "=View not part of a window view hierarchy; =View.mAttachInfo is null (view detached)"
	const after = "; =View.mWindowAttachCount = 0; " + before
	j.says(t, "view with a named ID", named, about+"; =View.mID = R.id.list"+after, about+"; =View.mID = R.id.list"+
		after)
	j.says(t, "view with an unknown ID", unknown, about+"; =View.mID = 0x1020002"+after,
		about+"; =View.mID = R.id.null"+after)
	j.says(t, "view without an ID", none, about+after, about+after)
}

// TestInspectedBinders checks that a Binder referenced by native code has a
// reason why it does not leak, and that a Binder in a list has none.
func TestInspectedBinders(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	c := h.Declare("com.shop.Sync$Stub", h.Class("android.os.Binder"))
	known, listed := h.New(c, nil), h.New(c, nil)
	h.Root(hprof.SubRootJNIGlobal, known)
	j := judge(t, h, hproftest.Form{})
	got := j.now.Inspect(j.object(t, listed))
	if len(got.NotLeaking)+len(got.Leaking) != 0 || len(got.Labels) != 1 ||
		!strings.HasPrefix(got.Labels[0], "Sync$Stub is a binder stub. ") {
		t.Errorf("binder in a list: %+v", got)
	}
	got = j.now.Inspect(j.object(t, known))
	if len(got.NotLeaking) != 1 || !strings.HasPrefix(got.NotLeaking[0], "Sync$Stub is a binder stub, and ") ||
		len(got.Labels) != 1 {
		t.Errorf("binder held by native code: got %+v, want one reason why it does not leak and one label", got)
	}
	if got := lineOfInspection(j.old.Inspect(j.object(t, known))); got != "" {
		t.Errorf("by the rules of Shark 2.14: got %q, want none", got)
	}
}

// TestListeners checks that listeners are also read from a subclass of
// ArrayList.
func TestListeners(t *testing.T) {
	for _, harmony := range []bool{true, false} {
		h := hproftest.Android(hproftest.Phone{SDK: 23, Harmony: harmony})
		animator := h.Declare("android.animation.Animator", nil, "object mListeners")
		list := h.ArrayList(0, h.Class("java.lang.Integer").Ref(), h.Integer(1))
		field := map[bool]string{true: "array", false: "elementData"}[harmony]
		own := h.New(h.Declare("com.shop.Listeners", h.Class("java.util.ArrayList")),
			hproftest.Fields{field: list.Array(), "size": 2})
		a, b, c := h.New(animator, hproftest.Fields{"mListeners": list.Ref}),
			h.New(animator, hproftest.Fields{"mListeners": own}), h.New(animator, nil)
		j := judge(t, h, hproftest.Form{})
		const class, number = "=mListeners[1] = java.lang.Integer", "=mListeners[2] = java.lang.Integer"
		j.says(t, "listeners", a, class+"; "+number, class+"; "+number)
		j.says(t, "listeners in a subclass", b, class, "=mListeners is empty")
		j.says(t, "no listeners", c, "=mListeners = null", "=mListeners = null")
	}
}

// TestServicesOfUnknownState checks that, without the ActivityThread's map, the
// state of services is unknown and no service is reported as a leak.
func TestServicesOfUnknownState(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	service := h.Service("com.shop.Sync", hproftest.Destroyed)
	h.SetStatic(h.Class("android.app.ActivityThread"), "sCurrentActivityThread", h.Application())
	j := judge(t, h, hproftest.Form{})
	j.leaks(t, "service", service, false, false)
	if got := j.now.Inspect(j.object(t, service)); len(got.Leaking)+len(got.NotLeaking) != 0 {
		t.Errorf("%+v", got)
	}
}

// inspectedClasses are all classes whose objects have a rule, except
// singletons.
var inspectedClasses = []string{
	"android.view.View", "android.widget.Editor", "android.app.Activity", "android.app.ContextImpl",
	"android.app.ApplicationPackageManager", "android.app.Dialog", "android.app.Fragment",
	"android.support.v4.app.Fragment", "android.os.MessageQueue", "android.app.LoadedApk", "mortar.Presenter",
	"mortar.MortarScope", "com.squareup.coordinators.Coordinator", "java.lang.Thread",
	"android.view.ViewRootImpl", "android.view.Window", "android.os.Message", "android.widget.Toast",
	"androidx.compose.runtime.Recomposer", "android.animation.Animator", "android.animation.ObjectAnimator",
	"androidx.lifecycle.LifecycleRegistry", "androidx.lifecycle.ViewModel", "leakcanary.KeyedWeakReference",
	"android.app.Service",
	"kotlinx.coroutines.JobSupport", "kotlinx.coroutines.internal.ContextScope",
	"androidx.lifecycle.CloseableCoroutineScope", "androidx.lifecycle.viewmodel.internal.CloseableCoroutineScope",
}

// TestClassesWithoutFields checks that an object whose class lacks the fields
// that the rules read has no reasons and causes no failure. A field of the same
// name in a subclass is a different field.
func TestClassesWithoutFields(t *testing.T) {
	for _, class := range inspectedClasses {
		h := hproftest.Java(1)
		h.Declare("android.app.ActivityThread", nil, "int n")
		c := h.Declare(class, nil)
		own := h.Declare("com.shop.Own", c, "boolean mDestroyed", "object mFragmentManager", "object mView",
			"boolean mQuitting", "boolean dead", "boolean mCleared", "object mParent", "object mAttachInfo")
		r, derived := h.New(c, nil),
			h.New(own, hproftest.Fields{"mDestroyed": true, "mQuitting": true, "dead": true, "mCleared": true})
		j := judge(t, h, hproftest.Form{})
		for _, i := range []*android.Inspector{j.now, j.old} {
			for _, x := range []hproftest.Ref{r, derived} {
				if got := i.Inspect(j.object(t, x)); len(got.Leaking)+len(got.NotLeaking) != 0 {
					t.Errorf("%s: %+v", class, got)
				}
			}
			if list := leaking(t, i); len(list) != 0 {
				t.Errorf("%s: %d objects leak", class, len(list))
			}
		}
	}
}

// TestCircles checks that the inspection terminates if contexts wrap each other
// in a cycle, or if the parents of views form a cycle.
func TestCircles(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{})
	wrapper := h.Class("android.content.ContextWrapper")
	a, b, c := h.New(wrapper, nil), h.New(wrapper, nil), h.New(wrapper, nil)
	for from, to := range map[hproftest.Ref]hproftest.Ref{a: b, b: c, c: b} {
		h.Set(from, "mBase", to)
	}
	decor := h.New(h.Class("com.android.internal.policy.DecorContext"), hproftest.Fields{"mBase": h.Application()})
	h.Set(decor, "mPhoneWindow",
		h.New(h.Class("com.android.internal.policy.PhoneWindow"), hproftest.Fields{"mContext": decor}))
	top := h.New(h.Class("android.widget.LinearLayout"), hproftest.Fields{"mContext": a, "mWindowAttachCount": 1})
	view := h.New(h.Class("android.widget.TextView"),
		hproftest.Fields{"mContext": decor, "mParent": top, "mWindowAttachCount": 1})
	h.Set(top, "mParent", view)
	j := judge(t, h, hproftest.Form{})
	for _, r := range []hproftest.Ref{a, b, c, decor, top, view} {
		j.leaks(t, fmt.Sprint(r), r, false, false)
	}
	for _, r := range []hproftest.Ref{c, a, b} {
		got := j.now.Inspect(j.object(t, r))
		if want := []string{
			"mBase instance of android.content.ContextWrapper", "ContextWrapper does not wrap a known Android context",
		}; !slices.Equal(got.Labels, want) {
			t.Errorf("%+v", got)
		}
	}
	if got := j.now.Inspect(j.object(t, view)); !slices.Contains(got.Labels,
		"View not part of a window view hierarchy") {
		t.Errorf("%+v", got)
	}
}

// checkInspector checks the properties that hold for any dump: remarks are
// printable, leaking objects have a reason, and results neither depend on the
// order of inspections nor change when they are repeated.
func checkInspector(t *testing.T, g *heap.Graph, old bool) {
	t.Helper()
	options := android.InspectorOptions{Shark214: old}
	first, second := inspect(t, g, options), inspect(t, g, options)
	list := leaking(t, first)
	lines := make([]string, g.Objects)
	for o := range heap.Object(g.Objects) {
		lines[o] = lineOfInspection(first.Inspect(o))
	}
	for o := heap.Object(g.Objects); o > 0; {
		o--
		got := second.Inspect(o)
		if line := lineOfInspection(got); line != lines[o] {
			t.Fatalf("%#x of %s: %q, then %q", g.ID(o), g.Class(o), lines[o], line)
		}
		checkTextsOf(t, slices.Concat(got.Leaking, got.NotLeaking, got.Labels))
		_, leaks := slices.BinarySearch(list, o)
		if leaks && len(got.Leaking) == 0 && !g.InstanceOf(o, "com.android.internal.policy.DecorView") &&
			!g.InstanceOf(o, "android.widget.Editor") {
			t.Fatalf("%#x of %s leaks without a reason: %q", g.ID(o), g.Class(o), lines[o])
		}
	}
	if again := leaking(t, second); !slices.Equal(again, list) {
		t.Fatalf("leaking %v, then %v", list, again)
	}
	for _, o := range first.Watched() {
		if !slices.Contains(list, o) {
			t.Fatalf("object %d is watched but not leaking", o)
		}
	}
}

func checkTextsOf(t *testing.T, list []string) {
	t.Helper()
	for n, s := range list {
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) ||
			utf8.RuneCountInString(s) > 2100 || s == "" {
			t.Fatalf("%q is not printable", s)
		}
		if n > 800 {
			t.Fatalf("got %d remarks, want at most 800", len(list))
		}
	}
}

// mixes holds the dumps of LeakMix, with the IDs of their objects. Each dump is
// created only once, because creating it takes longer than inspecting it.
var mixes [64]struct {
	once sync.Once
	dump []byte
	ids  []hprof.ID
}

// mixed returns the dump of a LeakMix, which must not be modified, and the IDs
// of its objects in order.
func mixed(tb testing.TB, seed uint64) (dump []byte, ids []hprof.ID) {
	tb.Helper()
	m := &mixes[seed]
	m.once.Do(func() {
		dump, _, err := hproftest.LeakMix(seed).Heap().Dump(hproftest.Form{})
		if err != nil {
			return
		}
		plain, err := hproftest.ReadGraph(dump)
		if err != nil {
			return
		}
		m.dump, m.ids = dump, slices.Sorted(maps.Keys(plain.Nodes))
	})
	if m.dump == nil {
		tb.Fatalf("mix %d has no dump", seed)
	}
	return m.dump, m.ids
}

// redirect changes references in a dump with IDs of four bytes: it replaces
// bytes that look like the ID of an object with the ID of another object.
func redirect(dump []byte, ids []hprof.ID, choices []byte) []byte {
	dump = slices.Clone(dump)
	b := bytesOf(choices)
	for len(b) > 0 {
		at := len(dump)/4 + int(b.number(3))%(len(dump)*3/4-8)
		to := ids[int(b.number(2))%len(ids)]
		for end := min(at+200, len(dump)-4); at < end; at++ {
			id := hprof.ID(uint32(dump[at])<<24 | uint32(dump[at+1])<<16 | uint32(dump[at+2])<<8 | uint32(dump[at+3]))
			if _, there := slices.BinarySearch(ids, id); there && id != 0 {
				copy(dump[at:], []byte{byte(to >> 24), byte(to >> 16), byte(to >> 8), byte(to)})
				break
			}
		}
	}
	return dump
}

// FuzzInspector checks that all objects of any dump can be inspected.
func FuzzInspector(f *testing.F) {
	for seed := range uint64(16) {
		choices := make([]byte, 5*(seed*8))
		for n := range choices {
			choices[n] = byte(seed*131+uint64(n)*uint64(n)*7) ^ byte(n>>3)
		}
		f.Add(seed, uint64(0), choices)
		f.Add(seed, 1+seed*5, []byte{})
	}
	f.Fuzz(func(t *testing.T, seed, flips uint64, choices []byte) {
		whole, ids := mixed(t, seed%uint64(len(mixes)))
		dump := hproftest.Flip(redirect(whole, ids, choices[:min(len(choices), 1000)]), seed, int(flips%500))
		file, err := hprof.Open(context.Background(), bytes.NewReader(dump), int64(len(dump)))
		if err != nil {
			return
		}
		g, err := heap.Load(context.Background(), file, heap.Options{Snapshot: -1, Partial: true})
		if err != nil {
			return
		}
		t.Cleanup(g.Close)
		checkInspector(t, g, seed%2 == 1)
	})
}

// TestInspectorEnds checks that the work stops when the context is canceled.
func TestInspectorEnds(t *testing.T) {
	for name, h := range map[string]*hproftest.Heap{
		"android": hproftest.Android(hproftest.Phone{}), "jvm": hproftest.Java(1),
	} {
		dump, _, err := h.Dump(hproftest.Form{
			Runtime: map[string]hproftest.Runtime{"android": hproftest.ART, "jvm": hproftest.HotSpot}[name],
		})
		if err != nil {
			t.Fatal(err)
		}
		g := load(t, dump)
		ctx, cancel := context.WithCancel(t.Context())
		i := inspect(t, g, android.InspectorOptions{})
		cancel()
		if _, err := android.NewInspector(ctx, g, android.InspectorOptions{}); err == nil {
			t.Errorf("%s: NewInspector succeeded with a canceled context", name)
		}
		if _, err := i.Leaking(ctx); err == nil {
			t.Errorf("%s: Leaking succeeded with a canceled context", name)
		}
		i.Close()
		i.Close()
	}
}

// BenchmarkLeaking measures finding the leaking objects of a small app.
func BenchmarkLeaking(b *testing.B) {
	g := loadRecorded(b, "leak_service_binder.hprof")
	for b.Loop() {
		i, err := android.NewInspector(b.Context(), g, android.InspectorOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := i.Leaking(b.Context()); err != nil {
			b.Fatal(err)
		}
		i.Close()
	}
}
