package trend

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func fullWindow(size int) *Window {
	w := NewWindow(size)
	for i := range size {
		w.Push(float64(30*i), float64(i*i%97))
	}
	return w
}

func TestWindowAgainstSlice(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, size := range []int{1, 2, 3, 7, 240} {
		w := NewWindow(size)
		var x, y []float64
		for i := range 1000 {
			switch r.IntN(100) {
			case 0:
				w.Reset()
				x, y = nil, nil
			case 1:
				w.Raise(5)
				for j := range y {
					y[j] += 5
				}
			}
			w.Push(float64(2*i), float64(-i))
			x, y = append(x, float64(2*i)), append(y, float64(-i))
			if len(x) > size {
				x, y = x[1:], y[1:]
			}
			if w.Len() != len(x) || !slices.Equal(w.X(), x) || !slices.Equal(w.Y(), y) {
				t.Fatalf("size %d step %d: got %v %v, want %v %v", size, i, w.X(), w.Y(), x, y)
			}
			from := float64(2*i - r.IntN(3*size))
			k := slices.IndexFunc(x, func(v float64) bool { return v >= from })
			if k < 0 {
				k = len(x)
			}
			if xs, ys := w.From(from); !slices.Equal(xs, x[k:]) || !slices.Equal(ys, y[k:]) {
				t.Fatalf("From(%v) = %v %v, want %v %v", from, xs, ys, x[k:], y[k:])
			}
		}
	}
}

func TestZeroWindow(t *testing.T) {
	var w Window
	w.Push(1, 2)
	if w.Len() != 0 {
		t.Errorf("the zero window holds %d points", w.Len())
	}
	if w := NewWindow(-3); w.Len() != 0 {
		t.Error("a new window holds points")
	} else if w.Push(1, 2); w.Len() != 1 {
		t.Error("a window without size does not hold one point")
	}
}

func TestWindowDoesNotAllocate(t *testing.T) {
	w := fullWindow(240)
	scratch := make([]float64, 0, 240)
	floors := make([]Floor, 0, 240)
	at := 240 * 30.0
	n := testing.AllocsPerRun(1000, func() {
		at += 30
		w.Push(at, at)
		Fit(w.X(), w.Y())
		floors = Floors(floors[:0], w.X(), w.Y(), Blocks{From: 0, Length: 300}, scratch)
	})
	if n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
}
