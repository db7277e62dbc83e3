package response

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/hproftest"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// secret is a string that a person has typed.
const secret = "mail of somebody@example.org"

// dumpWithSecret returns a dump of an app that leaks two Activities and holds
// the secret in a String and in an array.
func dumpWithSecret(t testing.TB) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	draft := h.Declare("com.shop.Draft", nil, "object text", "object letters")
	h.Hold("com.shop.Mail", "draft",
		h.New(draft, hproftest.Fields{"text": h.String(secret), "letters": h.Chars(secret)}))
	a, b := h.Activity("com.shop.CartActivity", hproftest.Destroyed),
		h.Activity("com.shop.CartActivity", hproftest.Destroyed)
	h.Hold("com.shop.Registry", "all", h.ArrayList(a.Ref, b.Ref).Ref)
	return dumped(t, h, 0)
}

func dumped(t testing.TB, h *hproftest.Heap, second int) []byte {
	t.Helper()
	dump, _, err := h.Dump(hproftest.Form{Time: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	return dump
}

// holds reports whether a string is in a dump, in any of its encodings.
func holds(dump []byte, text string) bool {
	var big, little []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		big, little = binary.BigEndian.AppendUint16(big, unit), binary.LittleEndian.AppendUint16(little, unit)
	}
	return bytes.Contains(dump, []byte(text)) || bytes.Contains(dump, big) || bytes.Contains(dump, little)
}

// leaksOf returns the identities and sizes of the leaks in a dump.
func leaksOf(t testing.TB, dump []byte) (list []string) {
	t.Helper()
	report, err := analysis.Analyze(t.Context(), bytes.NewReader(dump), int64(len(dump)),
		analysis.Options{Top: topClasses})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(report.Leaks, report.Suspects...) {
		list = append(list, fmt.Sprint(l.Key, l.Fingerprint, l.Class, l.Instances, l.RetainedBytes))
	}
	return append(list, fmt.Sprint(report.Dump.ReachableBytes, report.Classes, report.Dominators))
}

func summarized(t *testing.T, dump []byte) *analysis.Summary {
	t.Helper()
	s, err := analysis.Summarize(t.Context(), bytes.NewReader(dump), int64(len(dump)), analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// checkSummary checks that the kept summary belongs to the dump, and that the
// record names it.
func checkSummary(t *testing.T, c *Case, dump []byte) *analysis.Summary {
	t.Helper()
	h := c.Record.Heap
	if h == nil || h.Summary != SummaryName || h.Objects == 0 || h.ReachableBytes == 0 || h.Names == "" {
		t.Fatalf("%+v", h)
	}
	z, err := spool.Open(t.Context(), c.folder.in(h.Summary), nil, spool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	kept, err := analysis.ReadSummary(io.NewSectionReader(z, 0, z.Size()))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := kept.Encode()
	if b, err := summarized(t, dump).Encode(); err != nil || !bytes.Equal(a, b) || holds(a, secret) {
		t.Errorf("error %v; the summary does not match the dump or contains the secret:\n%.500s\n%.500s", err, a, b)
	}
	return kept
}

// A dump is kept in the requested form, and the record names this form.
func TestKept(t *testing.T) {
	dump := dumpWithSecret(t)
	if !holds(dump, secret) {
		t.Fatal("nothing to strip")
	}
	for _, c := range []struct {
		keep, note string
	}{
		{"", "the contents of primitive arrays are zeroed: text, pixels, buffers (diagnose.keep: stripped)"},
		{"raw", ""}, {"none", "removed after its analysis (diagnose.keep: none)"},
	} {
		r := New(t.TempDir(), Options{Keep: Keep(c.keep)})
		got := analyzed(t, r, "java", nil, map[string][]byte{"heap.hprof": dump})
		leaks, step := found(got, "leak"), got.Record.Steps[0]
		if len(leaks) != 1 || !strings.HasPrefix(leaks[0].Name, "2 x CartActivity, held by Registry.all") ||
			*leaks[0].Count != 2 || got.Unread || len(got.Record.Warnings) > 0 {
			t.Errorf("%s: %+v, %q", c.keep, leaks, got.Record.Warnings)
		}
		equal(t, "note", step.Note, c.note)
		files := contents(t, got.folder.path)
		var report struct{ Leaks []any }
		if err := json.Unmarshal(files["analysis.json"], &report); err != nil || len(report.Leaks) != 1 {
			t.Errorf("%s: %v", c.keep, err)
		}
		says(t, []string{string(files["heap.hprof.summary.txt"])},
			"heap dump: 2 x CartActivity, held by Registry.all, ", "╰→ com.shop.CartActivity")
		kept := KeptDump(t, got.folder.path)
		checkSummary(t, got, dump)
		switch c.keep {
		case "raw":
			if !bytes.Equal(kept, dump) || step.File != "heap.hprof.zst" {
				t.Errorf("a raw dump was changed: %+v", step)
			}
		case "none":
			if kept != nil || step.File != "" || step.Bytes != 0 {
				t.Errorf("%+v, %d bytes", step, len(kept))
			}
		default:
			if holds(kept, secret) || len(kept) != len(dump) || step.Bytes*2 > int64(len(dump)) ||
				step.File != "heap.hprof.zst" {
				t.Errorf("%d bytes of %d, %+v", len(kept), len(dump), step)
			}
			equal(t, "analyzed again", leaksOf(t, kept), leaksOf(t, dump))
		}
	}
}

// The dumps of real phones are kept without their string contents, and yield
// the same results.
func TestKeptRecorded(t *testing.T) {
	for _, name := range []string{"leak_service_binder.hprof", "ahat-O.hprof"} {
		dump := recorded.Read(t, "hprof", name)
		got := analyzed(t, New(t.TempDir(), Options{}), "java", nil, map[string][]byte{"heap.hprof": dump})
		files := contents(t, got.folder.path)
		kept := KeptDump(t, got.folder.path)
		if bytes.Equal(kept, dump) || len(kept) != len(dump) {
			t.Errorf("%s: %d bytes of %d", name, len(kept), len(dump))
		}
		none := analyzed(t, New(t.TempDir(), Options{Keep: Nothing}), "java", nil,
			map[string][]byte{"heap.hprof": dump})
		// Whichever part of the dump is kept, analysis.json contains hashes in
		// place of the app's strings.
		shown := regexp.MustCompile(`"value": "[^…"]`)
		for _, text := range [][]byte{files["analysis.json"], contents(t, none.folder.path)["analysis.json"]} {
			if shown.Match(text) || !bytes.Contains(text, []byte(`"value": "…#`)) {
				t.Errorf("%s: analysis.json contains strings of the app or no replacements for them", name)
			}
		}
		equal(t, name, leaksOf(t, kept), leaksOf(t, dump))
		// Strings such as the name of the app were removed from the dump.
		d := analysis.Compare(checkSummary(t, got, dump), summarized(t, kept), 10)
		if d.ClassesChanged+len(d.Growth)+len(d.Shrinkage) > 0 || !d.Comparable ||
			slices.ContainsFunc(d.Leaks, func(l analysis.LeakChange) bool { return l.Status != "known" }) {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A file that is not a dump, or cannot be stripped, is removed; a truncated
// dump is stripped and kept.
func TestKeptDamaged(t *testing.T) {
	r := New(t.TempDir(), Options{})
	dump := dumpWithSecret(t)
	c := analyzed(t, r, "java", nil, map[string][]byte{"heap.hprof": []byte("Error: " + secret)})
	if files := contents(t, c.folder.path); files["heap.hprof"] != nil || files["heap.hprof.zst"] != nil ||
		files["analysis.json"] != nil || !c.Unread || c.Record.Steps[0].File != "" {
		t.Errorf("%+v", c.Record)
	}
	equal(t, "note", c.Record.Steps[0].Note, "removed: it could not be stripped")
	says(t, c.Record.Warnings, "analyze heap.hprof: ", "strip heap.hprof: ")
	says(t, c.Record.Summary, "cannot analyze the dump: ")

	for _, n := range []int{len(dump) / 2, len(dump) - 100, 40} {
		c := analyzed(t, r, "java", nil, map[string][]byte{"heap.hprof": hproftest.Truncate(dump, n)})
		kept := KeptDump(t, c.folder.path)
		if holds(kept, secret) || len(c.Record.Warnings) == 0 || (kept != nil) != (c.Record.Steps[0].File != "") {
			t.Errorf("truncated at %d: kept %d bytes, warnings %q", n, len(kept), c.Record.Warnings)
		}
	}

	// A dump that can neither be stripped nor removed is reported.
	c = given(t, r, "java", nil, map[string][]byte{"heap.hprof": dump})
	if err := os.Remove(c.folder.in("heap.hprof")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(c.folder.in("heap.hprof/x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := r.Analyze(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if s := c.Record.Steps[0]; s.File == "" || !strings.Contains(s.Note, "NOT REMOVED, STILL COMPLETE") ||
		len(c.Record.Warnings) != 2 {
		t.Errorf("%+v, %q", s, c.Record.Warnings)
	}
}

// An interrupted run does not wait for the analysis, but strips every dump that
// it keeps. A dump that was not analyzed is marked as such and kept until it is
// analyzed. A diagnosis on demand is the exception, because no report is
// created later.
func TestKeptInterrupted(t *testing.T) {
	const report = "the run was interrupted before the dump was analyzed: run leakgate report"
	for _, k := range []struct {
		keep           Keep
		trigger        string
		summary, note  string
		stays, analyze bool
	}{
		{Stripped, record.TriggerMark, report, zeroed, true, true},
		{Nothing, record.TriggerMark, report, waiting, true, true},
		{Nothing, record.TriggerLeak, report, waiting, true, true},
		{
			Stripped, record.TriggerDemand,
			"the diagnosis was interrupted before the dump was analyzed: run leakgate analyze heap.hprof.zst", zeroed,
			true,
			false,
		},
		{
			Nothing, record.TriggerDemand,
			"the diagnosis was interrupted before the dump was analyzed, and the dump is not kept",
			"removed (diagnose.keep: none)", false, false,
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := New(t.TempDir(), Options{Keep: k.keep})
		c := given(t, r, "java", nil, map[string][]byte{"heap.hprof": dumpWithSecret(t)})
		c.Trigger, c.Record.Trigger = k.trigger, k.trigger
		if err := r.Analyze(ctx, c); err != nil {
			t.Fatal(err)
		}
		checkCase(t, r, c)
		files := contents(t, c.folder.path)
		dump := KeptDump(t, c.folder.path)
		if holds(dump, secret) || (dump != nil) != k.stays || files["analysis.json"] != nil || c.Unread ||
			c.Record.Analyzed {
			t.Errorf("%s, %s: %d bytes of a dump, %+v", k.keep, k.trigger, len(dump), c.Record)
		}
		equal(t, "summary", c.Record.Summary, []string{k.summary})
		equal(t, "note", c.Record.Steps[0].Note, k.note)
		if len(c.Record.Findings)+len(c.Record.Warnings) > 0 {
			t.Errorf("%+v", c.Record)
		}
		if !k.analyze {
			continue
		}
		list := []record.Diagnosis{c.Record}
		if warnings, err := Resume(t.Context(), r.dir, Options{}, list); err != nil || len(warnings) > 0 {
			t.Error(warnings, err)
		}
		c.Record = list[0]
		checkCase(t, r, c)
		if note := c.Record.Steps[0].Note; !c.Record.Analyzed || len(found(c, "leak")) != 1 ||
			strings.Contains(note, waiting) || strings.Count(note, "zeroed") > 1 {
			t.Errorf("%s: %+v", k.keep, c.Record)
		}
		if there := KeptDump(t, c.folder.path) != nil; there != (k.keep == Stripped) ||
			there != (c.Record.Steps[0].File != "") {
			t.Errorf("%s: dump kept: %v, %+v", k.keep, there, c.Record.Steps)
		}
	}
}

// If there are many leaks, the record has the first ten of each kind, and the
// summary names the leak to look at first.
func TestManyLeaks(t *testing.T) {
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	for i := range 14 {
		a := h.Activity(fmt.Sprintf("com.shop.Screen%02d", i), hproftest.Destroyed)
		h.Hold(fmt.Sprintf("com.shop.Holder%02d", i), "held", h.ArrayList(a.Ref, h.Padding(uint32(1000*(i%7)))).Ref)
	}
	c := analyzed(t, New(t.TempDir(), Options{}), "java", nil, map[string][]byte{"heap.hprof": dumped(t, h, 0)})
	if leaks := found(c, "leak"); len(leaks) != toldLeaks {
		t.Errorf("%d leaks", len(leaks))
	}
	says(t, c.Record.Summary, " more in analysis.json")
}

// pagesAfter returns a dump of an app after the given number of repetitions,
// each of which adds a page to a list that is never emptied.
func pagesAfter(t testing.TB, loops int) []byte {
	t.Helper()
	h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
	page, pages := h.Declare("com.shop.Page", nil, "object picture"), h.ArrayList()
	for range 2 + loops {
		pages.Add(h.New(page, hproftest.Fields{"picture": h.Bytes(make([]byte, 2000))}))
	}
	h.Hold("com.shop.Journal", "pages", pages.Ref)
	return dumped(t, h, loops)
}

// marked returns an analyzed case with a dump that was taken at a mark.
func marked(t testing.TB, r *Responder, p capture.Process, at float64, dump []byte) *Case {
	t.Helper()
	c := given(t, r, HeapOnly, nil, map[string][]byte{"heap.hprof": dump})
	c.Process, c.Trigger, c.Mark, c.T = p, record.TriggerMark, "loop", at
	c.Record.PID, c.Record.Trigger, c.Record.T = p.PID, record.TriggerMark, at
	if err := r.Analyze(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	checkCase(t, r, c)
	return c
}

// Growth in every dump at a mark is reported at the end, for each life of a
// process.
func TestSeries(t *testing.T) {
	shop, again := capture.Process{Name: "com.shop", PID: 4321, Start: 77},
		capture.Process{Name: "com.shop", PID: 4321, Start: 99}
	other := capture.Process{Name: "com.shop", User: 10, PID: 5000, Start: 88}
	dumps := func(r *Responder, p capture.Process, loops ...int) {
		for i, n := range loops {
			marked(t, r, p, float64(i), pagesAfter(t, n))
		}
	}
	for name, c := range map[string]struct {
		take func(r *Responder)
		want []string
	}{
		"three": {
			func(r *Responder) { dumps(r, shop, 1, 5, 9) },
			[]string{"4321 0 3 dumps at marks: 1 place grew in every one of them, +8 objects"},
		},
		"one": {func(r *Responder) { dumps(r, shop, 1) }, nil},
		"growth, but not at every mark": {
			func(r *Responder) { dumps(r, shop, 1, 5, 5) },
			[]string{"4321 0 3 dumps at marks: 0 places grew in every one of them"},
		},
		"restart": {func(r *Responder) { dumps(r, shop, 1); dumps(r, again, 5) }, nil},
		"restart afterwards": {
			func(r *Responder) { dumps(r, shop, 1, 5, 9); dumps(r, again, 5) },
			[]string{"4321 0 3 dumps at marks: 1 place grew in every one of them, +8 objects"},
		},
		"three processes": {func(r *Responder) { dumps(r, shop, 1, 5); dumps(r, again, 1, 3); dumps(r, other, 2, 3) },
			[]string{
				"4321 0 2 dumps at marks: 1 place grew in every one of them, +4 objects",
				"4321 0 2 dumps at marks: 1 place grew in every one of them, +2 objects",
				"5000 10 2 dumps at marks: 1 place grew in every one of them, +1 objects",
			}},
		"invalid dump": {func(r *Responder) {
			dumps(r, shop, 1)
			if c := marked(t, r, shop, 1, []byte("nothing")); !c.Unread {
				t.Error("a file that is not a dump was read")
			}
			dumps(r, shop, 5, 9)
		}, []string{"4321 0 3 dumps at marks: 1 place grew in every one of them, +8 objects"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := New(t.TempDir(), Options{Dump: AtMarks})
			c.take(r)
			list, err := r.Growth()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range list {
				checkRecord(t, d)
				checkWritten(t, &Case{folder: folder{path: r.dir + "/" + d.Folder}, Record: d})
				text := fmt.Sprint(d.PID, " ", d.User, " ", d.Summary[0])
				for _, f := range d.Findings {
					if f.Type != "growing" || len(f.Key) != 40 || f.Bytes == nil || *f.BytesDelta <= 0 ||
						len(f.Trace) == 0 || f.Name != "Journal.pages (ArrayList)" &&
						!strings.Contains(f.Name, "Page") && !strings.Contains(f.Name, "Journal") {
						t.Errorf("%+v", f)
					}
					text += fmt.Sprintf(", +%d objects", *f.CountDelta)
				}
				got = append(got, text)
				files := contents(t, r.dir+"/"+d.Folder)
				if d.Trigger != record.TriggerMarks || d.Recipe != "growth" || !d.Analyzed ||
					files["growth.json"] == nil || len(files) != 3 {
					t.Errorf("%+v, %d files", d, len(files))
				}
			}
			equal(t, "reported", got, c.want)
			for _, d := range list {
				checkNames(t, r.dir, d)
			}
			if more, err := r.Growth(); len(more) > 0 || err != nil {
				t.Errorf("reported twice: %v %v", more, err)
			}
		})
	}
}

// The results of Growth name the files of the dumps, or their folders if the
// dumps are not kept.
func TestGrowthNames(t *testing.T) {
	for _, keep := range []Keep{Stripped, Nothing} {
		r := New(t.TempDir(), Options{Dump: AtMarks, Keep: keep})
		for _, n := range []int{1, 5} {
			marked(t, r, capture.Process{Name: "com.shop", PID: 4321, Start: 77}, float64(n), pagesAfter(t, n))
		}
		list, err := r.Growth()
		if err != nil || len(list) != 1 {
			t.Fatalf("%d series, %v", len(list), err)
		}
		checkNames(t, r.dir, list[0])
	}
}

func checkNames(t *testing.T, dir string, d record.Diagnosis) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, d.Folder, "growth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g analysis.Growth
	if err := json.Unmarshal(text, &g); err != nil || len(g.Dumps) < 2 {
		t.Fatalf("%d dumps, %v", len(g.Dumps), err)
	}
	for _, dump := range g.Dumps {
		if info, err := os.Stat(filepath.Join(dir, dump.Name)); err != nil ||
			info.IsDir() != (d.Keep == string(Nothing)) {
			t.Errorf("keep %s: dump %s, %v", d.Keep, dump.Name, err)
		}
	}
}

// A dump that would need more memory than is available is rejected with an
// error.
func TestHeapMemory(t *testing.T) {
	r := New(t.TempDir(), Options{Memory: func() int64 { return 1 }})
	c := analyzed(t, r, "java", nil, map[string][]byte{"heap.hprof": dumpWithSecret(t)})
	if !c.Unread || len(found(c, "leak")) > 0 {
		t.Errorf("%+v", c.Record)
	}
	says(t, c.Record.Warnings, "analyze heap.hprof: ")
	kept := KeptDump(t, c.folder.path)
	if kept == nil || holds(kept, secret) {
		t.Error("an unanalyzed dump is not stripped")
	}
	if _, err := hprof.Open(t.Context(), bytes.NewReader(kept), int64(len(dumpWithSecret(t)))); err != nil {
		t.Error(err)
	}
}
