package monitor

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// near returns a phone with one process that is approaching a limit and one
// that is not.
func near(o androidsim.Options, models ...androidsim.Model) *simulated {
	spec := healthy("com.shop")
	spec.Models = append(spec.Models, models...)
	return phone("S1", o, spec, healthy("com.shop:push"))
}

func standing(t *testing.T, x record.Process, resource string) record.Standing {
	t.Helper()
	for _, s := range x.Headroom {
		if s.Resource == resource {
			return s
		}
	}
	t.Fatalf("%s: no %s in %+v", x.Process, resource, x.Headroom)
	return record.Standing{}
}

// If a process is approaching a limit, a warning appears in the series and in
// run.json before the limit is reached. There is no warning for the other
// process. As in every test, the run agrees with the run that is rebuilt from
// its lines.
func TestHeadroomWarnsBeforeTheLimit(t *testing.T) {
	old, narrow, small := rooted(), rooted(), rooted()
	old.API, narrow.Bits32, small.HeapGrowthLimit = 26, true, 192
	for resource, c := range map[string]struct {
		phone  androidsim.Options
		models []androidsim.Model
		unit   int64
		// reaches is the time at which the limit is reached.
		reaches time.Duration
		words   string
	}{
		"threads": {
			rooted(), []androidsim.Model{androidsim.Leak(androidsim.Thread, 1200, 0)}, 1, 108 * time.Minute,
			"pthread_create failed",
		},
		"file_descriptors": {
			old, []androidsim.Model{androidsim.LeakFiles(600, 0)}, 1, 93 * time.Minute, "Too many open files",
		},
		"java_heap": {
			small,
			[]androidsim.Model{androidsim.Leak(androidsim.Java, 90, 0), androidsim.GCSawtooth(12, 90*time.Second)},
			1 << 20, 100 * time.Minute, "OutOfMemoryError",
		},
		"address_space": {
			narrow, []androidsim.Model{androidsim.LeakAddresses(1200, 0)}, 1 << 20, 90 * time.Minute, "mmap failed",
		},
	} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options(t, near(c.phone, c.models...))
				o.Headroom, o.Duration = DefaultSampling.Headroom, c.reaches
				r := perform(t, t.Context(), o)
				x := r.process(t, "S1", "com.shop")
				told := r.eventsOf("limit", "com.shop")
				if len(x.Limits) == 0 || len(x.Limits) > 4 || len(told) != len(x.Limits) {
					t.Fatalf("got %d warnings in the events, but %+v in run.json", len(told), x.Limits)
				}
				for i, w := range x.Limits {
					if w.Resource != resource || w.Used >= w.Limit || told[i].T != w.T || told[i].Text != w.Text ||
						!strings.Contains(w.Text, c.words) {
						t.Errorf("%+v, recorded %+v", w, told[i])
					}
				}
				first := x.Limits[0]
				if first.TimeLeft == nil || first.T+*first.TimeLeft < 0.8*c.reaches.Seconds() ||
					first.T+*first.TimeLeft > 1.25*c.reaches.Seconds() || first.T > c.reaches.Seconds()-15*60 {
					t.Errorf("the first warning at %v s predicts the limit in %v s, but it is reached after %v",
						first.T,
						first.TimeLeft, c.reaches)
				}
				if s := standing(t, x, resource); !s.Warned || s.Share == nil || *s.Share < 0.7 || s.Rate == nil ||
					*s.Rate <= 0 {
					t.Errorf("%+v", s)
				}
				push := r.process(t, "S1", "com.shop:push")
				if s := standing(t, push, resource); len(push.Limits) > 0 || s.Warned || s.Used <= 0 {
					t.Errorf("com.shop:push: %+v %+v", s, push.Limits)
				}
			})
		})
	}
}

// Values that a user build does not reveal are unknown and not judged. run.json
// contains the reason.
func TestHeadroomReportsUnreadableValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options(t, near(androidsim.Options{Seed: 7}, androidsim.LeakFiles(9000, 0)))
		o.Headroom, o.Duration = DefaultSampling.Headroom, 30*time.Minute
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		reasons := strings.Join(x.HeadroomReasons, "\n")
		for _, want := range []string{
			"open files: the shell is not allowed to list them",
			"address space: a 64-bit process does not run out of it",
		} {
			if !strings.Contains(reasons, want) {
				t.Errorf("no %q in %q", want, x.HeadroomReasons)
			}
		}
		for _, s := range x.Headroom {
			if s.Resource == "file_descriptors" || s.Resource == "address_space" {
				t.Errorf("a resource without a reading is judged: %+v", s)
			}
		}
		for _, e := range r.eventsOf("headroom", "com.shop") {
			if e.Headroom.Files != nil || e.Headroom.FileLimit == nil || e.Headroom.VirtualLimit != nil {
				t.Fatalf("%+v", *e.Headroom)
			}
		}
		if s := standing(t, x, "threads"); s.Used != 28 || s.Warned {
			t.Errorf("%+v", s)
		}
	})
}

// Without an interval nothing is read and nothing is reported.
func TestHeadroomOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := near(rooted(), androidsim.LeakFiles(9000, 0))
		o := options(t, p)
		o.Duration = 10 * time.Minute
		r := perform(t, t.Context(), o)
		if n := p.commands("/limits"); n > 0 || len(r.eventsOf("headroom", "")) > 0 ||
			len(r.process(t, "", "com.shop").Headroom) > 0 {
			t.Errorf("%d readings, %+v", n, r.process(t, "", "com.shop"))
		}
	})
}

