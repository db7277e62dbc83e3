package android

import "slices"

// best keeps the first few of many values in a given order, without storing the
// others.
type best[T any] struct {
	limit int
	order func(a, b T) int
	list  []T
	// full reports whether the list has been truncated at least once; from then
	// on, values that sort after list[limit-1] are not added.
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

// sorted returns the kept values in order.
func (b *best[T]) sorted() []T {
	if b.order != nil {
		b.cut()
	}
	return b.list
}
