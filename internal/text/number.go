package text

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Size formats n bytes in kB, MB or GB, each 1,024 of the smaller unit, with
// one decimal. GB is used for 10 GB or more, so that the sizes of a process or
// a heap usually have the same unit.
func Size(n int64) string { return size(float64(n)) }

func size(n float64) string {
	switch {
	case math.Abs(n) < 1<<20:
		return fmt.Sprintf("%.1f kB", n/(1<<10))
	case math.Abs(n) < 10<<30:
		return fmt.Sprintf("%.1f MB", n/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", n/(1<<30))
}

// KB is like Size for a number in kB, the kernel's unit, but prints no decimals
// below 1 MB.
func KB(n int64) string {
	if n > -1<<10 && n < 1<<10 {
		return fmt.Sprintf("%d kB", n)
	}
	return size(float64(n) * (1 << 10)) // as an int64 it could overflow
}

// SignedKB is like KB, with a sign, for a change.
func SignedKB(n int64) string {
	if n > 0 {
		return "+" + KB(n)
	}
	return KB(n)
}

// SignedSize is like Size, with a sign, for a change.
func SignedSize(n int64) string {
	switch {
	case n > 0:
		return "+" + Size(n)
	case n < 0:
		return Size(n)
	}
	return "0 kB"
}

// Bytes is like Size, for amounts that may be small: below 10,000 it prints the
// exact number of bytes.
func Bytes(n int64) string {
	if -10_000 < n && n < 10_000 {
		return Grouped(n) + " bytes"
	}
	return Size(n)
}

// Grouped formats n in groups of three digits: 1 234 567.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

// Signed is like Grouped, with a sign, for a change.
func Signed(n int64) string {
	if n > 0 {
		return "+" + Grouped(n)
	}
	return Grouped(n)
}

// Count formats n with the singular or plural noun: 1 leak, 2 345 leaks.
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(int64(n)) + " " + many
}

// Plural is like Count, without grouping, for use next to other numbers that
// are not grouped.
func Plural[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Span formats a number of seconds: 45s, 12m30s, 2h5m. It rounds to seconds, or
// to minutes for an hour or more.
func Span(seconds float64) string {
	if math.IsNaN(seconds) {
		return "?"
	}
	const most = 1 << 30 // 34 years, far below the limit of a Duration
	d := time.Duration(max(-most, min(most, seconds)) * float64(time.Second)).Round(time.Second)
	switch {
	case d.Abs() >= time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Abs().Minutes())%60)
	case d.Abs() >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return d.String()
}

// shownSeries is the maximum number of values of a series that are printed.
const shownSeries = 12

// Series formats numbers in one line; if there are many, the middle is omitted.
func Series(list []int64) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = Grouped(n)
	}
	if len(parts) > shownSeries {
		parts = slices.Concat(parts[:shownSeries/2], []string{"..."}, parts[len(parts)-shownSeries/2:])
	}
	return strings.Join(parts, ", ")
}