// A new life starts without history: the resource usage of the old life, its
// growth and its warnings are discarded, even when the device's clock restarts.
func TestHeadroomOfANewLife(t *testing.T) {
	for name, do := range map[string]func(*simulated){
		"restart": func(p *simulated) { p.Restart("com.shop") },
		"reboot":  func(p *simulated) { p.Reboot() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := rooted()
				opt.API = 26
				p := near(opt, androidsim.LeakFiles(900, 0))
				time.AfterFunc(40*time.Minute, func() { do(p) })
				o := options(t, p)
				o.Headroom, o.Duration = DefaultSampling.Headroom, 55*time.Minute
				r := perform(t, t.Context(), o)
				x := r.process(t, "S1", "com.shop")
				if len(x.Limits) == 0 || len(r.eventsOf("limit", "com.shop")) != len(x.Limits) {
					t.Fatalf("%+v", x.Limits)
				}
				for _, w := range x.Limits {
					if w.T > 40*60 {
						t.Errorf("the warning about the new life is based on the usage of the old one: %+v", w)
					}
				}
				if s := standing(t, x, "file_descriptors"); s.Warned || s.TimeLeft != nil || s.Used < 200 ||
					s.Used > 400 {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// A device that does not respond to a headroom request is treated like a device
// that does not respond at all: the run continues when it is back.
func TestHeadroomOfDisconnectedDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := near(rooted())
		o := options(t, p)
		cut := 0
		o.Devices[0].Device = &hooked{p, func(ctx context.Context, command string) (bool, error) {
			if !strings.Contains(command, "/limits") {
				return false, nil
			}
			if cut++; cut == 2 {
				return true, fmt.Errorf("%w: %w", errCut, io.ErrUnexpectedEOF)
			}
			if cut == 3 {
				return hang(ctx)
			}
			return false, nil
		}}
		o.Headroom, o.Duration = DefaultSampling.Headroom, 20*time.Minute
		r := perform(t, t.Context(), o)
		if n := len(r.eventsOf("headroom", "com.shop")); n < 6 || n > 9 {
			t.Errorf("%d readings", n)
		}
		if len(r.eventsOf("gap", "")) > 0 || r.ExitCode != record.ExitClean || len(r.eventsOf("error", "")) == 0 {
			t.Errorf("exit %d, %+v", r.ExitCode, r.eventsOf("error", ""))
		}
	})
}

// If the anonymous memory of a process leaks on Android 17, there is a warning
// before the memory limiter kills the process, and the recorded death names the
// limiter and its limit. A limit that the device does not report is marked as
// assumed.
func TestMemoryLimiterKillsALeak(t *testing.T) {
	for name, old := range map[string]bool{"API 37.2": false, "API 37": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := rooted()
				o.API = 37
				o.MemoryLimiter = &androidsim.MemoryLimiter{
					Visible: 400, VisibleSwap: 112, NotVisible: 300, NotVisibleSwap: 100, OldReason: old,
				}
				p := near(o, androidsim.Leak(androidsim.Native, 240, 0))
				run := options(t, p)
				run.Headroom, run.Duration = DefaultSampling.Headroom, 2*time.Hour
				r := perform(t, t.Context(), run)
				x := r.process(t, "S1", "com.shop")
				if x.DeathsByReason["memory_limiter"] != 1 || len(x.Deaths) != 1 ||
					!strings.HasPrefix(x.Deaths[0].Text, "memory limiter, limit 512 MB, ") {
					t.Fatalf("%+v", x.Deaths)
				}
				if len(x.Findings) != 1 || x.Findings[0].Kind != "memory_limiter" {
					t.Errorf("%+v", x.Findings)
				}
				if len(x.Limits) == 0 || x.Limits[0].Resource != "anonymous_memory" || x.Limits[0].Limit != 512<<20 ||
					x.Limits[0].Assumed || x.Limits[0].T > x.Deaths[0].T-10*60 || x.Limits[0].TimeLeft == nil {
					t.Fatalf("got warnings %+v for a death at %v s", x.Limits, x.Deaths[0].T)
				}
				if in := x.Limits[0].T + *x.Limits[0].TimeLeft; in < 0.75*x.Deaths[0].T || in > 1.25*x.Deaths[0].T {
					t.Errorf("the warning predicts the limit at %v s, but the process dies at %v s", in, x.Deaths[0].T)
				}
				if s := standing(t, r.process(t, "S1", "com.shop:push"), "anonymous_memory"); s.Warned ||
					s.Limit != 400<<20 || s.Used <= 0 {
					t.Errorf("com.shop:push: %+v", s)
				}
			})
		})
	}
}

func TestAssumedMemoryLimit(t *testing.T) {
	for name, c := range map[string]struct {
		api     int
		limiter *androidsim.MemoryLimiter
		assumed bool
		has     bool
	}{
		"limit that the device does not report": {
			37, &androidsim.MemoryLimiter{Visible: 9000, Silent: true}, true, true,
		},
		"device without a limit": {37, nil, false, false},
		"Android 16":             {36, &androidsim.MemoryLimiter{Visible: 400}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := rooted()
				o.API, o.MemoryLimiter = c.api, c.limiter
				run := options(t, near(o))
				run.Headroom, run.Duration = DefaultSampling.Headroom, 20*time.Minute
				x := perform(t, t.Context(), run).process(t, "S1", "com.shop")
				i := slices.IndexFunc(x.Headroom,
					func(s record.Standing) bool { return s.Resource == "anonymous_memory" })
				if (i >= 0) != c.has || c.has &&
					(x.Headroom[i].Assumed != c.assumed || x.Headroom[i].Limit != 8192<<20) {
					t.Errorf("%+v", x.Headroom)
				}
				if told := strings.Contains(strings.Join(x.HeadroomReasons, "\n"),
					"assumed from the RAM of the device"); told != c.assumed {
					t.Errorf("%q", x.HeadroomReasons)
				}
			})
		})
	}
}
