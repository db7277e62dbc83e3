package config

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// source is the text of a file, split into lines for messages.
type source struct {
	name  string
	text  string
	lines []int // where each line begins in text
}

const byteOrderMark = "\ufeff"

// newSource checks the size, the encoding and the characters of the text. If
// these are invalid, the text cannot be parsed at all.
func newSource(name string, text []byte) (source, *Problem) {
	s := source{name: name, text: strings.TrimPrefix(string(text[:min(len(text), MaxFileBytes+1)]), byteOrderMark)}
	s.lines = append(s.lines, 0)
	for i := 0; i < len(s.text); i++ {
		if s.text[i] == '\n' {
			s.lines = append(s.lines, i+1)
		}
	}
	if len(text) > MaxFileBytes {
		return s, &Problem{File: name, Message: fmt.Sprintf("the file has more than %d bytes", MaxFileBytes)}
	}
	for i, r := range s.text {
		if r == utf8.RuneError && !strings.HasPrefix(s.text[i:], string(utf8.RuneError)) {
			return s, s.problemAt(i, fmt.Sprintf("the byte 0x%02X is not UTF-8: save the file as UTF-8", s.text[i]))
		}
		if why := s.hostile(i, r); why != "" {
			return s, s.problemAt(i, fmt.Sprintf("the character U+%04X is not allowed: %s", r, why))
		}
	}
	return s, nil
}

// hostile returns the reason why a character is not allowed in a file, or "" if
// it is allowed.
func (s source) hostile(i int, r rune) string {
	switch {
	case r == '\t' || r == '\n':
		return ""
	case r == '\r' && strings.HasPrefix(s.text[i:], "\r\n"):
		return ""
	case r == '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029':
		return "YAML treats it as a line break, but editors do not; end lines with a line feed"
	case r < ' ' || r >= 0x7f && r <= 0x9f || r == 0xfffe || r == 0xffff:
		return "it is a control character; remove it"
	case r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069':
		return "it changes the direction of text, so the displayed text differs from the actual text; remove it"
	case r == '\ufeff':
		return "it is invisible; remove it"
	}
	return ""
}

// line returns a line, counted from 1, without its newline.
func (s source) line(n int) string {
	end := len(s.text)
	if n < len(s.lines) {
		end = s.lines[n]
	}
	return strings.TrimRight(s.text[s.lines[n-1]:end], "\r\n")
}

// problemAt returns a problem at a byte offset of the text.
func (s source) problemAt(offset int, message string) *Problem {
	n := 1
	for n < len(s.lines) && s.lines[n] <= offset {
		n++
	}
	column := utf8.RuneCountInString(s.text[s.lines[n-1]:offset]) + 1
	return s.problem(n, column, message)
}

// problem returns a problem at a line and column, limited to the bounds of the
// text.
func (s source) problem(line, column int, message string) *Problem {
	line = min(max(line, 1), len(s.lines))
	column = min(max(column, 1), utf8.RuneCountInString(s.line(line))+1)
	return &Problem{File: s.name, Line: line, Column: column, Message: message, Excerpt: s.excerpt(line, column)}
}

// parse returns the root of the only YAML document.
func (s source) parse() (*yaml.Node, *Problem) {
	documents := yaml.NewDecoder(strings.NewReader(s.text))
	document, err := decode(documents)
	if errors.Is(err, io.EOF) {
		return nil, s.problem(1, 1, "the file is empty; set at least version, app and workload")
	}
	if err != nil {
		return nil, s.syntax(err)
	}
	root := document.Content[0]
	second, err := decode(documents)
	if err == nil {
		return nil,
			s.problem(second.Line, second.Column,
				"a second document begins here: a file can have only one, so remove the line ---")
	}
	if !errors.Is(err, io.EOF) {
		return nil, s.syntax(err)
	}
	return root, nil
}

// decode reads one document. The library panics in states that it considers
// impossible; such a panic is also reported as an error in the file.
func decode(d *yaml.Decoder) (document *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be parsed as YAML: %v", r)
		}
	}()
	document = new(yaml.Node)
	if err := d.Decode(document); err != nil {
		return nil, err
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, io.EOF
	}
	return document, nil
}

