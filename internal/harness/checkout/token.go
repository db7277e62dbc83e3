package checkout

import "strings"

// token is a lexical element of Java or Kotlin. Comments produce no token.
type token struct {
	kind byte // one of the constants below, or the character of a separator or operator
	line int32
	text string // the name, or the content of a literal as it is written
}

// The kinds of tokens. A separator or an operator has its own character as its
// kind, and none of the characters below is one.
const (
	nameToken    = 'a' // an identifier or a keyword
	quotedToken  = '`' // a Kotlin identifier in backticks
	literalToken = '"' // a string or a character
	numberToken  = '0'
)

func (t token) identifier() bool { return t.kind == nameToken || t.kind == quotedToken }

// is reports whether the token is this keyword, or a name that serves as a
// keyword in this position.
func (t token) is(word string) bool { return t.kind == nameToken && t.text == word }

// maxNesting is the maximum depth of nesting, for example of templates in
// strings in templates, or of classes in classes.
const maxNesting = 50

// lexer reads the tokens of Java (Java Language Specification, chapter 3) or
// Kotlin (kotlinlang.org/spec/syntax-and-grammar.html, Lexical grammar). It
// accepts any input.
type lexer struct {
	source string
	kotlin bool

	at      int
	line    int32
	nesting int
}

// tokens returns all tokens of a file.
func tokens(source string, kotlin bool) []token {
	l := lexer{source: strings.TrimPrefix(source, "\ufeff"), kotlin: kotlin, line: 1}
	var out []token
	for l.at < len(l.source) {
		if t, ok := l.next(); ok {
			out = append(out, t)
		}
	}
	return out
}

// next reads one token. It returns false if it read a blank or a comment.
func (l *lexer) next() (token, bool) {
	c := l.source[l.at]
	rest := l.source[l.at:]
	t := token{kind: c, line: l.line}
	switch {
	case c == '\n':
		l.line++
		l.at++
		return t, false
	case c == ' ' || c == '\t' || c == '\r' || c == '\f':
		l.at++
		return t, false
	case strings.HasPrefix(rest, "//"):
		l.skipTo("\n")
		return t, false
	case strings.HasPrefix(rest, "/*"):
		l.comment()
		return t, false
	case strings.HasPrefix(rest, `"""`):
		t.text = l.rawString()
	case c == '"':
		t.text = l.quotedString('"')
	case c == '\'':
		t.kind, t.text = literalToken, l.quotedString('\'')
	case c == '`' && l.kotlin:
		t.text = l.backticks()
	case isNameByte(c) && !isDigit(c):
		t.kind, t.text = nameToken, l.word()
	case isDigit(c):
		t.kind = numberToken
		l.word()
	case c == '`': // has no meaning in Java
		l.at++
		return t, false
	default:
		l.at++
	}
	return t, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// isNameByte reports whether a byte may be part of a name. It treats every
// non-ASCII character as a letter.
func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || isDigit(c) || c == '_' || c == '$' || c >= 0x80
}

func (l *lexer) word() string {
	begin := l.at
	for l.at < len(l.source) && isNameByte(l.source[l.at]) {
		l.at++
	}
	return l.source[begin:l.at]
}

// skipTo moves to the next occurrence of a string, or to the end.
func (l *lexer) skipTo(text string) {
	n := strings.Index(l.source[l.at:], text)
	if n < 0 {
		n = len(l.source) - l.at
	}
	l.skip(n)
}

// skip moves by n bytes, or to the end.
func (l *lexer) skip(n int) {
	n = min(n, len(l.source)-l.at)
	l.line += int32(strings.Count(l.source[l.at:l.at+n], "\n"))
	l.at += n
}

// comment skips a comment; Kotlin comments may be nested.
func (l *lexer) comment() {
	l.at += 2
	for depth := 1; depth > 0 && l.at < len(l.source); {
		rest := l.source[l.at:]
		switch {
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.at += 2
		case l.kotlin && strings.HasPrefix(rest, "/*"):
			depth++
			l.at += 2
		default:
			l.skip(1)
		}
	}
}

