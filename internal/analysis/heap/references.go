package heap

import "sync/atomic"

// links are the references of all objects, as bytes: for each object the
// distances to its targets, in object numbers, as variable-length integers,
// then a 0. Connected objects were mostly allocated at the same time and are
// close together, so most references take one or two bytes. An object's
// reference to itself does not affect what holds it, and is omitted.
//
// A distance is zigzag-encoded, and the lowest bit is set if the target is a
// leaf, an object without references. The distance to another object is never
// 0, so a 1 can end the list instead of a 0. A 1 means that the object also
// references its class, which its slot identifies.
type links struct {
	bytes []byte
	// starts holds the offset of each object that is not a leaf, by its rank
	// among these objects.
	starts []uint32
	// high holds the upper bits of starts, if a graph has more than 4 GiB of
	// links.
	high []uint8
	// inner holds the objects that are not leaves.
	inner ranks
	// shared holds the leaves that are referenced more than once, or are GC
	// roots.
	shared bitset
	// classes holds, for each slot, the class object that the slot's objects
	// reference in addition to their fields, or none.
	classes []uint32
	// used is the number of bytes reserved so far.
	used atomic.Int64
}

// These codes end an object's references.
const (
	endCode   = 0
	classCode = 1
)

func (k *links) start(object uint32) uint64 {
	r := k.inner.of(object)
	at := uint64(k.starts[r])
	if k.high != nil {
		at |= uint64(k.high[r]) << 32
	}
	return at
}

func (k *links) setStart(rank uint32, at uint64) {
	k.starts[rank] = uint32(at)
	if k.high != nil {
		k.high[rank] = uint8(at >> 32)
	}
}

// uvarint reads a variable-length integer at an offset and returns the offset
// after it.
func uvarint(b []byte, at uint64) (uint64, uint64) {
	c := b[at]
	if c < 0x80 {
		return uint64(c), at + 1
	}
	x := uint64(c & 0x7f)
	for s := uint(7); ; s += 7 {
		at++
		c = b[at]
		x |= uint64(c&0x7f) << s
		if c < 0x80 {
			return x, at + 1
		}
	}
}

// putUvarint writes a variable-length integer at an offset and returns the
// offset after it.
func putUvarint(b []byte, at int64, x uint64) int64 {
	for x >= 0x80 {
		b[at] = byte(x) | 0x80
		x >>= 7
		at++
	}
	b[at] = byte(x)
	return at + 1
}

// zigzag maps small positive and negative numbers to small unsigned numbers.
func zigzag(d int64) uint64   { return uint64(d<<1 ^ d>>63) }
func unzigzag(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

// encode returns the code of a reference.
func encode(from, to uint32, leaf bool) uint64 {
	code := zigzag(int64(to)-int64(from)) << 1
	if leaf {
		code |= 1
	}
	return code
}

// target decodes one reference of an object.
func target(from uint32, code uint64) (to uint32, leaf bool) {
	return uint32(int64(from) + unzigzag(code>>1)), code&1 != 0
}
