package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fullColumn returns a column of a full window.
func fullColumn(size int) *Column {
	w := NewWindow(size, 1)
	for i := range size {
		w.Push(float64(30*i), float64(i*i%97))
	}
	return w.Column(0)
}

// plainColumn is a plain implementation of a column: two slices that drop their
// first element when they are full.
type plainColumn struct{ x, y []float64 }

func (p *plainColumn) push(x, y float64, size int) {
	if math.IsNaN(y) {
		return
	}
	p.x, p.y = append(p.x, x), append(p.y, y)
	if len(p.x) > size {
		p.x, p.y = p.x[1:], p.y[1:]
	}
}

func (p *plainColumn) from(x float64) int {
	if k := slices.IndexFunc(p.x, func(v float64) bool { return v >= x }); k >= 0 {
		return k
	}
	return len(p.x)
}

func (p *plainColumn) check(t *testing.T, c *Column, from float64) {
	t.Helper()
	if c.Len() != len(p.x) || !slices.Equal(c.X(), p.x) || !slices.Equal(c.Y(), p.y) {
		t.Fatalf("got %v %v, want %v %v", c.X(), c.Y(), p.x, p.y)
	}
	k := p.from(from)
	if xs, ys := c.From(from); !slices.Equal(xs, p.x[k:]) || !slices.Equal(ys, p.y[k:]) {
		t.Fatalf("From(%v) = %v %v, want %v %v", from, xs, ys, p.x[k:], p.y[k:])
	}
}

// TestWindowAgainstSlices checks that each column holds its own last points,
// whichever values are missing in other columns, and whichever columns are
// reset or raised in between.
func TestWindowAgainstSlices(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, size := range []int{1, 2, 3, 7, 60, 240} {
		for _, columns := range []int{1, 2, 10} {
			w := NewWindow(size, columns)
			plain := make([]plainColumn, columns)
			values := make([]float64, columns)
			lack := make([]float64, columns)
			parted := 0
			for i := range 2000 {
				if i%(4*size+50) == 0 {
					for c := range lack {
						lack[c] = []float64{0, 0, 0, 0.02, 0.5, 0.98, 1}[r.IntN(7)]
					}
				}
				any := r.IntN(columns)
				switch c := &plain[any]; r.IntN(150) {
				case 0:
					w.Reset()
					clear(plain)
				case 1:
					w.Column(any).Reset()
					*c = plainColumn{}
				case 2, 3:
					w.Column(any).Raise(5)
					for j := range c.y {
						c.y[j] += 5
					}
				}
				at := float64(2 * i)
				for c := range values {
					values[c] = float64(r.IntN(1000))
					if r.Float64() < lack[c] {
						values[c] = math.NaN()
					}
					plain[c].push(at, values[c], size)
				}
				w.Push(at, values...)
				for c := range plain {
					plain[c].check(t, w.Column(c), at-float64(r.IntN(3*size)))
					if w.Column(c).apart != nil {
						parted++
					}
				}
			}
			if columns > 1 && parted == 0 {
				t.Errorf("%d columns of size %d: no column ever lacked a value", columns, size)
			}
		}
	}
}

// TestColumnsComeTogether checks that, after a missing value, a column stores
// its points separately only until every row in the window has a value in each
// column.
func TestColumnsComeTogether(t *testing.T) {
	w := NewWindow(60, 2)
	for i := range 100 {
		w.Push(float64(i), 1, 2)
	}
	w.Push(100, 1, math.NaN())
	for i := range 59 {
		w.Push(101+float64(i), 1, 2)
		if w.Column(1).apart == nil {
			t.Fatalf("column was merged only %d rows after a missing value", i+1)
		}
	}
	w.Push(160, 1, 2)
	if c := w.Column(1); c.apart != nil || c.Len() != 60 || c.X()[0] != 101 {
		t.Errorf("stored separately: %v, times %v", c.apart != nil, c.X())
	}
}

func TestWindowArguments(t *testing.T) {
	var zero Window
	zero.Push(1, 2)
	zero.Reset()
	w := NewWindow(-3, 0)
	if w.Column(0).Len() != 0 {
		t.Error("a new window has points")
	}
	if w.Push(1, 2, 3); !slices.Equal(w.Column(0).Y(), []float64{2}) {
		t.Errorf("window for one point in one column has values %v, want 2", w.Column(0).Y())
	}
	w = NewWindow(3, 2)
	w.Push(1, 5, 6)
	w.Push(2, 7)
	w.Push(3)
	w.Push(4, math.NaN(), math.NaN())
	if x := w.Column(0).X(); !slices.Equal(x, []float64{1, 2}) {
		t.Errorf("first column has times %v, want 1 and 2", x)
	}
	if x := w.Column(1).X(); !slices.Equal(x, []float64{1}) {
		t.Errorf("second column has times %v, want 1", x)
	}
}

func TestWindowDoesNotAllocate(t *testing.T) {
	w := NewWindow(240, 3)
	floors := make([]Floor, 0, 240)
	at := 0.0
	push := func() {
		at += 30
		third := math.NaN()
		if int(at)%60 == 0 {
			third = at
		}
		w.Push(at, at, -at, third)
		for c := range 3 {
			x, y := w.Column(c).From(at - 3600)
			Fit(x, y)
			floors = Floors(floors[:0], x, y, Blocks{From: 0, Length: 300})
			P25(y)
		}
	}
	for range 500 {
		push()
	}
	if n := testing.AllocsPerRun(1000, push); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}
