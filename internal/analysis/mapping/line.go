package mapping

import (
	"bytes"
	"math"
)

// lines is a range of line numbers. Its zero value means that there is no
// range.
type lines struct {
	from, to int32
	known    bool
}

func (l lines) has(line int32) bool { return l.known && l.from <= line && line <= l.to }

// span returns the number of lines in the range.
func (l lines) span() int64 { return int64(l.to) - int64(l.from) + 1 }

// member is a parsed line that describes a field or a method. It shares the
// bytes of the line.
type member struct {
	// obfuscated and original are ranges of line numbers; fields have no
	// ranges.
	obfuscated, original lines
	kind                 []byte
	// holder is the class that the line names before the member's name; it is
	// empty if the member belongs to the current class.
	holder, name, renamed []byte
	// signature is the type, the name and the arguments of a method.
	signature []byte
	method    bool
}

var arrow = []byte("->")

// parseClass parses "a.b.Original -> a.b:".
func parseClass(line []byte) (original, renamed []byte, ok bool) {
	line = line[:len(line)-1]
	at := bytes.Index(line, arrow)
	if at < 0 {
		return nil, nil, false
	}
	original, renamed = trim(line[:at]), trim(line[at+len(arrow):])
	return original, renamed, isName(original) && isName(renamed)
}

// parseMember parses "type name -> a" and "1:3:type
// a.Holder.name(arguments):5:7 -> a". Each range may be missing, and the second
// range may be a single number.
func parseMember(line []byte) (m member, ok bool) {
	at := bytes.Index(line, arrow)
	if at < 0 {
		return m, false
	}
	m.renamed = trim(line[at+len(arrow):])
	rest := trim(line[:at])
	ranged := len(rest) > 0 && isDigit(rest[0])
	if ranged {
		if m.obfuscated, rest, ok = parseLines(rest); !ok {
			return m, false
		}
		if !bytes.HasPrefix(rest, colon) {
			return m, false
		}
		rest = trim(rest[1:])
	}
	space := bytes.IndexAny(rest, " \t")
	if space < 0 {
		return m, false
	}
	m.kind = rest[:space]
	name := trim(rest[space:])
	if open := bytes.IndexByte(name, '('); open >= 0 {
		end := bytes.IndexByte(name, ')')
		if end < open {
			return m, false
		}
		m.method = true
		m.signature = rest[:len(rest)-len(name)+end+1]
		if m.original, ok = parseOriginal(trim(name[end+1:])); !ok || !areTypes(name[open+1:end]) {
			return m, false
		}
		name = trim(name[:open])
	}
	if dot := bytes.LastIndexByte(name, '.'); dot >= 0 {
		m.holder, name = name[:dot], name[dot+1:]
	}
	m.name = name
	ok = isName(m.name) && isName(m.renamed) && isType(m.kind) && (m.holder == nil || isName(m.holder)) &&
		(m.method || !ranged)
	return m, ok
}

var colon = []byte(":")

// parseLines reads a range such as "1:3" and returns the rest.
func parseLines(text []byte) (l lines, rest []byte, ok bool) {
	if l.from, rest, ok = parseNumber(text); !ok || !bytes.HasPrefix(rest, colon) {
		return l, rest, false
	}
	if l.to, rest, ok = parseNumber(trim(rest[1:])); !ok {
		return l, rest, false
	}
	l.known = true
	return ordered(l), trim(rest), true
}

// parseOriginal parses "", ":5" or ":5:7"; it does not allow any text
// afterwards.
func parseOriginal(text []byte) (l lines, ok bool) {
	if len(text) == 0 {
		return l, true
	}
	if text[0] != ':' {
		return l, false
	}
	text = trim(text[1:])
	if l, rest, ok := parseLines(text); ok {
		return l, len(rest) == 0
	}
	line, rest, ok := parseNumber(text)
	return lines{line, line, true}, ok && len(trim(rest)) == 0
}

// ordered returns the range with its ends in ascending order, as retrace does.
func ordered(l lines) lines {
	if l.from > l.to {
		l.from, l.to = l.to, l.from
	}
	return l
}

func parseNumber(text []byte) (n int32, rest []byte, ok bool) {
	value, i := int64(0), 0
	for ; i < len(text) && isDigit(text[i]); i++ {
		if value = 10*value + int64(text[i]-'0'); value > math.MaxInt32 {
			return 0, text, false
		}
	}
	return int32(value), text[i:], i > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isName reports whether a string can be the name of a class or a member.
// Obfuscators use letters of all alphabets, but not the separators that
// structure a line.
func isName(text []byte) bool {
	for _, c := range text {
		if notName[c] {
			return false
		}
	}
	return len(text) > 0
}

// notName marks the characters that no name contains. Angle brackets are
// allowed because of <init>.
var notName = func() (table [256]bool) {
	for c := range 0x21 {
		table[c] = true
	}
	for _, c := range "\x7f:;,()[]{}/\\\"'#" {
		table[c] = true
	}
	return table
}()

// isType reports whether a string can be the name of a type. The names of
// arrays contain brackets.
func isType(text []byte) bool {
	for bytes.HasSuffix(text, brackets) {
		text = text[:len(text)-len(brackets)]
	}
	return isName(text)
}

var brackets = []byte("[]")

func areTypes(text []byte) bool {
	if len(trim(text)) == 0 {
		return true
	}
	for more := true; more; {
		var one []byte
		if one, text, more = bytes.Cut(text, comma); !isType(trim(one)) {
			return false
		}
	}
	return true
}

var comma = []byte(",")

func trim(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	for len(text) > 0 && isSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	return text
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' }
