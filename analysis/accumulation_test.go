package analysis

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/heap"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// loaded returns the graph of a dump that is held in memory.
func loaded(t testing.TB, dump []byte) *heap.Graph {
	t.Helper()
	f, err := hprof.Open(t.Context(), bytes.NewReader(dump), int64(len(dump)))
	if err != nil {
		t.Fatal(err)
	}
	g, err := heap.Load(t.Context(), f, heap.Options{Snapshot: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// accumulationLines returns the accumulations in a dump, one per line.
func accumulationLines(t testing.TB, file []byte, limit int) string {
	t.Helper()
	g := loaded(t, file)
	list, err := (&dump{graph: g}).accumulations(t.Context(), limit)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	d := &dump{graph: g}
	for _, a := range list {
		for _, o := range a.Dominators {
			fmt.Fprintf(&b, "%s > ", d.name(o))
		}
		if a.Root != 0 {
			fmt.Fprintf(&b, "%s > ", a.Root)
		}
		fmt.Fprintf(&b, "%s: %d x %s", d.name(a.Object), a.Count, a.Class)
		for _, s := range a.Beside {
			fmt.Fprintf(&b, " and %d x %s", s.Count, s.Class)
		}
		if a.Holds != "" {
			fmt.Fprintf(&b, ", %d x %s", a.Held, a.Holds)
		}
		for _, s := range a.HeldBeside {
			fmt.Fprintf(&b, " and %d x %s", s.Count, s.Class)
		}
		if a.Linked {
			b.WriteString(", linked")
		}
		if a.LeftOut > 0 {
			fmt.Fprintf(&b, ", %d dominators omitted", a.LeftOut)
		}
		if a.Cache != "" {
			fmt.Fprintf(&b, ", in the cache %s", a.Cache)
		}
		b.WriteByte('\n')
		if a.Share <= 0 || a.Share > 1 || a.Size.Total() < leastAccumulated/2 {
			t.Errorf("%+v", a)
		}
	}
	return b.String()
}

// appWith returns the dump of an app after add has modified its heap.
func appWith(t testing.TB, add func(h *hproftest.Heap)) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34})
	add(h)
	dump, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

const sessions = 4000

// session returns a function that creates sessions of half a kilobyte.
func session(h *hproftest.Heap) func() hproftest.Ref {
	c := h.Declare("com.shop.Session", nil, "object data")
	return func() hproftest.Ref { return h.New(c, hproftest.Fields{"data": h.Padding(500)}) }
}

func TestAccumulations(t *testing.T) {
	tests := []struct {
		name, want string
		add        func(h *hproftest.Heap)
	}{
		{"nothing", "", func(*hproftest.Heap) {}},
		{
			"map",
			"class com.shop.Sessions > java.util.HashMap > java.util.HashMap$Node[]: 4000 x java.util.HashMap$Node, " +
				"4000 x com.shop.Session\n", func(h *hproftest.Heap) {
				next, pairs := session(h), []hproftest.Ref{}
				for i := range sessions {
					pairs = append(pairs, h.Integer(i), next())
				}
				h.Hold("com.shop.Sessions", "sAll", h.HashMap(pairs...))
			}},
		{
			"list",
			"class com.shop.Sessions > java.util.ArrayList > java.lang.Object[]: " +
				"4000 x com.shop.Session, 4000 x byte[]\n", func(h *hproftest.Heap) {
				next, list := session(h), h.ArrayList()
				for range sessions {
					list.Add(next())
				}
				h.Hold("com.shop.Sessions", "sAll", list.Ref)
			}},
		{
			"linked list",
			"class com.shop.Sessions > java.util.LinkedList: 4000 x java.util.LinkedList$Node, 4000 x " +
				"com.shop.Session\n", func(h *hproftest.Heap) {
				next, list := session(h), []hproftest.Ref{}
				for range sessions {
					list = append(list, next())
				}
				h.Hold("com.shop.Sessions", "sAll", h.LinkedList(list...))
			}},
		{
			"queue", "class com.shop.Queue > com.shop.Node: 4000 x com.shop.Node, 4000 x com.shop.Session, linked\n",
			func(h *hproftest.Heap) {
				next, c, head := session(h), h.Declare("com.shop.Node", nil, "object next", "object item"),
					hproftest.Ref(0)
				for range sessions {
					head = h.New(c, hproftest.Fields{"next": head, "item": next()})
				}
				h.Hold("com.shop.Queue", "sHead", head)
			}},
		{
			"cache",
			"class com.shop.Pictures > androidx.collection.LruCache > java.util.HashMap > java.util.HashMap$Node[]: " +
				"4000 x java.util.HashMap$Node, 4000 x com.shop.Session, in the cache androidx.collection.LruCache\n",
			func(h *hproftest.Heap) {
				next, pairs := session(h), []hproftest.Ref{}
				for i := range sessions {
					pairs = append(pairs, h.Integer(i), next())
				}
				cache := h.Declare("androidx.collection.LruCache", nil, "object map")
				h.Hold("com.shop.Pictures", "sCache", h.New(cache, hproftest.Fields{"map": h.HashMap(pairs...)}))
			}},
		{"system objects", "", func(h *hproftest.Heap) {
			h.In(hproftest.Zygote, func() {
				next, list := session(h), h.ArrayList()
				for range sessions {
					list.Add(next())
				}
				h.Hold("com.shop.Sessions", "sAll", list.Ref)
			})
		}},
		{
			"map of two classes",
			"class com.shop.Sessions > java.util.HashMap > java.util.HashMap$Node[]: 5000 x java.util.HashMap$Node, " +
				"4000 x com.shop.Session and 1000 x com.shop.Photo\n", func(h *hproftest.Heap) {
				next, photo, pairs := session(h), h.Declare("com.shop.Photo", nil, "object data"), []hproftest.Ref{}
				for i := range sessions {
					pairs = append(pairs, h.Integer(i), next())
				}
				for i := range sessions / 4 {
					pairs = append(pairs, h.Integer(sessions+i),
						h.New(photo, hproftest.Fields{"data": h.Padding(1000)}))
				}
				h.Hold("com.shop.Sessions", "sAll", h.HashMap(pairs...))
			}},
		{
			"list of two classes",
			"class com.shop.Sessions > java.util.ArrayList > java.lang.Object[]: 4000 x com.shop.Session and 1000 " +
				"x com.shop.Photo, 4000 x byte[]\n", func(h *hproftest.Heap) {
				next, list, photo := session(h), h.ArrayList(), h.Declare("com.shop.Photo", nil, "object data")
				for i := range sessions {
					list.Add(next())
					if i%4 == 0 {
						list.Add(h.New(photo, hproftest.Fields{"data": h.Padding(1000)}))
					}
				}
				h.Hold("com.shop.Sessions", "sAll", list.Ref)
			}},
		{
			"at the end of a long list", "class com.shop.Chain > " + strings.Repeat("com.shop.Link > ", 13+15) +
				"java.util.ArrayList > java.lang.Object[]: " +
				"4000 x com.shop.Session, 4000 x byte[], 472 dominators omitted\n", func(h *hproftest.Heap) {
				next, list := session(h), h.ArrayList()
				for range sessions {
					list.Add(next())
				}
				c, head := h.Declare("com.shop.Link", nil, "object next"), list.Ref
				for range 500 {
					head = h.New(c, hproftest.Fields{"next": head})
				}
				h.Hold("com.shop.Chain", "sHead", head)
			}},
		{"a few", "", func(h *hproftest.Heap) {
			next, list := session(h), h.ArrayList()
			for range sessions / 4 {
				list.Add(next())
			}
			h.Hold("com.shop.Sessions", "sAll", list.Ref)
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dump := appWith(t, test.add)
			// The class loader of the app holds all classes.
			want := ""
			if test.want != "" {
				want = "dalvik.system.PathClassLoader > java.lang.Object[] > " + test.want
			}
			if got := accumulationLines(t, dump, 10); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
			if got := accumulationLines(t, dump, 0); got != "" {
				t.Errorf("got %s, want no accumulation", got)
			}
		})
	}
}

// rootedBy returns a function that creates n sessions of half a kilobyte, each
// held by a GC root of the given kind.
func rootedBy(kind hprof.SubTag, n int) func(h *hproftest.Heap) {
	return func(h *hproftest.Heap) {
		next := session(h)
		for range n {
			h.Root(kind, next())
		}
	}
}

// couriers creates n threads of one class. Each thread holds field bytes
// through a field and, if local is not 0, local bytes through a local variable.
func couriers(h *hproftest.Heap, n int, field, local uint32) (list []hproftest.Ref) {
	c := h.Declare("com.shop.Courier", h.Class("java.lang.Thread"), "object parcel")
	for i := range n {
		thread := hproftest.Thread{
			Ref: h.New(c, hproftest.Fields{"parcel": h.Padding(field)}), Serial: uint32(10_000 + i),
		}
		h.RootOf(thread, hprof.SubRootThreadObject, thread.Ref, -1)
		if local > 0 {
			h.RootOf(thread, hprof.SubRootJavaFrame, h.Padding(local), 0)
		}
		list = append(list, thread.Ref)
	}
	return list
}

func TestAccumulationsOfRoots(t *testing.T) {
	const held = ": 4000 x com.shop.Session, 4000 x byte[]\n"
	tests := []struct {
		name, want string
		add        func(h *hproftest.Heap)
	}{
		{"native globals", "JNI_GLOBAL > com.shop.Session" + held, rootedBy(hprof.SubRootJNIGlobal, sessions)},
		{"native locals", "JNI_LOCAL > com.shop.Session" + held, rootedBy(hprof.SubRootJNILocal, sessions)},
		{"monitors", "MONITOR_USED > com.shop.Session" + held, rootedBy(hprof.SubRootMonitorUsed, sessions)},
		{"native stacks", "NATIVE_STACK > com.shop.Session" + held, rootedBy(hprof.SubRootNativeStack, sessions)},
		{"virtual machine", "", rootedBy(hprof.SubRootVMInternal, sessions)},
		{"unknown", "", rootedBy(hprof.SubRootUnknown, sessions)},
		{"a few", "", rootedBy(hprof.SubRootJNIGlobal, sessions/4)},
		{"few roots of several kinds", "", func(h *hproftest.Heap) {
			for i, kind := range []hprof.SubTag{
				hprof.SubRootJNIGlobal, hprof.SubRootMonitorUsed, hprof.SubRootNativeStack,
			} {
				rootedBy(kind, sessions/4+i)(h)
			}
		}},
		{"two roots for each object", "JNI_GLOBAL > com.shop.Session" + held, func(h *hproftest.Heap) {
			next := session(h)
			for range sessions {
				s := next()
				h.Root(hprof.SubRootJNILocal, s)
				h.Root(hprof.SubRootJNIGlobal, s)
			}
		}},
		{"one large object among many", "", func(h *hproftest.Heap) {
			rootedBy(hprof.SubRootJNIGlobal, sessions/2)(h)
			h.Root(hprof.SubRootJNIGlobal,
				h.New(h.Class("com.shop.Session"), hproftest.Fields{"data": h.Padding(4 << 20)}))
		}},
		{"nine large objects", "", func(h *hproftest.Heap) {
			h.Declare("com.shop.Session", nil, "object data")
			for range 9 {
				h.Root(hprof.SubRootJNIGlobal,
					h.New(h.Class("com.shop.Session"), hproftest.Fields{"data": h.Padding(1 << 20)}))
			}
		}},
		{"system objects", "", func(h *hproftest.Heap) {
			h.In(hproftest.Zygote, func() { rootedBy(hprof.SubRootJNIGlobal, sessions)(h) })
		}},
		{"classes", "", func(h *hproftest.Heap) {
			for i := range 1000 {
				h.Root(hprof.SubRootJNIGlobal, h.Hold(fmt.Sprintf("com.shop.Screen%d", i), "sPicture", h.Padding(2000)))
			}
		}},
		{
			"threads", "THREAD_OBJECT > com.shop.Courier: 1200 x com.shop.Courier, 1200 x byte[]\n",
			func(h *hproftest.Heap) { couriers(h, 1200, 2000, 0) },
		},
		{
			"threads with local variables",
			"THREAD_OBJECT > com.shop.Courier: 1200 x com.shop.Courier, 2400 x byte[]\n",
			func(h *hproftest.Heap) { couriers(h, 1200, 500, 1500) },
		},
		{"threads that retain little", "", func(h *hproftest.Heap) { couriers(h, 1200, 100, 0) }},
		{
			"list of each thread",
			strings.Repeat("com.shop.Courier > java.util.ArrayList > java.lang.Object[]: 4000 x com.shop.Session, "+
				"4000 x byte[]\n", 10), func(h *hproftest.Heap) {
				next := session(h)
				for _, thread := range couriers(h, 10, 1, 0) {
					list := h.ArrayList()
					for range sessions {
						list.Add(next())
					}
					h.Set(thread, "parcel", list.Ref)
				}
			}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := accumulationLines(t, appWith(t, test.add), 10); got != test.want {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// No recorded dump has an accumulation of more than a few megabytes.
func TestAccumulationsOfRecordedDumps(t *testing.T) {
	files := []string{
		"ahat-O.hprof", "ahat-RI.hprof", "leak_service_binder.hprof", "hprof-32.bin", "hprof-64.bin",
		"pyhprof-example-java.hprof", "mat-sun_jdk6_32bit.hprof",
	}
	for _, file := range files {
		if got := accumulationLines(t, recorded.Read(t, "hprof", file), 10); got != "" {
			t.Errorf("%s: %s", file, got)
		}
	}
}

// An accumulation that is added to random objects, some of which are linked, is
// found.
func TestAccumulationsBesideBallast(t *testing.T) {
	next := func(add bool) []byte {
		return appWith(t, func(h *hproftest.Heap) {
			h.Fill(hproftest.Ballast{Bytes: 8 << 20})
			if !add {
				return
			}
			next, list := session(h), h.ArrayList()
			for range sessions {
				list.Add(next())
			}
			h.Hold("com.shop.Sessions", "sAll", list.Ref)
		})
	}
	before, after := strings.SplitAfter(accumulationLines(t, next(false), 10), "\n"),
		strings.SplitAfter(accumulationLines(t, next(true), 10), "\n")
	const want = "dalvik.system.PathClassLoader > java.lang.Object[] > class com.shop.Sessions > java.util.ArrayList " +
		"> java.lang.Object[]: 4000 x com.shop.Session, 4000 x byte[]\n"
	if slices.Contains(before, want) || !slices.Contains(after, want) {
		t.Errorf("before %q, after %q", before, after)
	}
}
