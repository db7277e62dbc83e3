package leakcanary

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/text"
)

func mustRead(t *testing.T, input string, format Form) Report {
	t.Helper()
	report, err := Read(strings.NewReader(input), format)
	if err != nil {
		t.Fatalf("%v, in %.300s", err, input)
	}
	return report
}

// This report was written by hand in the wording of LeakCanary 2.14; @ stands
// for the zero-width character.
var byHand = strings.ReplaceAll(`====================================
HEAP ANALYSIS RESULT
====================================
1 APPLICATION LEAKS

References underlined with "~~~" are likely causes.
Learn more at https://squ.re/leaks.

8928 bytes retained by leaking objects
Displaying only 1 leak trace out of 4 with the same signature
Signature: 2d8918c3076020f19fa7ab4b6ca5cb4423772b20
┬───
│ GC Root: System class
│
├─ com.shop.Screens class
│    Leaking: NO (a class is never leaking)
│    ↓ static Screens.open
│                     ~~~~
├─ java.util.ArrayList instance
│    Leaking: UNKNOWN
│    Retaining 12 B in 1 objects
│    ↓ ArrayList[0]
│               ~~~
╰→ com.shop.CartActivity instance
@     Leaking: YES (Activity#mDestroyed is true)
@     key = 63dee33b-9463-414f-89e0-4cb58974e0db
====================================
1 LIBRARY LEAKS

A Library Leak is a leak caused by a known bug in 3rd party code that you do not have control over.
See https://square.github.io/leakcanary/fundamentals-how-leakcanary-works/#4-categorizing-leaks

Leak pattern: instance field android.app.X#mY
Description: Holds the last one.
Fixed in 31.
Signature: 0123456789abcdef0123456789abcdef01234567
┬───
│ GC Root: Global variable in native code
│
├─ android.app.X instance
│    Leaking: UNKNOWN
│    ↓ X.mY
│        ~~
╰→ com.shop.Dialog instance
@     Leaking: YES (it was dismissed)

====================================
0 UNREACHABLE OBJECTS

An unreachable object is still in memory but LeakCanary could not find a strong reference path
from GC roots.
====================================
METADATA

Please include this in bug reports and Stack Overflow questions.

Build.VERSION.SDK_INT: 34
Heap dump file path: /data/x.hprof
Heap dump timestamp: 1600000000000
Heap dump duration: Unknown
====================================`, "@", "\u200b")

// checkByHand checks the values that were read from the report written by hand.
func checkByHand(t *testing.T, name string, report Report) {
	t.Helper()
	if report.Analyses != 1 || len(report.Leaks) != 2 || len(report.Failures)+len(report.Undecided)+
		len(report.Warnings) > 0 {
		t.Fatalf("%s: %+v", name, report)
	}
	a, l := report.Leaks[0], report.Leaks[1]
	if a.Signature != "2d8918c3076020f19fa7ab4b6ca5cb4423772b20" || a.Library || a.Class != "com.shop.CartActivity" ||
		a.HeldBy != "com.shop.Screens.open" ||
		a.Root != "System class" || a.Traces != 4 || a.RetainedBytes == nil || *a.RetainedBytes != 8928 {
		t.Errorf("%s: %+v", name, a)
	}
	if first, last := a.TraceLines[0], a.TraceLines[len(a.TraceLines)-1]; first != "┬───" ||
		last != "      key = 63dee33b-9463-414f-89e0-4cb58974e0db" || len(a.TraceLines) != 15 {
		t.Errorf("%s: got a trace of %d lines, want 15: %q", name, len(a.TraceLines), a.TraceLines)
	}
	if !l.Library || l.Pattern != "instance field android.app.X#mY" ||
		l.Description != "Holds the last one. Fixed in 31." || l.Class != "com.shop.Dialog" ||
		l.HeldBy != "android.app.X.mY" || l.Traces != 1 || l.RetainedBytes != nil ||
		l.Signature != "0123456789abcdef0123456789abcdef01234567" {
		t.Errorf("%s: %+v", name, l)
	}
}

