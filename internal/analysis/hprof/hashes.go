package hprof

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// hashFields finds, in the records of one heap, the values that were computed
// from strings. java.lang.String stores its hash code, a polynomial that is
// unique for strings of up to 6 digits. The nodes of hash tables store the hash
// code transformed by a reversible function (java.util.HashMap.hash), and the
// caches of libraries contain hash codes, too (okio.ByteString, java.net.URI).
// Such a value is in a field of a primitive type whose name contains the word
// hash; it may also be in a field whose name is not in the dump.
type hashFields struct {
	file *File
	// named reports whether the string with the given ID is the name of a field
	// that may hold a hash.
	named   map[ID]bool
	classes map[ID]ownFields
	layouts map[ID]*layout
}

// ownFields holds the fields that a class itself declares.
type ownFields struct {
	super  ID
	size   int
	hashes []span
}

// layout lists the bytes to erase in an instance: the hashes, and all bytes at
// offset size and above, which no class of the dump declares.
type layout struct {
	hashes []span
	size   int
}

// span is a range of bytes in a record.
type span struct{ from, to int }

func newHashFields(f *File) *hashFields {
	return &hashFields{file: f, named: map[ID]bool{}}
}

// read collects the classes of a heap, which may come after their instances and
// in other segments. If two classes have the same ID, the last one is used, as
// in package heap.
func (h *hashFields) read(records *Scanner, look func() error) error {
	h.classes, h.layouts = map[ID]ownFields{}, map[ID]*layout{}
	var c Class
	for count := 0; records.Next(); count++ {
		if count%wordEvery == 0 {
			if err := look(); err != nil {
				return err
			}
		}
		if records.Kind != SubClassDump {
			continue
		}
		records.ReadClass(&c)
		own := ownFields{super: c.Super}
		for _, f := range c.Fields {
			size := f.Type.Size(h.file.IDSize)
			if h.isHash(f.Name, f.Type) {
				own.hashes = append(own.hashes, span{own.size, own.size + size})
			}
			own.size += size
		}
		h.classes[c.ID] = own
	}
	return records.Err()
}

func (h *hashFields) isHash(name ID, t Type) bool {
	if t == Object {
		return false
	}
	is, known := h.named[name]
	if !known {
		text, ok := h.file.Strings.Get(name)
		is = !ok || namesHash(text)
		h.named[name] = is
	}
	return is
}

// namesHash reports whether a name contains the word hash. It returns false if
// the letters span two words, as in mHasHadFocus.
func namesHash(name string) bool {
	return strings.Contains(name, "hash") || strings.Contains(name, "Hash") || strings.Contains(name, "HASH")
}

// mostSupers is the maximum number of superclasses of a class; in a damaged
// dump, superclasses can form a cycle.
const mostSupers = 1 << 10

// of returns the layout of the instances of the class with the given ID.
func (h *hashFields) of(class ID) *layout {
	if l, ok := h.layouts[class]; ok {
		return l
	}
	l := &layout{}
	id := class
	for range mostSupers {
		own, ok := h.classes[id]
		if !ok {
			break
		}
		for _, s := range own.hashes {
			l.hashes = append(l.hashes, span{l.size + s.from, l.size + s.to})
		}
		l.size += own.size
		id = own.super
	}
	h.layouts[class] = l
	return l
}

// in calls erase with each range of bytes to erase, in order. n is the number
// of bytes of the instance's fields.
func (l *layout) in(n int, erase func(span) error) error {
	for _, s := range l.hashes {
		if s.from >= n {
			break
		}
		if err := erase(span{s.from, min(s.to, n)}); err != nil {
			return err
		}
	}
	if l.size >= n {
		return nil
	}
	return erase(span{l.size, n})
}

// statics calls erase with the position of each static field whose value is a
// hash. The CLASS_DUMP may be truncated.
func (h *hashFields) statics(record []byte, erase func(span) error) error {
	id := h.file.IDSize
	at := 1 + 7*id + 8
	// next skips a name of the given length and a type.
	next := func(name int) (size int, t Type, ok bool) {
		if at += name + 1; at > len(record) {
			return 0, 0, false
		}
		t = Type(record[at-1])
		return t.Size(id), t, true
	}
	count := func() int {
		if at += 2; at > len(record) {
			return 0
		}
		return int(binary.BigEndian.Uint16(record[at-2:]))
	}
	for range count() {
		size, _, ok := next(2)
		if !ok {
			return nil
		}
		at += size
	}
	for range count() {
		size, t, ok := next(id)
		if !ok || at >= len(record) {
			return nil
		}
		if h.isHash(readID(record[at-1-id:], id), t) {
			if err := erase(span{at, min(at+size, len(record))}); err != nil {
				return err
			}
		}
		at += size
	}
	return nil
}

// tail reads the first bytes of the incomplete record at the end of the file.
func (f *File) tail(at int64, most int) ([]byte, error) {
	b := make([]byte, min(int64(most), f.Size-at))
	if n, err := f.r.ReadAt(b, at); n < len(b) {
		return nil, fmt.Errorf("read the dump at offset %d: %w", at+int64(n), shorter(err))
	}
	return b, nil
}
