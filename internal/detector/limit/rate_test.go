package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slowSen computes Sen's slope and its interval by counting instead of sorting.
func slowSen(x, y []float64) Rate {
	var all []float64
	for i := range x {
		for j := range i {
			all = append(all, (y[i]-y[j])/(x[i]-x[j]))
		}
	}
	// rank returns the k-th smallest value, counted from 0.
	rank := func(k int) float64 {
		for _, v := range all {
			below, equal := 0, 0
			for _, u := range all {
				if u < v {
					below++
				} else if u == v {
					equal++
				}
			}
			if below <= k && k < below+equal {
				return v
			}
		}
		panic("rank out of range")
	}
	n, pairs := float64(len(x)), len(all)
	low := max(0, int(math.Floor((float64(pairs)-2.5758*math.Sqrt(n*(n-1)*(2*n+5)/18))/2)))
	return Rate{
		PerHour: 3600 * (rank((pairs-1)/2) + rank(pairs/2)) / 2,
		Low:     3600 * rank(low), High: 3600 * rank(pairs-1-low), Known: true,
	}
}

func TestSenAgainstCounting(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		n := 6 + rng.IntN(12)
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i] = float64(i*10 + rng.IntN(10))
			y[i] = float64(rng.IntN(6)) * float64(1+i*rng.IntN(2)) // with many ties
		}
		got, want := sen(x, y), slowSen(x, y)
		for _, pair := range [][2]float64{{got.PerHour, want.PerHour}, {got.Low, want.Low}, {got.High, want.High}} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*(1+math.Abs(pair[1])) {
				t.Fatalf("x %v, y %v: %+v, want %+v", x, y, got, want)
			}
		}
	}
	if r := sen(make([]float64, 5), make([]float64, 5)); r != (Rate{}) {
		t.Errorf("got rate %+v from five points, want none", r)
	}
}

// The slope follows the points, but changing a third of them hardly affects it.
func TestSenInvariance(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		n := 12 + rng.IntN(20)
		x, y := make([]float64, n), make([]float64, n)
		slope := rng.NormFloat64() * 10
		for i := range x {
			x[i] = float64(i * 60)
			y[i] = slope*x[i] + rng.NormFloat64()
		}
		r := sen(x, y)
		moved := make([]float64, n)
		for i := range y {
			moved[i] = 3*y[i] + 7 + 2*x[i]
		}
		m := sen(x, moved)
		if want := 3*r.PerHour + 7200; math.Abs(m.PerHour-want) > 1e-6*(1+math.Abs(want)) {
			t.Fatalf("moved: %v, want %v", m.PerHour, want)
		}
		for range n / 5 {
			y[rng.IntN(n)] += 1e6 * rng.NormFloat64()
		}
		if bent := sen(x, y); math.Abs(bent.PerHour-3600*slope) > 3600*0.1 {
			t.Fatalf("outliers change the slope from %v to %v", 3600*slope, bent.PerHour)
		}
	}
}

// The interval contains the true slope as often as its confidence level states.
func TestSenCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for _, n := range []int{6, 10, 30} {
		const runs = 4000
		missed := 0
		for range runs {
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i], y[i] = float64(i), 0.01*float64(i)+rng.NormFloat64()
			}
			if r := sen(x, y); r.Low > 36 || r.High < 36 {
				missed++
			}
		}
		// The bound is 1 % of the runs plus five standard deviations of the
		// count.
		if limit := 0.01*runs + 5*math.Sqrt(0.01*runs); float64(missed) > limit {
			t.Errorf("%d points: interval missed the slope in %d of %d runs", n, missed, runs)
		}
	}
}

func TestLasting(t *testing.T) {
	for name, c := range map[string]struct {
		at   func(i float64) float64 // from 0 to 1
		want bool
	}{
		"line":         {func(i float64) float64 { return i }, true},
		"accelerates":  {func(i float64) float64 { return i + i*i }, true},
		"stairs":       {func(i float64) float64 { return math.Floor(12*i) / 12 }, true},
		"flat":         {func(float64) float64 { return 0.5 }, false},
		"falls":        {func(i float64) float64 { return -i }, false},
		"a step":       {func(i float64) float64 { return math.Round(i) }, false},
		"saturates":    {func(i float64) float64 { return 1 - math.Exp(-3*i) }, false},
		"stops rising": {func(i float64) float64 { return min(i, 0.6) }, false},
	} {
		for _, n := range []int{12, 17, 40} {
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i], y[i] = float64(60*i), c.at(float64(i)/float64(n-1))
			}
			if got := lasting(x, y); got != c.want {
				t.Errorf("%s, %d points: %t", name, n, got)
			}
		}
	}
}
