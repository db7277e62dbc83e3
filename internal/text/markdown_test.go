package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWrapMarkdown(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "",
		"one two three\n":                  "one two\nthree\n",
		"| one | two | three |\n\none two": "| one | two | three |\n\none two",
		"## One two three":                 "## One two three",
		"<!-- one two three -->":           "<!-- one two three -->",
		"incomprehensible to me":           "incomprehensible\nto me",
		"äöüß äö äöü":                      "äöüß äö\näöü",
	} {
		if got := WrapMarkdown(in, 8); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzWrapMarkdown checks that wrapping changes only white space, that a line
// is longer than the width only if it is a single word, and that a second
// wrapping changes nothing.
func FuzzWrapMarkdown(f *testing.F) {
	f.Add("one two three\n| a | b |\n", 8)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width = 1 + width&63; strings.ContainsAny(s, "|#<") || !utf8.ValidString(s) {
			return
		}
		got := WrapMarkdown(s, width)
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(s), " ") {
			t.Fatalf("%q at %d: %q", s, width, got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if utf8.RuneCountInString(line) > width && len(strings.Fields(line)) > 1 {
				t.Fatalf("%q at width %d: line of %d characters in %q", s, width, utf8.RuneCountInString(line), got)
			}
		}
		if again := WrapMarkdown(got, width); again != got {
			t.Fatalf("%q at %d: %q, then %q", s, width, got, again)
		}
	})
}
