package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/reporters/record"
)

// The death of each life is recorded with its reason: from exit info where it
// exists, and from the log on older phones.
func TestDeaths(t *testing.T) {
	for _, api := range []int{23, 29, 30, 34} {
		for name, c := range map[string]struct {
			end  func(p *simulated)
			want map[int]string // by API level
		}{
			// The kernel's low memory killer of Android 6 logs nothing.
			"low memory": {
				func(p *simulated) { p.Kill("com.shop") },
				map[int]string{23: "unknown", 29: "low_memory", 30: "low_memory", 34: "low_memory"},
			},
			"kill -9": {
				func(p *simulated) { p.Restart("com.shop") },
				map[int]string{23: "unknown", 29: "unknown", 30: "kill", 34: "kill"},
			},
		} {
			t.Run(fmt.Sprintf("%s, API %d", name, api), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					spec := healthy("com.shop")
					spec.RestartAfter = 10 * time.Second
					o := rooted()
					o.API = api
					p := phone("S1", o, spec)
					run := options(t, p)
					run.Duration = 15 * time.Minute
					go func() {
						time.Sleep(5*time.Minute + betweenSamples)
						c.end(p)
					}()
					r := perform(t, t.Context(), run)
					x := r.process(t, "S1", "com.shop")
					deaths := r.eventsOf("death", "com.shop")
					if len(deaths) != 1 || len(x.Deaths) != 1 || x.Restarts != 1 {
						t.Fatalf("%d events, deaths %+v, %d restarts", len(deaths), x.Deaths, x.Restarts)
					}
					d := x.Deaths[0]
					if want := c.want[api]; d.Reason != want || d.Text == "" || d.PID == x.PID ||
						x.DeathsByReason[want] != 1 || d.T < 300 || d.T > 400 {
						t.Errorf("%+v, %v", d, x.DeathsByReason)
					}
				})
			})
		}
	}
}

// If an app repeatedly dies of low memory, a death is recorded for each life,
// and the app is still sampled.
func TestDeathsInCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := healthy("com.shop")
		spec.RestartAfter = 20 * time.Second
		p := phone("S1", rooted(), spec, healthy("com.shop:push"))
		o := options(t, p)
		o.Duration = 42 * time.Minute
		go func() {
			for range 40 {
				time.Sleep(time.Minute)
				p.Kill("com.shop")
			}
		}()
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		if x.DeathsByReason["low_memory"] != 40 || len(x.Deaths) != 40 ||
			len(r.process(t, "S1", "com.shop:push").Deaths) > 0 {
			t.Errorf("%v, %d deaths", x.DeathsByReason, len(x.Deaths))
		}
		pids := map[int]bool{}
		for _, d := range x.Deaths {
			pids[d.PID] = true
		}
		if len(pids) != 40 {
			t.Errorf("%d pids", len(pids))
		}
		if push := r.process(t, "S1", "com.shop:push"); push.Missing > 0 || push.Samples < 80 {
			t.Errorf("com.shop:push: %d samples, %v s absent", push.Samples, push.Missing)
		}
	})
}

// If a process ends while the device is disconnected, the reason is read when
// the device is back. If the process ends with the run, the reason is read at
// the end of the run. A reboot is recorded as a reason, too.
func TestDeathsAroundDisconnects(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(p *simulated)
		want    string
	}{
		"death at the end of the run": {
			func(p *simulated) { time.Sleep(10*time.Minute - 31*time.Second); p.Kill("com.shop") }, "low_memory",
		},
		"the reboot": {func(p *simulated) { time.Sleep(5 * time.Minute); p.Reboot() }, "reboot"},
		"death just before a reboot": {func(p *simulated) {
			time.Sleep(5*time.Minute + betweenSamples)
			p.Kill("com.shop")
			time.Sleep(time.Second)
			p.RebootFor(20 * time.Second)
		}, "low_memory"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := phone("S1", rooted(), healthy("com.shop"))
				o := options(t, p)
				o.Duration = 10 * time.Minute
				go c.happens(p)
				r := perform(t, t.Context(), o)
				if x := r.process(t, "S1", "com.shop"); len(x.Deaths) != 1 || x.Deaths[0].Reason != c.want {
					t.Errorf("%+v", x.Deaths)
				}
			})
		})
	}
}

