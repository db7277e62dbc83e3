package trend

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// countingQuantile finds the q-quantile by counting: the k-th order statistic
// is the value with at most k values below and more than k not above it.
func countingQuantile(values []float64, q float64) float64 {
	order := func(k int) float64 {
		for _, v := range values {
			below, notAbove := 0, 0
			for _, w := range values {
				if w < v {
					below++
				}
				if w <= v {
					notAbove++
				}
			}
			if below <= k && k < notAbove {
				return v
			}
		}
		panic("no order statistic")
	}
	h := q * float64(len(values)-1)
	low, high := order(int(math.Floor(h))), order(int(math.Ceil(h)))
	return low + (h-math.Floor(h))*(high-low)
}

func TestQuantileTable(t *testing.T) {
	// The values are those of R: quantile(x, q), type 7.
	tests := []struct {
		sorted []float64
		q      float64
		want   float64
	}{
		{[]float64{7}, 0.25, 7},
		{[]float64{1, 2}, 0.25, 1.25},
		{[]float64{1, 2, 3, 4}, 0.25, 1.75},
		{[]float64{1, 2, 3, 4, 5}, 0.25, 2},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0.25, 3.25},
		{[]float64{1, 2, 3, 4}, 0, 1},
		{[]float64{1, 2, 3, 4}, 1, 4},
		{[]float64{1, 2, 3, 4}, 0.5, 2.5},
	}
	for _, tt := range tests {
		if got, ok := Quantile(tt.sorted, tt.q); !ok || got != tt.want {
			t.Errorf("Quantile(%v, %v) = %v, %v, want %v", tt.sorted, tt.q, got, ok, tt.want)
		}
	}
	for _, q := range []float64{-0.1, 1.1, math.NaN()} {
		if _, ok := Quantile([]float64{1}, q); ok {
			t.Errorf("Quantile accepts q = %v", q)
		}
	}
	if _, ok := P25(nil); ok {
		t.Error("P25 of no values reports a floor")
	}
}

func TestP25AgainstCounting(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		values := make([]float64, 1+r.IntN(1+r.IntN(2*onStack)))
		for i := range values {
			values[i] = float64(r.IntN(20))
		}
		kept := slices.Clone(values)
		got, ok := P25(values)
		if want := countingQuantile(values, 0.25); !ok || got != want {
			t.Fatalf("P25(%v) = %v, want %v", values, got, want)
		}
		if !slices.Equal(kept, values) {
			t.Fatal("P25 changed its input")
		}
	}
}

func TestFloorsAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		var x, y []float64
		at := float64(r.IntN(100))
		for range r.IntN(120) {
			at += float64(1 + r.IntN(60))
			if r.IntN(40) == 0 {
				at += 1000
			}
			x, y = append(x, at), append(y, float64(r.IntN(500)))
		}
		b := Blocks{From: float64(r.IntN(400)), Length: 300}
		got := Floors(nil, x, y, b)

		var want []Floor
		for k := int64(0); k < 200 && len(x) > 0; k++ {
			begin := b.From + 300*float64(k)
			var in []float64
			behind := false
			for i := range x {
				if x[i] >= begin && x[i] < begin+300 {
					in = append(in, y[i])
				}
				behind = behind || x[i] >= begin+300
			}
			if behind && len(in) > 0 && begin >= x[0] {
				want = append(want, Floor{Block: k, Value: countingQuantile(in, 0.25), N: len(in)})
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("Floors from %v of %v:\n got %v\nwant %v", b.From, x, got, want)
		}
	}
	if got := Floors(nil, []float64{1, 2, 3}, []float64{1, 2, 3}, Blocks{}); got != nil {
		t.Errorf("blocks of zero length have floors: %v", got)
	}
}
