package android_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/analysis/android"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// TestKitKat checks known facts about a recorded dump of Android 4.4.
func TestKitKat(t *testing.T) {
	s := read(t, loadRecorded(t, "leak_service_binder.hprof"), android.Options{})
	if len(s.Warnings) > 0 {
		t.Error(s.Warnings)
	}
	m := s.Metadata
	if m.Runtime != android.RuntimeAndroid || m.SDK != 19 || m.Release != "4.4.4" || m.Manufacturer != "unknown" ||
		m.Model != "Android SDK built for x86" ||
		m.Process != "com.example.leakcanary" || m.Bound != "com.example.leakcanary:leakyprocess" ||
		m.Package != "com.example.leakcanary" ||
		m.TargetSDK != 21 || !m.Debuggable || m.LargeHeap || !m.LeakCanary || m.LeakCanaryVersion != "" ||
		m.Screen == nil || *m.Screen != (android.Screen{Width: 768, Height: 1184}) {
		t.Errorf("metadata %s", text(t, m))
	}
	b := s.Bitmaps
	if b.Count != 26 || b.Bytes != 309448 || b.EstimatedBytes != 0 || b.Pixels != android.PixelsInHeap ||
		b.DuplicatesBy != android.ByContent || len(b.Duplicates) != 1 || b.Larger == nil || *b.Larger != 0 {
		t.Errorf("bitmaps %s", text(t, b))
	}
	if d := b.Duplicates[0]; d.Width != 96 || d.Height != 96 || d.Copies != 2 || d.BytesEach != 36864 ||
		d.WastedBytes != 36864 || d.Reachable != 1 {
		t.Errorf("duplicate %s", text(t, d))
	}
	if s.Strings.Count != 11584 || s.Strings.Distinct != 9857 || s.Strings.Repeated[0].Value != "Cipher" ||
		s.Strings.Repeated[0].Count != 50 {
		t.Errorf("strings %d, %d distinct, %s", s.Strings.Count, s.Strings.Distinct, text(t, s.Strings.Repeated[0]))
	}
	var names []string
	for _, thread := range s.Threads.List {
		names = append(names, thread.Name)
	}
	want := []string{
		"main", "GC", "Signal Catcher", "JDWP", "Compiler", "ReferenceQueueDaemon", "FinalizerDaemon",
		"FinalizerWatchdogDaemon", "Binder_1", "Binder_2", "pool-1-thread-1", "LeakCanary-Heap-Dump",
	}
	if !slices.Equal(names, want) || s.Threads.Count != 12 {
		t.Errorf("threads %q", names)
	}
	services := map[hprof.ID]string{}
	for _, c := range s.Components.Services.List {
		services[c.Object] = c.State
	}
	if len(services) != 3 || services[0xb0f5cff0] != android.Alive || services[0xb0f83300] != android.Destroyed ||
		services[0xb0fa7cb0] != android.Destroyed || s.Components.Services.Held != 2 {
		t.Errorf("services %v", services)
	}
	for _, g := range s.Exhaustion.ThreadGroups {
		if g.Pattern != "Binder_*" || g.Threads != 2 {
			t.Errorf("thread group %+v", g)
		}
	}
}

// TestStacks compares the stacks of a JVM with those that another tool printed.
func TestStacks(t *testing.T) {
	want := map[string]int{}
	stack := regexp.MustCompile(`(?m)^Thread \d+\n((?:  at .*\n)+)`)
	for _, m := range stack.FindAllStringSubmatch(string(recorded.Read(t, "hprof", "expected-hprof-64-result.txt")),
		-1) {
		text := strings.ReplaceAll(m[1], "  at ", "")
		text = regexp.MustCompile(` \([^:]*:native method\)`).ReplaceAllString(text, "(Native Method)")
		want[strings.ReplaceAll(text, " (", "(")]++
	}
	got := map[string]int{}
	s := read(t, loadRecorded(t, "hprof-64.bin"), android.Options{})
	for _, thread := range s.Threads.List {
		if thread.Name == "" {
			t.Errorf("%#x has no name", uint64(thread.Object))
		}
		if len(thread.Frames) > 0 {
			got[strings.Join(thread.Frames, "\n")+"\n"]++
		}
	}
	if len(want) != 7 || len(got) != len(want) {
		t.Fatalf("got %d stacks, but %d are listed here, want 7 each", len(got), len(want))
	}
	for text, n := range want {
		if got[text] != n {
			t.Errorf("stack occurs %d times, want %d:\n%s", got[text], n, text)
		}
	}
}

