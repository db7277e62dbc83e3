package gate

import "math"

// upperTail returns the probability of at least k successes in n trials with
// success probability p. It is exact apart from rounding: the terms are summed,
// largest first.
func upperTail(k, n int64, p float64) float64 {
	switch {
	case k <= 0:
		return 1
	case k > n, p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	if float64(k) < float64(n)*p { // the other tail has fewer terms that matter
		return max(0, 1-lowerTail(k-1, n, p))
	}
	// Each term is the previous one times (n-i)/(i+1) * p/(1-p), so the terms
	// decrease from here on.
	term := math.Exp(logTerm(k, n, p))
	sum := term
	for i := k; i < n && term > sum*1e-17; i++ {
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
		sum += term
	}
	return min(sum, 1)
}

// lowerTail returns the probability of at most k successes.
func lowerTail(k, n int64, p float64) float64 {
	switch {
	case k < 0:
		return 0
	case k >= n:
		return 1
	}
	return upperTail(n-k, n, 1-p)
}

// logTerm returns the logarithm of the probability of exactly k successes.
func logTerm(k, n int64, p float64) float64 {
	choose := lgamma(n+1) - lgamma(k+1) - lgamma(n-k+1)
	return choose + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p)
}

func lgamma(n int64) float64 {
	v, _ := math.Lgamma(float64(n))
	return v
}
