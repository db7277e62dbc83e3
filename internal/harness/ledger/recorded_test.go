package ledger

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the verdicts of the recorded runs")

// recordedRun returns the lines of a recorded run in testdata.
func recordedRun(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".ndjson.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The recorded runs have exactly the verdicts that were recorded with them.
// They contain simulated phones with leaks of each kind, caches, gaps, reboots
// and restarts, for each policy and source; one run was killed, and another has
// damaged lines.
func TestRecordedRuns(t *testing.T) {
	files, err := filepath.Glob("testdata/*.ndjson.gz")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".ndjson.gz")
		run, _, err := rebuildOf(t, recordedRun(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := json.MarshalIndent(run, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		page := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(page, append(got, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if string(got)+"\n" != string(want) {
			t.Errorf("%s has different verdicts:\n%s", name, firstDifference(string(got), string(want)))
		}
	}
}

// firstDifference returns the first pair of lines in which two strings differ.
func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "got  " + a[i] + "\nwant " + b[i]
		}
	}
	return "the files have different numbers of lines"
}
