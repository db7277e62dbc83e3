package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/leakgate/leakgate/internal/text"
)

// The sanitizer writes only lines of printable text, however the text is split
// into writes, and keeps harmless lines unchanged.
func FuzzSanitizer(f *testing.F) {
	for _, text := range []string{
		"leakgate run: no device\n", "\x1b[2J", "a\tb\r\nc", "中文\n", "\xc2", "\xe4\xb8", "\u202e\n\n", "e\u0301",
	} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, told []byte, size int) {
		var out bytes.Buffer
		s := newSanitizer(&out)
		size = 1 + max(0, size%100)
		for rest := told; len(rest) > 0; {
			n := min(size, len(rest))
			if m, err := s.Write(rest[:n]); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		got := out.String()
		for line := range strings.SplitSeq(got, "\n") {
			for cell := range strings.SplitSeq(line, "\t") {
				if strings.ContainsFunc(cell, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%q became %q", told, got)
				}
			}
		}
		if strings.Count(got, "\n") != bytes.Count(told, []byte("\n")) ||
			strings.Count(got, "\t") != bytes.Count(told, []byte("\t")) {
			t.Errorf("%q became %q", told, got)
		}
		if plain := text.Printable(string(told)) == string(told) &&
			!strings.ContainsFunc(string(told), unicode.IsMark); plain && got != string(told) {
			t.Errorf("%q became %q", told, got)
		}
	})
}

func TestSanitizerReturnsErrors(t *testing.T) {
	if _, err := newSanitizer(errorWriter{}).Write([]byte("x")); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

var errFull = errors.New("full")

type errorWriter struct{}

func (errorWriter) Write([]byte) (int, error) { return 0, errFull }

// When the program itself runs as a child process, a hostile command line,
// environment or file reaches the terminal only as text.
func TestProgramPrintsNoTerminalCommands(t *testing.T) {
	const evil = "\x1b]0;owned\x07\u202e\u009b2J\u200b\U000e0041\xff\r"
	calls := [][]string{
		{evil}, {"run", evil}, {"watch", evil}, {"watch", "--process", evil},
		{"watch", "--process", "x", "--for", evil},
		{"mark", "--run", evil, evil}, {"parse", evil, evil}, {"help", evil}, {"demo", evil}, {"demo", "--seed", evil},
	}
	for _, cmd := range newRoot(&console{}).Commands() {
		calls = append(calls, []string{cmd.Name(), "--" + evil})
	}
	for _, args := range calls {
		cmd := program(t, context.Background(), []string{"ADB_SERVER_SOCKET=tcp:127.0.0.1:1", "LEAKGATE_SEED=" + evil},
			args...)
		var out, err bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &err
		if cmd.Run() == nil {
			t.Errorf("%q succeeded", args)
		}
		if err.Len() == 0 {
			t.Errorf("%q: got no output", args)
		}
		for _, line := range strings.Split(out.String()+err.String(), "\n") {
			if text.Printable(line) != strings.ReplaceAll(line, "\t", "?") {
				t.Errorf("%q: %q", args, line)
			}
		}
	}
}
