package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/text"
)

// heapFile writes a heap, and returns its file, its IDs and its plain graph.
func heapFile(t *testing.T, h *hproftest.Heap) (string, hproftest.IDs, *hproftest.Graph) {
	t.Helper()
	data, ids, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := hproftest.ReadGraph(data)
	if err != nil {
		t.Fatal(err)
	}
	return dumpFile(t, data), ids, g
}

// TestCostIncludesSharedObjects checks that the cost of a leak includes the
// objects that its leaking objects share, in the text and in JSON. The expected
// value is the size of all objects that a search cannot reach without passing
// through a leaking object.
func TestCostIncludesSharedObjects(t *testing.T) {
	t.Parallel()
	for shape := range uint64(20) {
		r := rand.New(rand.NewPCG(shape, 3))
		h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
		h.Activity("com.shop.CartActivity", hproftest.Attached)
		screen, box := h.Class("com.shop.CartActivity"),
			h.Declare("com.shop.Box", nil, "object a", "object b", "object screen")
		images := make([]hproftest.Ref, 1+r.IntN(3))
		for i := range images {
			images[i] = h.ArrayList(h.Bytes(make([]byte, 1000+r.IntN(200_000))), h.Bytes(make([]byte, 10))).Ref
		}
		var screens, boxes []hproftest.Ref
		for range 2 + r.IntN(40) {
			s := h.New(screen, hproftest.Fields{"mDestroyed": true, "mIntent": images[r.IntN(len(images))]})
			screens = append(screens, s)
			boxes = append(boxes, h.New(box, hproftest.Fields{"screen": s}))
		}
		if r.IntN(3) == 0 {
			// One of the images is also held by another object.
			h.Hold("com.shop.Cache", "images", images[0])
		}
		h.Hold("com.shop.Registry", "all", h.ArrayList(boxes...).Ref)
		path, ids, g := heapFile(t, h)
		var gone []hprof.ID
		for _, s := range screens {
			gone = append(gone, ids.Of(s))
		}
		left, lost := g.Reachable(gone...), []string{path}
		for id := range g.Reachable() {
			if (!left[id] || slices.Contains(gone, id)) && id != 0 {
				lost = append(lost, analysis.Hex(id))
			}
		}
		want := int64(0)
		for _, o := range lookedUp(t, lost...).Objects {
			want += o.ShallowBytes
		}
		var report struct{ Leaks []analysis.Leak }
		answered(t, &report, "analyze", "--json", path)
		if len(report.Leaks) != 1 || report.Leaks[0].RetainedBytes != want || report.Leaks[0].RetainedIsBound {
			t.Errorf("shape %d: %d leaks, %+v, want %d bytes", shape, len(report.Leaks), report.Leaks, want)
			continue
		}
		if _, out, _ := ran(t, "analyze", path); !strings.Contains(out,
			fmt.Sprintf("\n%s retained", text.Bytes(want))) {
			t.Errorf("shape %d: the text does not contain %s", shape, text.Bytes(want))
		}
	}
}

// TestSumOfManyLeaks checks that the sum over many leaks includes the objects
// that they share, even if it is unknown which leaks share an object.
func TestSumOfManyLeaks(t *testing.T) {
	t.Parallel()
	const shared = 3 << 20
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	h.Activity("com.shop.CartActivity", hproftest.Attached)
	images := h.Bytes(make([]byte, shared))
	for i := range 80 {
		h.Hold(fmt.Sprintf("com.shop.Holder%da", i), "last",
			h.New(h.Class("com.shop.CartActivity"), hproftest.Fields{"mDestroyed": true, "mIntent": images}))
	}
	path, _, _ := heapFile(t, h)
	var report struct {
		Leaks  []analysis.Leak
		Leaked int64 `json:"leaked_bytes"`
	}
	answered(t, &report, "analyze", "--json", path)
	if len(report.Leaks) != 80 || report.Leaked < shared || report.Leaked > shared+80*1000 {
		t.Errorf("%d leaks, %d bytes", len(report.Leaks), report.Leaked)
	}
	if _, out, _ := ran(t, "analyze", path); !strings.Contains(out, "verdict: 80 leaks in the app, 3.0 MB retained\n") {
		t.Errorf("%s", out[max(0, len(out)-200):])
	}
}

