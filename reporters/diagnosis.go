package reporters

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// DiagnosisText tells a diagnosis in lines that are Printable.
func DiagnosisText(d record.Diagnosis) []string {
	var s sheet
	s.diagnosis(d, false)
	return strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

// diagnosis tells what was collected and what it shows. A snapshot, which is there to be
// compared with, is one line. The last line is that of the summary: of a leak trace its
// end.
func (s *sheet) diagnosis(d record.Diagnosis, several bool) {
	who := name(d.Process)
	if d.User != 0 {
		who += fmt.Sprintf(" (user %d)", d.User)
	}
	if several {
		who += " on " + name(d.Device)
	}
	s.line("%s, %s: %s", who, diagnosisWhen(d), diagnosisWhat(d))
	if d.Recipe == "snapshot" {
		return
	}
	for _, text := range d.Warnings {
		s.line("  warning: %s", text)
	}
	for _, line := range d.Summary {
		s.line("  %s", line)
	}
}

// diagnosisWhen says what a diagnosis was for, and when.
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
	case "final", "end":
		return "end of the run"
	}
	return "diagnosis"
}

func diagnosisWhat(d record.Diagnosis) string {
	what := d.Recipe
	if d.Kind != "" {
		what = KindWords(d.Kind)
	}
	collected, kept := 0, ""
	for _, c := range d.Steps {
		if c.Ending == "complete" || c.Ending == "fallback" {
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
		what += ", not all in the best way"
	}
	if len(d.Steps) == 0 {
		return fmt.Sprintf("%s, in %s", what, d.Folder)
	}
	return fmt.Sprintf("%s, %d of %d artifacts in %s%s", what, collected, len(d.Steps), d.Folder, kept)
}
