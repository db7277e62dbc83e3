package hprof

import (
	"cmp"
	"io"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

// Strings holds the names in a dump, by ID.
type Strings struct {
	r       io.ReaderAt
	idSize  int
	added   blocks[entry]
	entries []entry
	blob    []byte
	sorted  bool
}

// entry is one string: length bytes at blob[at:], or at offset -at of the file
// if at is negative.
type entry struct {
	id ID
	// place holds at in its upper 48 bits and length in its lower 16 bits.
	place int64
}

func newEntry(id ID, at, length int64) entry { return entry{id, at<<16 | length} }

func (e entry) at() int64 { return e.place >> 16 }

func (e entry) length() int64 { return e.place & maxKept }

const (
	// maxKept is the maximum number of bytes kept of one string: names have at
	// most 65535 bytes (JVM specification 4.4.7).
	maxKept = 65535
	// maxBlob is the maximum number of bytes of all strings kept in memory.
	// Other strings are read from the file again.
	maxBlob = 64 << 20
)

func (s *Strings) add(id ID, head []byte, offset, length int64) {
	at, length := -offset, min(length, maxKept)
	if int64(len(head)) == length && len(s.blob)+len(head) <= maxBlob {
		at = int64(len(s.blob))
		s.blob = append(s.blob, head...)
	}
	s.added.add(newEntry(id, at, length))
}

// join prepares the strings for lookups; it must be called after the last
// string was added.
func (s *Strings) join() { s.entries = s.added.join() }

// memory returns the size of the entries in bytes. It does not include the
// contents of the strings, whose size is bounded by maxBlob.
func (s *Strings) memory() int64 { return int64(s.added.n) * int64(unsafe.Sizeof(entry{})) }

// Len returns the number of strings.
func (s *Strings) Len() int { return len(s.entries) }

// Get returns the string with the given ID, decoded from modified UTF-8 and
// truncated after 65535 bytes. It returns false if there is no such string, or
// if it can no longer be read from the file. If several strings have the ID, it
// returns the first. It is not safe for concurrent use.
func (s *Strings) Get(id ID) (string, bool) {
	s.sort()
	i, ok := slices.BinarySearchFunc(s.entries, id, func(e entry, id ID) int { return cmp.Compare(e.id, id) })
	if !ok {
		return "", false
	}
	e := s.entries[i]
	if e.at() >= 0 {
		return DecodeString(s.blob[e.at():][:e.length()]), true
	}
	b := make([]byte, e.length())
	if n, _ := s.r.ReadAt(b, -e.at()); n < len(b) {
		return "", false
	}
	return DecodeString(b), true
}

// sort sorts the entries by ID; of several strings with the same ID, the first
// one stays first.
func (s *Strings) sort() {
	if s.sorted {
		return
	}
	s.sorted = true
	if slices.IsSortedFunc(s.entries, func(a, b entry) int { return cmp.Compare(a.id, b.id) }) {
		return
	}
	// A stable sort in place takes several times as long.
	slices.SortFunc(s.entries,
		func(a, b entry) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at(), b.at())) })
}

// DecodeString decodes modified UTF-8 (JVM specification 4.4.7): NUL is C0 80,
// and characters beyond U+FFFF are two surrogates of three bytes each. It
// accepts UTF-8 as well. Invalid bytes, and a surrogate without its pair,
// become U+FFFD.
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
	if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n != 1 {
		return r, n
	}
	// UTF-8 forbids both this encoding of NUL and surrogates.
	if len(b) > 1 && b[0] == 0xc0 && b[1] == 0x80 {
		return 0, 2
	}
	if len(b) > 2 && b[0] == 0xed && b[1]&0xe0 == 0xa0 && b[2]&0xc0 == 0x80 {
		return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), 3
	}
	return utf8.RuneError, 1
}
