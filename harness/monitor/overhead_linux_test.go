//go:build linux && e2e

package monitor

import (
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// ownTime returns the CPU time of this process so far, because a bubble offers
// no other measure of real time.
func ownTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Eight hours into a run with five processes, opening, closing and judging a
// check without readings takes less than a millisecond of CPU time.
func TestOverheadOfChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", rooted(), leaky("com.shop", androidsim.Java, 20), healthy("com.shop:a"),
			healthy("com.shop:b"), healthy("com.shop:c"), healthy("com.shop:d")))
		w, _ := started(t, response.Options{}, p)
		time.Sleep(8 * time.Hour)
		var costs []time.Duration
		for range 200 {
			before := ownTime(t)
			c, err := w.openCheck(CheckOptions{Name: "spec", Trend: true})
			if err != nil {
				t.Fatal(err)
			}
			opened := ownTime(t) - before
			time.Sleep(2 * time.Minute)
			before = ownTime(t)
			if _, err := c.Close(t.Context(), record.OutcomePassed, ""); err != nil {
				t.Fatal(err)
			}
			costs = append(costs, opened+ownTime(t)-before)
		}
		if _, err := w.Stop("done"); err != nil {
			t.Error(err)
		}
		slices.Sort(costs)
		t.Logf("CPU time of 200 checks: median %v, maximum %v", costs[100], costs[199])
		if costs[100] > time.Millisecond {
			t.Errorf("a check takes %v of CPU time, want at most 1 ms", costs[100])
		}
	})
}
