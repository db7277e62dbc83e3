package hprof

// blocks collects values whose number is not known in advance. Growing a slice
// instead would copy the values repeatedly, and temporarily take more than
// twice their space.
type blocks[T any] struct {
	full [][]T
	last []T
	n    int
}

// block is the capacity of last and the length of each slice in full.
const block = 1 << 13

func (b *blocks[T]) add(v T) {
	if len(b.last) == block {
		b.full = append(b.full, b.last)
		b.last = make([]T, 0, block)
	}
	b.last = append(b.last, v)
	b.n++
}

// join returns all values, or nil if there are none, and empties the
// collection.
func (b *blocks[T]) join() []T {
	all := b.last
	if len(b.full) > 0 {
		all = make([]T, 0, b.n)
		for i, values := range b.full {
			all = append(all, values...)
			b.full[i] = nil
		}
		all = append(all, b.last...)
	}
	*b = blocks[T]{}
	return all
}
