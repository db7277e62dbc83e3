//go:build realtime && e2e

package monitor

import (
	"cmp"
	"context"
	"os"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/stall"
)

// TestRealSoak runs TestSoak with the real adb server for the duration in
// LEAKGATE_SOAK, by default one minute.
func TestRealSoak(t *testing.T) {
	span, err := time.ParseDuration(cmp.Or(os.Getenv("LEAKGATE_SOAK"), "1m"))
	if err != nil {
		t.Fatal(err)
	}
	const scale = 6 // an interval of 30 s takes 5 s of real time
	const unit = 5 * time.Second
	seed := seed(t)
	ownTemporary(t)
	server := adbtest.StartServer(t)
	benches := []*bench{
		newRealBench(t, server, 1, scale), newRealBench(t, server, 2, scale), newRealBench(t, server, 3, scale),
	}
	before := census(t)
	stalls := stall.Measure(t)
	o := soakOptions(t, benches)
	watching, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		tormentAll(t.Context(), seed, span, unit, benches, server.Kill, func() {
			if err := server.Restart(); err != nil {
				t.Error(err)
			}
		})
		pause(t.Context(), 5*unit/2)
		end()
	}()
	r := perform(t, watching, o)
	for _, b := range benches {
		checkSoak(t, r, b, stalls.Total())
	}
	checkCensus(t, before, benches)
	checkNothingLeft(t, benches)
}
