package leakcanary

import (
	"crypto/sha1"
	"encoding/hex"
	"hash"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/leakgate/leakgate/internal/text"
)

// leak is a leak in one report, while the report is being read.
type leak struct {
	library     bool
	pattern     string
	description []string
	// printed is the signature as printed in the report.
	printed string
	// described reports whether a line after the description was read.
	described bool
	traces    int
	bytes     *int64

	inTrace bool
	// first and last hold lines of the trace; last is a ring buffer. omitted is
	// the number of lines between them.
	first, last []string
	omitted     int
	indent      int
	root        string
	// node is the line of the current object, and reference is the line of the
	// reference from this object to the next. underline is the length of the
	// suspect part at the end of the reference.
	node, reference string
	inReference     bool
	underline       int
	final           bool
	class           string
	heldBy          string
	suspects        hash.Hash
}

// half is the maximum number of lines that are kept from the beginning of a
// trace, and from its end.
const half = 500

// traceLine parses a line of a trace; it returns false if the line is not part
// of the trace.
func (l *leak) traceLine(line, trimmed string) bool {
	switch {
	case !l.inTrace:
		l.inTrace, l.suspects = true, sha1.New()
		l.indent = len(line) - len(strings.TrimLeft(line, " \t"))
	case trimmed == "":
		return !l.final // in a logcat in long format
	case l.final && !strings.HasPrefix(line, "\u200b") && !strings.HasPrefix(line, " ") &&
		!strings.HasPrefix(line, "\t"):
		return false
	case l.final &&
		(retained.MatchString(trimmed) || traceCount.MatchString(trimmed) || signature.MatchString(trimmed) ||
			strings.HasPrefix(trimmed, pattern) || strings.HasPrefix(trimmed, "┬───")):
		return false // all lines are indented
	}
	l.keep(line)
	l.structure(trimmed)
	return true
}

// keep stores a line of the trace as printed, without the indentation that all
// lines of the trace share.
func (l *leak) keep(line string) {
	blanks := len(line) - len(strings.TrimLeft(line, " \t"))
	line = strings.ReplaceAll(line[min(blanks, l.indent):], "\u200b", " ")
	line = text.Head(strings.TrimRight(line, " \t"), maxName)
	if len(l.first) < half {
		l.first = append(l.first, line)
		return
	}
	if len(l.last) < half {
		l.last = append(l.last, line)
		return
	}
	l.last[l.omitted%half] = line
	l.omitted++
}

// lines returns the kept lines of the trace.
func (l *leak) lines() []string {
	out := slices.Clone(l.first)
	if l.omitted == 0 {
		return append(out, l.last...)
	}
	oldest := l.omitted % half
	last := append(slices.Clone(l.last[oldest:]), l.last[:oldest]...)
	// The line about omitted lines replaces one of the kept lines, so the limit
	// is not exceeded.
	out = append(out, "│ ... "+text.Count(l.omitted+1, "line", "lines")+" omitted ...")
	return append(out, last[1:]...)
}

// structure parses a line of a trace: an object, a reference, or the
// continuation of either. LeakTraceWrapper wraps lines, so the line of an
// object or of a reference may continue in the next line, indented by two
// columns.
func (l *leak) structure(line string) {
	if node, ok := strings.CutPrefix(line, "╰→ "); ok {
		l.closeNode()
		l.node, l.final = node, true
		return
	}
	if node, ok := strings.CutPrefix(line, "├─ "); ok {
		if l.node != "" && !l.final && !l.inReference && !typed(l.node) {
			l.node = joinedName(l.node, node) // older versions repeat the branch
			return
		}
		l.closeNode()
		l.node = node
		return
	}
	if l.final {
		if !typed(l.node) {
			l.node = joinedName(l.node, line)
		}
		return
	}
	rest, ok := strings.CutPrefix(line, "│")
	if !ok {
		return
	}
	content := strings.TrimLeft(rest, " ")
	switch {
	case content == "":
	case l.node == "" && strings.HasPrefix(content, "GC Root: "):
		l.root = strings.TrimPrefix(content, "GC Root: ")
	case l.node == "":
		l.root = joined(l.root, content)
	case strings.Trim(content, "~") == "":
		l.underline = len(content)
	case content == "↓", strings.HasPrefix(content, "↓ "):
		l.inReference, l.reference = true, strings.TrimLeft(strings.TrimPrefix(content, "↓"), " ")
	case l.inReference:
		l.reference = joined(l.reference, content)
	case len(rest)-len(content) < 4 && !typed(l.node):
		l.node = joinedName(l.node, content)
	}
}

