package monitor

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// cutting is a phone that disconnects some time after the command of a workload
// began, and stays disconnected for another period.
type cutting struct {
	*simulated
	at, away time.Duration
	mu       sync.Mutex
	begun    int
}

const soak = "soak com.shop"

func (d *cutting) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	if command != soak {
		return d.simulated.Shell(ctx, command, stdout, stderr)
	}
	d.mu.Lock()
	d.begun++
	d.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(d.at):
	}
	if d.away == 0 {
		return 0, nil
	}
	d.unplug(true)
	time.AfterFunc(d.away, func() { d.unplug(false) })
	return 0, errCut
}

// If a device interrupts the command and comes back, a run with a duration does
// not end. The device is sampled to the end, the command is started once, and
// run.json contains the time of the interruption. The exit code is that of an
// incomplete workload; a leak and a lost device take precedence.
func TestDeviceCommandIsInterrupted(t *testing.T) {
	minute := time.Minute
	for name, c := range map[string]struct {
		app       androidsim.ProcessSpec
		away      time.Duration
		duration  time.Duration
		exit      int
		stopped   string
		from, to  float64 // when the run ends
		noDropped bool
	}{
		"reconnected, with a duration": {
			healthy("com.shop"), 2 * minute, 40 * minute, record.ExitWorkload, record.StoppedDuration, 2400, 2401,
			false,
		},
		"reconnected, with a leak": {
			leaky("com.shop", androidsim.Java, 400), 2 * minute, 80 * minute, record.ExitLeak, record.StoppedDuration,
			4800, 4801, false,
		},
		"reconnected, without a duration": {
			healthy("com.shop"), 2 * minute, 0, record.ExitWorkload, record.StoppedWorkload, 720, 740, false,
		},
		"disconnected until the end": {
			healthy("com.shop"), 24 * time.Hour, 12 * minute, record.ExitNoDevice, record.StoppedDuration, 720, 721,
			false,
		},
		"lost": {
			healthy("com.shop"), 24 * time.Hour, 40 * minute, record.ExitNoDevice, record.StoppedDevices, 890, 990,
			false,
		},
		"device lost, without a duration": {
			healthy("com.shop"), 24 * time.Hour, 0, record.ExitNoDevice, record.StoppedDevices, 890, 990, false,
		},
		"workload finished": {
			healthy("com.shop"), 0, 40 * minute, record.ExitClean, record.StoppedWorkload, 600, 601, true,
		},
		"end of the duration": {
			healthy("com.shop"), 2 * minute, 5 * minute, record.ExitClean, record.StoppedDuration, 300, 301, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &cutting{simulated: phone("S1", rooted(), c.app), at: 10 * time.Minute, away: c.away}
				o := options(t, d.simulated)
				o.Devices[0].Device, o.Duration, o.DeviceTimeout = d, c.duration, 5*time.Minute
				o.Workload = DeviceCommand{Command: soak}
				r := perform(t, t.Context(), o)
				if r.ExitCode != c.exit || r.Stopped != c.stopped || d.begun != 1 {
					t.Errorf("exit %d, stopped by %s, workload started %d times, %+v", r.ExitCode, r.Stopped, d.begun,
						r.Workload)
				}
				if got := r.Devices[0].Duration; got < c.from || got > c.to {
					t.Errorf("lasts %g s", got)
				}
				told := r.eventsOf("dropped", "")
				if c.noDropped {
					if len(told)+len(r.Workload.Interrupted) > 0 {
						t.Errorf("%+v, %+v", told, r.Workload)
					}
					return
				}
				if len(told) != 1 || told[0].T < 600 || told[0].T > 601 ||
					!strings.Contains(told[0].Text, errCut.Error()) {
					t.Errorf("%+v", told)
				}
				if want := []record.Interruption{
					{Device: "S1", T: told[0].T},
				}; !slices.Equal(r.Workload.Interrupted, want) || r.Workload.Exit != nil {
					t.Errorf("%+v", r.Workload)
				}
				if last := r.samplesOf("com.shop", false); c.stopped == record.StoppedDuration && c.away == 2*minute &&
					last[len(last)-1].T < c.to-70 {
					t.Errorf("the last sample is at %g s, want at least %g s", last[len(last)-1].T, c.to-70)
				}
			})
		})
	}
}

// If one of two devices interrupts its command, the command on the other device
// continues to its end, and both devices are sampled until the duration is
// over.
func TestOneOfTwoCommandsIsInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &cutting{simulated: phone("S1", rooted(), healthy("com.shop")), at: 10 * time.Minute, away: time.Minute}
		b := &cutting{simulated: phone("S2", rooted(), healthy("com.shop")), at: 30 * time.Minute}
		o := options(t, a.simulated, b.simulated)
		o.Devices[0].Device, o.Devices[1].Device = a, b
		o.Duration, o.Workload = 40*time.Minute, DeviceCommand{Command: soak}
		r := perform(t, t.Context(), o)
		if r.ExitCode != record.ExitWorkload || r.Stopped != record.StoppedDuration || r.Workload.Exit == nil ||
			*r.Workload.Exit != 0 || !strings.Contains(r.Workload.Error, "S1") ||
			strings.Contains(r.Workload.Error, "S2") {
			t.Errorf("exit %d, %s, %+v", r.ExitCode, r.Stopped, r.Workload)
		}
		if i := r.Workload.Interrupted; len(i) != 1 || i[0].Device != "S1" {
			t.Errorf("%+v", i)
		}
		var text strings.Builder
		if err := reporters.WriteRun(&text, r.Run); err != nil ||
			!strings.Contains(text.String(), "workload device_command: INTERRUPTED after 10m") ||
			!strings.Contains(text.String(), "device S1 closed its connection") {
			t.Errorf("%v\n%s", err, text.String())
		}
	})
}
