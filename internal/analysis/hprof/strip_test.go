package hprof_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"index/suffixarray"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// strip strips a dump in memory.
func strip(data []byte) ([]byte, hprof.Stripped, error) {
	var out bytes.Buffer
	done, err := hprof.Strip(context.Background(), &out, bytes.NewReader(data), int64(len(data)))
	return out.Bytes(), done, err
}

// stripNaive is a second implementation: it strips using the positions of
// arrays and fields in the whole dump. damage is the offset of the first
// damage, or -1.
func stripNaive(data []byte) (out []byte, done hprof.Stripped, damage int64) {
	n := readNaive(data)
	if n.damage >= 0 {
		return nil, done, n.damage
	}
	out, done.Truncated = bytes.Clone(data), n.truncated >= 0
	erase := func(from, to int64) {
		if from < to {
			done.Arrays++
			done.Bytes += to - from
			copy(out[from:to], make([]byte, to-from))
		}
	}
	head := int64(10 + n.header.IDSize)
	for _, h := range n.heaps {
		for _, i := range h.items {
			if i.Kind == 0x23 {
				erase(i.Offset+head, i.Offset+head+int64(len(i.Body)))
			}
		}
		if h.damage >= 0 {
			return nil, hprof.Stripped{}, h.damage
		}
		if h.truncated >= 0 {
			done.Truncated = true
			if data[h.truncated] == 0x23 {
				erase(h.truncated+head, int64(len(data)))
			}
		}
		for _, p := range n.hashes(data, &h) {
			done.Hashes++
			clear(out[p.at : p.at+p.size])
		}
	}
	return out, done, -1
}

// agreeStripped strips a dump with both implementations, which must agree.
func agreeStripped(t testing.TB, data []byte) ([]byte, hprof.Stripped) {
	t.Helper()
	want, told, damage := stripNaive(data)
	got, done, err := strip(data)
	if at := damageAt(t, err); at != damage {
		t.Fatalf("damage at %d (%v), want %d", at, err, damage)
	}
	if err != nil {
		if len(got) >= len(data) && len(data) > 0 {
			t.Fatalf("all %d bytes of a damaged dump were written", len(got))
		}
		return nil, done
	}
	if len(got) != len(data) || done.Arrays != told.Arrays || done.Bytes != told.Bytes || done.Hashes != told.Hashes ||
		done.Truncated != told.Truncated {
		t.Fatalf("%d bytes, %+v; want %d, %+v", len(got), done, len(data), told)
	}
	if !bytes.Equal(got, want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		t.Fatalf("byte %d is %#x, want %#x, was %#x", at, got[at], want[at], data[at])
	}
	return got, done
}

// checkStripped does the same as agreeStripped, and also checks that stripping
// the result again changes nothing.
func checkStripped(t testing.TB, data []byte) ([]byte, hprof.Stripped) {
	t.Helper()
	got, done := agreeStripped(t, data)
	if got == nil {
		return nil, done
	}
	again, more, err := strip(got)
	if err != nil || !bytes.Equal(again, got) || more.Arrays != done.Arrays || more.Bytes != done.Bytes ||
		more.Hashes != done.Hashes || more.Truncated != done.Truncated {
		t.Fatalf("second Strip returned %+v, %v; the first %+v", more, err, done)
	}
	return got, done
}

func TestStripRecorded(t *testing.T) {
	for _, name := range dumps {
		t.Run(name, func(t *testing.T) {
			data := recorded.Read(t, "hprof", name)
			_, done := checkStripped(t, data)
			if done.Truncated || done.Arrays == 0 || done.Bytes == 0 {
				t.Errorf("%+v", done)
			}
			// The dump is truncated in the heap, and in the middle of the
			// longest array.
			checkStripped(t, data[:len(data)*7/8])
			var longest item
			for _, h := range readNaive(data).heaps {
				for _, i := range h.items {
					if i.Kind == hprof.SubPrimitiveArray && len(i.Body) > len(longest.Body) {
						longest = i
					}
				}
			}
			checkStripped(t, data[:longest.Offset+int64(len(longest.Body))/2])
		})
	}
}