// TestPlainly compares counts with those of a simple implementation.
func TestPlainly(t *testing.T) {
	for _, name := range recordedDumps {
		t.Run(name, func(t *testing.T) {
			dump := recorded.Read(t, "hprof", name)
			plain, err := hproftest.ReadGraph(dump)
			if err != nil {
				t.Fatal(err)
			}
			s := read(t, load(t, dump), android.Options{Top: 100000})
			c := plainCount{graph: plain, threads: map[hprof.ID]bool{}, numbers: map[uint64]bool{}}
			for _, r := range plain.Roots {
				if r.Kind == hprof.SubRootThreadObject && plain.Nodes[r.Object] != nil {
					c.threads[r.Object] = true
				}
			}
			for id, n := range plain.Nodes {
				c.count(id, n)
			}
			if got := int64(len(c.threads)); s.Threads.Count != got || int64(len(s.Threads.List)) != got {
				t.Errorf("got %d threads, want %d", s.Threads.Count, got)
			}
			if f := s.Exhaustion.Files; f.Descriptors != c.open || f.Distinct != int64(len(c.numbers)) {
				t.Errorf("files %+v, want %d open, %d numbers", f, c.open, len(c.numbers))
			}
			if s.Finalizers.Registered != c.finalizers || s.Finalizers.Pending < 0 ||
				s.Finalizers.Pending > s.Finalizers.Registered {
				t.Errorf("finalizers %+v, want %d", s.Finalizers, c.finalizers)
			}
			if s.Bitmaps.Count != c.bitmaps || s.Bitmaps.Bytes != c.pixels {
				t.Errorf("got %d bitmaps of %d bytes, want %d of %d bytes", s.Bitmaps.Count, s.Bitmaps.Bytes, c.bitmaps,
					c.pixels)
			}
			slices.SortFunc(c.arrays, func(a, b int64) int { return int(b - a) })
			for i, a := range s.Exhaustion.Arrays {
				if n := plain.Nodes[a.Object]; n == nil || a.Bytes < n.Size || a.Bytes > n.Size+32 ||
					n.Size != c.arrays[i] {
					t.Errorf("array %d: %+v, want %d bytes", i, a, c.arrays[i])
				}
			}
			if len(s.Exhaustion.Arrays) != 10 {
				t.Errorf("%d arrays", len(s.Exhaustion.Arrays))
			}
			if want := map[bool]string{
				true: android.RuntimeAndroid, false: android.RuntimeJVM,
			}[strings.HasPrefix(name, "leak") || name == "ahat-O.hprof"]; s.Metadata.Runtime != want {
				t.Errorf("runtime %s", s.Metadata.Runtime)
			}
			text(t, s)
			checkPlainStrings(t, name, plain, s.Strings)
		})
	}
}

// plainCount counts objects in a dump that was parsed by the plain reader.
type plainCount struct {
	graph                             *hproftest.Graph
	threads                           map[hprof.ID]bool
	numbers                           map[uint64]bool
	open, finalizers, bitmaps, pixels int64
	arrays                            []int64
}

func (c *plainCount) count(id hprof.ID, n *hproftest.Node) {
	if n.Kind == hprof.SubObjectArray || n.Kind == hprof.SubPrimitiveArray {
		c.arrays = append(c.arrays, n.Size)
	}
	if n.Kind != hprof.SubInstance {
		return
	}
	get := func(field string) uint64 {
		v, _ := c.graph.Field(id, field)
		return v
	}
	switch strings.ReplaceAll(n.Class, "/", ".") {
	case "java.io.FileDescriptor":
		fd, ok := c.graph.Field(id, "descriptor")
		if !ok {
			fd = get("fd")
		}
		if int32(fd) >= 0 {
			c.open++
			c.numbers[fd] = true
		}
	case "java.lang.ref.FinalizerReference", "java.lang.ref.Finalizer":
		if c.graph.Nodes[hprof.ID(get("referent"))] != nil || c.graph.Nodes[hprof.ID(get("zombie"))] != nil {
			c.finalizers++
		}
	case "android.graphics.Bitmap":
		c.bitmaps++
		if b := c.graph.Nodes[hprof.ID(get("mBuffer"))]; b != nil {
			c.pixels += b.Size
		}
	}
}

// TestConverted checks that a dump in the form that AOSP's hprof-conv writes is
// still recognized as an Android dump.
func TestConverted(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 30, Process: "com.shop:push"})
	s, _ := made(t, h, hproftest.Form{Converted: true}, android.Options{})
	if s.Metadata.Runtime != android.RuntimeAndroid || s.Metadata.SDK != 30 || s.Metadata.Bound != "com.shop:push" {
		t.Errorf("metadata %s", text(t, s.Metadata))
	}
	if s, _ = made(t, hproftest.Java(1), hproftest.Form{Runtime: hproftest.HotSpot},
		android.Options{}); s.Metadata.Runtime != android.RuntimeJVM {
		t.Errorf("metadata %s", text(t, s.Metadata))
	}
	// This is a dump that ART wrote for a program that is not an app.
	if s, _ = made(t, hproftest.Java(1), hproftest.Form{},
		android.Options{}); s.Metadata.Runtime != android.RuntimeAndroid {
		t.Errorf("metadata %s", text(t, s.Metadata))
	}
}
