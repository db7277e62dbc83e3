package android_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

func TestThreads(t *testing.T) {
	h := hproftest.Java(1)
	sync := h.Thread("sync", "com.shop.Sync.run(Sync.java:12)", "java.lang.Thread.run(Thread.java:840)",
		"com.shop.Native.call(Native.java)")
	h.Set(sync.Ref, "daemon", true)
	big, small := h.Bytes(make([]byte, 5000)), h.Bytes(make([]byte, 50))
	holder := h.New(h.Class("java.util.ArrayList"), hproftest.Fields{"elementData": big})
	h.RootOf(sync, hprof.SubRootJavaFrame, holder, 0)
	h.RootOf(sync, hprof.SubRootJavaFrame, holder, 1)
	h.RootOf(sync, hprof.SubRootJNILocal, small, -1)
	h.New(h.Class("java.lang.Thread"), hproftest.Fields{"name": "never started"})
	for i := range 5 {
		h.Thread(fmt.Sprintf("pool-3-thread-%d", i+1))
		h.Thread(fmt.Sprintf("pool-%d-thread-1", i+10))
	}
	h.Thread("lonely-7")
	s, ids := made(t, h, hproftest.Form{Runtime: hproftest.HotSpot}, android.Options{})
	if s.Threads.Count != 13 || len(s.Threads.List) != 13 || s.Threads.Idle != 1 {
		t.Fatalf("%s", text(t, s.Threads))
	}
	x := s.Threads.List[1]
	if x.Name != "sync" || x.Object != ids.Of(sync) || x.Class != "java.lang.Thread" || x.Daemon == nil || !*x.Daemon ||
		x.Priority != 5 || x.ID != 2 || x.RetainedBytes <= 0 {
		t.Errorf("%s", text(t, x))
	}
	// Classes that are not in the dump have no name.
	if want := []string{
		".run(Sync.java:12)", "java.lang.Thread.run(Thread.java:840)", ".call(Native.java)",
	}; !slices.Equal(x.Frames, want) || x.FramesOmitted {
		t.Errorf("frames %q", x.Frames)
	}
	if l := x.Locals; l.Count != 2 || l.Largest == nil || l.Largest.Object != ids.Of(holder) ||
		l.RetainedBytes < 5050 || l.RetainedBytes > 5200 || l.Largest.RetainedBytes >= l.RetainedBytes {
		t.Errorf("locals %s", text(t, l))
	}
	groups := map[string]int64{}
	for _, g := range s.Exhaustion.ThreadGroups {
		groups[g.Pattern] = g.Threads
	}
	if len(groups) != 2 || groups["pool-3-thread-*"] != 5 || groups["pool-*-thread-*"] != 10 {
		t.Errorf("groups %v", groups)
	}
}

// TestThreadNames checks the names of threads in several JDKs: the name is a
// char[] up to JDK 8, and fields have been in a holder since JDK 19.
func TestThreadNames(t *testing.T) {
	w := newWorld()
	w.class("java.lang.Thread", "java.lang.Object",
		[]hprof.Field{w.field("name", hprof.Object), w.field("holder", hprof.Object), w.field("tid", hprof.Long)})
	w.class("java.lang.Thread$FieldHolder", "java.lang.Object",
		[]hprof.Field{w.field("priority", hprof.Int), w.field("daemon", hprof.Boolean)})
	holder := w.instance("java.lang.Thread$FieldHolder", w.bytes("ib", 9, 1))
	for i, units := range [][]uint16{{'m', 'a', 'i', 'n'}, {'a', 0xd83d, 0xde00, 0xd83d, '\n'}} {
		thread := w.instance("java.lang.Thread", w.bytes("ool", uint64(w.chars(units)), uint64(holder), uint64(i)))
		w.w.Root(hprof.Root{Kind: hprof.SubRootThreadObject, Object: thread, Thread: uint32(i), Trace: 99})
		w.w.Root(hprof.Root{Kind: hprof.SubRootThreadObject, Object: thread, Thread: uint32(i) + 7})
	}
	// These roots reference an object that is not a thread, and an object that
	// does not exist.
	w.w.Root(hprof.Root{Kind: hprof.SubRootThreadObject, Object: holder, Thread: 50})
	w.w.Root(hprof.Root{Kind: hprof.SubRootThreadObject, Object: 0x77777777, Thread: 51})
	s := read(t, load(t, w.dump(t)), android.Options{})
	if n := s.Threads; n.Count != 2 || n.List[0].Name != "main" || n.List[1].Name != "a😀\uFFFD\uFFFD" ||
		n.List[0].Priority != 9 || !*n.List[0].Daemon || n.List[1].ID != 1 {
		t.Errorf("%s", text(t, s.Threads))
	}
}

