package heap

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestCodes writes references of all distances and reads them back.
func TestCodes(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 8))
	type reference struct {
		from, to uint32
		leaf     bool
	}
	ends := []uint32{0, 1, 2, 63, 64, 127, 128, 1 << 20, math.MaxInt32, 1 << 31, none - 2, none - 1}
	var list []reference
	for _, from := range ends {
		for _, to := range ends {
			list = append(list, reference{from, to, dice.IntN(2) == 0})
		}
	}
	for range 10_000 {
		from := dice.Uint32() >> dice.IntN(32)
		list = append(list, reference{from, from + dice.Uint32()>>dice.IntN(32), dice.IntN(2) == 0})
	}
	b := make([]byte, longest*len(list)+1)
	at := int64(0)
	for _, r := range list {
		next := at
		if r.from != r.to {
			next = putUvarint(b, at, encode(r.from, r.to, r.leaf))
		}
		if next-at > longest {
			t.Errorf("%d to %d takes %d bytes", r.from, r.to, next-at)
		}
		at = next
	}
	place := uint64(0)
	for _, r := range list {
		if r.from == r.to {
			continue
		}
		var code uint64
		code, place = uvarint(b, place)
		// 0 cannot be a reference, because it ends a list.
		if to, leaf := target(r.from, code); code == 0 || to != r.to || leaf != r.leaf {
			t.Fatalf("%+v was decoded as %d (leaf: %t) from code %d", r, to, leaf, code)
		}
	}
	if place != uint64(at) {
		t.Errorf("%d bytes were written, %d read", at, place)
	}
}

// TestStarts checks that offsets of more than 32 bits are stored.
func TestStarts(t *testing.T) {
	b := bitset{1<<3 | 1<<9 | 1<<40}
	r, err := newRanks(&arena{}, b)
	if err != nil {
		t.Fatal(err)
	}
	k := links{inner: r, starts: make([]uint32, 3), high: make([]uint8, 3)}
	places := map[uint32]uint64{3: 7, 9: 1<<40 - 5, 40: 1 << 32}
	for object, at := range places {
		k.setStart(r.of(object), at)
	}
	for object, at := range places {
		if got := k.start(object); got != at {
			t.Errorf("object %d begins at %d, want %d", object, got, at)
		}
	}
}
