package gate

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactTail adds up the binomial terms as rational numbers.
func exactTail(k, n int64, num, den int64) float64 {
	p, q := big.NewRat(num, den), big.NewRat(den-num, den)
	sum := new(big.Rat)
	for i := max(k, 0); i <= n; i++ {
		term := new(big.Rat).SetInt(new(big.Int).Binomial(n, i))
		for range i {
			term.Mul(term, p)
		}
		for range n - i {
			term.Mul(term, q)
		}
		sum.Add(sum, term)
	}
	f, _ := sum.Float64()
	return f
}

func TestUpperTail(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := random.Int64N(40)
		k, num, den := random.Int64N(n+3)-1, random.Int64N(9), int64(8)
		num = min(num, den)
		got, want := upperTail(k, n, float64(num)/float64(den)), exactTail(k, n, num, den)
		if math.Abs(got-want) > 1e-9*max(want, 1e-6) {
			t.Fatalf("P(X >= %d), n %d, p %d/%d: %g, want %g", k, n, num, den, got, want)
		}
	}
	// The probability of a far tail keeps its magnitude; computed as 1 minus
	// the other terms, it would be 0.
	if got, want := upperTail(39, 40, 0.125), exactTail(39, 40, 1, 8); math.Abs(got/want-1) > 1e-9 {
		t.Errorf("%g, want %g", got, want)
	}
	if got := upperTail(500_000, 1_000_000, 0.5); got < 0.5 || got > 0.501 {
		t.Errorf("of a million: %g", got)
	}
}
