package hprof

import (
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Strings are the names in a dump by their IDs.
type Strings struct {
	r       io.ReaderAt
	idSize  int
	entries []entry
	blob    []byte
	sorted  bool
}

// entry is one string: length bytes at blob[at:], or in the file at offset -at.
type entry struct {
	id     ID
	at     int64
	length uint32
}

const (
	// maxKept is the bytes of one string that are kept: names have at most 65535
	// (JVM specification 4.4.7).
	maxKept = 65535
	// maxBlob bounds the bytes that are kept in memory. Others are read again.
	maxBlob = 64 << 20
)

func (s *Strings) add(id ID, head []byte, offset, length int64) {
	e := entry{id: id, at: -offset, length: uint32(min(length, maxKept))}
	if len(head) == int(e.length) && len(s.blob)+len(head) <= maxBlob {
		e.at = int64(len(s.blob))
		s.blob = append(s.blob, head...)
	}
	s.entries = append(s.entries, e)
	s.sorted = false
}

// Len is the number of strings.
func (s *Strings) Len() int { return len(s.entries) }

// Get gives a string, decoded from modified UTF-8 and cut after 65535 bytes, and
// false where there is none with this ID. Not safe for concurrent use.
func (s *Strings) Get(id ID) (string, bool) {
	s.sort()
	i, ok := slices.BinarySearchFunc(s.entries, id, func(e entry, id ID) int { return compareIDs(e.id, id) })
	if !ok {
		return "", false
	}
	e := s.entries[i]
	if e.at >= 0 {
		return DecodeString(s.blob[e.at:][:e.length]), true
	}
	b := make([]byte, e.length)
	n, _ := s.r.ReadAt(b, -e.at)
	return DecodeString(b[:n]), true
}

// sort keeps the first of two strings with one ID in front.
func (s *Strings) sort() {
	if s.sorted {
		return
	}
	s.sorted = true
	if slices.IsSortedFunc(s.entries, func(a, b entry) int { return compareIDs(a.id, b.id) }) {
		return
	}
	slices.SortStableFunc(s.entries, func(a, b entry) int { return compareIDs(a.id, b.id) })
}

func compareIDs(a, b ID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// DecodeString decodes modified UTF-8 (JVM specification 4.4.7): NUL is C0 80, and
// characters beyond U+FFFF are two surrogates of three bytes each. Bytes that are
// neither become U+FFFD.
func DecodeString(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		r, n := decodeRune(b)
		b = b[n:]
		if utf16.IsSurrogate(r) {
			low, m := decodeRune(b)
			if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
				b = b[m:]
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out)
}

func decodeRune(b []byte) (rune, int) {
	switch {
	case len(b) == 0:
		return utf8.RuneError, 0
	case b[0] < 0x80:
		return rune(b[0]), 1
	case b[0]&0xe0 == 0xc0 && len(b) > 1 && b[1]&0xc0 == 0x80:
		return rune(b[0]&0x1f)<<6 | rune(b[1]&0x3f), 2
	case b[0]&0xf0 == 0xe0 && len(b) > 2 && b[1]&0xc0 == 0x80 && b[2]&0xc0 == 0x80:
		return rune(b[0]&0x0f)<<12 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError {
		return r, n
	}
	return utf8.RuneError, 1
}
