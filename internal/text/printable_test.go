package text

import (
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintableKeepsWhatPeopleWrite(t *testing.T) {
	for _, text := range []string{
		"", "com.shop:push", "memory rises 300 MB/h (t 5.1 > 2.0)",
		"über 中文 日本語 한국어 русский ελληνικά हिन्दी ภาษาไทย עברית العربية",
		"e\u0301", "A\u0323\u0302", "±µ²→ \u2026 \U0001f600", "version:", "a: b", "- x", "!!str", "$(id)",
		"com.x;reboot", "`id`", "\ufffd",
	} {
		if got := Printable(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestPrintableTakesWhatHides(t *testing.T) {
	for _, r := range []rune{
		0, '\n', '\r', '\t', 0x1b, 0x7f, 0x80, 0x85, 0x9b, 0x9d, 0x9f, // C0, DEL, C1 with CSI and OSC
		0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, // bidirectional
		// line breaks and invisible characters
		0x2028, 0x2029, 0x200b, 0x200c, 0x200d, 0x2060, 0x2061, 0x2064, 0xfeff, 0x00ad, 0x180e,
		0xe0001, 0xe0020, 0xe0041, 0xe007f, 0xfe0f, 0xe0100, 0xe01ef, 0x034f, 0x115f, 0x1160, 0x3164, 0xffa0, 0x17b4,
		0x2800,
		// private, unassigned, annotations
		0xe000, 0xf8ff, 0xf0000, 0x10fffd, 0x0378, 0xfffe, 0x10ffff, 0xfff9, 0x1d173,
	} {
		if got := Printable("a" + string(r) + "b"); got != "a?b" {
			t.Errorf("%U: %q", r, got)
		}
	}
	for _, r := range []rune{0xa0, 0x1680, 0x2000, 0x200a, 0x202f, 0x205f, 0x3000} {
		if got := Printable("a" + string(r) + "b"); got != "a b" {
			t.Errorf("%U: %q", r, got)
		}
	}
	if got := Printable("\xff\xfea\xc0\xaf\xed\xa0\x80b\x9b"); got != "?a?b?" {
		t.Errorf("%q", got)
	}
	if got := Printable("\u0301x" + strings.Repeat("\u0301", 9) +
		"y\u0301"); got != "?x\u0301\u0301\u0301\u0301?????y\u0301" {
		t.Errorf("%q", got)
	}
}

var hostile = []string{
	"com.x;reboot", "\x1b]0;title\x07", "\x1b[2J", "\xc2\x9b31m", "\u202eevil", "a\u0301\u0302", "\u0301", "\xff\xfe",
	"\U000e0041", "\n", "\u2028", "中文", "a\u00a0b",
	"é\u0301\u0301\u0301\u0301\u0301", "\u0301\u0301", "\ufffd", `\`, `"`, "'", "\xed\xa0\x80",
	strings.Repeat("ab中\u0301", 9),
}

func FuzzPrintable(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(1, n%1000)
		got := Printable(s)
		if len(got) > len(s) || utf8.RuneCountInString(got) > utf8.RuneCountInString(s) {
			t.Errorf("%q became longer: %q", s, got)
		}
		if in := []byte(s); string(PrintableBytes(in)) != got {
			t.Errorf("%q: PrintableBytes returns %q, want %q", s, PrintableBytes([]byte(s)), got)
		}
		if isPlain(s) && got != s {
			t.Errorf("%q became %q", s, got)
		}
		for name, cut := range map[string]string{
			"Printable": got, "Escape": Escape(s), "Head": Head(s, n), "Tail": Tail(s, n), "FirstLine": FirstLine(s, n),
			"TailColumns": TailColumns(s, n), "Cell": Cell(s, n), "Excerpt": Excerpt(s, n), "Row": Row(got, n),
		} {
			checkPrintable(t, name, cut)
		}
		length := utf8.RuneCountInString(got)
		for name, cut := range map[string]string{"Head": Head(s, n), "Tail": Tail(s, n)} {
			if is := utf8.RuneCountInString(cut); is > n || length <= n && cut != got {
				t.Errorf("%s(%q, %d) = %q", name, s, n, cut)
			}
		}
		if line := FirstLine(s, n); utf8.RuneCountInString(line) > n || line != strings.TrimSpace(line) {
			t.Errorf("FirstLine(%q, %d) = %q", s, n, line)
		}
		if cell := Cell(s, n); Columns(cell) != n {
			t.Errorf("Cell(%q, %d) = %q takes %d columns", s, n, cell, Columns(cell))
		}
		if tail := TailColumns(s, n); Columns(tail) > n || Columns(got) <= n && tail != got {
			t.Errorf("TailColumns(%q, %d) = %q", s, n, tail)
		}
		if row := Row(got, n); Columns(row) >= n || !strings.HasPrefix(got, row) || Columns(got) < n && row != got {
			t.Errorf("Row(%q, %d) = %q", got, n, row)
		}
	})
}

// checkPrintable checks the guarantees of Printable.
func checkPrintable(t *testing.T, name, s string) {
	t.Helper()
	if !utf8.ValidString(s) || Printable(s) != s {
		t.Errorf("%s: %q is not printable", name, s)
	}
	marks := maxMarks
	for _, r := range s {
		if !unicode.IsPrint(r) ||
			unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector,
				unicode.Other_Default_Ignorable_Code_Point) {
			t.Errorf("%s: %U in %q", name, r, s)
		}
		if marks++; !unicode.Is(unicode.M, r) {
			marks = 0
		}
		if marks > maxMarks {
			t.Errorf("%s: got %d combining marks, want at most %d in %q", name, marks, maxMarks, s)
		}
	}
}

func FuzzQuote(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = max(1, n%1000)
		got := Quote(s, n)
		checkPrintable(t, "Quote", got)
		back, err := strconv.Unquote(got)
		want := s
		if runes := []rune(s); len(runes) > n {
			back, want = strings.TrimSuffix(back, ellipsis), first(s, n)
		}
		if err != nil || back != want {
			t.Fatalf("Quote(%q, %d) = %s, read as %q (%v)", s, n, got, back, err)
		}
		if Printable(s) == s && Escape(s) != s {
			t.Errorf("%q became %q", s, Escape(s))
		}
	})
}