var libraryError = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?(.*)`)

// complaint splits an error of the library into its line and its message; the
// line is 0 if the error does not contain one.
func complaint(err error) (line int, text string) {
	m := libraryError.FindStringSubmatch(err.Error())
	line, _ = strconv.Atoi(m[1])
	return line, m[2]
}

// syntax locates an error of the library, which does not report columns. The
// line that the library reports may be the one before the error or the one
// where a block begins, and some errors have no line. The library is therefore
// run again on ever shorter prefixes of the text: the error is at the first
// character that causes the same error.
func (s source) syntax(err error) *Problem {
	line, text := complaint(err)
	at, ok := s.locate(text)
	if !ok {
		if strings.HasPrefix(text, "did not find expected") {
			line++ // these errors count lines from 0
		}
		line = min(max(line, 1), len(s.lines))
		begin := strings.TrimLeft(s.line(line), " ")
		return s.problem(line, len(s.line(line))-len(begin)+1, explain(text, begin))
	}
	return s.problemAt(at, explain(text, s.text[at:]))
}

// maxLocate is the maximum length of a file in which the position of an error
// is searched for; maxSearch is the maximum distance to search inside an open
// bracket or quote. Both are limited because each step of the search parses the
// text again.
const (
	maxLocate = 64 << 10
	maxSearch = 200
)

// locate finds the byte at which an error begins: first the line, to keep the
// number of steps small, then the character in the line.
func (s source) locate(text string) (int, bool) {
	if len(s.text) > maxLocate {
		return 0, false
	}
	lineEnds := make([]int, len(s.lines))
	for i := range s.lines {
		lineEnds[i] = s.lines[i] + len(s.line(i+1))
	}
	n, ok := s.first(lineEnds, text)
	if !ok {
		return 0, false
	}
	begin, end := s.lines[n], lineEnds[n]
	var charEnds []int
	for i, r := range s.text[begin:end] {
		charEnds = append(charEnds, begin+i+utf8.RuneLen(r))
	}
	n, ok = s.first(charEnds, text)
	if !ok {
		return end - len(strings.TrimLeft(s.text[begin:end], " ")), true
	}
	at := 0
	if n > 0 {
		at = charEnds[n-1] - begin
	}
	if unclosed[text] == "" {
		at = wordStart(s.text[begin:end], at)
	}
	return begin + at, true
}

// wordStart returns the position of the first byte of the word at position i of
// a line.
func wordStart(line string, i int) int {
	if line[i] == ' ' || line[i] == '\t' {
		return i
	}
	return strings.LastIndexAny(line[:i], " \t") + 1
}

// unclosed lists the errors about a bracket or quote that is never closed.
// Every prefix of the text that ends inside a bracket or quote is invalid, even
// if it is closed later, so the search must start at the end.
var unclosed = map[string]string{
	"did not find expected ',' or ']'": "the bracket [ is not closed, or a comma is missing after an entry",
	"did not find expected ',' or '}'": "the brace { is not closed, or a comma is missing after an entry",
	"found unexpected end of stream":   "the quote is not closed",
}

// first returns the smallest n for which the prefix of the text up to ends[n]
// has the error, as does every longer prefix. It returns false if no prefix has
// the error, or if an open bracket or quote is too far away.
func (s source) first(ends []int, text string) (int, bool) {
	if unclosed[text] == "" {
		n := sort.Search(len(ends), func(n int) bool { return s.complains(ends[n], text) })
		return n, n < len(ends)
	}
	n := len(ends)
	for n > 0 && len(ends)-n <= maxSearch && s.complains(ends[n-1], text) {
		n--
	}
	return n, n < len(ends) && len(ends)-n <= maxSearch
}

func (s source) complains(end int, text string) bool {
	_, err := decode(yaml.NewDecoder(strings.NewReader(s.text[:end])))
	if err == nil || errors.Is(err, io.EOF) {
		return false
	}
	_, said := complaint(err)
	return said == text || unclosed[text] != ""
}

// explain rewrites an error of the library for the author of a file; at is the
// text at the position of the error.
func explain(text, at string) string {
	if unclosed[text] != "" {
		return unclosed[text]
	}
	switch {
	case strings.HasPrefix(text, "unknown anchor") && strings.HasPrefix(at, "*"):
		return "no anchor with this name is defined above; quote a value that begins with a star"
	case strings.Contains(text, "cannot start any token") && strings.HasPrefix(at, "\t"):
		return "YAML does not allow tabs for indentation: use spaces"
	case strings.Contains(text, "cannot start any token"):
		return "a value cannot begin with this character: put it in quotes"
	}
	switch text {
	case "mapping values are not allowed in this context":
		return "a key is not allowed here: align it with the keys above, or put a value that has a colon in quotes"
	case "did not find expected key":
		return "this does not line up with the keys above, or there is extra text after a value: check the " +
			"indentation, brackets and quotes"
	case "did not find expected '-' indicator":
		return "this does not line up with the list above: check the indentation"
	case "did not find expected node content":
		return "a value is missing here, or there is an extra bracket or comma"
	case "exceeded max depth of 10000":
		return tooDeep
	case "did not find expected comment or line break":
		return "a value that begins with > or | needs quotes, since YAML treats it as the start of a multi-line string"
	case "could not find expected ':'":
		return "a colon is missing after a key"
	case "found unknown escape character":
		return "this backslash in double quotes does not start a YAML escape: double it, or use single quotes"
	}
	return "this is not YAML: " + text
}
