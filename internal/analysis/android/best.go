package android

import "slices"

// best keeps those of many that come first in an order, in memory for a few.
type best[T any] struct {
	limit int
	order func(a, b T) int
	list  []T
	// full tells that list[limit-1] is worse than whatever may still be taken.
	full bool
}

func (b *best[T]) add(v T) {
	if b.limit <= 0 || b.full && b.order(v, b.list[b.limit-1]) > 0 {
		return
	}
	if b.list = append(b.list, v); len(b.list) >= 2*b.limit+64 {
		b.cut()
		b.full = true
	}
}

func (b *best[T]) cut() {
	slices.SortFunc(b.list, b.order)
	b.list = b.list[:min(b.limit, len(b.list))]
}

// sorted gives what was kept, the first first.
func (b *best[T]) sorted() []T {
	if b.order != nil {
		b.cut()
	}
	return b.list
}
