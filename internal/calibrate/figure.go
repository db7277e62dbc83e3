package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// never is the time of an event that did not happen.
var never = math.Inf(1)

// count returns how many of the given elements satisfy the condition.
func count[T any](all []T, holds func(T) bool) int {
	n := 0
	for _, v := range all {
		if holds(v) {
			n++
		}
	}
	return n
}

// pick returns one figure for each of the given elements, in the same order.
func pick[T any](all []T, figure func(T) float64) []float64 {
	out := make([]float64, len(all))
	for i, v := range all {
		out[i] = figure(v)
	}
	return out
}

// quantile returns the smallest value that is at least as large as a share q of
// the values. It returns never for an empty list.
func quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return never
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(q*float64(len(all))))-1)]
}

// percentText formats a share in percent with as many digits as the number of
// runs supports.
func percentText(hits, of int) string {
	if of == 0 {
		return "-"
	}
	digits := 0
	if of >= 1000 {
		digits = 1
	}
	return shortText(strconv.FormatFloat(100*float64(hits)/float64(of), 'f', digits, 64))
}

func shortText(s string) string { return strings.TrimSuffix(s, ".0") }

// percentsText formats a share for each of several conditions: "0 / 0.1 / 0".
func percentsText(of int, hits ...int) string {
	var parts []string
	for _, h := range hits {
		parts = append(parts, percentText(h, of))
	}
	return strings.Join(parts, " / ")
}

// timesText formats the median and the 90th percentile in minutes: "20 / 25".
func timesText(all []float64) string {
	return timeText(quantile(all, 0.5)) + " / " + timeText(quantile(all, 0.9))
}

func timeText(minutes float64) string {
	if math.IsInf(minutes, 0) {
		return "-"
	}
	return fmt.Sprintf("%.0f", minutes)
}

// tail returns the probability of at least the given number of hits in n tries
// with probability p each.
func tail(hits, n int, p float64) float64 {
	switch {
	case hits <= 0:
		return 1
	case p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	sum := 0.0
	choose := func(a, b int) float64 {
		x, _ := math.Lgamma(float64(a + 1))
		y, _ := math.Lgamma(float64(b + 1))
		z, _ := math.Lgamma(float64(a - b + 1))
		return x - y - z
	}
	for k := hits; k <= n; k++ {
		chance := math.Exp(choose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
		sum += chance
		if float64(k) > p*float64(n) && chance < 1e-15*sum {
			break // beyond the most probable count the remaining terms only decrease
		}
	}
	return min(1, sum)
}

// upper returns the upper bound of the one-sided 95 % confidence interval for
// the probability of a hit, given the number of hits in n tries (Clopper and
// Pearson).
func upper(hits, n int) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		// P(X <= hits) decreases as the probability of a hit grows.
		if mid := (low + high) / 2; 1-tail(hits+1, n, mid) > 0.05 {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
