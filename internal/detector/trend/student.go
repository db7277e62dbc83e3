package trend

import "math"

// StudentCDF returns P(T <= t) for Student's t with df > 0 degrees of freedom,
// by the regularized incomplete beta function (Abramowitz and Stegun 26.7.1).
func StudentCDF(t, df float64) float64 {
	switch {
	case math.IsNaN(t) || !(df > 0):
		return math.NaN()
	case math.IsInf(t*t, 0) && t > 0:
		return 1
	case math.IsInf(t*t, 0):
		return 0
	}
	tail := betaInc(df/2, 0.5, df/(df+t*t)) / 2
	if t > 0 {
		return 1 - tail
	}
	return tail
}

// StudentQuantile returns the value below which Student's t with df > 0 degrees
// of freedom lies with probability p, 0 < p < 1; for a two-sided 95 % interval
// p is 0.975.
func StudentQuantile(p, df float64) float64 {
	switch {
	case !(p > 0 && p < 1) || !(df > 0):
		return math.NaN()
	case p == 0.5:
		return 0
	case p < 0.5:
		return -StudentQuantile(1-p, df)
	}
	low, high := 0.0, 1.0
	for StudentCDF(high, df) < p && high < 1e300 {
		low, high = high, high*2
	}
	for range 100 {
		mid := low + (high-low)/2
		if mid == low || mid == high {
			break
		}
		if StudentCDF(mid, df) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// NormalCDF returns P(Z <= z) for the standard normal distribution.
func NormalCDF(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }

// betaInc returns the regularized incomplete beta function I_x(a, b).
func betaInc(a, b, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	// The continued fraction converges fast only to the left of the mean.
	if x < (a+1)/(a+b+2) {
		return front * betaFraction(a, b, x) / a
	}
	return 1 - front*betaFraction(b, a, 1-x)/b
}

// betaFraction evaluates the continued fraction of the incomplete beta function
// (Abramowitz and Stegun 26.5.8) by Lentz's method as modified by Thompson and
// Barnett.
func betaFraction(a, b, x float64) float64 {
	const tiny, rounds = 1e-300, 1000
	guard := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/guard(1-(a+b)*x/(a+1))
	h := d
	for m := 1.0; m <= rounds; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / guard(1+even*d)
		c = guard(1 + even/c)
		h *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / guard(1+odd*d)
		c = guard(1 + odd/c)
		h *= d * c
		if math.Abs(d*c-1) < 4*epsilon {
			break
		}
	}
	return h
}
