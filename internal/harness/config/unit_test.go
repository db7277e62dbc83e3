package config

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// A duration without days is parsed as in Go; the test adds the days itself.
func TestDurationAgainstGo(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	units := []string{"ns", "us", "µs", "μs", "ms", "s", "m", "h", "d"}
	for range 5000 {
		text, days := "", 0
		if rng.IntN(5) == 0 {
			text = "-"
		}
		plain := text
		for range 1 + rng.IntN(4) {
			n, unit := rng.IntN(300), units[rng.IntN(len(units))]
			number := fmt.Sprint(n)
			if unit == "d" {
				days += n
			} else {
				if rng.IntN(3) == 0 {
					number += fmt.Sprintf(".%d", rng.IntN(100))
				}
				plain += number + unit
			}
			text += number + unit
		}
		want, err := time.ParseDuration(plain)
		if plain == "" || plain == "-" {
			want, err = 0, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		add := time.Duration(days) * 24 * time.Hour
		if text[0] == '-' {
			add = -add
		}
		if len(text) > longestNumber {
			continue
		}
		if got, f := duration(text); f != nil || got != want+add {
			t.Errorf("%s is %v, not %v; %+v", text, got, want+add, f)
		}
	}
}

func TestDurationEdges(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "1.5d": 36 * time.Hour, ".5h": 30 * time.Minute, "106751d": 106751 * 24 * time.Hour,
		"+1h": time.Hour, "1d12h": 36 * time.Hour, "9223372036854775807ns": math.MaxInt64,
	} {
		if got, f := duration(text); f != nil || got != want {
			t.Errorf("%s is %v, not %v; %+v", text, got, want, f)
		}
	}
	for _, text := range []string{
		"", "1", "-", "+", "h", "1 h", "1h 1m", "1H", "d", "1w", "1e3s", "106752d", "106751d24h",
		"99999999999999999999d",
		"9223372036854775807ns1ns", "--1h", "1h-1m", "1..5h", "0x1h", "∞", "1h\n", "00:30",
	} {
		if got, f := duration(text); f == nil {
			t.Errorf("%q is accepted as %v", text, got)
		}
	}
	for text, want := range map[string]string{
		"8 hours": "8h", "30sec": "30s", "2 Days": "2d", "1.5 hr": "1.5h", "10 MIN": "10m", "5 S": "5s", "3 weeks": "",
		"1h 30m": "", "x": "",
	} {
		if _, f := duration(text); f == nil || f.suggestion != want {
			t.Errorf("%q: %+v, want %q suggested", text, f, want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1B": 1, "1KB": 1024, "1KiB": 1024, "200MB": 200 << 20, "200 MiB": 200 << 20, "1.5GB": 3 << 29, "0.1KB": 102,
		"-1MB": -1 << 20, ".5KB": 512, "8589934591GB": 8589934591 << 30, "0MB": 0,
	} {
		if got, f := size(text); f != nil || got != want {
			t.Errorf("%s is %d, not %d; %+v", text, got, want, f)
		}
	}
	for text, suggestion := range map[string]string{
		"": "", "MB": "", "200": "200MB", "200mb": "200MB", "1kb": "1KB", "3G": "3GB", "3gib": "3GiB", "5 apples": "",
		"1e3MB": "", "8589934592GB": "", "1  MB": "", "1,5GB": "", "NaNMB": "",
	} {
		if got, f := size(text); f == nil || f.suggestion != suggestion {
			t.Errorf("%q is %d, %+v; want %q suggested", text, got, f, suggestion)
		}
	}
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "-7": -7, "+7": 7, "200_000": 200000, "9223372036854775807": math.MaxInt64,
	} {
		if got, f := whole(text); f != nil || got != want {
			t.Errorf("%s is %d, not %d; %+v", text, got, want, f)
		}
	}
	for _, text := range []string{
		"", "-", "1.0", "01", "0x1", "1e3", "_1", "1_", "1__0", "9223372036854775808", "٣", "1 ", "0o7",
	} {
		if got, f := whole(text); f == nil {
			t.Errorf("%q is accepted as %d", text, got)
		}
	}
	for text, want := range map[string]float64{"0.6": 0.6, "2": 2, "-.5": -0.5, "3.": 3, "25%": 25} {
		if got, f := percent(text); f != nil || got != want {
			t.Errorf("%s is %v, not %v; %+v", text, got, want, f)
		}
	}
	for _, text := range []string{"", "%", ".", "1e3", "inf", "NaN", "0x1p2", "1_0", "25%%", "1,5"} {
		if got, f := percent(text); f == nil {
			t.Errorf("%q is accepted as %v", text, got)
		}
	}
}
