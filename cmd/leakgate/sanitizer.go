package main

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"

	"golang.org/x/term"
)

// sanitizer is the writer for all human-readable output. Messages quote
// devices, files, variables and arguments, and not every caller can be trusted
// to sanitize the quoted text. Except for line breaks and tabs, the sanitizer
// replaces all characters that a terminal interprets. Code that draws on a
// terminal bypasses the sanitizer; see drawable.
type sanitizer struct {
	mu sync.Mutex
	w  io.Writer
	// rest holds the first bytes of a character whose remaining bytes arrive in
	// a later write.
	rest []byte
}

func newSanitizer(w io.Writer) *sanitizer { return &sanitizer{w: w} }

// Write implements io.Writer.
func (s *sanitizer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := append(s.rest, p...)
	whole := len(text) - unfinished(text)
	s.rest = append([]byte(nil), text[whole:]...)
	if _, err := io.WriteString(s.w, printableLines(string(text[:whole]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// unfinished returns the length of an incomplete character at the end of text.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				return 0
			}
			return n
		}
	}
	return 0
}

// printableLines does the same as Printable for text that may have several
// lines and tabs.
func printableLines(lines string) string {
	var b strings.Builder
	for {
		at := strings.IndexAny(lines, "\n\t")
		if at < 0 {
			b.WriteString(text.Printable(lines))
			return b.String()
		}
		b.WriteString(text.Printable(lines[:at]))
		b.WriteByte(lines[at])
		lines = lines[at+1:]
	}
}

// readable returns a writer to f that sanitizes the text if f is a terminal.
// Output to a file or a pipe is not changed.
func readable(f *os.File) io.Writer {
	if term.IsTerminal(int(f.Fd())) {
		return newSanitizer(f)
	}
	return f
}

// drawable returns the writer for code that draws. Such code may write terminal
// control sequences, and must sanitize every string itself.
func drawable(w io.Writer) io.Writer {
	if s, ok := w.(*sanitizer); ok {
		return s.w
	}
	return w
}
