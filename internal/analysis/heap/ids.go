package heap

import (
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
)

// ids numbers objects by address. If addresses are dense, it uses a bitmap in
// which each word is stored with the number of preceding objects, so a lookup
// takes one cache miss. The bitmap takes an eighth of a byte per 8 bytes of
// heap, and the numbers take another sixteenth. If addresses are sparse, it
// uses a sorted list.
type ids struct {
	// shift is the number of low bits that are 0 in every object address: 3 for
	// ART and HotSpot, which align objects to 8 bytes.
	shift uint
	base  uint64
	// regions holds, for each stretch of 1<<regionBits alignment units
	// (1<<shift bytes each), 1 plus the index of its cells.
	regions []uint32
	cells   []cell
	// firsts holds, for each stretch that has cells, the number of objects
	// before the stretch; regions holds the index for each stretch.
	firsts, starts []uint32
	// dense is the number of objects in cells. The slice odd lists the objects
	// whose addresses are not multiples of the unit; they are numbered after
	// the objects in cells. ART identifies the overhead of a class by the
	// class's address plus 1.
	dense uint32
	odd   []uint64
}

// cell is a bitmap of 64 alignment units, with the number of objects before
// them.
type cell struct {
	low, high, rank uint32
}

const (
	regionBits  = 16
	regionCells = 1 << (regionBits - 6)
	// sparse is the maximum size of the cells, in bytes per object. If the
	// number of stretches does not exceed least, they are always accepted,
	// because their cells take only 12 MB.
	sparse = 12
	least  = 1 << 10
)

// none means "no object"; it is not the number of any object.
const none = ^uint32(0)

// find returns the number of an object, or none.
func (x *ids) find(id hprof.ID) uint32 {
	at := uint64(id) - x.base
	if at&(1<<x.shift-1) == 0 {
		if region := at >> x.shift >> regionBits; region < uint64(len(x.regions)) {
			if first := x.regions[region]; first != 0 {
				unit := at >> x.shift & (1<<regionBits - 1)
				c := &x.cells[uint64(first-1)*regionCells+unit>>6]
				word := uint64(c.high)<<32 | uint64(c.low)
				if bit := uint64(1) << (unit & 63); word&bit != 0 {
					return c.rank + uint32(bits.OnesCount64(word&(bit-1)))
				}
			}
		}
	}
	if len(x.odd) == 0 {
		return none
	}
	if i, ok := slices.BinarySearch(x.odd, uint64(id)); ok {
		return x.dense + uint32(i)
	}
	return none
}

// id returns the address of an object.
func (x *ids) id(n uint32) hprof.ID {
	if n >= x.dense {
		return hprof.ID(x.odd[n-x.dense])
	}
	r := sort.Search(len(x.firsts), func(i int) bool { return x.firsts[i] > n }) - 1
	cells := x.cells[r*regionCells:][:regionCells]
	c := sort.Search(regionCells, func(i int) bool { return cells[i].rank > n }) - 1
	word := uint64(cells[c].high)<<32 | uint64(cells[c].low)
	for range n - cells[c].rank {
		word &= word - 1
	}
	unit := uint64(x.starts[r])<<regionBits | uint64(c)<<6 | uint64(bits.TrailingZeros64(word))
	return hprof.ID(x.base + unit<<x.shift)
}

func (x *ids) len() int64 { return int64(x.dense) + int64(len(x.odd)) }

// addresses iterates over the addresses of some objects, always in the same
// order.
type addresses interface{ each(f func(uint64)) }

// newIDs numbers the objects of several lists of addresses. spread describes
// the addresses.
func newIDs[T addresses](a *arena, workers int, s spread, lists []T) (*ids, error) {
	x := &ids{shift: s.shift()}
	x.base = s.least >> x.shift << x.shift
	if s.count == 0 {
		return x, nil
	}
	if !regioned(x, workers, s, lists) {
		return x, list(x, a, s.count, lists)
	}
	if err := mark(x, a, workers, lists); err != nil {
		return nil, err
	}
	x.sum()
	return x, nil
}

