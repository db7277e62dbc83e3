package leakcanary

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// noLeaks is the line that NoLeakAssertionFailedError.throwOnApplicationLeaks
// logs instead of a report if no leaks were found in a heap dump.
const noLeaks = "Test can keep going: heap analysis found 0 leaks."

// The first lines of reports.
const (
	beginResult = "HEAP ANALYSIS RESULT"
	beginFailed = "HEAP ANALYSIS FAILED"
)

// isBegin reports whether a line is the beginning of a report, or a whole
// report.
func isBegin(line string) bool {
	line = trim(line)
	return line == beginResult || line == beginFailed || line == noLeaks
}

// trim removes the characters around the text of a line: blanks, and the
// zero-width character that LeakCanary inserts at the beginning of lines so
// that a logcat keeps their blanks.
func trim(line string) string { return strings.Trim(line, " \t\u200b") }

// stray records a line that must be part of a report but was found outside of
// one. The beginning of the report is missing, either because the report
// exceeds the buffer of logcat, or because another tool added a prefix to the
// first line.
func (c *collection) stray(line string) {
	if strings.Contains(line, "╰→ ") || strings.Contains(line, beginResult) {
		note(&c.undecided, "the beginning of a report is missing before %s", text.Quote(trim(line), 80))
	}
}

// section is a part of a report.
type section int

const (
	none section = iota
	head
	application
	library
	unreachable
	stack
	metadata
)

var (
	leakCount  = regexp.MustCompile(`^(\d{1,9}) (APPLICATION LEAKS|LIBRARY LEAKS|UNREACHABLE OBJECTS)$`)
	retained   = regexp.MustCompile(`^(-?\d{1,18}) bytes retained by leaking objects$`)
	traceCount = regexp.MustCompile(
		`^Displaying only 1 leak trace out of (\d{1,9}) with the same (?:signature|leak fingerprint)$`)
	signature   = regexp.MustCompile(`^(?:Signature|Leak fingerprint): ?(.*)$`)
	timestamp   = regexp.MustCompile(`^Heap dump timestamp: (\d+)$`)
	separator   = regexp.MustCompile(`^={20,}$`)
	description = "Description: "
	pattern     = "Leak pattern: "
)

// analysis is one report: the result of analyzing one heap dump.
type analysis struct {
	test string
	// made is the time at which the dump was analyzed, in ms; "" if the report
	// does not contain the time.
	made  string
	leaks []*leak
	// declared is the number of leaks that the report declares.
	declared int
	// counts is the number of sections that declared how many leaks they
	// contain.
	counts int
}

// parser reads the lines of one output.
type parser struct {
	into *collection
	test string
	section
	current *analysis
	leak    *leak
	// reason explains why the analysis failed; it is "" until the explanation
	// has been read.
	reason string
}

// line parses the next line of the output.
func (p *parser) line(line string) {
	trimmed := trim(line)
	switch {
	case isBegin(line):
		p.begin(trimmed)
	case p.section == none:
		p.into.stray(line)
	case separator.MatchString(trimmed):
		p.separate()
	default:
		p.content(line, trimmed)
	}
}

func (p *parser) begin(line string) {
	p.end()
	if line == noLeaks {
		p.into.add(&analysis{test: p.test, counts: 2})
		return
	}
	p.section, p.reason = head, ""
	if line == beginResult {
		p.current = &analysis{test: p.test}
	}
}

// separate ends a section. After the metadata, which is the last section,
// separate also ends the report.
func (p *parser) separate() {
	p.closeLeak()
	if p.section != metadata {
		p.section = head
		return
	}
	p.section = none
	if p.current == nil {
		p.into.fail(p.test, firstOf(p.reason, "the report does not contain the reason"))
		return
	}
	p.into.add(p.current)
	p.current = nil
}

// end handles the end of the output. A report that is still open is recorded as
// truncated.
func (p *parser) end() {
	if p.section == none {
		return
	}
	p.closeLeak()
	last := p.section
	p.section = none
	if p.current == nil {
		p.into.fail(p.test, firstOf(p.reason, "the report is truncated"))
		return
	}
	switch added := p.into.add(p.current); {
	case !added:
	case p.current.counts == 2 && last != application && last != library:
		note(&p.into.warnings, "a report is truncated after its leaks")
	default:
		note(&p.into.undecided, "a report is truncated: it ends after %s of %s",
			text.Count(len(p.current.leaks), "leak", "leaks"), text.Grouped(int64(p.current.declared)))
	}
	p.current = nil
}

