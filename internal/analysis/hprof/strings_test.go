package hprof_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// encodeUnits encodes UTF-16 like DataOutput.writeUTF: each unit separately,
// and NUL in two bytes.
func encodeUnits(units []uint16) (b []byte) {
	for _, u := range units {
		switch {
		case u > 0 && u < 0x80:
			b = append(b, byte(u))
		case u < 0x800:
			b = append(b, byte(0xc0+u/64), byte(0x80+u%64))
		default:
			b = append(b, byte(0xe0+u/4096), byte(0x80+u/64%64), byte(0x80+u%64))
		}
	}
	return b
}

// decodeUnits decodes UTF-8 and modified UTF-8 into UTF-16; invalid bytes
// become U+FFFD. It recognizes a sequence by encoding every unit, and every
// character beyond U+FFFF, and comparing the result with the start of b.
func decodeUnits(b []byte) (units []uint16) {
	for len(b) > 0 {
		r, n := utf8.RuneError, 1
		if b[0] < 0x80 {
			r = rune(b[0])
		}
		for _, size := range []int{2, 3, 4} {
			if size > len(b) {
				break
			}
			lead := rune(b[0] & (0xff >> (size + 1)))
			for _, c := range b[1:size] {
				lead = lead<<6 | rune(c&0x3f)
			}
			encoded := utf8.AppendRune(nil, lead)
			if lead <= 0xffff {
				encoded = encodeUnits([]uint16{uint16(lead)})
			}
			if lead <= utf8.MaxRune && bytes.Equal(encoded, b[:size]) {
				r, n = lead, size
			}
		}
		b = b[n:]
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			units = append(units, uint16(high), uint16(low))
			continue
		}
		units = append(units, uint16(r))
	}
	return units
}

// TestDecodeString checks that every string is decoded unchanged from the
// encoding that a JVM writes.
func TestDecodeString(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	alphabet := []uint16{
		0, 1, 'a', 0x7f, 0x80, 0xe9, 0x7ff, 0x800, 0x20ac, 0xd7ff, 0xd800, 0xd83d, 0xdbff, 0xdc00, 0xde00, 0xdfff,
		0xe000, 0xfffd, 0xffff,
	}
	for range 20_000 {
		units := make([]uint16, random.IntN(8))
		for i := range units {
			if units[i] = uint16(random.Uint32()); random.IntN(4) > 0 {
				units[i] = alphabet[random.IntN(len(alphabet))]
			}
		}
		// The conversion to a Go string replaces unpaired surrogates.
		if got, want := hprof.DecodeString(encodeUnits(units)), string(utf16.Decode(units)); got != want {
			t.Fatalf("%x is decoded as %q, want %q", units, got, want)
		}
	}
	for in, want := range map[string]string{
		"":                         "",
		"plain \u00e9 \U0001f600":  "plain \u00e9 \U0001f600",
		"\x00":                     "\x00",
		"\xc0\x80":                 "\x00",
		"a\xc0\x80b\xc0\x80":       "a\x00b\x00",
		"\xed\xa0\xbd\xed\xb8\x80": "\U0001f600",
		// A UTF-8 character is next to an invalid NUL.
		"\xf0\x9f\x98\x80\xc0\x80": "\U0001f600\x00",
		// These surrogates do not form a pair.
		"\xed\xa0\xbd":                         "\ufffd",
		"\xed\xb8\x80":                         "\ufffd",
		"\xed\xb8\x80\xed\xa0\xbd":             "\ufffd\ufffd",
		"\xed\xa0\xbdx":                        "\ufffdx",
		"\xed\xa0\xbd\xed\xa0\xbd\xed\xb8\x80": "\ufffd\U0001f600",
		// These sequences are truncated, invalid or overlong.
		"\xc3":             "\ufffd",
		"\xedA\x80":        "\ufffdA\ufffd",
		"\xe2\x82":         "\ufffd\ufffd",
		"x\xffy":           "x\ufffdy",
		"\x80":             "\ufffd",
		"\xc1\xbf":         "\ufffd\ufffd",
		"\xc0\xaf":         "\ufffd\ufffd",
		"\xe0\x80\x80":     "\ufffd\ufffd\ufffd",
		"\xed\xa0\xbd\xed": "\ufffd\ufffd",
	} {
		if got := hprof.DecodeString([]byte(in)); got != want {
			t.Errorf("%x is decoded as %q, want %q", in, got, want)
		}
	}
}