// Every small dump, and every prefix of one, must be stripped like the whole
// dump. That includes the incomplete record at the end of the prefix, and
// fields whose class is missing from the prefix.
func TestStripCut(t *testing.T) {
	for i, data := range seeds() {
		whole, _ := checkStripped(t, data)
		ends := 0
		for n := 1; n < len(data); n++ {
			got, done := checkStripped(t, data[:n])
			// If a heap extends to the end of the file, truncation cannot be
			// detected.
			if whole != nil && got != nil {
				for at, b := range got {
					if b != whole[at] && b != 0 {
						t.Fatalf("dump %d truncated at %d: byte %d differs from the complete dump", i, n, at)
					}
				}
			}
			if got != nil && !done.Truncated {
				ends++
			}
		}
		if ends > len(topOffsets(data))+1 {
			t.Errorf("dump %d: %d prefixes were accepted as complete", i, ends)
		}
	}
}

// These are dumps of random apps in random layouts; some have several heaps,
// some are truncated, some are damaged.
func TestStripForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	for seed := range uint64(60) {
		form := hproftest.Form{
			Runtime: []hproftest.Runtime{hproftest.ART, hproftest.HotSpot}[rng.IntN(2)],
			IDSize:  []int{4, 8}[rng.IntN(2)],
			Shuffle: rng.IntN(2) == 0, HeapFirst: rng.IntN(3) == 0, NoEnd: rng.IntN(3) == 0,
		}
		form.Converted = form.Runtime == hproftest.ART && rng.IntN(4) == 0
		if form.Runtime == hproftest.HotSpot && rng.IntN(2) == 0 {
			form.Format = hprof.Format101
			form.Segments = &hproftest.Segmentation{Single: true}
		}
		heaps := []*hproftest.Heap{hproftest.LeakMix(seed).Heap()}
		for range rng.IntN(2) {
			heaps = append(heaps, hproftest.LeakMix(seed+1000).Heap())
		}
		var b bytes.Buffer
		if _, err := hproftest.Write(&b, form, heaps...); err != nil {
			t.Fatal(err)
		}
		data := b.Bytes()
		if got, done := checkStripped(t, data); got == nil || done.Truncated || done.Arrays == 0 {
			t.Fatalf("%+v: %+v", form, done)
		}
		checkStripped(t, hproftest.Truncate(data, rng.IntN(len(data))))
		checkStripped(t, hproftest.Flip(data, seed, 1+rng.IntN(20)))
	}
}

// There are arrays at the boundaries of the copied pieces, and arrays that are
// much longer than a piece.
func TestStripLong(t *testing.T) {
	const most = 1 << 20
	for _, ids := range []int{4, 8} {
		d := newDump(hprof.Format102, ids)
		at := d.segment(hprof.TagHeapDumpSegment, func() {})
		add := func(n int) { d.primitives(1, hprof.Byte, uint32(n), strings.Repeat("x", n)) }
		for _, end := range []int{most - 1, 2 * most, 3*most + 1, 5*most - 1, 7 * most, 9*most + 1, 9*most + most/2} {
			// The elements of this array end at the boundary.
			add(end - len(d.b) - 10 - ids)
			d.instance(2, 3, "fields")
		}
		// The header of this array ends at the boundary.
		d.instance(2, 3, strings.Repeat("i", 10*most-len(d.b)-(9+2*ids)-(10+ids)))
		add(100)
		d.objects(4, 5, make([]hprof.ID, most)...)
		add(5 * most)
		d.declare(at, uint32(d.len()-at-9))
		for _, n := range []int{len(d.b), len(d.b) - 1, len(d.b) - 3*most} {
			if got, done := agreeStripped(t, d.b[:n]); done.Arrays != 9 || bytes.IndexByte(got, 'x') >= 0 {
				t.Errorf("%d bytes: %+v", n, done)
			}
		}
	}
}

// nonzero is a writer that records nonzero bytes by offset.
type nonzero struct {
	at    int64
	found map[int64]byte
	zeros []byte
}

func (n *nonzero) Write(b []byte) (int, error) {
	if len(n.zeros) < len(b) {
		n.zeros = make([]byte, len(b))
	}
	if !bytes.Equal(b, n.zeros[:len(b)]) {
		for i, c := range b {
			if c != 0 {
				n.found[n.at+int64(i)] = c
			}
		}
	}
	n.at += int64(len(b))
	return len(b), nil
}