// content parses a line of a section, or its heading.
func (p *parser) content(line, trimmed string) {
	switch {
	case p.parseHeading(trimmed):
	case p.section == stack:
		if p.reason == "" {
			p.reason = text.FirstLine(trimmed, maxNote)
		}
	case p.current == nil:
	case p.section == metadata:
		if m := timestamp.FindStringSubmatch(trimmed); m != nil {
			p.current.made = m[1]
		}
	case p.section == application, p.section == library:
		p.leakLine(line, trimmed)
	}
}

// parseHeading parses the first line of a section.
func (p *parser) parseHeading(line string) bool {
	if p.section != head {
		return false
	}
	switch line {
	case "METADATA":
		p.section = metadata
		return true
	case "STACKTRACE":
		p.section = stack
		return true
	}
	m := leakCount.FindStringSubmatch(line)
	if m == nil || p.current == nil {
		return false
	}
	p.section = map[string]section{
		"APPLICATION LEAKS": application, "LIBRARY LEAKS": library, "UNREACHABLE OBJECTS": unreachable,
	}[m[2]]
	if p.section != unreachable {
		n, _ := strconv.Atoi(m[1]) // nine digits
		p.current.declared += n
		p.current.counts++
	}
	return true
}

// leakLine parses a line about a leak. The lines before a trace belong to the
// leak of the trace and have a fixed order, so the first of them begins a new
// leak.
func (p *parser) leakLine(line, trimmed string) {
	if p.leak != nil && p.leak.inTrace {
		if p.leak.traceLine(line, trimmed) {
			return
		}
		p.closeLeak()
	}
	if m := retained.FindStringSubmatch(trimmed); m != nil {
		p.next()
		// Shark computes the sum as an Int: a negative number is an overflow.
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil && n >= 0 {
			p.open().bytes = &n
		}
		p.open().described = true
		return
	}
	if m := traceCount.FindStringSubmatch(trimmed); m != nil {
		p.next()
		n, _ := strconv.Atoi(m[1]) // nine digits
		p.open().traces = max(n, 1)
		p.open().described = true
		return
	}
	if m := signature.FindStringSubmatch(trimmed); m != nil {
		p.next()
		p.open().printed = m[1]
		p.open().described = true
		return
	}
	switch {
	case strings.HasPrefix(trimmed, pattern):
		p.closeLeak()
		p.open().pattern = strings.TrimPrefix(trimmed, pattern)
	case strings.HasPrefix(trimmed, "┬───"):
		p.open().traceLine(line, trimmed)
	case p.leak == nil || p.leak.described || trimmed == "":
	case strings.HasPrefix(trimmed, description):
		p.leak.description = append(p.leak.description, strings.TrimPrefix(trimmed, description))
	case len(p.leak.description) > 0:
		if len(p.leak.description) < maxNotes {
			p.leak.description = append(p.leak.description, trimmed)
		}
	case p.leak.pattern != "":
		p.leak.pattern = joined(p.leak.pattern, trimmed)
	}
}

// open returns the leak that is being read, or begins a new one.
func (p *parser) open() *leak {
	if p.leak == nil {
		p.leak = &leak{library: p.section == library, traces: 1}
	}
	return p.leak
}

// next closes the current leak if it has a signature but no trace yet.
func (p *parser) next() {
	if p.leak != nil && p.leak.printed != "" {
		p.closeLeak()
	}
}

func (p *parser) closeLeak() {
	if p.leak == nil {
		return
	}
	p.leak.closeNode()
	if p.into.leaks++; p.into.leaks <= maxRead {
		p.current.leaks = append(p.current.leaks, p.leak)
	}
	p.leak = nil
}

// maxJoined is the maximum length of a joined line, in bytes.
const maxJoined = 8 << 10

// longWord is the minimum length of a word, in bytes, within which
// LeakTraceWrapper may have wrapped a line.
const longWord = 40

// joined joins the two parts of a line that LeakTraceWrapper has wrapped. The
// wrapper breaks a line after a full stop, at a blank, which it removes, or
// within a word that is longer than a line.
func joined(line, next string) string {
	if len(line) > maxJoined {
		return line
	}
	if len(line)-1-strings.LastIndexAny(line, " .") >= longWord || strings.HasSuffix(line, ".") || line == "" {
		return line + next
	}
	return line + " " + next
}
