package trend

import "math"

// Window keeps the latest points of a few columns that are usually measured
// together. The maximum number of points is fixed, and the same for each
// column. The columns share their times as long as every row has a value in
// each of them. The points of a column are contiguous, so they can be fitted
// without a copy. A push takes O(1) time on average and does not allocate while
// the columns share their times. The zero Window holds nothing; create one with
// [NewWindow].
type Window struct {
	size int
	// The rows are x[:hi]. Each column stores how many of the latest rows it
	// uses.
	x       []float64
	hi      int
	columns []Column
}

// room returns how many rows to allocate for size points per column. Because a
// sixteenth is added, a push copies only 16 values of each column on average.
func room(size int) int { return size + size/16 + 1 }

// NewWindow returns a window with the given number of columns, each for at most
// size points. Numbers below 1 are taken as 1.
func NewWindow(size, columns int) *Window {
	size, columns = max(size, 1), max(columns, 1)
	w := &Window{size: size, x: make([]float64, room(size)), columns: make([]Column, columns)}
	for i := range w.columns {
		w.columns[i] = Column{of: w, y: make([]float64, room(size))}
	}
	return w
}

// Column returns the column with the given index, which counts from 0.
func (w *Window) Column(i int) *Column { return &w.columns[i] }

// Push adds a row: one value for each column, NaN if it is missing. Extra
// values are ignored; the remaining columns have no value in this row. A full
// column drops its oldest point for a new one. x must not decrease.
func (w *Window) Push(x float64, values ...float64) {
	values = values[:min(len(values), len(w.columns))]
	if !anyKnown(values) {
		return
	}
	w.makeRoom()
	w.x[w.hi] = x
	for i := range w.columns {
		c := &w.columns[i]
		if i < len(values) && !math.IsNaN(values[i]) {
			c.take(x, values[i])
		} else {
			c.skip()
		}
	}
	w.hi++
}

func anyKnown(values []float64) bool {
	for _, v := range values {
		if !math.IsNaN(v) {
			return true
		}
	}
	return false
}

// makeRoom moves the latest rows to the front when the capacity is used up. It
// keeps size rows, the oldest of which is no longer used once the new row has
// been added.
func (w *Window) makeRoom() {
	if w.hi < len(w.x) {
		return
	}
	from := w.hi - w.size
	for i := range w.columns {
		copy(w.columns[i].y, w.columns[i].y[from:])
	}
	w.hi = copy(w.x, w.x[from:])
}

// Reset drops all points.
func (w *Window) Reset() {
	w.hi = 0
	for i := range w.columns {
		w.columns[i].Reset()
	}
}