// A device has rebooted if its uptime is shorter than before, or shorter than
// the absence of the process. If the device does not respond, no reboot is
// assumed.
func TestRestartedSince(t *testing.T) {
	for name, c := range map[string]struct {
		uptime    string
		then, ago time.Duration
		want      bool
	}{
		"no reboot":     {"7260.51 100.2\n", 2 * time.Hour, time.Minute, false},
		"recent reboot": {"28.10 9.0\n", time.Hour, 3 * time.Second, true},
		"reboot with a longer uptime than before": {"100.00 9.0\n", 60 * time.Second, 5 * time.Minute, true},
		"unknown time of the last reading":        {"40.00 9.0\n", 0, time.Minute, true},
		"nothing":                                 {"", time.Hour, time.Hour, false},
		"error message": {
			"cat: /proc/uptime: Permission denied", time.Hour, time.Hour, false,
		},
	} {
		if got := restartedSince([]byte(c.uptime), c.then, c.ago); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Exit info of an earlier process with the same pid, or of a process with
// another name, is ignored. The message of an exception, which may contain
// personal data, is not kept.
func TestReasonOf(t *testing.T) {
	const answer = `ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)
Last Timestamp of Persistence Into Persistent Storage: 2026-01-02 03:00:00.000
  package: com.shop
    Historical Process Exit for uid=10123
        ApplicationExitInfo #0:
          timestamp=2026-01-02 10:00:05.000 pid=77 realUid=10123 packageUid=10123 definingUid=10123 user=0
          process=com.shop reason=4 (APP CRASH(EXCEPTION)) subreason=0 (UNKNOWN) status=0
          importance=100 pss=0.00 rss=200MB description=crash state=empty trace=null
`
	const log = "01-02 10:00:04.900   77   77 E AndroidRuntime: FATAL EXCEPTION: main\n" +
		"01-02 10:00:04.900   77   77 E AndroidRuntime: Process: com.shop, PID: 77\n" +
		"01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.IllegalStateException: order of erika@example.com " +
		"is void\n" +
		"01-02 10:00:05.000  900  910 I ActivityManager: Process com.shop (pid 77) has died: fg  TOP\n"
	at := func(clock string) time.Time {
		when, err := time.Parse("15:04:05", clock)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 1, 2, when.Hour(), when.Minute(), when.Second(), 0, time.UTC)
	}
	p := capture.Process{Name: "com.shop", PID: 77}
	scanned, err := dumpsys.ScanLogcat(strings.NewReader(log), 77, "com.shop")
	if err != nil {
		t.Fatal(err)
	}
	exit := exitOf([]byte(answer), p, at("10:00:20"), time.Minute)
	if exit == nil {
		t.Fatal("no exit record")
	}
	for name, d := range map[string]record.Death{
		"both": reasonOf(exit, scanned), "log only": reasonOf(nil, scanned),
	} {
		if d.Reason != "crash" || !strings.Contains(d.Text, "java.lang.IllegalStateException") ||
			strings.Contains(d.Text+strings.Join(d.Lines, ""), "erika") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if exitOf([]byte(answer), p, at("12:00:00"), time.Minute) != nil ||
		exitOf([]byte(answer), capture.Process{Name: "com.shop:push", PID: 77}, at("10:00:20"), time.Minute) != nil ||
		exitOf([]byte("x"), p, at("10:00:20"), time.Minute) != nil {
		t.Error("the exit record of another process was used")
	}
	if d := reasonOf(nil, dumpsys.Logcat{}); d.Reason != "unknown" || d.Text == "" {
		t.Errorf("%+v", d)
	}
}

// TestDeathTexts checks the descriptions of deaths, which are derived from exit
// info and the log.
func TestDeathTexts(t *testing.T) {
	const crash = "01-02 10:00:04.900   77   77 E AndroidRuntime: FATAL EXCEPTION: main\n01-02 10:00:04.900   77   " +
		"77 E AndroidRuntime: Process: com.shop, PID: 77\n"
	const oom = crash +
		"01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.OutOfMemoryError: Failed to allocate for " +
		"erika@example.com\n"
	const limiter = "01-02 10:00:04.000  900  910 I MemoryLimiter: onLimitExceeded: pid=77 uid=10123 type=anon+swap " +
		"memHigh=268435456 swapHigh=268435456 pkg=com.shop\n" +
		"01-02 10:00:34.000  900  910 I ActivityManager: Killing 77:com.shop/u0a123 (adj 0): MemoryLimiter:AnonSwap\n"
	const lmkd = "01-02 10:00:04.000  400  400 I lowmemorykiller: Kill 'com.shop' (77), uid 10123, oom_score_adj 0 " +
		"to free 1kB rss, 0kB swap; reason: low watermark\n"
	const tombstone = "01-02 10:00:04.000   99   99 F DEBUG   : pid: 77, tid: 77, name: com.shop  >>> com.shop " +
		"<<<\n01-02 10:00:04.000   99   99 F DEBUG   : signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr 0x0\n"
	adj := func(n string) string { return strings.ReplaceAll(lmkd, "oom_score_adj 0", "oom_score_adj "+n) }
	cached := adj("905")
	of := func(importance int64, e *dumpsys.Exit) *dumpsys.Exit {
		e.Importance = known.Of(importance)
		return e
	}
	exit := func(reason int64, name, description string) *dumpsys.Exit {
		return &dumpsys.Exit{
			Status: known.Of(0), Reason: known.Of(reason), ReasonName: field.Text(name),
			Description: field.Text(description),
		}
	}
	for name, c := range map[string]struct {
		exit       *dumpsys.Exit
		log        string
		want, text string
	}{
		"OutOfMemoryError": {
			exit(4, "CRASH", "crash"), oom, "out_of_memory", "java.lang.OutOfMemoryError",
		},
		"OutOfMemoryError only in the log": {nil, oom, "out_of_memory", "java.lang.OutOfMemoryError"},
		"another crash": {
			exit(4, "CRASH", "crash"), crash + "01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.Error: x\n",
			"crash", "java.lang.Error",
		},
		"crash without a log": {exit(4, "CRASH", "crash"), "", "crash", "CRASH"},
		"memory limiter of API 37.2": {
			exit(17, "MEMORY_LIMITER", ""), "", "memory_limiter", "memory limiter, MEMORY_LIMITER",
		},
		"memory limiter of API 37": {
			exit(13, "OTHER", "MemoryLimiter:AnonSwap"), limiter, "memory_limiter",
			"memory limiter, limit 512 MB, OTHER",
		},
		"memory limiter only in the log": {nil, limiter, "memory_limiter", "memory limiter, limit 512 MB"},
		"other kills":                    {exit(13, "OTHER", "too many cached"), "", "kill", "OTHER"},
		"memory anomaly":                 {exit(18, "ANOMALY", "memory usage"), "", "anomaly", "ANOMALY"},
		"other anomaly":                  {exit(18, "ANOMALY", "binder calls"), "", "kill", "ANOMALY"},
		"lmkd kill without LOW_MEMORY":   {exit(2, "SIGNALED", ""), lmkd, "low_memory", "SIGNALED"},
		"lmkd kill only in the log":      {nil, lmkd, "low_memory", "low watermark"},
		"low memory, in use": {
			of(100, exit(3, "LOW_MEMORY", "")), lmkd, "low_memory", "LOW_MEMORY",
		},
		"low memory, a service": {
			of(300, exit(3, "LOW_MEMORY", "")), cached, "low_memory", "LOW_MEMORY",
		},
		"low memory, cached": {
			of(400, exit(3, "LOW_MEMORY", "")), "", "kill", "killed while cached, to free memory: LOW_MEMORY",
		},
		"low memory, cached according to the log": {exit(3, "LOW_MEMORY", ""), cached, "kill", "killed while cached"},
		"cached, without LOW_MEMORY": {
			of(400, exit(2, "SIGNALED", "")), lmkd, "kill", "killed while cached, to free memory: SIGNALED",
		},
		"cached, only in the log": {
			nil, cached, "kill", "killed while cached, to free memory: low watermark",
		},
		"home, only in the log":   {nil, adj("600"), "kill", "killed while cached"},
		"backup, only in the log": {nil, adj("599"), "low_memory", "low watermark"},
		"home according to the log": {
			exit(3, "LOW_MEMORY", ""), adj("600"), "kill", "killed while cached",
		},
		"unknown importance": {
			of(0, exit(3, "LOW_MEMORY", "")), cached, "kill", "killed while cached",
		},
		"without explanation":           {nil, "", "unknown", "neither exit info nor the log contains a reason"},
		"kill after a caught exception": {exit(10, "USER_REQUESTED", ""), oom, "kill", "USER_REQUESTED"},
		"out of memory in the background": {
			of(400, exit(4, "CRASH", "crash")), oom, "out_of_memory", "java.lang.OutOfMemoryError",
		},
		"tombstone": {nil, tombstone, "native_crash", "SIGSEGV"},
	} {
		log, _ := dumpsys.ScanLogcat(strings.NewReader(c.log), 77, "com.shop")
		d := reasonOf(c.exit, log)
		if d.Reason != c.want || !strings.Contains(d.Text, c.text) || strings.Contains(fmt.Sprint(d), "erika") ||
			strings.Contains(d.Text+",", ", ,") ||
			strings.Contains(d.Text, "status 0") || c.want == "kill" && strings.Contains(d.Text, "Error") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// A life without a recorded reason gets the reason of the latest death with
// that name since it was last seen, not of an earlier death.
func TestDeathReasonFromOtherPid(t *testing.T) {
	const exits = `ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)
Last Timestamp of Persistence Into Persistent Storage: 2026-01-02 03:00:00.000
  package: com.shop
    Historical Process Exit for uid=10123
        ApplicationExitInfo #0:
          timestamp=2026-01-02 10:00:05.000 pid=78 realUid=10123 packageUid=10123 definingUid=10123 user=0
          process=com.shop reason=3 (LOW_MEMORY) subreason=0 (UNKNOWN) status=0
          importance=100 pss=0.00 rss=200MB description=null state=empty trace=null
`
	const log = "01-02 10:00:05.000  400  400 I lowmemorykiller: Kill 'com.shop' (78), uid 10123, oom_score_adj 0 to " +
		"free 1kB rss, 0kB swap; reason: low watermark\n"
	const newYear = "01-01 00:00:01.000  400  400 I lowmemorykiller: Kill 'com.shop' (78), uid 10123, oom_score_adj " +
		"0 to free 1kB rss, 0kB swap; reason: low watermark\n"
	for name, c := range map[string]struct {
		answers map[string]string
		now     string
		since   time.Duration
		want    string
	}{
		"exit info": {
			map[string]string{"exits": exits}, "2026-01-02 10:00:10", 10 * time.Second, "low_memory",
		},
		"exit info too early": {map[string]string{"exits": exits}, "2026-01-02 10:00:20", 10 * time.Second, ""},
		"log":                 {map[string]string{"log": log}, "2026-01-02 10:00:10", 10 * time.Second, "low_memory"},
		"log entry too early": {map[string]string{"log": log}, "2026-01-02 10:00:20", 10 * time.Second, ""},
		"log entry after New Year": {
			map[string]string{"log": newYear}, "2026-01-01 00:00:05", 10 * time.Second, "low_memory",
		},
		"no clock": {map[string]string{"exits": exits, "log": log}, "", time.Hour, ""},
		"exit info of another process": {
			map[string]string{"exits": strings.ReplaceAll(exits, "process=com.shop", "process=com.shop:push")},
			"2026-01-02 10:00:10", 10 * time.Second, "",
		},
	} {
		answers := map[string][]byte{}
		for part, text := range c.answers {
			answers[part] = []byte(text)
		}
		now, _ := time.Parse(exitTime, c.now)
		d, ok := reasonOfName(answers, capture.Process{Name: "com.shop", PID: 77}, now, c.since)
		if ok != (c.want != "") || ok &&
			(d.Reason != c.want || !strings.HasPrefix(d.Text, "from another death of a process with this name")) {
			t.Errorf("%s: %t, %+v", name, ok, d)
		}
	}
}

// If an app dies every few seconds, a death with a time is recorded for each
// observed life. A death in the last seconds of the run is recorded with a
// reason, too.
func TestDeathsEveryFewSeconds(t *testing.T) {
	for _, api := range []int{29, 34} {
		t.Run(fmt.Sprintf("API %d", api), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				spec := healthy("com.shop")
				spec.RestartAfter = time.Second
				o := rooted()
				o.API = api
				p := phone("S1", o, spec)
				run := options(t, p)
				run.Duration = 5 * time.Minute
				go func() {
					for range 20 {
						time.Sleep(7 * time.Second)
						p.Kill("com.shop")
					}
					time.Sleep(5*time.Minute - 20*7*time.Second - 3*time.Second)
					p.Kill("com.shop")
				}()
				r := perform(t, t.Context(), run)
				x := r.process(t, "S1", "com.shop")
				if len(x.Deaths) < 5 || x.DeathsByReason["low_memory"] != len(x.Deaths) || len(x.Deaths) < x.Restarts {
					t.Errorf("%d restarts, %v", x.Restarts, x.DeathsByReason)
				}
				events := r.eventsOf("death", "com.shop")
				last := 0.0
				for _, e := range events {
					if e.EndedUp == nil || *e.EndedUp <= last || *e.EndedUp > e.Up {
						t.Errorf("the time of death is missing or not between %v s and %v s", last, e.Up)
						continue
					}
					last = *e.EndedUp
				}
				if e := events[len(events)-1]; e.T < 297 {
					t.Errorf("the last death is at %v s, want at least 297 s", e.T)
				}
			})
		})
	}
}

// Crashes and ANRs that monkey reports are recorded with the class of the
// exception; similar lines are not.
func TestMonkeyFaults(t *testing.T) {
	var noted []record.Event
	st := Env{Record: func(device string, e record.Event) { noted = append(noted, e) }}
	passed := 0
	heard := recordFaults(phone("S1", rooted()), st, func(string) { passed++ })
	for line := range strings.Lines(
		"// Sending event #100\n// CRASH: com.shop (pid 77)\n// Short Msg: java.lang.IllegalStateException\n// Long " +
			"Msg: java.lang.IllegalStateException: erika\n" +
			"// NOT RESPONDING: com.shop:push (pid 78)\n// CRASH: com.shop (pid x)\n// CRASH: (pid 7)\n// CRASH: " +
			"com.shop (pid 79)\n// Build Label: x\n") {
		heard(strings.TrimSuffix(line, "\n"))
	}
	want := []string{
		"com.shop 77 crash java.lang.IllegalStateException", "com.shop:push 78 anr reported by monkey",
		"com.shop 79 crash reported by monkey",
	}
	var got []string
	for _, e := range noted {
		got = append(got, fmt.Sprint(e.Process, " ", e.PID, " ", e.Reason, " ", e.Text))
	}
	if !slices.Equal(got, want) || passed < 4 {
		t.Errorf("got %q and %d other lines, want %q and at least 4", got, passed, want)
	}
}

// If a process crashes under monkey, a fault and a death are recorded, and the
// run continues.
func TestMonkeyFaultInARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := phone("S1", rooted(), healthy("com.shop"))
		o := options(t, p)
		o.Workload, o.Duration = printingANR{}, 5*time.Minute
		r := perform(t, t.Context(), o)
		x := r.process(t, "S1", "com.shop")
		if len(x.Faults) != 1 || x.FaultCount != 1 || x.Faults[0].Reason != "anr" || x.Faults[0].T < 60 {
			t.Errorf("%+v", x.Faults)
		}
	})
}