// parallel calls do with each number from 0 to n-1, in several goroutines.
func parallel(workers, n int, do func(i int)) {
	if workers == 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// spread is the range, number and alignment of a set of addresses.
type spread struct {
	least, most uint64
	count       int64
	// aligned holds the numbers of addresses by their alignment: 1, 2, 4, and 8
	// or more bytes.
	aligned [4]int64
}

func (s *spread) add(id uint64) {
	if s.count == 0 {
		s.least, s.most = id, id
	}
	s.least, s.most = min(s.least, id), max(s.most, id)
	s.count++
	s.aligned[min(bits.TrailingZeros64(id|8), 3)]++
}

func (s *spread) merge(o spread) {
	if o.count == 0 {
		return
	}
	if s.count == 0 {
		s.least, s.most = o.least, o.most
	}
	s.least, s.most = min(s.least, o.least), max(s.most, o.most)
	s.count += o.count
	for i := range s.aligned {
		s.aligned[i] += o.aligned[i]
	}
}

// shift returns, as a number of bits, the largest unit to which at least 15 of
// 16 addresses are aligned.
func (s *spread) shift() uint {
	for shift := uint(3); shift > 0; shift-- {
		off := int64(0)
		for _, n := range s.aligned[:shift] {
			off += n
		}
		if off <= s.count/16 {
			return shift
		}
	}
	return 0
}

// regioned finds the stretches with objects, and reports whether the cells for
// them are small enough.
func regioned[T addresses](x *ids, workers int, s spread, lists []T) bool {
	n := (s.most-x.base)>>x.shift>>regionBits + 1
	allowed := max(s.count*sparse/(regionCells*12), least)
	if n > uint64(max(s.count, 1<<16)) {
		return false
	}
	x.regions = make([]uint32, n)
	parallel(workers, len(lists), func(i int) {
		last := ^uint64(0)
		lists[i].each(func(id uint64) {
			if r := (id - x.base) >> x.shift >> regionBits; r != last {
				last = r
				atomic.StoreUint32(&x.regions[r], 1)
			}
		})
	})
	for r, there := range x.regions {
		if there != 0 {
			x.starts = append(x.starts, uint32(r))
			x.regions[r] = uint32(len(x.starts))
		}
	}
	if int64(len(x.starts)) > allowed {
		x.regions, x.starts = nil, nil
		return false
	}
	return true
}

// mark sets the bits of all addresses.
func mark[T addresses](x *ids, a *arena, workers int, lists []T) error {
	cells, err := array[cell](a, int64(len(x.starts))*regionCells)
	if err != nil {
		return err
	}
	x.cells = cells
	var mu sync.Mutex
	parallel(workers, len(lists), func(i int) {
		var odd []uint64
		lists[i].each(func(id uint64) {
			at := id - x.base
			if at&(1<<x.shift-1) != 0 {
				odd = append(odd, id)
				return
			}
			unit := at >> x.shift
			c := &cells[uint64(x.regions[unit>>regionBits]-1)*regionCells+unit&(1<<regionBits-1)>>6]
			if bit := unit & 63; bit < 32 {
				atomic.OrUint32(&c.low, 1<<bit)
			} else {
				atomic.OrUint32(&c.high, 1<<(bit-32))
			}
		})
		mu.Lock()
		defer mu.Unlock()
		x.odd = append(x.odd, odd...)
	})
	slices.Sort(x.odd)
	x.odd = slices.Compact(x.odd)
	return nil
}

func (x *ids) sum() {
	for i := range x.cells {
		if i%regionCells == 0 {
			x.firsts = append(x.firsts, x.dense)
		}
		c := &x.cells[i]
		c.rank = x.dense
		x.dense += uint32(bits.OnesCount32(c.low) + bits.OnesCount32(c.high))
	}
}

// list builds the sorted list that is used if addresses are sparse.
func list[T addresses](x *ids, a *arena, n int64, lists []T) error {
	odd, err := array[uint64](a, n)
	if err != nil {
		return err
	}
	i := 0
	for _, l := range lists {
		l.each(func(id uint64) {
			odd[i] = id
			i++
		})
	}
	slices.Sort(odd)
	x.odd = slices.Compact(odd)
	return nil
}