// FuzzDecodeString compares the result with that of decodeUnits, which
// recognizes sequences by encoding them.
func FuzzDecodeString(f *testing.F) {
	for _, s := range []string{
		"", "plain", "a\xc0\x80b", "\xed\xa0\xbd\xed\xb8\x80", "\xed\xa0\xbd", "\xc1\x81\xe0\x80\x80\xf0\x9f\x98\x80",
		"\xe2\x82", "\xf8\x88\x80\x80\x80", "\xf4\x90\x80\x80",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := slices.Clone(b)
		got := hprof.DecodeString(b)
		if want := string(utf16.Decode(decodeUnits(b))); got != want {
			t.Fatalf("%x is decoded as %q, want %q", b, got, want)
		}
		if !utf8.ValidString(got) || len(got) > 3*len(b) || !bytes.Equal(b, before) {
			t.Fatalf("%x is decoded as %q", b, got)
		}
	})
}

// TestLongStrings checks that strings are truncated after 65535 bytes, and that
// strings beyond a total of 64 MiB are not kept in memory but read again on
// demand.
func TestLongStrings(t *testing.T) {
	d := newDump(hprof.Format102, 8)
	d.record(hprof.TagString, hprof.ID(5), strings.Repeat("a", 65535))
	d.record(hprof.TagString, hprof.ID(6), strings.Repeat("b", 65536))
	d.record(hprof.TagString, hprof.ID(7), strings.Repeat("\u20ac", 100_000))
	d.record(hprof.TagString, hprof.ID(8), "")
	f := open(t, d.b)
	for id, want := range map[hprof.ID]string{
		5: strings.Repeat("a", 65535), 6: strings.Repeat("b", 65535), 7: strings.Repeat("\u20ac", 21845), 8: "",
	} {
		if got, ok := f.Strings.Get(id); got != want || !ok {
			t.Errorf("string %d has %d bytes, want %d", id, len(got), len(want))
		}
	}

	const n = 1100
	file := &sparse{}
	file.add(newDump(hprof.Format102, 8).b, 0)
	for i := range n {
		head := (&dump{ids: 8}).put(hprof.TagString, uint32(0), uint32(8+65000), hprof.ID(n-i), "name ",
			[]byte{'0' + byte(i%10)})
		file.add(head.b, 65000-6)
	}
	f = (&huge{sparse: *file}).open(t)
	if f.Strings.Len() != n {
		t.Fatal(f.Strings.Len())
	}
	for i := range n {
		got, ok := f.Strings.Get(hprof.ID(n - i))
		if want := "name " + string(rune('0'+i%10)); !ok || len(got) != 65000 || got[:6] != want ||
			strings.Trim(got[6:], "\x00") != "" {
			t.Fatalf("string %d: %.10q of %d bytes, %v", i, got, len(got), ok)
		}
	}
}

// failing is a file whose end becomes unreadable after it was opened.
type failing struct {
	io.ReaderAt
	lost int64
}

func (f *failing) ReadAt(b []byte, at int64) (int, error) {
	if f.lost > 0 && at+int64(len(b)) > f.lost {
		return int(max(f.lost-at, 0)), io.ErrUnexpectedEOF
	}
	return f.ReaderAt.ReadAt(b, at)
}

// TestLostStrings checks that a name that can no longer be read is reported as
// missing, not truncated.
func TestLostStrings(t *testing.T) {
	const n = 1100
	file := &sparse{}
	file.add(newDump(hprof.Format102, 8).b, 0)
	for i := range n {
		file.add((&dump{ids: 8}).put(hprof.TagString, uint32(0), uint32(8+65000), hprof.ID(i)).b, 65000)
	}
	r := &failing{ReaderAt: file}
	f, err := hprof.Open(t.Context(), r, file.size)
	if err != nil {
		t.Fatal(err)
	}
	// All strings kept in memory are still available.
	r.lost = 1
	for id, want := range map[hprof.ID]bool{0: true, 1000: true, 1040: false, n - 1: false} {
		if _, ok := f.Strings.Get(id); ok != want {
			t.Errorf("string %d of an unreadable file: found %t, want %t", id, ok, want)
		}
	}
	r.lost = file.size - 100
	for id, want := range map[hprof.ID]bool{0: true, 1000: true, 1040: true, n - 2: true, n - 1: false} {
		if got, ok := f.Strings.Get(id); ok != want || ok && len(got) != 65000 || !ok && got != "" {
			t.Errorf("string %d: %d bytes, %v", id, len(got), ok)
		}
	}
}