// quotedString reads a string or a character literal, which ends at the end of
// the line at the latest.
func (l *lexer) quotedString(end byte) string {
	l.at++
	begin := l.at
	for l.at < len(l.source) {
		switch c := l.source[l.at]; {
		case c == end:
			l.at++
			return l.source[begin : l.at-1]
		case c == '\n':
			return l.source[begin:l.at]
		case c == '\\':
			l.at++
			if l.at < len(l.source) && l.source[l.at] != '\n' {
				l.at++
			}
		case end == '"' && l.template():
		default:
			l.at++
		}
	}
	return l.source[begin:]
}

// rawString reads a Java text block, which may contain escapes, or a Kotlin raw
// string, which may contain templates and end with more than three quotes.
func (l *lexer) rawString() string {
	l.at += 3
	begin := l.at
	for l.at < len(l.source) {
		switch {
		case strings.HasPrefix(l.source[l.at:], `"""`):
			end := l.at
			l.at += 3
			for l.kotlin && l.at < len(l.source) && l.source[l.at] == '"' {
				l.at++
			}
			return l.source[begin:end]
		case !l.kotlin && l.source[l.at] == '\\':
			l.skip(2)
		case l.template():
		default:
			l.skip(1)
		}
	}
	return l.source[begin:]
}

// template skips a ${...} of Kotlin, whose code may contain strings.
func (l *lexer) template() bool {
	if !l.kotlin || l.nesting == maxNesting || !strings.HasPrefix(l.source[l.at:], "${") {
		return false
	}
	l.at += 2
	l.nesting++
	for open := 1; open > 0 && l.at < len(l.source); {
		t, _ := l.next()
		switch t.kind {
		case '{':
			open++
		case '}':
			open--
		}
	}
	l.nesting--
	return true
}

// backticks reads a quoted identifier, which ends at the end of the line at the
// latest.
func (l *lexer) backticks() string {
	l.at++
	begin := l.at
	n := strings.IndexAny(l.source[begin:], "`\n")
	if n < 0 {
		n = len(l.source) - begin
	}
	l.at += n
	if l.at < len(l.source) && l.source[l.at] == '`' {
		l.at++
	}
	return l.source[begin : begin+n]
}

// partners returns the index of the closing bracket for each opening bracket in
// the list, and 0 for every other token. An unclosed bracket ends where the
// enclosing bracket ends, or at the end of the list. Angle brackets are
// included where they may enclose type arguments.
func partners(list []token) []int32 {
	out := make([]int32, len(list))
	var open []int32 // indices, innermost last
	var count [256]int
	dropAngles := func() {
		for len(open) > 0 && list[open[len(open)-1]].kind == '<' {
			open = open[:len(open)-1]
		}
	}
	for i, t := range list {
		switch t.kind {
		case '(', '[', '{':
			if t.kind == '{' {
				dropAngles()
			}
			open = append(open, int32(i))
			count[t.kind]++
		case ')', ']', '}':
			opening := opens(t.kind)
			for count[opening] > 0 {
				last := open[len(open)-1]
				open = open[:len(open)-1]
				kind := list[last].kind
				if kind == '<' {
					continue
				}
				count[kind]--
				out[last] = int32(i)
				if kind == opening {
					break
				}
			}
		case '<':
			open = append(open, int32(i))
		case '>':
			arrow := i > 0 && list[i-1].kind == '-'
			if n := len(open); !arrow && n > 0 && list[open[n-1]].kind == '<' {
				out[open[n-1]] = int32(i)
				open = open[:n-1]
			}
		case ';', '=', literalToken, numberToken, '+', '/', '%', '!', '|', '^', '~': // not in type arguments
			dropAngles()
		}
	}
	for _, i := range open {
		if list[i].kind != '<' {
			out[i] = int32(len(list))
		}
	}
	return out
}

func opens(closing byte) byte {
	switch closing {
	case ')':
		return '('
	case ']':
		return '['
	}
	return '{'
}
