package monitor

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

// A run in which one process has no verdict does not pass, whatever the results
// of the other processes. The run reports which process has no verdict, why,
// and what to do.
func TestUnjudgedRunIsNotGreen(t *testing.T) {
	dying := func(name string, after, down time.Duration) androidsim.ProcessSpec {
		p := healthy(name)
		p.CrashAfter, p.RestartAfter = after, down
		return p
	}
	once := healthy("com.shop:once")
	once.CrashAfter = 20 * time.Second
	early := healthy("com.shop")
	early.CrashAfter = 12 * time.Minute
	for name, c := range map[string]struct {
		phones   [][]androidsim.ProcessSpec
		duration time.Duration
		exit     int
		text     string // reason of the first unjudged process
	}{
		"process killed every 6 s": {
			[][]androidsim.ProcessSpec{{dying("com.shop", 6*time.Second, time.Second), healthy("com.shop:ui")}},
			2 * time.Hour, record.ExitInconclusive, "com.shop restarted ",
		},
		"crash every 10 min": {
			[][]androidsim.ProcessSpec{{dying("com.shop", 10*time.Minute, 5*time.Second), healthy("com.shop:ui")}},
			2 * time.Hour, record.ExitInconclusive, "com.shop restarted 11 times, longest life 1",
		},
		"early crash without a restart": {
			[][]androidsim.ProcessSpec{{early, healthy("com.shop:ui")}}, 2 * time.Hour, record.ExitInconclusive,
			"com.shop was running for only 12 min of 2.0 h",
		},
		"run of 12 min": {
			[][]androidsim.ProcessSpec{{healthy("com.shop")}}, 12 * time.Minute, record.ExitInconclusive,
			"com.shop was watched for only 12 min; a trend needs 30 min: run for 30m or longer",
		},
		"phone without the app": {
			[][]androidsim.ProcessSpec{{healthy("com.shop")}, {healthy("com.other")}}, 2 * time.Hour,
			record.ExitInconclusive, "no process of the app was seen in 2.0 h",
		},
		"helper process that runs for 20 s": {
			[][]androidsim.ProcessSpec{{healthy("com.shop"), once}}, 2 * time.Hour, record.ExitClean, "",
		},
		"all processes judged": {
			[][]androidsim.ProcessSpec{{healthy("com.shop"), healthy("com.shop:ui")}}, 2 * time.Hour, record.ExitClean,
			"",
		},
		"leak of another process takes precedence": {
			[][]androidsim.ProcessSpec{
				{dying("com.shop", 10*time.Minute, 5*time.Second), leaky("com.shop:ui", androidsim.Java, 300)},
			}, 2 * time.Hour, record.ExitLeak, "com.shop restarted 11 times",
		},
	} {
		if racing && c.duration == 2*time.Hour && c.exit != record.ExitClean {
			continue // hours of restarts are too slow under the race detector
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var phones []*simulated
				for i, specs := range c.phones {
					phones = append(phones, phone([]string{"A", "B"}[i], rooted(), specs...))
				}
				o := options(t, phones...)
				o.Policy, o.Duration, o.AllowUnjudged = detector.RobustPolicy(), c.duration, false
				r := perform(t, t.Context(), o)
				text := ""
				if len(r.Unjudged) > 0 {
					text = r.Unjudged[0].Text
				}
				if r.ExitCode != c.exit || !strings.HasPrefix(text, c.text) || c.text == "" && text != "" ||
					len(r.Unjudged) > 1 {
					t.Errorf("exit %d, want %d; unjudged %+v", r.ExitCode, c.exit, r.Unjudged)
				}
				if c.text == "" {
					return
				}
				var out strings.Builder
				if err := reporters.WriteRun(&out, r.Run); err != nil ||
					!strings.Contains(out.String(), "not judged: ") || !strings.Contains(out.String(), c.text) {
					t.Errorf("%v\n%s", err, &out)
				}
				for _, p := range r.Processes {
					if p.Restarts > 0 && !strings.HasPrefix(p.Reason, "restarted ") {
						t.Errorf("%s: the reason does not mention the restarts: %s", p.Process, p.Reason)
					}
				}
			})
		})
	}
}

// A run of 30 min is sampled until its end, which is just enough for a verdict.
func TestHalfAnHourSuffices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, phone("S1", rooted(), leaky("com.shop", androidsim.Java, 1200)))
		o.Policy, o.Duration, o.AllowUnjudged = detector.RobustPolicy(), 30*time.Minute, false
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		samples := r.samplesOf("com.shop", false)
		first, last := samples[0], samples[len(samples)-1]
		if r.Devices[0].Duration-last.T > 15 || last.T-first.T < 29.5*60 {
			t.Errorf("a run of %.1f s was sampled only from %.1f to %.1f s", r.Devices[0].Duration, first.T, last.T)
		}
		if x.Gate != detector.Leak || r.ExitCode != record.ExitLeak {
			t.Errorf("exit %d, %s: %s", r.ExitCode, x.Gate, x.Reason)
		}
	})
}
