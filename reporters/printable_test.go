package reporters

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestPrintable(t *testing.T) {
	got := Printable("a\x1b[31mb\u202ec\nd\x00é\xff")
	if got != "a?[31mb?c?d?é?" {
		t.Errorf("%q", got)
	}
}

func TestPrintableKeepsWhatPeopleWrite(t *testing.T) {
	for _, text := range []string{
		"", "com.shop:push", "memory rises 300 MB/h (t 5.1 > 2.0)", "über 中文 日本語 한국어 русский ελληνικά हिन्दी ภาษาไทย עברית العربية",
		"e\u0301", "A\u0323\u0302", "±µ²→ \u2026 \U0001f600", "version:", "a: b", "- x", "!!str", "$(id)", "com.x;reboot", "`id`", "\ufffd",
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
		0x2028, 0x2029, 0x200b, 0x200c, 0x200d, 0x2060, 0x2061, 0x2064, 0xfeff, 0x00ad, 0x180e, // breaks and nothing
		0xe0001, 0xe0020, 0xe0041, 0xe007f, 0xfe0f, 0xe0100, 0xe01ef, 0x034f, 0x115f, 0x1160, 0x3164, 0xffa0, 0x17b4, 0x2800,
		0xe000, 0xf8ff, 0xf0000, 0x10fffd, 0x0378, 0xfffe, 0x10ffff, 0xfff9, 0x1d173, // private, unassigned, annotations
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
	if got := Printable("\u0301x" + strings.Repeat("\u0301", 9) + "y\u0301"); got != "?x\u0301\u0301\u0301\u0301?????y\u0301" {
		t.Errorf("%q", got)
	}
}

func FuzzPrintable(f *testing.F) {
	for _, s := range []string{
		"com.x;reboot", "\x1b]0;title\x07", "\x1b[2J", "\xc2\x9b31m", "\u202eevil", "a\u0301\u0302", "\u0301", "\xff\xfe", "\U000e0041", "\n", "\u2028", "中文",
	} {
		f.Add(s, 5)
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		got := Printable(text)
		if !utf8.ValidString(got) || len(got) > len(text) || utf8.RuneCountInString(got) > utf8.RuneCountInString(text) {
			t.Fatalf("%q became %q", text, got)
		}
		if again := Printable(got); again != got {
			t.Errorf("%q became %q and then %q", text, got, again)
		}
		marks := maxMarks
		for _, r := range got {
			if !unicode.IsPrint(r) || unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
				t.Errorf("%U in %q", r, got)
			}
			if marks++; !unicode.Is(unicode.M, r) {
				marks = 0
			}
			if marks > maxMarks {
				t.Errorf("too many marks in %q", got)
			}
		}
		if isPlain(text) && got != text {
			t.Errorf("%q became %q", text, got)
		}
		n = max(1, n%1000)
		cut := clip(got, n)
		if utf8.RuneCountInString(cut) > n || Printable(cut) != cut || utf8.RuneCountInString(got) <= n && cut != got {
			t.Errorf("%q is cut to %q at %d", got, cut, n)
		}
	})
}

// isPlain tells whether the text is ASCII that a typewriter has.
func isPlain(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}