// The heap is larger than 4 GiB and declares a smaller size.
func TestStripWrapped(t *testing.T) {
	h := newHuge()
	h.fill()
	h.end()
	want := nonzero{found: map[int64]byte{}}
	for _, p := range h.parts {
		for i, c := range p.b {
			if c != 0 {
				want.found[p.at+int64(i)] = c
			}
		}
	}
	var bytesOfArrays, arrays int64
	for _, i := range h.items {
		if i.Kind == hprof.SubInstance {
			// No class declares these fields, so they are erased.
			for at := range int64(len(i.Body)) {
				delete(want.found, i.Offset+25+at)
			}
		}
		if i.Kind == hprof.SubPrimitiveArray {
			size := int64(i.Count) * int64(i.Type.Size(8))
			arrays, bytesOfArrays = arrays+1, bytesOfArrays+size
			h.parts = append(h.parts, part{i.Offset + 18, []byte{1}}, part{i.Offset + 18 + size - 2, []byte("ab")})
		}
	}
	got := nonzero{found: map[int64]byte{}}
	done, err := hprof.Strip(t.Context(), &got, h, h.size)
	if err != nil || got.at != h.size || done.Arrays != arrays || done.Bytes != bytesOfArrays ||
		len(done.Warnings) != 1 || done.Truncated {
		t.Fatalf("%d bytes, %+v, %v", got.at, done, err)
	}
	if !maps.Equal(got.found, want.found) {
		t.Errorf("%d bytes are not zero, want %d", len(got.found), len(want.found))
	}
}

// failsAt is a reader whose nth call, counted from 0, and all later ones fail.
type failsAt struct {
	io.ReaderAt
	left int
}

var errDisk = errors.New("the disk is broken")

func (f *failsAt) ReadAt(b []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(b, at)
}

// An error of the reader or writer, or a cancellation, may occur at any time:
// it must be reported, and the output must be a prefix of the complete copy.
func TestStripFails(t *testing.T) {
	d := newDump(hprof.Format102, 8)
	population(d, 5<<20)
	want, _ := agreeStripped(t, d.b)
	reads := 0
	for ; ; reads++ {
		var out bytes.Buffer
		_, err := hprof.Strip(t.Context(), &out, &failsAt{bytes.NewReader(d.b), reads}, d.len())
		if err == nil {
			break
		}
		if !errors.Is(err, errDisk) || out.Len() == len(want) || !bytes.HasPrefix(want, out.Bytes()) {
			t.Fatalf("read %d: %v, %d bytes", reads, err, out.Len())
		}
	}
	if reads < 20 {
		t.Errorf("%d reads", reads)
	}
	for left := 0; left < len(want); left += 1 << 20 {
		_, err := hprof.Strip(t.Context(), &limited{left}, bytes.NewReader(d.b), d.len())
		if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "write the stripped dump: ") {
			t.Fatalf("space for %d bytes: %v", left, err)
		}
	}
	canceled := 0
	for n := 1; n <= reads; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		var out bytes.Buffer
		_, err := hprof.Strip(ctx, &out, &canceling{bytes.NewReader(d.b), n, cancel}, d.len())
		cancel()
		if errors.Is(err, context.Canceled) {
			canceled++
		}
		if (err == nil) != bytes.Equal(out.Bytes(), want) || !bytes.HasPrefix(want, out.Bytes()) {
			t.Fatalf("canceled at read %d: %v, %d bytes", n, err, out.Len())
		}
	}
	// The last read returns the rest, which is still written.
	if canceled < reads-2 {
		t.Errorf("canceled %d of %d runs", canceled, reads)
	}
	if _, err := hprof.Strip(t.Context(), io.Discard, bytes.NewReader(d.b), d.len()+1); err == nil ||
		!strings.Contains(err.Error(), "became shorter") {
		t.Errorf("truncated file: %v", err)
	}
}

// contents lists the parts of a report that describe the contents of arrays,
// which a stripped dump does not contain. Everything else must be the same.
var contents = regexp.MustCompile(`^(` + strings.Join([]string{
	`\.strings\.(compared|distinct|without_text|wasted_bytes|repeated|wasteful|omitted)`,
	`\.threads\[\d+\]\.name`,
	`\.exhaustion\.thread_groups`, // by their names
	`\.bitmaps\.(blank|duplicates|duplicates_by|wasted_bytes)`,
	`\.dump\.android\.(manufacturer|model|fingerprint|release|process|bound_process|package)`,
	`\.warnings`, // a warning that the contents of strings were removed
	`\.leaks\[\d+\]\.trace\[\d+\]\.labels(\[\d+\])?`,
}, "|") + `)$`)

