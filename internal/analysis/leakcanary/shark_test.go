package leakcanary

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/sharktest"
)

//go:embed testdata/LeakTexts.java
var leakTexts string

// The values that are read from the reports of Shark 2.14 equal those of
// Shark's own objects, even if the reports are wrapped and in a logcat. The
// signatures equal those that are computed from the text alone.
func TestReadShark(t *testing.T) {
	const reports = 200
	out := sharktest.New(t).Compile(t, "LeakTexts", leakTexts).Run(t, "7", strconv.Itoa(reports))
	want, read := map[string]SignedLeak{}, 0
	traces := map[string]string{}
	last := ""
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		for i := range f[1:] {
			raw, err := base64.StdEncoding.DecodeString(f[i+1])
			if err != nil {
				t.Fatal(err)
			}
			f[i+1] = string(raw)
		}
		switch f[0] {
		case "leak":
			last = addShark(t, want, f[1:])
			traces[last] = firstOf(traces[last], f[7])
		case "pattern":
			l := want[last]
			l.Pattern = f[1]
			want[last] = l
		case "text":
			read++
			checkShark(t, f[1], want, traces)
			clear(want)
			clear(traces)
		case "failure":
			if r := mustRead(t, f[1], Auto); len(r.Failures) != 1 ||
				r.Failures[0] != "java.lang.IllegalStateException: no such object" {
				t.Errorf("%+v", r)
			}
		}
	}
	if read != reports {
		t.Errorf("read %d of %d reports", read, reports)
	}
}

// addShark adds a leak found by Shark: its type, signature, class, root, bytes,
// number of traces, first trace, and a class and a name for each suspect
// reference.
func addShark(t *testing.T, want map[string]SignedLeak, f []string) string {
	t.Helper()
	l := SignedLeak{
		Library: f[0] == "library", Signature: f[1], Class: f[2], Root: f[3], RetainedBytes: new(int64(0)), Analyses: 1,
	}
	id := fmt.Sprint(l.Signature, l.Library)
	if before, ok := want[id]; ok {
		l = before
	} else if len(f) > 7 {
		class, name, _ := strings.Cut(f[7], "\t")
		l.HeldBy = heldBy(class, name)
	}
	n, err := strconv.Atoi(f[5])
	if err != nil {
		t.Fatal(err)
	}
	l.Traces += n
	if bytes, err := strconv.ParseInt(f[4], 10, 64); err != nil || l.RetainedBytes == nil {
		l.RetainedBytes = nil
	} else {
		l.RetainedBytes = new(*l.RetainedBytes + bytes)
	}
	want[id] = l
	return id
}

func checkShark(t *testing.T, report string, want map[string]SignedLeak, traces map[string]string) {
	t.Helper()
	unsigned := []string{}
	for line := range strings.Lines(report) {
		if !strings.HasPrefix(line, "Signature: ") {
			unsigned = append(unsigned, line)
		}
	}
	wrapped := strings.ReplaceAll(wrap(report, 120), "\n", "\n11-02 10:00:00.000  1  2 D LeakCanary: ")
	for name, input := range map[string]string{
		"printed": report, "wrapped": wrapped, "without signatures": strings.Join(unsigned, ""),
	} {
		r := mustRead(t, input, Auto)
		if r.Analyses != 1 || len(r.Undecided) > 0 {
			t.Fatalf("%s: %+v\n%s", name, r, report)
		}
		checkLeaks(t, name+"\n"+input, r, want, false)
		if name != "printed" {
			continue
		}
		for _, l := range r.Leaks {
			text := strings.ReplaceAll(traces[fmt.Sprint(l.Signature, l.Library)], "\u200b", " ")
			if got := strings.Join(l.TraceLines, "\n"); got != text {
				t.Fatalf("trace:\n%s\nwant\n%s", got, text)
			}
		}
	}
	if r := mustRead(t, report, Auto); slices.ContainsFunc(r.Leaks, func(l SignedLeak) bool {
		return l.Library && l.Description != "It is known since 1. Second line: Signature of it" &&
			l.Description != "It is known since 2. Second line: Signature of it"
	}) {
		t.Fatalf("descriptions: %+v", r.Leaks)
	}
}