// className returns the class in the line of an object. It returns false if the
// line is not complete, that is, if it does not end in the object's kind.
func className(node string) (string, bool) {
	for _, kind := range []string{" class", " array", " instance"} {
		if class, ok := strings.CutSuffix(node, kind); ok {
			return class, true
		}
	}
	return node, false
}

// typed reports whether the line of an object is complete, including the
// object's kind.
func typed(node string) bool {
	_, ok := className(node)
	return ok
}

// joinedName joins the parts of a wrapped line of an object. The name contains
// no blanks, so only the object's kind is preceded by a blank.
func joinedName(line, next string) string {
	if len(line) > maxJoined {
		return line
	}
	if next == "class" || next == "array" || next == "instance" {
		return line + " " + next
	}
	return line + next
}

// closeNode finishes the current object and its reference.
func (l *leak) closeNode() {
	class, _ := className(l.node)
	switch {
	case l.node == "":
	case l.final:
		l.class = class
	case l.underline > 0:
		name := suspectName(l.reference, l.underline)
		l.suspects.Write([]byte(class + name))
		if l.heldBy == "" {
			l.heldBy = heldBy(class, name)
		}
	}
	l.node, l.reference, l.inReference, l.underline = "", "", false, 0
}

// suspectName returns the underlined name in a reference, in the form that
// signatures use. The name is at the end of the line, even if the underline is
// wrapped. Lengths are in UTF-16 units (LeakTrace.getNextElementString).
func suspectName(reference string, underline int) string {
	if strings.HasSuffix(reference, "Local>") { // "<Java Local>", which may be wrapped
		return "<Java Local>"
	}
	units := utf16.Encode([]rune(reference))
	name := string(utf16.Decode(units[max(len(units)-underline, 0):]))
	if strings.HasPrefix(name, "[") {
		return "[x]"
	}
	return name
}

func heldBy(class, name string) string {
	if strings.HasPrefix(name, "[") || strings.HasPrefix(name, "<") {
		return strings.TrimSuffix(class, "[]") + name
	}
	return class + "." + name
}

// complete reports whether the trace ends with the leaking object and its class
// is known.
func (l *leak) complete() bool { return l.final && l.class != "" }

// hexDigits matches the digits of a signature.
var hexDigits = regexp.MustCompile(`^[0-9a-f]{20,40}$`)

// signature returns the signature of the leak, or false if it is unknown. Early
// versions print the hash without the leading zeros of its bytes, or do not
// print it: the signature is then computed from the pattern or the suspect
// references.
func (l *leak) signature() (string, bool) {
	printed := strings.ToLower(l.printed)
	if len(printed) == 40 && hexDigits.MatchString(printed) {
		return printed, true
	}
	if l.printed != "" && !hexDigits.MatchString(printed) {
		return "", false
	}
	var sum [sha1.Size]byte
	switch {
	case l.library && l.pattern != "":
		sum = sha1.Sum([]byte(l.pattern))
	case !l.library && l.complete():
		l.suspects.Sum(sum[:0])
	default:
		return "", false
	}
	if printed != "" && printed != withoutZeros(sum[:]) {
		return "", false
	}
	return hex.EncodeToString(sum[:]), true
}

// withoutZeros formats each byte with Integer.toHexString, like createHash in
// Strings.kt.
func withoutZeros(sum []byte) string {
	var out strings.Builder
	for _, b := range sum {
		out.WriteString(strconv.FormatUint(uint64(b), 16))
	}
	return out.String()
}
