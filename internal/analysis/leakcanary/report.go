package leakcanary

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/leakgate/leakgate/internal/text"
)

// Form is the format of an input.
type Form string

// The formats. If Auto is used, the format of an input is detected.
const (
	Auto   Form = ""
	Text   Form = "text"
	JUnit  Form = "junit"
	Logcat Form = "logcat"
)

// ErrNoReport is the error for an input without a LeakCanary report: it is then
// unknown whether there are leaks.
var ErrNoReport = errors.New("no LeakCanary report")

// Report holds the information about leaks in an input.
type Report struct {
	Form Form
	// Analyses is the number of heap dumps that were analyzed, including those
	// whose report is incomplete. A heap dump counts once, even if the input
	// contains its report twice.
	Analyses int
	// Leaks are in the order of the input.
	Leaks []SignedLeak
	// Tests is the number of test cases in the JUnit XML.
	Tests int
	// Failures are the reasons why heap dumps could not be analyzed; it
	// contains at most 100. The leaks in these dumps are unknown.
	Failures []string
	// Undecided lists the reasons why there may be leaks that are not in Leaks,
	// at most 100: a report is truncated, or a leak has no signature.
	Undecided []string
	// Warnings lists uncertainties about the leaks, at most 100.
	Warnings []string
}

// SignedLeak is a leak that LeakCanary found.
type SignedLeak struct {
	// Signature is LeakCanary's signature, 40 lowercase hexadecimal digits: the
	// SHA-1 of the suspect references or, for a library leak, of the pattern.
	Signature string
	// Library reports whether the leak is a known leak of the platform or of a
	// library. Pattern is the reference that causes a known leak, and
	// Description explains why it leaks.
	Library     bool
	Pattern     string
	Description string
	// Class is the class of the leaking object, and Root is the kind of GC root
	// that holds it. HeldBy is the first suspect reference, as CLASS.FIELD,
	// CLASS[x] or CLASS<Java Local>; "" if there is none.
	Class  string
	Root   string
	HeldBy string
	// Traces is the number of objects that leak in this way, over all reports.
	// LeakCanary stops watching an object after it has reported the object
	// (ObjectWatcher.clearObjectsWatchedBefore), so each object is counted
	// once. Analyses is the number of reports that contain the leak.
	Traces   int
	Analyses int
	// RetainedBytes is the number of bytes that the objects retain together; it
	// is nil if any of the reports lacks the size.
	RetainedBytes *int64
	// TraceLines is the leak trace of the first object, at most 1,000 lines.
	TraceLines []string
	// Tests lists the tests that found the leak, as CLASS#METHOD, at most 100;
	// it is empty if they are unknown.
	Tests []string
}

// Test returns the name of the first test that found the leak, or "" if it is
// unknown.
func (l *SignedLeak) Test() string {
	if len(l.Tests) == 0 {
		return ""
	}
	return l.Tests[0]
}

const (
	maxInput = 64 << 20
	maxLeaks = 10_000
	// maxRead is the maximum total number of leaks in all reports, including
	// leaks with the same signature.
	maxRead = 100_000
	// maxNotes is the maximum length of each list of reasons; maxNote is the
	// maximum length of each reason, in characters.
	maxNotes = 100
	maxNote  = 300
	// maxName is the maximum length of the names of classes, fields and tests,
	// in characters; the JVM allows 65,535 bytes.
	maxName = 1000
	// maxTests is the maximum number of tests listed for one leak.
	maxTests = 100
)

// caps are the limits for an input; tests use smaller ones.
type caps struct{ input, leaks int }

// Read reads the reports in an input. It returns an error if the input exceeds
// 64 MB or 10,000 leaks, and ErrNoReport if it does not contain a report.
func Read(r io.Reader, format Form) (Report, error) {
	return read(r, format, caps{maxInput, maxLeaks})
}

func read(r io.Reader, format Form, most caps) (Report, error) {
	input, err := io.ReadAll(io.LimitReader(r, int64(most.input)+1))
	if err != nil {
		return Report{}, fmt.Errorf("read LeakCanary's report: %w", err)
	}
	if len(input) > most.input {
		return Report{}, fmt.Errorf("read LeakCanary's report: more than %s; keep only the lines from LeakCanary",
			text.Size(int64(most.input)))
	}
	input = decode(input)
	if format == Auto {
		format = detect(input)
	}
	c := &collection{seen: map[string]int{}}
	switch format {
	case Text:
		c.readText(input, "")
	case Logcat:
		c.readLogcat(input, "")
	case JUnit:
		c.readXML(input)
	default:
		return Report{}, fmt.Errorf("read LeakCanary's report: invalid format %q: want text, junit or logcat", format)
	}
	report := Report{Form: format, Tests: c.tests, Failures: c.failures, Undecided: c.undecided, Warnings: c.warnings}
	if c.leaks > maxRead {
		return Report{}, fmt.Errorf("read LeakCanary's report: more than %s leaks", text.Grouped(maxRead))
	}
	if len(c.analyses) == 0 && len(c.failures) == 0 {
		return Report{}, fmt.Errorf("read LeakCanary's report: %w: %s", ErrNoReport, c.sought(format))
	}
	if err := report.merge(c.analyses, most.leaks); err != nil {
		return Report{}, err
	}
	return report, nil
}

// sought describes what was searched for but not found.
func (c *collection) sought(format Form) string {
	const marker = `a line "HEAP ANALYSIS RESULT" or "HEAP ANALYSIS FAILED"`
	switch {
	case format == JUnit && len(c.undecided) > 0:
		return fmt.Sprintf("looked for %s in %s; %s", marker, text.Count(c.tests, "test case", "test cases"),
			c.undecided[0])
	case format == JUnit:
		return fmt.Sprintf("looked for %s in %s; a test that passes prints neither: pass the logcat of the test run",
			marker, text.Count(c.tests, "test case", "test cases"))
	case format == Logcat:
		return fmt.Sprintf(`looked for %s and for "%s" in a logcat; check that the tag LeakCanary is not filtered out`,
			marker, noLeaks)
	}
	return fmt.Sprintf("looked for %s; pass a LeakCanary 2 report, or JUnit XML or a logcat that contains one",
		marker)
}

// note adds a reason to a bounded list, unless the list already contains it.
func note(list *[]string, format string, args ...any) {
	if reason := text.Head(fmt.Sprintf(format, args...), maxNote); len(*list) < maxNotes &&
		!slices.Contains(*list, reason) {
		*list = append(*list, reason)
	}
}

// fail records the reason why a heap dump could not be analyzed.
func (c *collection) fail(test, reason string) {
	if test != "" {
		reason = test + ": " + reason
	}
	note(&c.failures, "%s", reason)
}