// TestFailOnLeak checks that a gate passes a dump only if the dump proves that
// nothing leaks.
func TestFailOnLeak(t *testing.T) {
	t.Parallel()
	phone := hproftest.Phone{SDK: 34, Process: "com.shop"}
	clean := hproftest.Android(phone)
	clean.Activity("com.shop.CartActivity", hproftest.Attached)
	leaking := hproftest.Android(phone)
	leaking.Hold("com.shop.Registry", "last", leaking.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref)
	local := hproftest.Android(phone)
	local.RootOf(local.Main(), hprof.SubRootJavaFrame, local.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref,
		0)
	interned := hproftest.Android(phone)
	interned.Root(hprof.SubRootUnknown, interned.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref)
	weak := hproftest.Android(phone)
	weak.Hold("com.shop.Cache", "last",
		weak.New(weak.Class("java.lang.ref.WeakReference"),
			hproftest.Fields{"referent": weak.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref}))
	traitor := hproftest.Android(phone)
	handleClass := traitor.Declare("com.shop.Handle", traitor.Class("java.lang.ref.WeakReference"), "object referent")
	handle := traitor.New(handleClass, nil)
	traitor.SetIn(handle, handleClass, "referent", traitor.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref)
	traitor.Hold("com.shop.Cache", "last", handle)
	art := hproftest.Form{}
	jvm := hproftest.Java(1)
	jvm.Hold("com.shop.Cache", "all", jvm.ArrayList(jvm.Bytes(nil)).Ref)
	for _, c := range []struct {
		name string
		heap *hproftest.Heap
		form hproftest.Form
		// tenths is the number of tenths of the file that are kept.
		tenths  int
		code    int
		allowed int
		says    string
	}{
		{"clean", clean, art, 10, exitOK, exitOK, "verdict: no leak found in the app\n"},
		{"leaking", leaking, art, 10, 1, 1, "held by Registry.last"},
		{"local variable of main", local, art, 10, 1, 1, "held only by a local variable of thread main"},
		{"root of unknown kind", interned, art, 10, 1, 1, "held only by a GC root of unknown kind"},
		{"weakly reachable object", weak, art, 10, exitOK, exitOK, "weakly reachable"},
		{
			"app field named referent", traitor, art, 10, 5, exitOK,
			"strongly held, but only by references that leak traces do not follow",
		},
		{
			"dump of a JVM", jvm, hproftest.Form{Runtime: hproftest.HotSpot}, 10, 5, exitOK,
			"nothing marks objects of a JVM",
		},
		{"truncated", clean, art, 9, exitUnread, exitOK, "the dump is incomplete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			data, _, err := c.heap.Dump(c.form)
			if err != nil {
				t.Fatal(err)
			}
			path := dumpFile(t, data[:len(data)*c.tenths/10])
			code, out, errOut := ran(t, "analyze", path, "--fail-on", "leak")
			if code != c.code || !strings.Contains(out, c.says) {
				t.Errorf("exit %d, %s\n%s", code, errOut, out)
			}
			if code, _, errOut := ran(t, "analyze", path, "--fail-on", "leak",
				"--allow-incomplete"); code != c.allowed {
				t.Errorf("exit %d with --allow-incomplete, %s", code, errOut)
			}
			if code, _, _ := ran(t, "analyze", path); code != exitOK {
				t.Errorf("exit %d without --fail-on", code)
			}
		})
	}
}

// TestHiddenTexts checks that no report contains what people have typed, unless
// it is requested.
func TestHiddenTexts(t *testing.T) {
	t.Parallel()
	const mail, phone, title = "alice8@example.org", "4917612345678", "Invoice of Bob"
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	a := h.Activity("com.shop.CartActivity", hproftest.Destroyed)
	h.Hold("com.shop.Sessions", "byUser",
		h.HashMap(h.String(mail), a.Ref, h.String(title), h.String(mail), h.String("x"), h.String(mail)))
	worker := h.Thread("upload-" + phone)
	h.RootOf(worker, hprof.SubRootJavaFrame,
		h.Fragment("com.shop.PhotoFragment", hproftest.Fragment{State: hproftest.Destroyed, Tag: title}), 0)
	path, _, _ := heapFile(t, h)
	for _, args := range [][]string{{"analyze", path, "--all"}, {"analyze", path, "--json"}} {
		code, out, errOut := ran(t, args...)
		if code != exitOK || strings.Contains(out, mail) || strings.Contains(out, phone) ||
			strings.Contains(out, title) {
			t.Errorf("exit %d, %s\n%s", code, errOut, out)
		}
		_, again, _ := ran(t, args...)
		if again != out {
			t.Error("two reports about the same dump differ")
		}
		if _, shown, _ := ran(t, append(args, "--show-texts")...); !strings.Contains(shown, mail) ||
			!strings.Contains(shown, phone) || !strings.Contains(shown, title) {
			t.Errorf("some strings are missing despite --show-texts:\n%s", shown)
		}
	}
}

// TestTraceFromUnusualRoots checks that memory that is held only by a root of
// the virtual machine, or by the class of a live object, also has a path.
func TestTraceFromUnusualRoots(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(h *hproftest.Heap, list hproftest.Ref){
		"Root of the virtual machine (UNKNOWN)": func(h *hproftest.Heap, list hproftest.Ref) {
			h.Root(hprof.SubRootUnknown, list)
		},
		"Java Local": func(h *hproftest.Heap, list hproftest.Ref) {
			h.RootOf(h.Main(), hprof.SubRootJavaFrame, list, 0)
		},
	} {
		h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
		item := h.Declare("com.shop.Item", nil, "object photo")
		var items []hproftest.Ref
		for range 100 {
			items = append(items, h.New(item, hproftest.Fields{"photo": h.Bytes(make([]byte, 20_000))}))
		}
		hold(h, h.ArrayList(items...).Ref)
		path, _, _ := heapFile(t, h)
		code, out, errOut := ran(t, "analyze", path)
		if code != exitOK || !strings.Contains(out, "100 x Item") || !strings.Contains(out, name) {
			t.Errorf("%s: exit %d, %s\n%s", name, code, errOut, out[:min(len(out), 2000)])
		}
	}
}