// differences returns the JSON paths at which two reports differ.
func differences(at string, a, b any) (all []string) {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			keys := maps.Clone(x)
			maps.Copy(keys, y)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				all = append(all, differences(at+"."+key, x[key], y[key])...)
			}
			return all
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				all = append(all, differences(fmt.Sprintf("%s[%d]", at, i), x[i], y[i])...)
			}
			return all
		}
	}
	if !reflect.DeepEqual(a, b) {
		all = append(all, at)
	}
	return all
}

// reported returns the decoded JSON report of a dump, with all classes and
// dominators.
func reported(t testing.TB, data []byte) map[string]any {
	t.Helper()
	r, err := analysis.Analyze(context.Background(), bytes.NewReader(data), int64(len(data)),
		analysis.Options{Top: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// A stripped dump must lead to the same leaks, paths, identities and sizes.
func TestStripKeepsTheAnalysis(t *testing.T) {
	used, compared := map[string]bool{}, 0
	for _, name := range dumps {
		t.Run(name, func(t *testing.T) {
			data := recorded.Read(t, "hprof", name)
			compared++
			stripped, _, err := strip(data)
			if err != nil {
				t.Fatal(err)
			}
			told := reported(t, stripped)
			checkUntold(t, name, told)
			for _, path := range differences("", reported(t, data), told) {
				m := contents.FindStringSubmatch(path)
				if m == nil {
					t.Errorf("%s differs", path)
					continue
				}
				used[strings.SplitN(path, "[", 2)[0]] = true
			}
		})
	}
	if len(used) < 15 && compared == len(dumps) && !t.Failed() {
		t.Errorf("only the contents of %v differ, want at least 15", slices.Sorted(maps.Keys(used)))
	}
}

// words lists all strings on which the identities of leaks depend: names of
// threads whose local variables are not followed, states of a Recomposer,
// manufacturers, and a build with known leaks.
var words = []string{
	"main", "FinalizerWatchdogDaemon", "LeakCanary-Heap-Dump",
	"ShutDown", "ShuttingDown", "Inactive", "InactivePendingWork", "PendingWork", "Idle",
	"samsung", "HUAWEI", "LGE", "Xiaomi", "TPP2.220218.008",
	// This manufacturer and this build have no known leaks, but their names are
	// as long as those of a manufacturer and a build that have some.
	"Google", "UP1A.231005.007",
}

// needWords lists the cases whose leaks differ in a stripped dump because one
// of these words is missing. The leaks of a mixture may differ only if it
// contains such a case.
var needWords = []string{
	// Threads identified only by their names: in these dumps, the fields
	// through which Android and LeakCanary usually reference these threads do
	// not lead to them.
	"holder/other thread named main", "root/local of FinalizerWatchdogDaemon", "root/local of LeakCanary",
	// Leaks that are known only for a different manufacturer or build, whose
	// name has the same length.
	"known/last served view of another manufacturer", "known/build that is not a preview",
	// In AOSP, the class has the same field, so the field does not identify the
	// manufacturer.
	"resources of Samsung's WebView",
}

// placedCases are leaks that are recognized by threads and fields. In
// LeakCases, the same leaks are in arbitrary threads and fields; here, they are
// in those that Android and LeakCanary use.
var placedCases = []struct {
	name  string
	phone hproftest.Phone
	make  func(h *hproftest.Heap, leak hproftest.Ref)
}{
	{"local of the finalizer watchdog", hproftest.Phone{}, func(h *hproftest.Heap, leak hproftest.Ref) {
		t := h.Thread("FinalizerWatchdogDaemon")
		daemon := h.Declare("java.lang.Daemons$Daemon", nil, "object thread")
		watchdog := h.Declare("java.lang.Daemons$FinalizerWatchdogDaemon", daemon, "static object INSTANCE")
		h.SetStatic(watchdog, "INSTANCE", h.New(watchdog, hproftest.Fields{"thread": t.Ref}))
		h.RootOf(t, hprof.SubRootJavaFrame, leak, 0)
	}},
	{"local of LeakCanary", hproftest.Phone{}, func(h *hproftest.Heap, leak hproftest.Ref) {
		localOfLeakCanary(h, leak, h.Declare("leakcanary.internal.HeapDumpTrigger", nil, "object backgroundHandler"))
	}},
	{"local of LeakCanary 1", hproftest.Phone{}, func(h *hproftest.Heap, leak hproftest.Ref) {
		localOfLeakCanary(h, leak,
			h.Declare("com.squareup.leakcanary.AndroidWatchExecutor", nil, "object backgroundHandler"))
	}},
	{"local of a thread set as main", hproftest.Phone{}, func(h *hproftest.Heap, leak hproftest.Ref) {
		t := h.Thread("other")
		looper := h.Class("android.os.Looper")
		h.SetStatic(looper, "sMainLooper", h.New(looper, hproftest.Fields{"mThread": t.Ref}))
		h.RootOf(t, hprof.SubRootJavaFrame, leak, 0)
	}},
	{"resources of Samsung's WebView", hproftest.Phone{Manufacturer: "samsung"},
		func(h *hproftest.Heap, leak hproftest.Ref) {
			h.SetStatic(h.Class("android.os.Build$VERSION"), "SDK_INT", 19)
			h.Hold("com.android.org.chromium.android_webview.AwResource", "sResources", leak)
		}},
	{"field of an app's subclass", hproftest.Phone{Manufacturer: "unknown"},
		func(h *hproftest.Heap, leak hproftest.Ref) {
			h.SetStatic(h.Class("android.os.Build$VERSION"), "SDK_INT", 19)
			skin := h.Declare("com.shop.SkinResources", h.Class("android.content.res.Resources"), "object mContext")
			h.Hold("com.shop.Skins", "sSkin", h.New(skin, hproftest.Fields{"mContext": leak}))
		}},
}

// localOfLeakCanary creates a local variable in the thread of a Handler; an
// object of the class holds the Handler.
func localOfLeakCanary(h *hproftest.Heap, leak hproftest.Ref, class *hproftest.Class) {
	t := h.Thread("LeakCanary-Heap-Dump")
	looper := h.New(h.Class("android.os.Looper"), hproftest.Fields{"mThread": t.Ref})
	handler := h.New(h.Class("android.os.Handler"), hproftest.Fields{"mLooper": looper})
	h.Hold("com.example.Keep", "sKept", h.New(class, hproftest.Fields{"backgroundHandler": handler}))
	h.RootOf(t, hprof.SubRootJavaFrame, leak, 0)
}

// sameLeaks reports whether two reports agree on the leaks and on the graph. A
// reference from a map includes its key, which is not part of any identity.
func sameLeaks(a, b map[string]any) bool {
	for _, list := range []string{"leaks", "suspects", "unreachable", "classes", "dominators"} {
		for _, path := range differences("", a[list], b[list]) {
			if !remark.MatchString(path) {
				return false
			}
		}
	}
	return true
}

var remark = regexp.MustCompile(`\.(reason|reference|labels)(\[\d+\])?$`)

// keepsLeaks strips a dump and reports whether its leaks are the same. The
// leaks that do not depend on words must be those of the whole dump. If the
// copy contains the hashes of its strings, like copies made by older versions,
// all leaks must be those of the whole dump.
func keepsLeaks(t *testing.T, name string, data []byte) bool {
	t.Helper()
	stripped, _, err := strip(data)
	if err != nil {
		t.Fatal(err)
	}
	whole, told := reported(t, data), reported(t, stripped)
	checkUntold(t, name, told)
	if !sameLeaks(whole, reported(t, hashed(t, data, stripped))) {
		t.Errorf("%s: the leaks differ if the copy has hashes", name)
	}
	if sameLeaks(whole, told) {
		return true
	}
	if !sameLeaks(whole, reported(t, restored(data, stripped))) {
		t.Errorf("%s: the leaks depend on more than the listed words", name)
	}
	return false
}

// checkUntold checks that a report shows no erased string: its characters would
// be shown as U+FFFD.
func checkUntold(t *testing.T, name string, report map[string]any) {
	t.Helper()
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if at := bytes.IndexRune(text, utf8.RuneError); at >= 0 {
		t.Errorf("%s: ...%s", name, text[max(0, at-100):min(len(text), at+100)])
	}
}

// Dumps with leaks of all kinds are stripped: the leaks of a stripped dump must
// be those of the whole dump, so identities do not depend on the contents of
// any string, or of any other array. Only the leaks of the cases in needWords
// differ.
func TestStripKeepsLeaks(t *testing.T) {
	check := func(name string, data []byte) {
		if got, want := !keepsLeaks(t, name, data), slices.Contains(needWords, name); got != want {
			t.Errorf("%s: leaks differ without the words: %v, want %v", name, got, want)
		}
	}
	mixes, most := 0, 4
	if recorded.Long() {
		most = 40
	}
	for i, c := range hproftest.LeakCases() {
		mix := strings.HasPrefix(c.Name, "mix/")
		if mix {
			mixes++
		}
		if mixes > most {
			break
		}
		// By default, only a third of the cases run, in addition to those in
		// needWords.
		if !mix && i%3 > 0 && !recorded.Long() && !slices.Contains(needWords, c.Name) {
			continue
		}
		data, _, err := c.Heap().Dump(c.Form)
		if err != nil {
			t.Fatal(err)
		}
		if mix {
			keepsLeaks(t, c.Name, data)
			continue
		}
		check(c.Name, data)
	}
	for _, c := range placedCases {
		for _, sdk := range []int{23, 34} {
			c.phone.SDK = sdk
			h := hproftest.Android(c.phone)
			c.make(h, h.Activity("com.example.GoneActivity", hproftest.Destroyed).Ref)
			data, _, err := h.Dump(hproftest.Form{})
			if err != nil {
				t.Fatal(err)
			}
			check(c.name, data)
		}
	}
}

// The main thread of a JVM is recognized by its ID if its name was stripped.
func TestStripKeepsLeaksOfJVM(t *testing.T) {
	for _, id := range []int{1, 3} {
		h := hproftest.Java(1)
		h.Set(h.Main().Ref, "tid", id)
		watch := h.Declare("leakcanary.KeyedWeakReference", h.Class("java.lang.ref.WeakReference"), "object key",
			"object description", "long watchUptimeMillis", "long retainedUptimeMillis")
		// There are so many strings that the report notes that their contents
		// are missing.
		h.Hold("com.example.Texts", "sTexts", h.Duplicates("text", 20).Ref)
		pool := h.Thread("pool")
		h.Set(pool.Ref, "tid", 7)
		for _, thread := range []hproftest.Thread{h.Main(), pool} {
			leak := h.New(h.Declare(fmt.Sprintf("com.example.Leak%d", thread.Serial), nil, "object next"), nil)
			h.Hold(fmt.Sprintf("com.example.Watcher%d", thread.Serial), "sWatch",
				h.New(watch,
					hproftest.Fields{"referent": leak, "key": "k", "description": "gone", "retainedUptimeMillis": 5}))
			h.RootOf(thread, hprof.SubRootJavaFrame, leak, 0)
		}
		data, _, err := h.Dump(hproftest.Form{Runtime: hproftest.HotSpot})
		if err != nil {
			t.Fatal(err)
		}
		// The other local variable is in the main thread, whose local variables
		// are not followed.
		if n := len(reported(t, data)["leaks"].([]any)); n != 1 {
			t.Errorf("%d leaks", n)
		}
		if !keepsLeaks(t, "JVM", data) {
			t.Errorf("the leaks differ if main has the ID %d", id)
		}
	}
}

// hashed puts the hashes back into the Strings of a stripped dump.
func hashed(t *testing.T, data, stripped []byte) []byte {
	t.Helper()
	n, out, put := readNaive(data), bytes.Clone(stripped), 0
	for _, h := range n.heaps {
		for _, p := range n.hashes(data, &h) {
			if p.class == "java.lang.String" {
				copy(out[p.at:p.at+p.size], data[p.at:])
				put++
			}
		}
	}
	if put == 0 {
		t.Fatalf("found no hash in %d bytes", len(data))
	}
	return out
}

// hashOf returns the hash that java.lang.String.hashCode computes.
func hashOf(text string) (hash uint32) {
	for _, unit := range utf16.Encode([]rune(text)) {
		hash = 31*hash + uint32(unit)
	}
	return hash
}

// restored puts back those arrays that contain one of the words.
func restored(data, stripped []byte) []byte {
	out, n := bytes.Clone(stripped), readNaive(data)
	ids := n.header.IDSize
	for _, h := range n.heaps {
		for _, i := range h.items {
			if i.Kind == hprof.SubPrimitiveArray && slices.Contains(words, textOf(i)) {
				copy(out[i.Offset+int64(10+ids):], i.Body)
			}
		}
	}
	return out
}

// textOf returns the string in a char[] or byte[], or "" for any other array.
func textOf(i item) string {
	switch i.Type {
	case hprof.Char:
		units := make([]uint16, len(i.Body)/2)
		for n := range units {
			units[n] = binary.BigEndian.Uint16([]byte(i.Body[2*n:]))
		}
		return string(utf16.Decode(units))
	case hprof.Byte:
		var b strings.Builder
		for _, c := range []byte(i.Body) {
			b.WriteRune(rune(c))
		}
		return b.String()
	}
	return ""
}

// forms returns the encodings that a string may have in a dump.
func forms(text string) [][]byte {
	var big, little, latin []byte
	units := utf16.Encode([]rune(text))
	for _, unit := range units {
		big, little = binary.BigEndian.AppendUint16(big, unit), binary.LittleEndian.AppendUint16(little, unit)
		latin = append(latin, byte(unit))
	}
	all := [][]byte{big, little, []byte(text)}
	if slices.Max(units) < 256 {
		all = append(all, latin)
	}
	return all
}

// No string in an array of an Android dump may occur in the stripped dump,
// except for strings that are part of a name. No part of a picture may occur
// either.
func TestStripTakesTexts(t *testing.T) {
	for _, name := range []string{"leak_service_binder.hprof", "ahat-O.hprof"} {
		t.Run(name, func(t *testing.T) {
			data := recorded.Read(t, "hprof", name)
			stripped, _, err := strip(data)
			if err != nil {
				t.Fatal(err)
			}
			n := readNaive(data)
			var names []byte
			for id, text := range n.names {
				names = append(binary.BigEndian.AppendUint32(names, uint32(id)), text...)
			}
			left, named := suffixarray.New(stripped), suffixarray.New(names)
			texts, inNames, blocks := map[string]bool{}, 0, 0
			for _, h := range n.heaps {
				for _, i := range h.items {
					if i.Kind != hprof.SubPrimitiveArray {
						continue
					}
					if block := distinctive(i.Body); block != nil {
						blocks++
						if len(left.Lookup(block, 1)) > len(named.Lookup(block, 1)) {
							t.Errorf("stripped dump contains %d bytes of the array at %d", len(block), i.Offset)
						}
					}
					if text := textOf(i); utf8.RuneCountInString(text) >= 5 &&
						!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
						texts[text] = true
					}
				}
			}
			for text := range texts {
				for _, form := range forms(text) {
					switch {
					case len(left.Lookup(form, 1)) == 0:
					case len(named.Lookup(form, 1)) > 0:
						inNames++
					default:
						t.Errorf("stripped dump contains %q", text)
					}
				}
			}
			if len(texts) < 5000 || inNames == 0 || blocks < 10 {
				t.Errorf("too few cases: %d strings, %d in names, %d blocks", len(texts), inNames, blocks)
			}
		})
	}
}

// distinctive returns 32 bytes of an array that contain so many different
// values that the same bytes do not occur elsewhere by chance, or nil if there
// are none.
func distinctive(body string) []byte {
	for at := 0; at+32 <= len(body); at += 32 {
		block, values := body[at:at+32], map[byte]bool{}
		for _, c := range []byte(block) {
			values[c] = true
		}
		if len(values) >= 16 {
			return []byte(block)
		}
	}
	return nil
}

// FuzzStrip checks that, for any bytes, both implementations agree and memory
// is proportional to the size of the file.
func FuzzStrip(f *testing.F) {
	for _, data := range seeds() {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		checkStripped(t, data)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = hprof.Strip(context.Background(), io.Discard, bytes.NewReader(data), int64(len(data))) // checked above
		runtime.ReadMemStats(&after)
		if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(2<<20+64*len(data)); got > bound {
			t.Fatalf("allocated %d bytes for a dump of %d", got, len(data))
		}
	})
}

// BenchmarkStrip strips a heap of 100 MB in memory. It should reach 20 million
// records per second and 2 GB/s: then the disk is the bottleneck.
func BenchmarkStrip(b *testing.B) {
	for _, ids := range []int{4, 8} {
		b.Run(fmt.Sprintf("ids=%d", ids), func(b *testing.B) {
			d := newDump(hprof.Format102, ids)
			population(d, 100_000_000)
			b.SetBytes(d.len())
			b.ReportAllocs()
			for b.Loop() {
				if _, err := hprof.Strip(context.Background(), io.Discard, bytes.NewReader(d.b), d.len()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// limited is a writer that fails after the given number of bytes.
type limited struct{ left int }

var errFull = errors.New("no space")

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return l.left, errFull
	}
	l.left -= len(b)
	return len(b), nil
}
