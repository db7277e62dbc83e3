package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// idleSince returns the time at which the last workload on a device ended, or
// -1 if no end is recorded.
func idleSince(d record.Device) float64 {
	if d.WorkloadEnded == nil {
		return -1
	}
	return *d.WorkloadEnded
}

// about10s reports whether a time differs from the expected one by at most ten
// seconds.
func about10s(got, want float64) bool { return got >= want-10 && got <= want+10 }

// One of two devices completes its workload half an hour before the other. The
// run ends when the other one completes its workload.
func TestWorkloadEndsOnOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), healthy("com.shop")), phone("S2", rooted(), healthy("com.shop")))
		o.Workload = DeviceCommand{Command: `if [ "$(getprop ro.serialno)" = S1 ]; then sleep 600; else sleep 2400; fi`}
		r := perform(t, t.Context(), o) // perform also rebuilds the record from its lines
		if got := [2]float64{idleSince(r.Devices[0]), idleSince(r.Devices[1])}; !about10s(got[0], 600) || got[1] != -1 {
			t.Errorf("got no workload since %v s, want about 600 s on S1 and -1 on S2", got)
		}
	})
}

// If several workloads run during a run, a device is idle from the end of the
// last of them.
func TestWorkloadsBesideARunEnd(t *testing.T) {
	sleep := func(command string) DeviceCommand { return DeviceCommand{Command: command} }
	for name, c := range map[string]struct {
		stress func(*testing.T, *LiveRun)
		want   float64
	}{
		"no workload": {func(t *testing.T, w *LiveRun) { time.Sleep(30 * time.Minute) }, -1},
		"two workloads in sequence": {func(t *testing.T, w *LiveRun) {
			for range 2 {
				if _, err := w.RunWorkload(t.Context(), "", sleep("sleep 300")); err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Minute)
			}
		}, 1200},
		"workload that runs until the end": {func(t *testing.T, w *LiveRun) {
			if _, err := w.RunWorkload(t.Context(), "", sleep("sleep 1800")); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute)
		}, -1},
		"failing workload": {func(t *testing.T, w *LiveRun) {
			if _, err := w.RunWorkload(t.Context(), "S1", sleep("sleep 300; exit 3")); err == nil {
				t.Error("the failing workload returns no error")
			}
			time.Sleep(10 * time.Minute)
		}, 300},
		"two workloads at the same time": {func(t *testing.T, w *LiveRun) {
			done := make(chan error, 1)
			go func() {
				_, err := w.RunWorkload(t.Context(), "", sleep("sleep 900"))
				done <- err
			}()
			if _, err := w.RunWorkload(t.Context(), "", sleep("sleep 300")); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Minute)
		}, 900},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options(t, phone("S1", rooted(), healthy("com.shop")))
				o.Duration = 0
				w, err := Start(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				c.stress(t, w)
				run, err := w.Stop("")
				if err != nil {
					t.Fatal(err)
				}
				again, _, err := ledger.Rebuild(o.Dir)
				if err != nil {
					t.Fatal(err)
				}
				live, rebuilt := idleSince(run.Devices[0]), idleSince(again.Devices[0])
				if live != rebuilt || c.want < 0 && live != -1 || c.want > 0 && !about10s(live, c.want) {
					t.Errorf("got no workload since %.0f s, in the rebuilt record since %.0f s, want %.0f s", live,
						rebuilt, c.want)
				}
			})
		})
	}
}
