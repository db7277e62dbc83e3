package reporters

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// WriteDiagnosis writes what was collected from one process, and the findings.
func WriteDiagnosis(w io.Writer, d record.Diagnosis) error {
	var out page
	out.diagnosis(d, false)
	return out.writeTo(w)
}

// diagnosis writes what was collected and the findings. A snapshot, which
// serves only for comparison, takes one line. Other diagnoses end with their
// summary, whose last line is the end of the leak trace if there is one.
func (out *page) diagnosis(d record.Diagnosis, several bool) {
	who := name(d.Process)
	if d.User != 0 {
		who += fmt.Sprintf(" (user %d)", d.User)
	}
	if several {
		who += " on " + name(d.Device)
	}
	out.line("%s, %s: %s", who, diagnosisWhen(d), diagnosisWhat(d))
	if d.Recipe == "snapshot" {
		return
	}
	for _, text := range d.Warnings {
		out.line("  warning: %s", text)
	}
	for _, line := range out.summary(d.Summary) {
		out.line("  %s", line)
	}
}

// keyEnd matches the end of the line before the trace of a leak.
var keyEnd = regexp.MustCompile(`, key ([0-9a-f]+)$`)

// summary returns the lines of a diagnosis. If the trace of the same leak was
// already printed for an earlier diagnosis, one line replaces the trace.
func (out *page) summary(lines []string) []string {
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "┬") })
	if at < 1 {
		return lines
	}
	key := keyEnd.FindStringSubmatch(lines[at-1])
	if key == nil {
		return lines
	}
	if out.traced[key[1]] {
		return append(slices.Clone(lines[:at]), "the trace is printed above, with the same key")
	}
	if out.traced == nil {
		out.traced = map[string]bool{}
	}
	out.traced[key[1]] = true
	return lines
}

// diagnosisWhen returns the reason for a diagnosis and its time.
func diagnosisWhen(d record.Diagnosis) string {
	at := text.Span(d.T)
	switch d.Trigger {
	case "leak":
		return "leak at " + at
	case "suspicious":
		return "suspicion at " + at
	case "mark":
		return fmt.Sprintf("mark %q at %s", name(d.Mark), at)
	case "marks":
		return "dumps at marks"
	case "first":
		if d.Mark == "" {
			return "after startup at " + at
		}
		return "first mark at " + at
	case "final", "end", "last":
		return "end of the run"
	}
	return "diagnosis"
}

func diagnosisWhat(d record.Diagnosis) string {
	what := d.Recipe
	if d.Kind != detector.None {
		what = DescribeKind(d.Kind)
	}
	collected, kept := 0, ""
	for _, c := range d.Steps {
		if c.Outcome == "complete" || c.Outcome == "fallback" {
			collected++
			if c.Step == "heap" && c.File == "" {
				kept = " (the heap dump is not kept)"
			}
		}
	}
	switch d.Outcome {
	case record.DiagnosisNothing:
		return what + ", nothing could be collected"
	case record.DiagnosisInterrupted:
		what += ", INTERRUPTED"
	case record.DiagnosisDegraded:
		what += ", some by a fallback"
	}
	if len(d.Steps) == 0 {
		return fmt.Sprintf("%s, in %s", what, d.Folder)
	}
	return fmt.Sprintf("%s, %d of %d artifacts in %s%s", what, collected, len(d.Steps), d.Folder, kept)
}
