package trend

import "math"

// Window keeps the last points of a few columns that are mostly measured together,
// each up to the same fixed number. Its columns share their times for as long as each
// of them has a value whenever one has. The points of a column lie in one piece, so
// that they can be fitted without a copy; a push is O(1) on average and does not
// allocate while the columns stay together. The zero Window holds nothing; make one
// with [NewWindow].
type Window struct {
	size int
	// The rows are x[:hi]. The columns say how many of the latest they read.
	x       []float64
	hi      int
	columns []Column
}

// room is how many rows there is room for with size points a column. A sixteenth to
// spare makes a push copy 16 values of each column on average.
func room(size int) int { return size + size/16 + 1 }

// NewWindow makes a window of columns with size points each; at least one of both.
func NewWindow(size, columns int) *Window {
	size, columns = max(size, 1), max(columns, 1)
	w := &Window{size: size, x: make([]float64, room(size)), columns: make([]Column, columns)}
	for i := range w.columns {
		w.columns[i] = Column{of: w, y: make([]float64, room(size))}
	}
	return w
}

// Column is one of the columns, counted from 0.
func (w *Window) Column(i int) *Column { return &w.columns[i] }

// Push adds a row: one value for each column, NaN where there is none. Values behind
// the last column are left out, columns behind the last value have none. A full
// column drops its oldest point for a new one. The caller keeps x in order.
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

// makeRoom moves the latest rows to the front when the room is used up. With them the
// new row makes one too many, and the oldest is read no more.
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
