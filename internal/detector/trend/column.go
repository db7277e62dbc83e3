package trend

import "sort"

// Column contains the latest points of one series. It is created by its
// [Window].
//
// If a row has a value in another column but not in this one, this column
// stores its points separately, with their own times, until all rows of a full
// window have a value again. A column therefore always contains its latest
// points, however rarely it gets a value.
type Column struct {
	of *Window
	// y[i] is the value of row i. Only the latest rows have a value; run is
	// their number.
	y   []float64
	run int
	// apart holds all points if there are rows without a value between them.
	apart *Window
}

// take adds a value to the row that is being pushed.
func (c *Column) take(x, v float64) {
	c.y[c.of.hi] = v
	c.run = min(c.run+1, c.of.size)
	switch {
	case c.apart == nil:
	case c.run == c.of.size:
		c.apart = nil
	default:
		c.apart.Push(x, v)
	}
}

// skip leaves the row that is being pushed without a value.
func (c *Column) skip() {
	if c.apart == nil && c.run > 0 {
		c.apart = c.copyApart()
	}
	c.run = 0
}

func (c *Column) copyApart() *Window {
	w := NewWindow(c.of.size, 1)
	x, y := c.X(), c.Y()
	for i := range x {
		w.Push(x[i], y[i])
	}
	return w
}

// Len returns the number of points.
func (c *Column) Len() int { return len(c.X()) }

// X returns the times of the points, oldest first. They are valid until the
// next Push or Reset.
func (c *Column) X() []float64 {
	if c.apart != nil {
		return c.apart.Column(0).X()
	}
	return c.of.x[c.of.hi-c.run : c.of.hi]
}

// Y returns the values of the points. They are valid until the next Push or
// Reset.
func (c *Column) Y() []float64 {
	if c.apart != nil {
		return c.apart.Column(0).Y()
	}
	return c.y[c.of.hi-c.run : c.of.hi]
}

// From returns the points with time x or later. They are valid until the next
// Push or Reset.
func (c *Column) From(x float64) (xs, ys []float64) {
	xs, ys = c.X(), c.Y()
	i := sort.SearchFloat64s(xs, x)
	return xs[i:], ys[i:]
}

// Raise adds delta to every value.
func (c *Column) Raise(delta float64) {
	if c.apart != nil {
		c.apart.Column(0).Raise(delta)
	}
	for i := c.of.hi - c.run; i < c.of.hi; i++ {
		c.y[i] += delta
	}
}

// Reset drops the points of this column only.
func (c *Column) Reset() { c.run, c.apart = 0, nil }
