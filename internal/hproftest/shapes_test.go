package hproftest

import (
	"bytes"
	"encoding/binary"
	"image/png"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/recorded"
)

// look is a dump with helpers to access its fields.
type look struct {
	*testing.T
	*Graph
	IDs
}

func lookAt(t *testing.T, h *Heap) look {
	t.Helper()
	g, ids, _ := write(t, h, Form{})
	return look{t, g, ids}
}

// flag reads a field of type boolean or of a numeric type.
func (l look) flag(object any, name string) uint64 {
	l.Helper()
	v, ok := l.Field(l.Of(object), name)
	if !ok {
		l.Errorf("%s has no field %s", l.Nodes[l.Of(object)].Class, name)
	}
	return v
}

// holders returns the classes and fields that hold the given object.
func (l look) holders(object any) (out []string) {
	for _, n := range l.Nodes {
		if slices.Contains(n.Elements, l.Of(object)) {
			out = append(out, n.Class)
		}
		for name, to := range n.Refs {
			if to == l.Of(object) && to != 0 {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestActivities(t *testing.T) {
	h := Android(Phone{Process: "com.shop:ui", SDK: 33, Manufacturer: "LG", Width: 720, Height: 1280})
	alive, dead := h.Activity("com.shop.Main", Attached), h.Activity("com.shop.Main", Destroyed)
	leak := h.Hold("com.shop.Leak", "sLast", h.ArrayList(dead.Ref).Ref)
	l := lookAt(t, h)
	for a, destroyed := range map[Activity]uint64{alive: 0, dead: 1} {
		if l.flag(a.Ref, "mDestroyed") != destroyed || l.flag(a.Window, "mDestroyed") != destroyed ||
			l.flag(a.Context, "mOuterContext") != uint64(l.Of(a.Ref)) ||
			l.Path(l.Of(a.Ref), "mBase") != l.Of(a.Context) {
			t.Errorf("activity has mDestroyed %d", l.flag(a.Ref, "mDestroyed"))
		}
		attached := l.flag(a.Decor, "mAttachInfo") != 0
		parent := l.Nodes[l.Path(l.Of(a.Decor), "mParent")]
		if attached == (destroyed == 1) || (parent != nil && parent.Class == "android.view.ViewRootImpl") != attached ||
			l.flag(a.Decor, "mWindowAttachCount") != 1 {
			t.Errorf("decor view: attached %v, parent %v", attached, parent)
		}
		layout := l.Nodes[l.Path(l.Of(a.Decor), "mChildren")].Elements[0]
		if l.Path(layout, "mContext") != l.Of(a.Ref) || l.Path(layout, "mParent") != l.Of(a.Decor) ||
			(l.Path(layout, "mAttachInfo") != 0) != attached {
			t.Errorf("the content view of activity 0x%x has wrong fields", uint64(l.Of(a.Ref)))
		}
	}
	// Except for the activity's own objects, only the leak may hold the
	// destroyed activity.
	without := l.Reachable(l.Of(leak))
	if without[l.Of(dead)] || without[l.Of(dead.Ref)] || !without[l.Of(alive.Ref)] {
		t.Errorf("destroyed activity is held by %v", l.holders(dead.Ref))
	}
	if !l.Reachable()[l.Of(dead.Ref)] || l.Retained(l.Of(dead.Ref)) < 300 {
		t.Errorf("destroyed activity retains %d bytes, want at least 300", l.Retained(l.Of(dead.Ref)))
	}
	thread := l.Path(l.Class("android.app.ActivityThread"), "sCurrentActivityThread")
	if got := l.Text(l.Path(thread, "mBoundApplication.appInfo.processName")); got != "com.shop:ui" {
		t.Errorf("process %q", got)
	}
	if sdk, _ := l.Field(l.Class("android.os.Build$VERSION"), "SDK_INT"); sdk != 33 ||
		l.Text(l.Path(l.Class("android.os.Build"), "MANUFACTURER")) != "LG" {
		t.Errorf("SDK %d", sdk)
	}
	metrics := l.Path(l.Class("android.content.res.Resources"), "mSystem.mResourcesImpl.mMetrics")
	if w, _ := l.Field(metrics, "widthPixels"); w != 720 || l.Nodes[metrics].Heap != "zygote" {
		t.Errorf("screen is %d pixels wide, in heap %s; want 720 pixels, zygote", w, l.Nodes[metrics].Heap)
	}
	if app := l.Nodes[l.Path(thread, "mInitialApplication")]; app.Class != "com.shop.App" ||
		l.Path(app.ID, "mBase.mOuterContext") != app.ID {
		t.Errorf("application %s", app.Class)
	}
}

func TestServices(t *testing.T) {
	h := Android(Phone{})
	alive, dead := h.Service("com.example.Sync", Attached), h.Service("com.example.Sync", Destroyed)
	h.Hold("com.example.Leak", "s", dead)
	l := lookAt(t, h)
	services := l.Path(l.Path(l.Class("android.app.ActivityThread"), "sCurrentActivityThread"), "mServices")
	values := l.Nodes[l.Path(services, "mArray")].Elements
	if size, _ := l.Field(services, "mSize"); size != 1 || values[1] != l.Of(alive) ||
		slices.Contains(values, l.Of(dead)) {
		t.Errorf("%d services", size)
	}
}

func TestFragments(t *testing.T) {
	h := Android(Phone{})
	gone := h.Fragment("com.example.Gone", Fragment{State: Destroyed})
	reset := h.Fragment("com.example.Gone", Fragment{State: Destroyed, Lifecycle: "INITIALIZED"})
	fresh := h.Fragment("com.example.Gone", Fragment{State: NotYet})
	alive := h.Fragment("com.example.Gone", Fragment{Tag: "tag"})
	old, oldest := h.Fragment("com.example.Old", Fragment{Kind: Support, State: Destroyed}),
		h.Fragment("com.example.Oldest", Fragment{Kind: Framework})
	l := lookAt(t, h)
	for f, want := range map[Ref]struct {
		state           string
		called, manager bool
	}{gone: {"DESTROYED", true, false}, reset: {"INITIALIZED", true, false}, fresh: {"INITIALIZED", false, false},
		alive: {"RESUMED", true, true}} {
		state := l.Text(l.Path(l.Of(f), "mLifecycleRegistry.mState.name"))
		if state != want.state || l.flag(f, "mCalled") == 1 != want.called ||
			l.flag(f, "mFragmentManager") != 0 != want.manager {
			t.Errorf("%s, mCalled %d, want %+v", state, l.flag(f, "mCalled"), want)
		}
		if _, ok := l.Field(l.Of(f), "mMaxState"); !ok {
			t.Error("mMaxState is missing")
		}
	}
	if l.flag(old, "mFragmentManager") != 0 || l.flag(oldest, "mFragmentManager") == 0 ||
		l.Text(l.Path(l.Of(alive), "mTag")) != "tag" {
		t.Error("fragment of an old version has wrong fields")
	}
	first := Android(Phone{})
	if l := lookAt(t, first); true {
		r := first.Fragment("com.example.F", Fragment{NoMaxState: true})
		if _, ok := lookAt(t, first).Field(l.Of(r), "mMaxState"); ok {
			t.Error("androidx.fragment 1.0.0 has mMaxState")
		}
	}
}

func TestCompose(t *testing.T) {
	h := Android(Phone{})
	off, idle := h.Recomposer("ShutDown"), h.Recomposer("Idle")
	gone, here := h.Composition(off, true), h.Composition(idle, false)
	l := lookAt(t, h)
	for r, want := range map[Ref]string{off: "ShutDown", idle: "Idle"} {
		if got := l.Text(l.Path(l.Of(r), "_state._state.name")); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if l.flag(gone, "disposed") != 1 || l.flag(here, "disposed") != 0 {
		t.Error("compositions are wrong")
	}
	h = Android(Phone{})
	if r := h.CompositionState(0, 3); lookAt(t, h).flag(r, "state") != 3 {
		t.Error("the state of the composition is not 3")
	}
}

func TestBitmaps(t *testing.T) {
	same := Picture{Width: 16, Height: 12, Content: 7}
	for _, sdk := range []int{23, 25, 26, 34, 35, 36} {
		h := Android(Phone{SDK: sdk})
		a, b, other := h.Bitmap(same), h.Bitmap(same), h.Bitmap(Picture{Width: 16, Height: 12, Content: 8})
		recycled := h.Bitmap(Picture{Width: 4, Height: 4, Recycled: true})
		if sdk >= 35 {
			h.DumpBitmaps()
		}
		h.Hold("com.example.Cache", "bitmaps", h.ArrayList(a, b, other, recycled).Ref)
		l := lookAt(t, h)
		if l.flag(a, "mWidth") != 16 || l.flag(a, "mHeight") != 12 || l.flag(recycled, "mRecycled") != 1 ||
			l.flag(recycled, "mNativePtr") != 0 {
			t.Error("fields")
		}
		if sdk < 26 {
			pixels := func(r Ref) []byte { return l.Nodes[l.Path(l.Of(r), "mBuffer")].Data }
			if len(pixels(a)) != 16*12*4 || !bytes.Equal(pixels(a), pixels(b)) ||
				bytes.Equal(pixels(a), pixels(other)) {
				t.Errorf("SDK %d: pixel buffer has %d bytes or wrong contents", sdk, len(pixels(a)))
			}
			continue
		}
		if native := l.native(a); native != 16*12*4 || l.native(recycled) != 0 {
			t.Errorf("SDK %d: %d native bytes, want %d", sdk, native, 16*12*4)
		}
		if sdk >= 35 {
			l.checkDumpData(h, []Ref{a, b, other})
		}
	}
}

// native returns the size recorded in the Cleaners of an object, without the
// bit for malloc.
func (l look) native(object Ref) (sum uint64) {
	for c := l.Path(l.Class("sun.misc.Cleaner"), "first"); c != 0; c = l.Path(c, "next") {
		if l.Path(c, "referent") == l.Of(object) {
			size, _ := l.Field(l.Path(c, "thunk.this$0"), "size")
			if size&1 == 0 {
				l.Error("memory is not from malloc")
			}
			sum += size &^ 1
		}
		if next := l.Path(c, "next"); next != 0 && l.Path(next, "prev") != c {
			l.Error("the list of Cleaners is broken")
		}
	}
	return sum
}

func (l look) checkDumpData(h *Heap, bitmaps []Ref) {
	l.Helper()
	data := l.Path(l.Class("android.graphics.Bitmap"), "dumpData")
	count, _ := l.Field(data, "count")
	natives, buffers := l.Nodes[l.Path(data, "natives")].Data, l.Nodes[l.Path(data, "buffers")].Elements
	if int(count) != len(bitmaps) || len(natives) != 8*len(bitmaps) || len(buffers) != len(bitmaps) {
		l.Fatalf("%d pictures, %d pointers, %d buffers", count, len(natives)/8, len(buffers))
	}
	for i, b := range bitmaps {
		if binary.BigEndian.Uint64(natives[8*i:]) != l.flag(b, "mNativePtr") ||
			int64(l.flag(b, "mNativePtr")) != h.Pointer(b) {
			l.Errorf("pointer %d", i)
		}
		picture, err := png.Decode(bytes.NewReader(l.Nodes[buffers[i]].Data))
		if err != nil || uint64(picture.Bounds().Dx()) != l.flag(b, "mWidth") ||
			uint64(picture.Bounds().Dy()) != l.flag(b, "mHeight") {
			l.Errorf("picture %d: %v", i, err)
		}
	}
	first, second, third := l.Nodes[buffers[0]].Data, l.Nodes[buffers[1]].Data, l.Nodes[buffers[2]].Data
	if !bytes.Equal(first, second) || bytes.Equal(first, third) {
		l.Error("equal pictures differ or different ones are equal")
	}
}

func TestReferences(t *testing.T) {
	for _, f := range []Form{{}, {Runtime: HotSpot}} {
		h := Java(0)
		object := func() Ref { return h.String("x") }
		weak, soft, phantom, strong, finalized, key := object(), object(), object(), object(), object(), object()
		h.Finalizable(finalized)
		h.Finalizable(object())
		h.Hold("a.B", "all",
			h.ArrayList(h.Weak(weak), h.Soft(soft), h.Phantom(phantom), strong, h.WeakHashMap(key, object())).Ref)
		g, ids, _ := write(t, h, f)
		seen := g.Reachable()
		for r, want := range map[Ref]bool{
			weak: false, soft: true, phantom: false, strong: true, finalized: false, key: false,
		} {
			if seen[ids.Of(r)] != want {
				t.Errorf("%+v: reachable %v, want %v", f, !want, want)
			}
		}
	}
}

func TestFinalizerList(t *testing.T) {
	h := Android(Phone{})
	var objects []Ref
	for range 5 {
		r := h.String("x")
		objects = append([]Ref{r}, objects...)
		h.Finalizable(r)
	}
	l := lookAt(t, h)
	at := l.Path(l.Class("java.lang.ref.FinalizerReference"), "head")
	for i, r := range objects {
		if l.Path(at, "referent") != l.Of(r) || i > 0 == (l.Path(at, "prev") == 0) {
			t.Errorf("finalizer %d", i)
		}
		at = l.Path(at, "next")
	}
	if at != 0 {
		t.Error("too many finalizers")
	}
}

func TestWatched(t *testing.T) {
	h := Android(Phone{})
	a := h.Activity("com.example.A", Destroyed)
	r := h.Watch(a.Ref, Watched{Key: "k", Description: "d", WatchedAt: 5, RetainedAt: -1})
	legacy := h.Watch(a.Ref, Watched{Key: "old", Legacy: true})
	l := lookAt(t, h)
	if l.flag(r, "retainedUptimeMillis") != 1<<64-1 || l.Text(l.Path(l.Of(r), "key")) != "k" ||
		l.flag(r, "referent") != uint64(l.Of(a.Ref)) || !l.Reachable()[l.Of(r)] || l.Reachable()[l.Of(a.Ref)] {
		t.Error("KeyedWeakReference has wrong fields")
	}
	if _, ok := l.Field(l.Of(legacy), "retainedUptimeMillis"); ok ||
		l.Nodes[l.Of(legacy)].Class != "com.squareup.leakcanary.KeyedWeakReference" {
		t.Error("legacy KeyedWeakReference has wrong fields")
	}
}

// TestCollections reads the collections as their own code does.
func TestCollections(t *testing.T) {
	h := Java(3)
	var elements, pairs []Ref
	for i := range 40 {
		elements = append(elements, h.Integer(i))
		pairs = append(pairs, h.String(string(rune('a'+i))), elements[i])
	}
	list, linked := h.ArrayList(elements...), h.LinkedList(elements...)
	maps := map[Ref]string{
		h.HashMap(pairs...): "key", h.ConcurrentHashMap(pairs...): "key", h.LinkedHashMap(pairs...): "key",
		h.WeakHashMap(pairs...): "referent",
	}
	l := lookAt(t, h)
	array := l.Nodes[l.Path(l.Of(list.Ref), "elementData")].Elements
	if l.flag(list.Ref, "size") != 40 || len(array) < 40 || len(array) > 64 {
		t.Errorf("array of %d elements for a list of size %d, want 40 to 64 for 40", len(array),
			l.flag(list.Ref, "size"))
	}
	node, last := l.Path(l.Of(linked), "first"), hprof.ID(0)
	for i, e := range elements {
		if array[i] != l.Of(e) || l.Path(node, "item") != l.Of(e) || l.Path(node, "prev") != last {
			t.Fatalf("element %d", i)
		}
		last, node = node, l.Path(node, "next")
	}
	if node != 0 || l.Path(l.Of(linked), "last") != last {
		t.Error("last is not the end of the linked list")
	}
	for m, key := range maps {
		table := l.Nodes[l.Path(l.Of(m), "table")].Elements
		found := 0
		for bucket, e := range table {
			for ; e != 0; e = l.Path(e, "next") {
				hash, _ := l.Field(e, "hash")
				i := slices.IndexFunc(pairs, func(r Ref) bool { return l.Of(r) == l.Path(e, key) })
				value := l.Path(e, "value") + l.Path(e, "val")
				if int(hash)&(len(table)-1) != bucket || i < 0 || value != l.Of(pairs[i+1]) {
					t.Fatalf("%s: entry in wrong bucket %d", l.Nodes[l.Of(m)].Class, bucket)
				}
				found++
			}
		}
		if found != 40 {
			t.Errorf("%s: %d entries", l.Nodes[l.Of(m)].Class, found)
		}
		if head := l.Path(l.Of(m), "head"); l.Nodes[l.Of(m)].Class == "java.util.LinkedHashMap" {
			for i := 0; i < len(pairs); i += 2 {
				if l.Path(head, "key") != l.Of(pairs[i]) {
					t.Fatalf("LinkedHashMap is out of order at %d", i)
				}
				head = l.Path(head, "after")
			}
		}
	}
}

func TestThreads(t *testing.T) {
	h := Java(0)
	worker := h.Thread("worker", "a.B.run(B.java:12)", "java.lang.Thread.run(Native Method)")
	local := h.String("local")
	h.RootOf(worker, hprof.SubRootJavaFrame, local, 0)
	for _, f := range []Form{{}, {Runtime: HotSpot}} {
		g, ids, data := write(t, h, f)
		var root, thread hprof.Root
		for _, r := range g.Roots {
			if r.Object == ids.Of(local) {
				root = r
			}
			if r.Object == ids.Of(worker) {
				thread = r
			}
		}
		if thread.Kind != hprof.SubRootThreadObject || thread.Thread != worker.Serial ||
			root.Kind != hprof.SubRootJavaFrame || root.Thread != worker.Serial ||
			g.Text(g.Path(ids.Of(worker), "name")) != "worker" {
			t.Errorf("%+v: %+v, %+v", f, thread, root)
		}
		if f.Runtime != HotSpot {
			continue
		}
		if root.Frame != 0 {
			t.Errorf("frame %d", root.Frame)
		}
		_, records, _ := Parse(data)
		found := ""
		for _, r := range records {
			if r.Tag == hprof.TagStackTrace && binary.BigEndian.Uint32(r.Body) == thread.Trace {
				found = string(r.Body[11])
			}
			if r.Tag == hprof.TagStackFrame && g.Strings[g.id(r.Body[24:])] == "B.java" {
				if name := g.Strings[g.id(r.Body[8:])]; name != "run" || binary.BigEndian.Uint32(r.Body[36:]) != 12 {
					t.Errorf("frame %q", name)
				}
			}
		}
		if found != "\x02" {
			t.Errorf("stack of the thread has frames %q", found)
		}
	}
}

// TestGraph checks that brute force computes the same numbers as ahat for real
// dumps.
func TestGraph(t *testing.T) {
	if testing.Short() {
		t.Skip("reads a large dump")
	}
	g, err := ReadGraph(recorded.Read(t, "hprof", "leak_service_binder.hprof"))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[hprof.ID]int64{0xb0fa7cb0: 378, 0xb0f83300: 378, 0xb0f5cff0: 358} {
		if got := g.Retained(id); got != want {
			t.Errorf("0x%x retains %d bytes, want %d", uint64(id), got, want)
		}
	}
	g, err = ReadGraph(recorded.Read(t, "hprof", "ahat-O.hprof"))
	if err != nil {
		t.Fatal(err)
	}
	main := g.Class("Main")
	fixture := g.Path(main, "a")
	// The expected value also includes the 50000 native bytes of the field g.
	if main != 0x12c04948 || fixture != 0x12c04c28 || g.Text(g.Path(fixture, "b")) != "hello, world" ||
		g.Text(g.Path(fixture, "c")) != "Sigma (\u01a9) is not ASCII" || g.Retained(g.Path(fixture, "g")) != 8 ||
		g.Retained(g.Path(fixture, "u")) != 120000 {
		t.Errorf("0x%x 0x%x %q %d", uint64(main), uint64(fixture), g.Text(g.Path(fixture, "b")),
			g.Retained(g.Path(fixture, "g")))
	}
}

// Posted messages must be in the main thread's queue, in the order of the
// calls.
func TestPost(t *testing.T) {
	h := Android(Phone{})
	task := h.Declare("com.example.Task", nil, "int number")
	for n := range 3 {
		h.Post(h.New(task, Fields{"number": n}), int64(1000*n))
	}
	g, _, _ := write(t, h, Form{})
	message := g.Path(g.Class("android.os.Looper"), "sMainLooper.mQueue.mMessages")
	for n := range uint64(3) {
		number, ok := g.Field(g.Path(message, "callback"), "number")
		when, _ := g.Field(message, "when")
		if !ok || number != n || when != 1000*n ||
			g.Path(message, "target.mLooper") != g.Path(g.Class("android.os.Looper"), "sMainLooper") {
			t.Errorf("message %d runs callback %d at %d", n, number, when)
		}
		message = g.Path(message, "next")
	}
	if message != 0 {
		t.Error("the queue has an additional message")
	}
}
