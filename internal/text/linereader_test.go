package text

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// linesOf returns all lines of a string; errors are represented by their
// messages.
func linesOf(in io.Reader, most int) []string {
	l, err := NewLineReader(in, most)
	if err != nil {
		return []string{err.Error()}
	}
	var out []string
	for {
		line, err := l.Next(nil)
		switch {
		case errors.Is(err, io.EOF):
			return out
		case errors.Is(err, io.ErrUnexpectedEOF):
			return append(out, fmt.Sprintf("%s (no line feed)", line))
		case errors.Is(err, ErrLongLine):
			out = append(out, fmt.Sprint(l.N, " long"))
		case err != nil:
			return append(out, err.Error())
		default:
			out = append(out, string(line))
		}
	}
}

func TestLineReader(t *testing.T) {
	const most = 100_000 // longer than the buffer
	full := strings.Repeat("x", most)
	for text, want := range map[string][]string{
		"":                             nil,
		"a\nb\n":                       {"a", "b"},
		"a\r\n\nb":                     {"a\r", "", "b (no line feed)"},
		"\xef\xbb\xbfa\n\xef\xbb\xbfb": {"a", "\xef\xbb\xbfb (no line feed)"},
		full + "\n" + full + "y\nz\n":  {full, "2 long", "z"},
		full + "yy\nz\n":               {"1 long", "z"},
		"\xff\xfea\x00":                {ErrUTF16.Error()},
		"\xfe\xff\x00a":                {ErrUTF16.Error()},
		"t\x00_\x00":                   {ErrUTF16.Error()},
		"\x00t\x00_":                   {ErrUTF16.Error()},
		"\x00\x00\x00\x00\n":           {"\x00\x00\x00\x00"},
	} {
		for _, in := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			if got := linesOf(in, most); !slices.Equal(got, want) {
				t.Errorf("%.40q: %.80q, want %.80q", text, got, want)
			}
		}
	}
	if got := linesOf(zeros{}, most); len(got) != 1 || !strings.Contains(got[0], "line 1 is longer than") {
		t.Errorf("endless zeros: %.80q", got)
	}
	if _, err := NewLineReader(iotest.ErrReader(io.ErrClosedPipe), most); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("unreadable file: %v", err)
	}
	// The limit also applies to lines that end close to the end of the buffer.
	for most := 64<<10 - 2; most <= 64<<10+2; most++ {
		full := strings.Repeat("x", most)
		if got := linesOf(strings.NewReader(full+"\n"+full+"y\nz\n"), most); !slices.Equal(got,
			[]string{full, "2 long", "z"}) {
			t.Errorf("%d bytes: %.80q", most, got)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
