package replay

import (
	"bytes"
	"encoding/csv"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/recorded"
)

// point is one reading of a recorded run.
type point struct{ seconds, kb float64 }

func pointsOf(t *testing.T, file, column string) []point {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(recorded.Read(t, "traces", file))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	var out []point
	for _, row := range rows[1:] {
		seconds, err := strconv.ParseFloat(row[at["t_s"]], 64)
		kb, kerr := strconv.ParseFloat(row[at[column]], 64)
		if err == nil && kerr == nil && kb > 0 {
			out = append(out, point{seconds, kb})
		}
	}
	return out
}

// gateWith judges a recorded run after adding a leak with the given rate in
// MB/h that starts after the given fraction of the run.
func gateWith(list []point, rate, from float64) detector.Gate {
	d := detector.New(detector.RobustPolicy())
	first, last := list[0].seconds, list[len(list)-1].seconds
	for _, p := range list {
		grown := rate * max(0, p.seconds-first-from*(last-first)) / 3600
		d.AddSample(detector.Sample{
			At:    time.Duration((1000 + p.seconds - first) * float64(time.Second)),
			Bytes: int64(p.kb*1024 + grown*detector.MB),
		})
	}
	return d.Verdict().Gate
}

// A pass of a recorded run states the rate of the slowest leak that it rules
// out. This rate is correct for the run, within a factor of 1.5. A leak of that
// rate is found in the same run, even if it begins at a time that the detector
// does not try. A leak that is slower by more than that factor is not found.
func TestDetectableLeakOfRecordedRuns(t *testing.T) {
	within, above, below, runs := 0, 0, 0, 0
	for _, x := range traces(t) {
		if !strings.HasPrefix(x.file, "android") {
			continue
		}
		for i, column := range []string{"app_pss_kb", "system_server_pss_kb"} {
			p := judgedTrace(t, x.file, column, detector.RobustPolicy())
			if p.Gate != detector.Pass {
				continue
			}
			runs++
			list := pointsOf(t, x.file, column)
			for _, from := range [][]float64{{0.02, 0.07, 0.13}, {0.07}}[i] {
				switch ratio := slowest(list, from, *p.MinDetectable) / *p.MinDetectable; {
				case ratio > 1.5:
					above++
				case ratio < 1/1.5:
					below++
				default:
					within++
				}
			}
		}
	}
	all := within + above + below
	t.Logf("%d runs: %d of %d within a factor of 1.5, %d above, %d below", runs, within, all, above, below)
	if runs < 30 || within*100 < all*75 || above*100 > all*10 {
		t.Errorf("%d runs: %d of %d within a factor of 1.5, %d above, %d below", runs, within, all, above, below)
	}
}

// slowest returns the lowest rate, in MB/h, at which a leak is found, provided
// that it is also found at 1.15 times that rate. It tries rates that increase
// by a factor of 1.15, starting at a third of a guess.
func slowest(list []point, from, guess float64) float64 {
	for rate := guess / 3; rate < 20*guess; rate *= 1.15 {
		if gateWith(list, rate, from) == detector.Leak && gateWith(list, rate*1.15, from) == detector.Leak {
			return rate
		}
	}
	return math.Inf(1)
}
