package mapping

import (
	"hash/maphash"
	"strings"
)

// names stores each name once, in a single string, and numbers the names from
// 1. A name has no string or map entry of its own, because a mapping has
// millions of names.
type names struct {
	text strings.Builder
	// ends holds the end of each name in text; a name begins at the end of the
	// previous one.
	ends []uint32
	// table is an open-addressing hash table of numbers; 0 marks an empty slot.
	table []uint32
	seed  maphash.Seed
}

const firstTable = 1 << 10

func newNames() *names {
	return &names{ends: make([]uint32, 1), table: make([]uint32, firstTable), seed: maphash.MakeSeed()}
}

func (n *names) len() int { return len(n.ends) }

// name returns the name with the given number. The result is a substring of
// text, not a copy.
func (n *names) name(id uint32) string {
	if id == 0 {
		return ""
	}
	return n.text.String()[n.ends[id-1]:n.ends[id]]
}

// find returns the number of a name, or 0 if it is not stored.
func (n *names) find(name string) uint32 {
	for at := maphash.String(n.seed, name); ; at++ {
		id := n.table[at&uint64(len(n.table)-1)]
		if id == 0 || n.name(id) == name {
			return id
		}
	}
}

// add returns the number of a name, and stores the name if it is new.
func (n *names) add(name []byte) uint32 {
	at := maphash.Bytes(n.seed, name)
	for ; ; at++ {
		id := n.table[at&uint64(len(n.table)-1)]
		if id == 0 {
			break
		}
		if n.name(id) == string(name) {
			return id
		}
	}
	id := uint32(len(n.ends))
	n.text.Write(name)
	n.ends = append(n.ends, uint32(n.text.Len()))
	n.table[at&uint64(len(n.table)-1)] = id
	if 4*len(n.ends) > 3*len(n.table) {
		n.grow()
	}
	return id
}

func (n *names) grow() {
	n.table = make([]uint32, 2*len(n.table))
	for id := uint32(1); id < uint32(len(n.ends)); id++ {
		at := maphash.String(n.seed, n.name(id))
		for n.table[at&uint64(len(n.table)-1)] != 0 {
			at++
		}
		n.table[at&uint64(len(n.table)-1)] = id
	}
}