func TestRead(t *testing.T) {
	each := func(prefix string) string {
		return prefix + strings.ReplaceAll(byHand, "\n", "\n"+prefix) + "\n"
	}
	utf16le := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(each("11-02 10:00:00.000  1234  1256 D LeakCanary: "))) {
		utf16le = binary.LittleEndian.AppendUint16(utf16le, unit)
	}
	for name, c := range map[string]struct {
		input  string
		format Form
	}{
		"plain": {byHand, Text},
		"in an exception message": {
			"leakcanary.NoLeakAssertionFailedError: Application memory leaks were detected:\n" + byHand +
				"\n\tat a.B\n", Text,
		},
		"indented":             {each("    "), Text},
		"Windows line endings": {"\ufeff" + strings.ReplaceAll(byHand, "\n", "\r\n"), Text},
		"LeakCanary 3": {
			strings.NewReplacer("Signature:", "Leak fingerprint:", "same signature", "same leak fingerprint").
				Replace(byHand), Text,
		},
		"Gradle console": {"com.shop.CartTest > adds[Pixel] FAILED\n\t" + byHand + "\n", Text},
		"threadtime":     {each("11-02 10:00:00.000  1234  1256 D LeakCanary: "), Logcat},
		"threadtime with year and user": {
			each("2026-11-02 10:00:00.000123 +0100 u0_a12  1234  1256 D LeakCanary: "), Logcat,
		},
		"time":               {each("11-02 10:00:00.000 D/LeakCanary( 1234): "), Logcat},
		"brief":              {each("D/LeakCanary( 1234): "), Logcat},
		"tag":                {each("D/LeakCanary: "), Logcat},
		"old Android Studio": {each("2019-11-02 10:00:00.123 1234-1256/com.shop D/LeakCanary: "), Logcat},
		"Android Studio": {
			each("2023-11-02 10:00:00.000  1234-1256  LeakCanary              com.shop              D  "), Logcat,
		},
		"Android Studio, single message": {
			"2023-11-02 10:00:00.000  1234-1256  LeakCanary              com.shop              D  \u200b\n" +
				each(strings.Repeat(" ", 86)), Logcat,
		},
		"long": {
			"[ 11-02 10:00:00.000  1234: 1256 D/LeakCanary ]\n" + byHand + "\n\n[ 11-02 10:00:00.000  1: 1 I/x ]\nx\n",
			Logcat,
		},
		"PowerShell": {string(utf16le), Logcat},
		"other tag":  {each("11-02 10:00:00.000  1234  1256 E TestRunner: "), Logcat},
		"twice":      {each("D/LeakCanary( 1234): ") + each("E/TestRunner( 1234): "), Logcat},
		"CDATA": {
			"<testsuite><testcase name='a' classname='B'><failure><![CDATA[" + byHand +
				"]]></failure></testcase></testsuite>", JUnit,
		},
		"logcat in XML": {
			"<testsuite><testcase name='a' classname='B'><failure>x</failure></testcase><system-out><![CDATA[" +
				each("D/LeakCanary( 1234): ") + "]]></system-out></testsuite>", JUnit,
		},
		"two documents": {
			"<?xml version='1.0'?><testsuite/>\n<?xml version='1.0'?><testsuite><testcase name='a' " +
				"classname='B'><error><![CDATA[" + byHand + "]]></error></testcase></testsuite>", JUnit,
		},
	} {
		report := mustRead(t, c.input, Auto)
		if report.Form != c.format {
			t.Errorf("%s: format %q", name, report.Form)
		}
		checkByHand(t, name, report)
		if again := mustRead(t, c.input, c.format); again.Form != c.format || len(again.Leaks) != 2 {
			t.Errorf("%s: %+v", name, again)
		}
	}
}

