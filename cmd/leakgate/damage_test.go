package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/reporters/record"
)

// A damaged line in the middle of a run does not make the run unreadable: the
// line is reported on stderr and in run.json, and the exit code is the usual
// one of a report.
func TestReportSkipsDamagedLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		phones := attach(t, shop("phone-a"))
		dir := filepath.Join(t.TempDir(), "run")
		if code, out, errOut := phones.typed(t, "watch", "--process", "com.shop", "--for", "20m", "--out",
			dir); code != record.ExitInconclusive {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		before, err := record.ReadRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, record.SamplesName)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		at := len(lines) / 2
		for !strings.Contains(lines[at], `"source":"smaps`) || strings.Contains(lines[at], `"breakdown"`) {
			at++
		}
		lines[at] = "\x00\x1b[2J" + lines[at]
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errOut := phones.typed(t, "report", dir)
		named := fmt.Sprintf("leakgate report: line %d of samples.ndjson cannot be read", at+1)
		if code != 0 || out == "" || !strings.HasPrefix(errOut, named) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("exit %d, want %q\n%s%s", code, named, out, errOut)
		}
		after, err := record.ReadRun(dir)
		if err != nil || after.ExitCode != before.ExitCode || after.Stopped != before.Stopped {
			t.Errorf("%+v, %v", after, err)
		}
		if !slices.ContainsFunc(after.Warnings,
			func(w string) bool { return strings.Contains(w, "could not be read") }) ||
			!strings.Contains(out, "could not be read") {
			t.Errorf("run.json or the report does not warn that a line could not be read: %q\n%s", after.Warnings, out)
		}
		for i, p := range after.Processes {
			if b := before.Processes[i]; p.Gaps != b.Gaps+1 || p.Samples > b.Samples || p.Samples < b.Samples-1 {
				t.Errorf("%+v\nbefore\n%+v", p, b)
			}
		}
	})
}
