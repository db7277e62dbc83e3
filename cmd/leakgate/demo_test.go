package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// demonstrated returns the record of a successful demo.
func demonstrated() record.Run {
	leaking := 2100.0
	return record.Run{
		Schema: record.RunSchema,
		Processes: []record.Process{
			{Process: demoLeak, Gate: detector.Leak, Kind: detector.Java, FirstLeaking: &leaking},
			{Process: demoHealthy, Gate: detector.Pass, Worst: detector.Normal},
		},
		Diagnoses: []record.Diagnosis{
			{Process: demoLeak, Trigger: "suspicious", Warnings: []string{"of the snapshot"}},
			{
				Process: demoLeak, Trigger: "leak",
				Steps: []record.Collected{{Step: "heap", Outcome: "complete", File: "heap.hprof.zst"}},
				Findings: []record.Finding{
					{Type: "leak", Name: "DetailActivity", Trace: []string{"GC Root: Thread object"}},
				},
			},
		},
	}
}

// A demo either shows a leak, with its trace, and a healthy process, or reports
// what is missing and what to do, with the exit code of a failure.
func TestDemoFaults(t *testing.T) {
	noHeap := func(reason string) func(*record.Run) {
		return func(r *record.Run) {
			r.Diagnoses[1].Findings, r.Diagnoses[1].Steps[0] = nil,
				record.Collected{Step: "heap", Outcome: "failed", Reasons: []string{reason}}
		}
	}
	const full = "the host's disk is full: 17 MB free, but the dump and a copy need 779 MB"
	for name, c := range map[string]struct {
		change    func(*record.Run)
		run, code int
		want      string
	}{
		"success": {func(*record.Run) {}, record.ExitLeak, exitOK, "passed: found and traced the leak"},
		"disk full": {
			noHeap(full), record.ExitLeak, record.ExitLeak, full + "; free space or choose another --out\n",
		},
		"no dump": {
			noHeap("am dumpheap printed nothing"), record.ExitLeak, record.ExitLeak,
			"am dumpheap printed nothing; please report it",
		},
		"no diagnosis": {
			func(r *record.Run) { r.Diagnoses = r.Diagnoses[:1] }, record.ExitLeak, record.ExitLeak,
			"no heap dump shows what leaks; please report it",
		},
		"no trace": {
			func(r *record.Run) { r.Diagnoses[1].Findings[0].Trace = nil }, record.ExitLeak, record.ExitLeak,
			"no heap dump shows what leaks",
		},
		"trace of another leak": {
			func(r *record.Run) { r.Diagnoses[1].Process = demoHealthy }, record.ExitLeak, record.ExitLeak,
			"no heap dump shows what leaks",
		},
		"not analyzed": {func(r *record.Run) {
			r.Diagnoses[1].Findings, r.Diagnoses[1].Warnings = nil, []string{"strip the dump: no space left on device"}
		}, record.ExitLeak, record.ExitLeak, "no space left on device; free space or choose another --out"},
		"no leak": {
			func(r *record.Run) { r.Processes[0].Gate = detector.Inconclusive }, record.ExitClean, record.ExitLeak,
			"the Java leak of com.shop was not found; please report it",
		},
		"interrupted": {
			func(r *record.Run) { r.Processes[0].Gate = detector.Inconclusive }, record.ExitInterrupted,
			record.ExitInterrupted, "",
		},
		"run could not be written": {noHeap(full), record.ExitUnwritten, record.ExitUnwritten, ""},
	} {
		run := demonstrated()
		c.change(&run)
		var errOut bytes.Buffer
		code := demoCode(console{err: &errOut}, run, c.run)
		if code != c.code || !strings.Contains(errOut.String(), c.want) || c.want == "" && errOut.Len() > 0 ||
			strings.Contains(errOut.String(), "snapshot") {
			t.Errorf("%s: exit %d, %q", name, code, errOut.String())
		}
	}
}

// The documentation of the demo names the disk space that it needs, and its
// exit codes.
func TestDemoIsDocumented(t *testing.T) {
	_, help, _ := typed(t, nil, "demo", "--help")
	if !strings.Contains(help, "1 GB of free disk") || !strings.Contains(help, "0.3 GB remain in the") ||
		!regexp.MustCompile(`leakgate demo .*1 GB of free disk`).MatchString(readme(t)) {
		t.Errorf("the disk space is missing from the README or the help:\n%s", help)
	}
	page, err := os.ReadFile("../../docs/formats/run.md")
	if err != nil ||
		!regexp.MustCompile("(?m)^\\| `interrupted`, `exit_code` \\|.*`demo` that passed, `exit_code` is 1").
			Match(page) {
		t.Errorf("the demo's exit code is missing from run.md, %v", err)
	}
}