// A report without leaks counts as a result. A failure, a truncated report or a
// missing report does not count as a result.
func TestReadWithoutLeaks(t *testing.T) {
	clean := (&modelReport{made: 1}).text()
	for name, input := range map[string]string{
		"plain": clean, "logcat line": "11-02 10:00:00.000  1  2 D LeakCanary: " + noLeaks + "\n",
	} {
		if r := mustRead(t, input, Auto); r.Analyses != 1 || len(r.Leaks)+len(r.Failures)+len(r.Undecided) > 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	const failed = "====================================\nHEAP ANALYSIS FAILED\n\nYou can report this failure at " +
		"https://github.com/square/leakcanary/issues\n====================================\nSTACKTRACE\n\n" +
		"java.lang.IllegalStateException: no such object\n\tat shark.X\n" +
		"====================================\nMETADATA\n\nAnalysis duration: 3 ms\n" +
		"===================================="
	for name, c := range map[string]struct{ input, want string }{
		"failure":           {failed, "java.lang.IllegalStateException: no such object"},
		"truncated failure": {failed[:60], "the report is truncated"},
		"exception": {
			"<testsuite><testcase name='a' classname='B'><failure>java.lang.IllegalStateException: x\n\tat " +
				"shark.HeapAnalyzer.analyze(HeapAnalyzer.kt:1)</failure></testcase></testsuite>",
			"B#a: java.lang.IllegalStateException: x",
		},
	} {
		r := mustRead(t, c.input, Auto)
		if len(r.Failures) != 1 || r.Failures[0] != c.want || r.Analyses != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for name, input := range map[string]string{
		"empty":  "",
		"text":   "all is well\n",
		"logcat": "11-02 10:00:00.000  1  2 D LeakCanary: Found 0 objects retained\n",
		"XML":    "<testsuite><testcase name='a' classname='B'/></testsuite>",
		"broken": "<testsuite><testcase",
	} {
		r, err := Read(strings.NewReader(input), Auto)
		if !errors.Is(err, ErrNoReport) || !strings.Contains(err.Error(), `"HEAP ANALYSIS RESULT"`) || r.Analyses != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := Read(strings.NewReader(byHand), "yaml"); err == nil {
		t.Error("an unknown format was accepted")
	}
}

// A truncated report is never mistaken for a complete one: either each leak is
// found, or the result contains the reason why some may be missing.
func TestReadTruncated(t *testing.T) {
	begin := strings.Index(byHand, beginResult) + len(beginResult)
	for end := begin; end < len(byHand)-len("====================================")+1; end++ {
		r := mustRead(t, strings.ToValidUTF8(byHand[:end], ""), Text)
		if len(r.Leaks) < 2 && len(r.Undecided) == 0 || len(r.Leaks) > 2 {
			t.Fatalf("%d bytes: %+v", end, r)
		}
		if len(r.Leaks) == 2 && len(r.Undecided)+len(r.Warnings) == 0 {
			t.Fatalf("%d bytes: no warning: %+v", end, r)
		}
		xml := "<testsuite><testcase name='a' classname='B'><failure>" + strings.ReplaceAll(byHand[:end], "<", "&lt;")
		if r := mustRead(t, xml, JUnit); len(r.Undecided) == 0 ||
			slices.ContainsFunc(r.Leaks, func(l SignedLeak) bool { return l.Test() != "B#a" }) {
			t.Fatalf("XML of %d bytes: %+v", end, r)
		}
	}
}

// Signatures printed by early versions lack zeros, and the earliest versions do
// not print signatures.
func TestReadSignatures(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		reports := randomReports(r)
		for i := range reports {
			text := reports[i].text()
			for _, l := range reports[i].leaks {
				raw := []byte{}
				for j := 0; j < 40; j += 2 {
					raw = append(raw, unhex(l.signature()[j])<<4|unhex(l.signature()[j+1]))
				}
				to := "Signature: " + withoutZeros(raw)
				if seed%2 == 1 {
					to = "about it:"
				}
				text = strings.ReplaceAll(text, "Signature: "+l.signature(), to)
			}
			checkLeaks(t, fmt.Sprint("seed ", seed), mustRead(t, text, Text), wanted(reports[i:i+1]), false)
		}
	}
	for _, wrong := range []string{
		"Signature: no hex at all", "Signature: 2d89", "Signature: 2d8918c3076020f19fa7ab4b6ca5cb4423772b2",
	} {
		r := mustRead(t, strings.Replace(byHand, "Signature: 2d8918c3076020f19fa7ab4b6ca5cb4423772b20", wrong, 1), Text)
		if len(r.Leaks) != 1 || len(r.Undecided) != 1 || !strings.Contains(r.Undecided[0], "com.shop.CartActivity") {
			t.Errorf("%s: %+v", wrong, r)
		}
	}
}

func unhex(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// The same reports lead to the same result in all three formats, whether they
// are wrapped or interleaved with other lines.
func TestReadForms(t *testing.T) {
	for seed := range uint64(300) {
		checkForms(t, seed)
	}
}

func checkForms(t *testing.T, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	reports := randomReports(r)
	want := wanted(reports)
	plain := ""
	for i := range reports {
		plain += "text between\n" + reports[i].text() + "\n"
	}
	for name, c := range map[string]struct {
		input  string
		format Form
	}{
		"text": {plain, Text}, "wrapped text": {wrap(plain, 120), Text}, "narrow text": {wrap(plain, 80), Text},
		"XML": {junitOf(r, reports), JUnit}, "logcat": {logcatOf(r, reports, 1<<20), Logcat},
		"wrapped logcat": {logcatOf(r, reports, 120), Logcat},
	} {
		name := fmt.Sprintf("seed %d, %s", seed, name)
		report := mustRead(t, c.input, Auto)
		if report.Form != c.format || report.Analyses != len(reports) || len(report.Failures)+len(report.Undecided)+
			len(report.Warnings) > 0 {
			t.Fatalf("%s: %d reports, %+v", name, len(reports), report)
		}
		if c.format == JUnit && report.Tests != 2*len(reports) {
			t.Fatalf("%s: %d tests", name, report.Tests)
		}
		checkLeaks(t, name, report, want, c.format != Text)
	}
}

func checkLeaks(t *testing.T, name string, report Report, want map[string]SignedLeak, tests bool) {
	t.Helper()
	if len(report.Leaks) != len(want) {
		t.Fatalf("%s: %d leaks, want %d", name, len(report.Leaks), len(want))
	}
	for _, got := range report.Leaks {
		w, ok := want[fmt.Sprint(got.Signature, got.Library)]
		if !ok {
			t.Fatalf("%s: leak %+v", name, got)
		}
		same := (got.RetainedBytes == nil) == (w.RetainedBytes == nil) &&
			(got.RetainedBytes == nil || *got.RetainedBytes == *w.RetainedBytes)
		if !same || got.Class != w.Class || got.HeldBy != w.HeldBy || got.Root != w.Root || got.Pattern != w.Pattern ||
			got.Traces != w.Traces || got.Analyses != w.Analyses || tests &&
			!slices.Equal(got.Tests, sorted(got.Tests, w.Tests)) {
			t.Fatalf("%s: got %+v\nwant %+v", name, got, w)
		}
	}
}

// sorted returns want in the order of got if both have the same elements,
// because the reports in a logcat are in the order in which they end.
func sorted(got, want []string) []string {
	a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if slices.Equal(a, b) {
		return got
	}
	return want
}

func TestReadBounds(t *testing.T) {
	if _, err := read(strings.NewReader(byHand), Auto, caps{len(byHand) - 1, 10}); err == nil ||
		errors.Is(err, ErrNoReport) {
		t.Errorf("input too large: got error %v", err)
	}
	if _, err := read(strings.NewReader(byHand), Auto, caps{len(byHand), 1}); err == nil ||
		errors.Is(err, ErrNoReport) {
		t.Errorf("too many leaks: got error %v", err)
	}
	long := modelReport{made: 1, leaks: []modelLeak{{traces: 1, retained: -1, class: "com.shop.Leak"}}}
	for i := range 5000 {
		long.leaks[0].steps = append(long.leaks[0].steps,
			modelStep{fmt.Sprint("com.shop.Node", i), "instance", "next", true})
	}
	r := mustRead(t, long.text(), Auto)
	lines := r.Leaks[0].TraceLines
	if len(lines) != 2*half || r.Leaks[0].HeldBy != "com.shop.Node0.next" ||
		!strings.Contains(lines[half], "19 007 lines omitted") || !strings.Contains(lines[len(lines)-1], "key = ") ||
		!strings.Contains(lines[half+1], "Node4876") {
		t.Errorf("%d lines, %q %q %q", len(lines), lines[half], lines[half+1], lines[len(lines)-1])
	}
	hostile := strings.ReplaceAll(byHand, "com.shop.CartActivity", "com.shop.\x1b[2JCart\u202eActivity")
	for _, l := range mustRead(t, hostile, Auto).Leaks {
		for _, s := range append(l.TraceLines, l.Class, l.HeldBy) {
			if s != text.Printable(s) {
				t.Errorf("%q", s)
			}
		}
	}
}

var hex40 = regexp.MustCompile(`^[0-9a-f]{40}$`)

func FuzzRead(f *testing.F) {
	f.Add([]byte(byHand), uint64(1))
	f.Add([]byte("D/LeakCanary( 1): "+strings.ReplaceAll(byHand, "\n", "\nD/LeakCanary( 1): ")), uint64(2))
	f.Add([]byte("<testsuite><testcase name='a' classname='B'><failure message='x'><![CDATA["+byHand+
		"]]></failure></testcase></testsuite>"), uint64(3))
	f.Add([]byte("┬───\nHEAP ANALYSIS RESULT\n1 LIBRARY LEAKS\nLeak pattern: x\n┬───\n╰→ \n╰→ a\n├─ b\n│ ~~~\n"+
		noLeaks), uint64(4))
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		checkForms(t, seed)
		for _, format := range []Form{Auto, Text, JUnit, Logcat} {
			r, err := Read(bytes.NewReader(data), format)
			if err != nil {
				if len(r.Leaks) > 0 || r.Analyses > 0 {
					t.Fatalf("%v with %+v", err, r)
				}
				continue
			}
			if r.Analyses == 0 && len(r.Failures) == 0 {
				t.Fatalf("got neither a report nor an error: %+v", r)
			}
			checkReport(t, r, len(data))
		}
	})
}

// checkReport checks the properties that every report read from an input of the
// given number of bytes must have.
func checkReport(t *testing.T, r Report, size int) {
	t.Helper()
	if len(r.Leaks) > size/10 || len(r.Leaks) > maxLeaks || r.Tests > size/9 {
		t.Fatalf("got %d leaks and %d tests from only %d bytes", len(r.Leaks), r.Tests, size)
	}
	seen := map[string]bool{}
	for _, l := range r.Leaks {
		id := fmt.Sprint(l.Signature, l.Library)
		if seen[id] || !hex40.MatchString(l.Signature) || l.Traces < 1 || l.Traces > maxTraces || l.Analyses < 1 ||
			l.Analyses > r.Analyses || len(l.TraceLines) > 2*half || len(l.Tests) > maxTests {
			t.Fatalf("%+v", l)
		}
		seen[id] = true
		if l.RetainedBytes != nil && (*l.RetainedBytes < 0 || *l.RetainedBytes > maxBytes) {
			t.Fatalf("%d bytes", *l.RetainedBytes)
		}
		for _, s := range slices.Concat(l.TraceLines, l.Tests,
			[]string{l.Class, l.HeldBy, l.Root, l.Pattern, l.Description}) {
			if s != text.Printable(s) || len([]rune(s)) > maxName {
				t.Fatalf("%q", s)
			}
		}
	}
	for _, s := range slices.Concat(r.Failures, r.Undecided, r.Warnings) {
		if s != text.Printable(s) || s == "" {
			t.Fatalf("%q", s)
		}
	}
}

// If a report lacks its beginning or each of its lines has a prefix, a second
// report without leaks does not hide it: the result is undecided.
func TestReadStray(t *testing.T) {
	each := func(prefix, s string) string { return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) + "\n" }
	const header = "11-02 10:00:00.000  1234  1256 D LeakCanary: "
	clean := (&modelReport{made: 1}).text()
	tail := byHand[strings.Index(byHand, "References underlined"):]
	junit := func(failure string) string {
		return "<testsuite><testcase name='a' classname='B'><system-out>" + noLeaks +
			"</system-out></testcase><testcase name='b' classname='B'><failure>" + failure +
			"</failure></testcase></testsuite>"
	}
	for name, input := range map[string]string{
		"logcat that begins within a report": each(header, tail) + each(header, clean),
		"text that begins within a report":   tail + "\n" + clean,
		"timestamps of a GitHub log":         each("2026-11-02T10:00:00.1234567Z ", byHand) + clean,
		"colors":                             each("\x1b[31m", byHand) + clean,
		"failure without its report": junit(
			"leakcanary.NoLeakAssertionFailedError: Application memory leaks were detected:\n"),
		"truncated failure": junit(
			"leakcanary.NoLeakAssertionFailedError: Application memory leaks were " +
				"detected:\n====================================\nHEAP ANA"),
	} {
		if r := mustRead(t, input, Auto); r.Analyses == 0 || len(r.Leaks) < 2 && len(r.Undecided) == 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
