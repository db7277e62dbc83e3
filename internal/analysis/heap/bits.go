package heap

import (
	"math/bits"
	"sync/atomic"
)

// bitset is a set of object numbers.
type bitset []uint64

func newBitset(a *arena, n int64) (bitset, error) { return array[uint64](a, (n+63)/64) }

func (b bitset) has(i uint32) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) set(i uint32)      { b[i>>6] |= 1 << (i & 63) }

// setShared sets a bit and reports whether it was already set. It is safe for
// concurrent use.
func (b bitset) setShared(i uint32) bool {
	mask := uint64(1) << (i & 63)
	if atomic.LoadUint64(&b[i>>6])&mask != 0 {
		return true
	}
	return atomic.OrUint64(&b[i>>6], mask)&mask != 0
}

func (b bitset) count() (n int64) {
	for _, w := range b {
		n += int64(bits.OnesCount64(w))
	}
	return n
}

// ranks numbers the members of a bitset in order: each member's number is the
// count of lower members. sums holds, for each word, the count of members
// before it.
type ranks struct {
	bits bitset
	sums []uint32
}

func newRanks(a *arena, b bitset) (ranks, error) {
	sums, err := array[uint32](a, int64(len(b))+1)
	if err != nil {
		return ranks{}, err
	}
	sum := uint32(0)
	for i, w := range b {
		sums[i] = sum
		sum += uint32(bits.OnesCount64(w))
	}
	sums[len(b)] = sum
	return ranks{b, sums}, nil
}

func (r ranks) of(i uint32) uint32 {
	return r.sums[i>>6] + uint32(bits.OnesCount64(r.bits[i>>6]&(1<<(i&63)-1)))
}

func (r ranks) len() int64 { return int64(r.sums[len(r.sums)-1]) }
