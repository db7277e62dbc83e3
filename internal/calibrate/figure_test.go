package main

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestQuantile compares the result with the definition: the smallest value that
// is at least as large as the share q of all values.
func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 500 {
		all := make([]float64, 1+r.IntN(12))
		for i := range all {
			all[i] = float64(r.IntN(6))
			if r.IntN(5) == 0 {
				all[i] = never
			}
		}
		for _, q := range []float64{0.1, 0.5, 0.9, 1} {
			want := never
			for _, v := range all {
				below := count(all, func(x float64) bool { return x <= v })
				if float64(below) >= q*float64(len(all))-1e-9 {
					want = min(want, v)
				}
			}
			if got := quantile(all, q); got != want {
				t.Fatalf("quantile %g of %v: %g, want %g", q, all, got, want)
			}
		}
	}
	if got := quantile(nil, 0.5); got != never {
		t.Errorf("median of no values: %g", got)
	}
}

// TestTail compares the result with a count of all outcomes of n tries.
func TestTail(t *testing.T) {
	const n = 9
	for _, p := range []float64{0.01, 0.3, 0.5, 0.97} {
		var want [n + 2]float64
		for outcome := range 1 << n {
			chance, hits := 1.0, 0
			for i := range n {
				if outcome>>i&1 == 1 {
					chance *= p
					hits++
				} else {
					chance *= 1 - p
				}
			}
			for k := range hits + 1 {
				want[k] += chance
			}
		}
		for k, w := range want {
			if got := tail(k, n, p); math.Abs(got-w) > 1e-12 {
				t.Errorf("tail(%d, %d, %g) = %g, want %g", k, n, p, got, w)
			}
		}
	}
	if tail(1, 10, 0) != 0 || tail(0, 10, 0) != 1 || tail(10, 10, 1) != 1 {
		t.Error("wrong tail at the ends")
	}
}

// TestUpper checks that at the bound, the probability of at most the given
// number of hits is 5 %. With no hits in n tries, the bound follows the rule of
// three.
func TestUpper(t *testing.T) {
	for _, n := range []int{20, 300, 6400} {
		for _, hits := range []int{0, 1, 5} {
			p := upper(hits, n)
			if got := 1 - tail(hits+1, n, p); math.Abs(got-0.05) > 1e-6 {
				t.Errorf("upper(%d, %d) = %g: %g", hits, n, p, got)
			}
		}
		if p := upper(0, n); math.Abs(p*float64(n)/3-1) > 0.08 {
			t.Errorf("upper(0, %d) = %g", n, p)
		}
	}
	if upper(20, 20) < 1-1e-9 {
		t.Error("wrong upper bound if all trials hit")
	}
}

// TestAtLeastOne compares the result with the frequency in random runs.
func TestAtLeastOne(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	const runs = 20000
	hit := 0
	for range runs {
		for range 10 {
			if r.Float64() < 0.02 {
				hit++
				break
			}
		}
	}
	if got, want := atLeastOne(0.02, 10), float64(hit)/runs; math.Abs(got-want) > 0.012 {
		t.Errorf("%g, drawn %g", got, want)
	}
}

func TestTexts(t *testing.T) {
	for got, want := range map[string]string{
		percentText(0, 2000): "0", percentText(1, 2000): "0.1", percentText(2000, 2000): "100",
		percentText(3, 300): "1", percentText(0, 0): "-",
		percentsText(1000, 0, 5, 1000):          "0 / 0.5 / 100",
		timesText([]float64{20.4, 20.6, never}): "21 / -",
		timesText(nil):                          "- / -",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
