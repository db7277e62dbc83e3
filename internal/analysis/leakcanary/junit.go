package leakcanary

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// maxDepth is the maximum nesting of XML elements: reports of tests have four
// levels.
const maxDepth = 100

// element is an XML element that has not been closed yet.
type element struct {
	name string
	// message is the attribute of the same name, which a failure has in
	// addition to its text.
	message string
	text    strings.Builder
}

// readXML reads JUnit XML: one or more suites, or several documents one after
// the other. It searches the text of every element, because test runners write
// the output to different elements.
func (c *collection) readXML(input []byte) {
	d := xml.NewDecoder(bytes.NewReader(legal(input)))
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "US-ASCII") {
			return in, nil
		}
		return nil, fmt.Errorf("encoding %s is not supported; convert it to UTF-8", text.Quote(charset, 40))
	}
	var open []*element
	test := ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil && len(open) == maxDepth {
			err = fmt.Errorf("elements are nested more than %d deep", maxDepth)
		}
		if err != nil {
			// The contents of a truncated file are still used.
			for _, e := range open {
				c.readElement(e, test)
			}
			note(&c.undecided, "the XML cannot be read completely: %v", err)
			return
		}
		switch t := token.(type) {
		case xml.StartElement:
			e := &element{name: t.Name.Local}
			if e.name == "testcase" {
				test = nameOf(t.Attr)
				c.tests++
			}
			if i := attribute(t.Attr, "message"); i >= 0 {
				e.message = t.Attr[i].Value
			}
			open = append(open, e)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].text.Write(t)
			}
		case xml.EndElement:
			e := open[len(open)-1]
			open = open[:len(open)-1]
			c.readElement(e, test)
			if e.name == "testcase" {
				test = ""
			}
		}
	}
}

// readElement reads the reports in an element's text or, if the text contains
// none, in its message: runners write the same reports to both.
func (c *collection) readElement(e *element, test string) {
	before := len(c.analyses) + len(c.failures) + c.repeated
	for _, content := range []string{e.text.String(), e.message} {
		if detect([]byte(content)) == Logcat {
			c.readLogcat([]byte(content), test)
		} else {
			c.readText([]byte(content), test)
		}
		if len(c.analyses)+len(c.failures)+c.repeated > before {
			return
		}
	}
	// NoLeakAssertionFailedError throws the exception with which an analysis
	// failed. This exception prints the stack trace of its cause instead of its
	// own (HeapAnalysisException.kt).
	if e.name == "failure" || e.name == "error" {
		for _, content := range []string{e.text.String(), e.message} {
			if strings.Contains(content, "shark.HeapAnalysisException") ||
				strings.Contains(content, "at shark.HeapAnalyzer.") ||
				strings.Contains(content, "failed because heap analysis failed") {
				c.fail(test, text.FirstLine(content, maxNote))
				return
			}
			if strings.Contains(content, "NoLeakAssertionFailedError") {
				note(&c.undecided, "%s failed because of leaks, but its report is missing or truncated",
					firstOf(test, "a test"))
				return
			}
		}
	}
}

// nameOf returns the name of a test case in the form CLASS#METHOD.
func nameOf(list []xml.Attr) string {
	var class, method string
	if i := attribute(list, "classname"); i >= 0 {
		class = list[i].Value
	}
	if i := attribute(list, "name"); i >= 0 {
		method = list[i].Value
	}
	if class == "" || method == "" {
		return text.Head(class+method, maxName)
	}
	return text.Head(class+"#"+method, maxName)
}

func attribute(list []xml.Attr, name string) int {
	for i := range list {
		if list[i].Name.Local == name {
			return i
		}
	}
	return -1
}

// character matches a numeric character reference.
var character = regexp.MustCompile(`&#(?:x([0-9a-fA-F]+)|([0-9]+));`)

// legal replaces the characters that XML 1.0 does not allow. Test runners copy
// terminal escape sequences from the output of a test into reports, and a
// single one must not make the whole report unreadable.
func legal(input []byte) []byte {
	input = bytes.Map(func(r rune) rune {
		if isLegal(r) {
			return r
		}
		return '?'
	}, input)
	return character.ReplaceAllFunc(input, func(reference []byte) []byte {
		m := character.FindSubmatch(reference)
		digits, base := string(m[2]), 10
		if len(m[1]) > 0 {
			digits, base = string(m[1]), 16
		}
		if n, err := strconv.ParseUint(digits, base, 31); err != nil || !isLegal(rune(n)) {
			return []byte("?")
		}
		return reference
	})
}

// isLegal reports whether a character is a Char of XML 1.0.
func isLegal(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd ||
		r >= 0x10000 && r <= 0x10ffff
}
