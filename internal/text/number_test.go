package text

import (
	"math"
	"testing"
)

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		n                   int64
		size, signed, bytes string
	}{
		{0, "0.0 kB", "0 kB", "0 bytes"},
		{1, "0.0 kB", "+0.0 kB", "1 bytes"},
		{9_999, "9.8 kB", "+9.8 kB", "9 999 bytes"},
		{10_000, "9.8 kB", "+9.8 kB", "9.8 kB"},
		{1<<20 - 1, "1024.0 kB", "+1024.0 kB", "1024.0 kB"},
		{1 << 20, "1.0 MB", "+1.0 MB", "1.0 MB"},
		{-3 << 19, "-1.5 MB", "-1.5 MB", "-1.5 MB"},
		{-2048, "-2.0 kB", "-2.0 kB", "-2 048 bytes"},
		{10<<30 - 1, "10240.0 MB", "+10240.0 MB", "10240.0 MB"},
		{10 << 30, "10.0 GB", "+10.0 GB", "10.0 GB"},
		{-10 << 30, "-10.0 GB", "-10.0 GB", "-10.0 GB"},
		{-25 << 29, "-12.5 GB", "-12.5 GB", "-12.5 GB"},
		{math.MinInt64, "-8589934592.0 GB", "-8589934592.0 GB", "-8589934592.0 GB"},
	} {
		if size, signed, bytes := Size(c.n), SignedSize(c.n), Bytes(c.n); size != c.size || signed != c.signed ||
			bytes != c.bytes {
			t.Errorf("%d: %q %q %q, want %q %q %q", c.n, size, signed, bytes, c.size, c.signed, c.bytes)
		}
	}
}

func TestKB(t *testing.T) {
	for n, want := range map[int64][2]string{
		0: {"0 kB", "0 kB"}, 7: {"7 kB", "+7 kB"}, 1023: {"1023 kB", "+1023 kB"}, 1024: {"1.0 MB", "+1.0 MB"},
		-1023: {"-1023 kB", "-1023 kB"}, -1024: {"-1.0 MB", "-1.0 MB"}, -1536: {"-1.5 MB", "-1.5 MB"},
		15 << 20: {"15.0 GB", "+15.0 GB"},
	} {
		if kb, signed := KB(n), SignedKB(n); kb != want[0] || signed != want[1] {
			t.Errorf("%d: %q %q, want %q", n, kb, signed, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64][2]string{
		0: {"0", "0"}, 7: {"7", "+7"}, 999: {"999", "+999"}, 1000: {"1 000", "+1 000"},
		1234567: {"1 234 567", "+1 234 567"},
		-999:    {"-999", "-999"}, -1000: {"-1 000", "-1 000"},
		math.MinInt64: {"-9 223 372 036 854 775 808", "-9 223 372 036 854 775 808"},
	} {
		if grouped, signed := Grouped(n), Signed(n); grouped != want[0] || signed != want[1] {
			t.Errorf("%d: %q %q, want %q", n, grouped, signed, want)
		}
	}
	if got := Count(0, "leak", "leaks") + ", " + Count(1, "leak", "leaks") + ", " +
		Count(2345, "leak", "leaks"); got != "0 leaks, 1 leak, 2 345 leaks" {
		t.Error(got)
	}
}

func TestSpan(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.4: "0s", 45.2: "45s", 59.6: "1m", 60: "1m", 750: "12m30s", 3599.4: "59m59s", 3599.6: "1h0m",
		3629: "1h0m", 3630: "1h1m", 7500: "2h5m", 360000: "100h0m",
		-45: "-45s", -7500: "-2h5m", math.Inf(1): "298261h37m", math.Inf(-1): "-298261h37m",
	} {
		if got := Span(seconds); got != want {
			t.Errorf("Span(%g) = %q, want %q", seconds, got, want)
		}
	}
	if got := Span(math.NaN()); got != "?" {
		t.Error(got)
	}
}

func TestSeries(t *testing.T) {
	long := make([]int64, 100)
	for i := range long {
		long[i] = int64(i)
	}
	for want, list := range map[string][]int64{
		"":                                     nil,
		"15":                                   {15},
		"1 000, 0":                             {1000, 0},
		"0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11": long[:12],
		"0, 1, 2, 3, 4, 5, ..., 94, 95, 96, 97, 98, 99": long,
	} {
		if got := Series(list); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