func TestExhaustion(t *testing.T) {
	for _, sdk := range []int{26, 34} {
		h := hproftest.Android(hproftest.Phone{SDK: sdk})
		fd := h.Declare("java.io.FileDescriptor", nil, "int descriptor", "long ownerId")
		parcel := h.Declare("android.os.ParcelFileDescriptor", nil, "object mFd", "boolean mClosed")
		socket := h.Declare("java.net.Socket", nil, "boolean closed", "object impl")
		ssl := h.Declare("javax.net.ssl.SSLSocket", socket)
		var refs []hproftest.Ref
		for i := range 800 {
			refs = append(refs, h.New(fd, hproftest.Fields{"descriptor": i}))
		}
		refs = append(refs, h.New(fd, hproftest.Fields{"descriptor": 5}), h.New(fd, hproftest.Fields{"descriptor": -1}))
		refs = append(refs, h.New(parcel, nil), h.New(parcel, hproftest.Fields{"mClosed": true}), h.New(socket, nil),
			h.New(ssl, nil), h.New(ssl, hproftest.Fields{"closed": true}))
		h.New(fd, hproftest.Fields{"descriptor": 900}) // leaks
		h.Hold("com.shop.Files", "sFiles", h.ArrayList(refs...).Ref)
		large := h.Bytes(make([]byte, 2_000_000))
		h.Hold("com.shop.Cache", "sLarge", h.ArrayList(large).Ref)
		for i := range 400 {
			h.Thread(fmt.Sprintf("OkHttp %d", i))
		}
		s, ids := made(t, h, hproftest.Form{}, android.Options{})
		x := s.Exhaustion
		if want := (android.OpenFiles{
			Descriptors: 802, Distinct: 801, Unreachable: 1, Parcel: 1, Sockets: 2,
		}); x.Files != want {
			t.Errorf("files %+v", x.Files)
		}
		if a := x.Arrays[0]; a.Object != ids.Of(large) || a.Bytes != 2_000_000 || a.Class != "byte[]" ||
			a.Heap != "app" || a.Owner == nil || a.Owner.Class != "com.shop.Cache" {
			t.Errorf("array %s", text(t, a))
		}
		causes := map[string]android.ExhaustionCause{}
		for _, c := range x.Causes {
			causes[c.Cause] = c
		}
		if c := causes[android.FileDescriptors]; *c.Value != 801 ||
			*c.Limit != map[int]int64{26: 1024, 34: 32768}[sdk] || c.NearLimit != (sdk == 26) {
			t.Errorf("%s", text(t, c))
		}
		if c := causes[android.ThreadCount]; *c.Value != 408 || *c.Limit != 500 || !c.NearLimit {
			t.Errorf("%s", text(t, c))
		}
		if c := causes[android.JavaHeap]; *c.Value < 2_000_000 || c.Limit != nil || c.NearLimit {
			t.Errorf("%s", text(t, c))
		}
		if c := causes[android.VirtualMemory]; c.Value != nil || c.Limit != nil || c.Note == "" {
			t.Errorf("%s", text(t, c))
		}
		if c := causes[android.Fragmentation]; *c.Value != 2_000_000 {
			t.Errorf("%s", text(t, c))
		}
		if g := x.ThreadGroups; len(g) != 1 || g[0] != (android.ThreadGroup{Pattern: "OkHttp *", Threads: 400}) {
			t.Errorf("groups %v", g)
		}
	}
}
