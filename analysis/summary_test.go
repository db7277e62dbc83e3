package analysis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

func encoded(t testing.TB, s *Summary) []byte {
	t.Helper()
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func reread(t testing.TB, s *Summary) *Summary {
	t.Helper()
	again, err := ReadSummary(bytes.NewReader(encoded(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func asJSON(t testing.TB, of any) string {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Comparing decoded summaries yields the same result as comparing the dumps. A
// report is the same whether or not a summary is written with it, and a summary
// is the same whether or not a report is.
func TestSummaryOfRecordedDumps(t *testing.T) {
	var all []*Summary
	for _, name := range []string{
		"ahat-O.hprof", "ahat-RI.hprof", "leak_service_binder.hprof", "hprof-32.bin", "hprof-64.bin",
	} {
		file := recorded.Read(t, "hprof", name)
		alone, err := Summarize(t.Context(), bytes.NewReader(file), int64(len(file)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		report, beside, err := Examine(t.Context(), bytes.NewReader(file), int64(len(file)), Options{Top: 30})
		if err != nil {
			t.Fatal(err)
		}
		only, err := Analyze(t.Context(), bytes.NewReader(file), int64(len(file)), Options{Top: 30})
		if err != nil {
			t.Fatal(err)
		}
		if asJSON(t, report) != asJSON(t, only) {
			t.Errorf("%s: the report differs if a summary is also requested", name)
		}
		if a, b := encoded(t, alone), encoded(t, beside); !bytes.Equal(a, b) {
			t.Errorf("%s: the summary differs if a report is also requested:\n%.2000s\n%.2000s", name, a, b)
		}
		t.Logf("%s: a summary of %d bytes for a dump of %d bytes", name, len(encoded(t, alone)), len(file))
		all = append(all, alone)
	}
	for _, base := range all {
		for _, head := range all {
			if got, want := asJSON(t, Compare(reread(t, base), reread(t, head), many)),
				asJSON(t, Compare(base, head, many)); got != want {
				t.Errorf("from summaries:\n%.1000s\nfrom dumps:\n%.1000s", got, want)
			}
		}
	}
}

// TestSummaryOfRandomDumps checks with random heaps that comparing decoded
// summaries yields the same result as comparing the dumps.
func TestSummaryOfRandomDumps(t *testing.T) {
	for seed := range uint64(200) {
		base, head := summarized(t, randomHeap(t, seed)), summarized(t, randomHeap(t, seed+1))
		if got, want := asJSON(t, Compare(reread(t, base), reread(t, head), many)),
			asJSON(t, Compare(base, head, many)); got != want {
			t.Fatalf("seed %d, from summaries:\n%.1000s\nfrom dumps:\n%.1000s", seed, got, want)
		}
	}
}

// If there are very many leaks, only those that retain the most bytes are
// written, and a warning is added.
func TestSummaryOfManyLeaks(t *testing.T) {
	s := summarized(t, randomHeap(t, 1))
	var leaks []Leak
	for i := range mostWrittenLeaks + 5 {
		leaks = append(leaks, Leak{Key: fmt.Sprint(i), Class: "A", Instances: 1, RetainedBytes: int64(i)})
	}
	s.leaks = sumLeaks(leaks)
	again := reread(t, s)
	if len(again.leaks) != mostWrittenLeaks || again.leaks[0].key != "5" ||
		!strings.HasPrefix(again.warnings[len(again.warnings)-1], "5 more leaks") {
		t.Errorf("%d leaks, %q", len(again.leaks), again.warnings)
	}
}

func TestReadDamagedSummary(t *testing.T) {
	good := string(encoded(t, summarized(t, randomHeap(t, 1))))
	for name, c := range map[string][2]string{
		"empty":     {"", "read summary"},
		"truncated": {good[:len(good)/2], "read summary"},
		"wrong schema": {
			strings.Replace(good, summarySchema, "leakgate.diff/1\u202e", 1), "its schema is",
		},
		"no tree":                     {`{"schema":"leakgate.summary/1"}`, "no root"},
		"node that is its own parent": {strings.Replace(good, `"parent":0`, `"parent":1`, 1), "out of order"},
		"negative parent":             {strings.Replace(good, `"parent":0`, `"parent":-1`, 1), "out of order"},
		"negative size":               {strings.Replace(good, `"shallow_bytes":`, `"shallow_bytes":-`, 1), "invalid"},
		"no minimum size":             {strings.Replace(good, `"least_bytes":`, `"least":`, 1), "invalid"},
		"huge number": {
			strings.Replace(good, `"shallow_bytes":`, `"shallow_bytes":9223372036854775807,"x":`, 1), "invalid",
		},
	} {
		_, err := ReadSummary(strings.NewReader(c[0]))
		if err == nil || !strings.Contains(err.Error(), c[1]) || strings.Contains(err.Error(), "\u202e") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadSummary(strings.NewReader(strings.Repeat(" ", maxSummary+1))); !errors.Is(err, errLargeSummary) {
		t.Error(err)
	}
}

// Any accepted input can be compared without a panic, does not differ from
// itself, and is the same after it is written and read again.
func FuzzReadSummary(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(encoded(f, summarized(f, randomHeap(f, seed))))
	}
	f.Add([]byte(`{"schema":"leakgate.summary/1","least_bytes":1,` +
		`"tree":[{"parent":-1},{"class":"A","objects":1,"retained_java_bytes":9}],` +
		`"leaks":[{"key":"k","key_text":["a"],"classes":{"A":1},"instances":1}]}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := ReadSummary(bytes.NewReader(file))
		if err != nil {
			return
		}
		d := Compare(s, s, many)
		if len(d.Classes)+len(d.Growth)+len(d.Shrinkage) != 0 {
			t.Errorf("a summary differs from itself: %+v", d)
		}
		for _, l := range d.Leaks {
			if l.Status != statusKnown && l.Status != statusUnpaired {
				t.Errorf("%+v", l)
			}
		}
		if first, again := encoded(t, s), encoded(t, reread(t, s)); !bytes.Equal(first, again) {
			t.Errorf("%s\n%s", first, again)
		}
	})
}
