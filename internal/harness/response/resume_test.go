package response_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// A run that was killed between the collection and the analysis is completed:
// the dump is analyzed and stripped, the growth since the snapshot is reported,
// and incomplete files are removed. A second call of Resume has nothing left to
// do.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, dir := onPhone(t, 0, 34), t.TempDir()
		r := response.New(dir, response.Options{})
		var records []record.Diagnosis
		for i, recipe := range []string{response.Snapshot, "unknown"} {
			target := p.target(t, "java")
			c, err := r.Collect(t.Context(), p.dev, p.facts, response.Order{
				Process: target.Process, Level: target.Level, Recipe: recipe, Trigger: record.TriggerLeak,
				T: float64(i),
			})
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, c.Record)
			time.Sleep(10 * time.Second)
		}
		folder := filepath.Join(dir, filepath.FromSlash(records[1].Folder))
		whole, err := os.Stat(filepath.Join(folder, "heap.hprof"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{".strip-1", ".heap.hprof.part-1", ".heap.hprof.zst-1"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		warnings, err := response.Resume(t.Context(), dir, response.Options{}, records)
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		text := strings.Join(records[1].Summary, "\n")
		if d := records[1]; !d.Analyzed || !strings.Contains(text, "native memory:") ||
			!strings.Contains(text, "retained") || len(d.Findings) == 0 {
			t.Errorf("not completed: %+v", d)
		}
		names, err := filepath.Glob(filepath.Join(folder, ".*"))
		if err != nil || len(names) > 0 {
			t.Errorf("left: %v, %v", names, err)
		}
		stripped := response.KeptDump(t, folder)
		if int64(len(stripped)) != whole.Size() || strings.Contains(string(stripped), "m\x00a\x00i\x00n") {
			t.Errorf("%d bytes of %d", len(stripped), whole.Size())
		}
		if _, err := os.Stat(filepath.Join(folder, "heap.hprof.summary.txt")); err != nil {
			t.Error(err)
		}
		before := len(records[1].Findings)
		if warnings, err := response.Resume(t.Context(), dir, response.Options{}, records); err != nil ||
			len(warnings) > 0 || len(records[1].Findings) != before {
			t.Errorf("again: %d findings, %v, %v", len(records[1].Findings), warnings, err)
		}
	})
}

// A run directory is untrusted: a record cannot refer to a folder outside the
// directory, and a record whose folder is gone is reported.
func TestResumeElsewhere(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.MkdirAll(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "heap.hprof")
	if err := os.WriteFile(secret, []byte("JAVA PROFILE 1.0.3"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(outside), "run")
	steps := []record.Collected{{Step: "heap", File: "heap.hprof"}}
	for _, name := range []string{
		"../outside", "artifacts/../../outside", outside, "artifacts", "", "artifacts/gone/x",
		`artifacts\..\..\outside`,
	} {
		warnings, err := response.Resume(t.Context(), dir, response.Options{},
			[]record.Diagnosis{{Folder: name, Steps: steps, Recipe: "java"}})
		if err != nil || len(warnings) != 1 {
			t.Errorf("%q: %v, %v", name, warnings, err)
		}
	}
	if text, err := os.ReadFile(secret); err != nil || len(text) != 18 {
		t.Errorf("touched: %q, %v", text, err)
	}
}