// printingANR prints the output of monkey for an ANR.
type printingANR struct{}

func (printingANR) Describe() record.Workload { return record.Workload{Kind: "monkey"} }

func (printingANR) Run(ctx context.Context, st Env) (record.Workload, error) {
	_ = sleep(ctx, 2*time.Minute)
	recordFaults(st.Devices[0], st, func(string) {})("// NOT RESPONDING: com.shop (pid 3084)")
	_ = sleep(ctx, time.Minute)
	return record.Workload{Kind: "monkey"}, nil
}

// If the log does not contain the limit, the description of a kill by the
// memory limiter contains the limit that was read earlier.
func TestDeathWithLimit(t *testing.T) {
	room := capture.Headroom{AnonymousLimit: known.Of(512 << 20)}
	assumed := room
	assumed.AnonymousAssumed = true
	for _, c := range []struct {
		d    record.Death
		room capture.Headroom
		want string
	}{
		{
			record.Death{Reason: "memory_limiter", Text: "memory limiter, OTHER"}, room,
			"memory limiter, limit 512 MB, OTHER",
		},
		{
			record.Death{Reason: "memory_limiter", Text: "memory limiter"}, assumed,
			"memory limiter, assumed limit 512 MB",
		},
		{
			record.Death{Reason: "memory_limiter", Text: "memory limiter, limit 400 MB"}, room,
			"memory limiter, limit 400 MB",
		},
		{
			record.Death{Reason: "memory_limiter", Text: "memory limiter, OTHER"}, capture.Headroom{},
			"memory limiter, OTHER",
		},
		{record.Death{Reason: "kill", Text: "memory limiter"}, room, "memory limiter"},
	} {
		if got := withLimit(c.d, c.room); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