func TestEscape(t *testing.T) {
	for s, want := range map[string]string{
		"plain 中 \"q\" \\": "plain 中 \"q\" \\", "a\tb\n": `a\tb\n`, "\x1b[2J": `\x1b[2J`, "\x85": `\x85`,
		"\u0085": `\u0085`, "\u202ex": `\u202ex`,
		"\U000e0041": `\U000e0041`, "a\u00a0b": `a\u00a0b`, "\u0301a": `\u0301a`, "\ufffd": "\ufffd",
		"\u3164": `\u3164`,
	} {
		if got := Escape(s); got != want {
			t.Errorf("Escape(%q) = %s, want %s", s, got, want)
		}
	}
	if got := Quote(`a"b\c`, 9) + Quote("abcdef", 3) + Quote("", 1); got != `"a\"b\\c""abc…"""` {
		t.Error(got)
	}
}

func TestCutting(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Head("abcdef", 6), "abcdef"}, {Head("abcdef", 5), "abcd…"}, {Head("abcdef", 1), "…"}, {Head("a\nb", 9), "a?b"},
		{Excerpt("abcdef", 6), "abcdef"}, {Excerpt("a\x00cdef", 5), "a\ufffdcde…"}, {Excerpt("?\u202e", 2), "?\ufffd"},
		{Tail("abcdef", 6), "abcdef"}, {Tail("abcdef", 5), "…cdef"}, {Tail("abcdef", 1), "…"},
		{Tail("abe\u0301f", 3), "…f"},
		{FirstLine(" \n\r\n first \r\nsecond", 9), "first"}, {FirstLine("abcdef\n", 4), "abc…"},
		{FirstLine(" \n", 4), ""},
		{TailColumns("中文ab", 5), "…文ab"}, {TailColumns("中文ab", 4), "…ab"}, {TailColumns("abcde\u0301f", 2), "…f"},
		{TailColumns("abcde\u0301f", 3), "…e\u0301f"}, {Cell("中", 4), "中  "}, {Row("中文", 4), "中"},
		{Row("abc", 4), "abc"}, {Row("abcd", 4), "abc"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

// isPlain reports whether the string is printable ASCII.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