// TestHiddenArrays checks that the objects command shows the elements of
// arrays, but shows strings and pictures only on request.
func TestHiddenArrays(t *testing.T) {
	t.Parallel()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	secret, numbers := h.Chars("pin 4711"), h.Ints(471, 1)
	h.Hold("com.shop.Cache", "secret", secret)
	h.Hold("com.shop.Cache2", "numbers", numbers)
	path, ids, _ := heapFile(t, h)
	args := []string{"objects", path, analysis.Hex(ids.Of(secret)), analysis.Hex(ids.Of(numbers))}
	if _, out, _ := ran(t, args...); strings.Contains(out, "'p'") || !strings.Contains(out, "[0] = 471\n") ||
		!strings.Contains(out, "held by class com.shop.Cache ") {
		t.Errorf("%s", out)
	}
	if _, out, _ := ran(t, append(args, "--show-texts")...); !strings.Contains(out, "[0] = 'p'\n") {
		t.Errorf("%s", out)
	}
}

// TestLongChainIsFolded checks that the report of one leak behind a long list
// is short.
func TestLongChainIsFolded(t *testing.T) {
	t.Parallel()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	node := h.Declare("com.shop.Node", nil, "object next")
	at := h.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref
	for range 200_000 {
		at = h.New(node, hproftest.Fields{"next": at})
	}
	h.Hold("com.shop.History", "first", at)
	data, _, err := h.Dump(hproftest.Form{})
	if err != nil {
		t.Fatal(err)
	}
	path := dumpFile(t, data)
	_, out, _ := ran(t, "analyze", path)
	_, trace, _ := strings.Cut(out, "┬───\n")
	trace, _, ended := strings.Cut(trace, "╰→")
	if n := strings.Count(trace, "\n"); !ended || n > 22 ||
		!strings.Contains(trace, "199 999 more of the same class, each held by the same field") {
		t.Errorf("%d lines:\n%s", n, out[:min(len(out), 4000)])
	}
	if _, out, _ := ran(t, "analyze", path, "--json"); len(out) > 100_000 {
		t.Errorf("%d bytes of JSON", len(out))
	}
	if code, out, errOut := ran(t, "analyze", path, "--memory", "40MB"); code != exitUnread || out != "" ||
		!strings.Contains(errOut, "the search for paths needs about") {
		t.Errorf("exit %d, %s%s", code, errOut, out)
	}
}

// A leak lists a bounded number of the objects that leak only because of it,
// and counts all of them: the count for 1,200 screens is 1,200 times the count
// for one.
func TestManyBehindOneLeak(t *testing.T) {
	t.Parallel()
	listed, each, _ := behindScreens(t, 1)
	if each == 0 || listed != each {
		t.Fatalf("one screen: %d of %d objects are listed", listed, each)
	}
	const screens = 1200
	listed, total, out := behindScreens(t, screens)
	if listed != 1000 || total != screens*each {
		t.Errorf("%d of %d objects are listed, want 1000 of %d", listed, total, screens*each)
	}
	if want := "Also retains " +
		text.Count(total-10, "more leaking object", "more leaking objects"); !strings.Contains(out, want) {
		t.Errorf("the text does not contain %s:\n%s", want, out)
	}
}

// behindScreens analyzes a list of n destroyed activities. Of the objects that
// leak only because of this one leak, it returns the number listed and the
// total number; it also returns the text output.
func behindScreens(t *testing.T, n int) (listed, total int, out string) {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	screens := h.ArrayList()
	for range n {
		screens.Add(h.Activity("com.shop.CartActivity", hproftest.Destroyed).Ref)
	}
	h.Hold("com.shop.History", "screens", screens.Ref)
	path, _, _ := heapFile(t, h)
	_, out, _ = ran(t, "analyze", path, "--json")
	var r struct {
		Leaks []struct {
			Instances        int
			Consequences     []analysis.Related
			ConsequenceCount int `json:"consequence_count"`
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Leaks) != 1 || r.Leaks[0].Instances != n {
		t.Fatalf("%d screens: %d leaks", n, len(r.Leaks))
	}
	_, out, _ = ran(t, "analyze", path)
	return len(r.Leaks[0].Consequences), r.Leaks[0].ConsequenceCount, out
}

func TestPerfettoTrace(t *testing.T) {
	t.Parallel()
	path := dumpFile(t, []byte(strings.Repeat("\x0a\x0b\x40\x80\x01\x50\x01\x32\x04abcd", 40)))
	code, out, errOut := ran(t, "analyze", path)
	if code != exitUsage || out != "" || !strings.Contains(errOut, "this is a Perfetto trace") {
		t.Errorf("exit %d, %s%s", code, errOut, out)
	}
}
