package trend

import "sort"

// Window keeps the last points of a series, up to a fixed number. Its points lie in
// one piece, so that they can be fitted without a copy; a push is O(1) on average
// and does not allocate. The zero Window holds nothing; make one with [NewWindow].
type Window struct {
	// The points are x[lo:hi] and y[lo:hi]. Both arrays have twice the room, and
	// the points move back to the front when the end is reached.
	x, y   []float64
	lo, hi int
}

// NewWindow makes a window for size points, at least one.
func NewWindow(size int) *Window {
	size = max(size, 1)
	return &Window{x: make([]float64, 2*size), y: make([]float64, 2*size)}
}

// Push adds a point and drops the oldest where the window is full. The caller keeps
// x in order.
func (w *Window) Push(x, y float64) {
	size := len(w.x) / 2
	if size == 0 {
		return
	}
	if w.hi-w.lo == size {
		w.lo++
	}
	if w.hi == len(w.x) {
		w.hi = copy(w.x, w.x[w.lo:w.hi])
		copy(w.y, w.y[w.lo:])
		w.lo = 0
	}
	w.x[w.hi], w.y[w.hi] = x, y
	w.hi++
}

// Len is the number of points.
func (w *Window) Len() int { return w.hi - w.lo }

// X is the times of the points, oldest first, valid until the next Push or Reset.
func (w *Window) X() []float64 { return w.x[w.lo:w.hi] }

// Y is the values of the points, valid like X.
func (w *Window) Y() []float64 { return w.y[w.lo:w.hi] }

// From is the points with time x or later, valid like X.
func (w *Window) From(x float64) (xs, ys []float64) {
	i := w.lo + sort.SearchFloat64s(w.X(), x)
	return w.x[i:w.hi], w.y[i:w.hi]
}

// Raise adds delta to every value.
func (w *Window) Raise(delta float64) {
	for i := w.lo; i < w.hi; i++ {
		w.y[i] += delta
	}
}

// Reset drops all points.
func (w *Window) Reset() { w.lo, w.hi = 0, 0 }
