package androidsim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// answer is the output of a command.
type answer struct {
	out, err string
	exit     int
}

func sh1(t testing.TB, p *Phone, command string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var out, errs bytes.Buffer
	exit := p.Shell(ctx, command, nil, &out, &errs)
	return answer{out.String(), errs.String(), exit}
}

// ask runs a command that must succeed without output on stderr, and returns
// its stdout.
func ask(t testing.TB, p *Phone, command string) string {
	t.Helper()
	a := sh1(t, p, command)
	if a.exit != 0 || a.err != "" {
		t.Fatalf("%s: exit %d, %q", command, a.exit, a.err)
	}
	return a.out
}

// shop returns a phone with one app that has one process.
func shop(o Options, models ...Model) *Phone {
	o.Apps = []App{{Package: "com.shop", Debuggable: true, Processes: []ProcessSpec{
		{Name: "com.shop", RestartAfter: 10 * time.Second, Models: append([]Model{Typical()}, models...)},
	}}}
	return New(o)
}

func statOf(t testing.TB, p *Phone, pid int) procfs.Stat {
	t.Helper()
	s, err := procfs.ParseStat([]byte(ask(t, p, fmt.Sprintf("cat /proc/%d/stat", pid))))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func uptimeOf(t testing.TB, p *Phone) time.Duration {
	t.Helper()
	up, err := procfs.ParseUptime([]byte(ask(t, p, "cat /proc/uptime")))
	if err != nil {
		t.Fatal(err)
	}
	return up
}

// Five real seconds are a thousand device seconds: on the clock, in sleeps, and
// in the duration of commands.
func TestScaledClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{Scale: 200, ClockSkew: time.Hour})
		before := uptimeOf(t, p)
		time.Sleep(5 * time.Second)
		if d := uptimeOf(t, p) - before; d != 1000*time.Second {
			t.Errorf("%v passed on the device in 5 s, want 1000 s", d)
		}
		for command, device := range map[string]time.Duration{
			"sleep 100":                              100 * time.Second,
			"sleep 1m 2.5":                           62500 * time.Millisecond,
			"dumpsys meminfo com.shop":               time.Second,
			"sleep 1000 & sleep 30; kill $!; wait":   30 * time.Second,
			"sleep 20 & sleep 30 & wait":             30 * time.Second,
			"sleep 20 | sleep 10":                    20 * time.Second,
			"monkey -p com.shop --throttle 300 1000": 300 * time.Second,
		} {
			began := time.Now()
			ask(t, p, command)
			if took := time.Since(began); (took - device/200).Abs() > 100*time.Microsecond {
				t.Errorf("%s took %v, want %v", command, took, device/200)
			}
		}
		if scale := ask(t, p, "getprop leakgate.time_scale"); scale != "200\n" {
			t.Errorf("the scale is %q", scale)
		}
		wall := strings.TrimSpace(ask(t, p, "date +%s"))
		if want := fmt.Sprint(p.wall().Unix()); wall != want {
			t.Errorf("date prints %s, want %s", wall, want)
		}
	})
}

// A wait is never too short, even if it lasts a fraction of a nanosecond on the
// host.
func TestWaitsAreNotShort(t *testing.T) {
	for _, scale := range []float64{1, 3, 7, 60, 61.7, 333, 400} {
		synctest.Test(t, func(t *testing.T) {
			p := New(Options{Scale: scale})
			for range 50 {
				before := p.Uptime()
				if p.now().wait(t.Context(), dumpTakes); p.Uptime()-before < dumpTakes {
					t.Errorf("scale %g: %v are %v", scale, dumpTakes, p.Uptime()-before)
				}
			}
		})
	}
}

func TestDeterminism(t *testing.T) {
	read := func(seed uint64, pause time.Duration) (out string) {
		synctest.Test(t, func(t *testing.T) {
			p := Demo(200, seed)
			for range 5 {
				time.Sleep(pause)
				p.PID("com.shop")
			}
			time.Sleep(20*time.Second - 5*pause)
			out = ask(t, p,
				"cat /proc/uptime; pidof com.shop com.shop:push; cat /proc/$(pidof com.shop)/smaps /proc/$(pidof "+
					"com.shop:push)/status; getprop")
		})
		return out
	}
	first := read(7, time.Second)
	if second := read(7, 3*time.Second); first != second {
		t.Error("earlier readings changed the output for the same seed and time")
	}
	if first == read(8, time.Second) {
		t.Error("a different seed produced the same output")
	}
}

func TestLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Apps: []App{{Package: "com.a", Processes: []ProcessSpec{
			{Name: "com.a", Models: []Model{Typical(), Crash(10*time.Minute, time.Minute), Crash(30*time.Minute, 0)}},
			{
				Name: "com.a:loop", CrashAfter: 90 * time.Second, RestartAfter: 30 * time.Second,
				Models: []Model{Steady(JavaHeap, 8)},
			},
			{Name: "com.a:late", StartAfter: 5 * time.Minute, Models: []Model{Steady(JavaHeap, 8)}},
			{Name: "com.a:iso", Isolated: true, Models: []Model{Steady(JavaHeap, 8)}},
		}}}})
		begin := p.Uptime()
		// Each life of a process, read every 10 s, must match its spec.
		type life struct {
			from, to time.Duration
			pid      int
		}
		lives := map[string][]life{}
		for at := time.Duration(0); at <= 40*time.Minute; at += 10 * time.Second {
			for _, name := range []string{"com.a", "com.a:loop", "com.a:late"} {
				pid := p.PID(name)
				if pid == 0 {
					continue
				}
				m, ok := p.Memory(name)
				if s := statOf(t, p, pid); !ok || s.PID != int64(pid) || s.StartTicks.N != ticksOf(m.Start) {
					t.Fatalf("%s: stat %+v, truth %+v", name, s, m)
				}
				all := lives[name]
				if n := len(all); n == 0 || all[n-1].pid != pid {
					lives[name] = append(all, life{m.Start - begin, at, pid})
				} else {
					all[n-1].to = at
				}
			}
			time.Sleep(10 * time.Second)
		}
		a, loop, late := lives["com.a"], lives["com.a:loop"], lives["com.a:late"]
		if len(a) != 2 || a[0].from != 0 || a[0].to != 10*time.Minute-10*time.Second || a[1].from != 11*time.Minute ||
			a[1].to != 30*time.Minute-10*time.Second {
			t.Errorf("com.a ran %v", a)
		}
		if len(loop) != 21 {
			t.Errorf("com.a:loop started %d times, want 21", len(loop))
		}
		pids := map[int]bool{}
		for i, l := range loop {
			if l.from != time.Duration(i)*2*time.Minute || pids[l.pid] {
				t.Errorf("start %d of com.a:loop: %v", i, l)
			}
			pids[l.pid] = true
		}
		if len(late) != 1 || late[0].from != 5*time.Minute {
			t.Errorf("com.a:late ran %v", late)
		}
		if uid := ask(t, p, "grep ^Uid: /proc/$(pidof com.a:iso)/status"); !strings.HasPrefix(uid, "Uid:\t99003\t") {
			t.Errorf("the uid line of the isolated process is %q", uid)
		}
	})
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{Root: true, BuildType: "userdebug"}, Leak(Java, 3600, 0))
		time.Sleep(time.Minute)
		first := p.PID("com.shop")
		if !p.Kill("com.shop") || p.PID("com.shop") != 0 {
			t.Error("com.shop is alive after Kill")
		}
		time.Sleep(11 * time.Second)
		second := p.PID("com.shop")
		if second == 0 || second == first {
			t.Errorf("com.shop restarted with pid %[2]d, had %[1]d", first, second)
		}
		if !p.Restart("com.shop") || p.PID("com.shop") == second || p.PID("com.shop") == 0 {
			t.Error("com.shop restarted with the same pid, or not at all")
		}
		if p.Kill("com.other") || p.Restart("x") || p.Freeze("x", true) {
			t.Error("Kill, Restart or Freeze succeeded for a process that does not exist")
		}

		time.Sleep(time.Minute)
		p.Freeze("com.shop", true)
		before, _ := p.Memory("com.shop")
		began := time.Now()
		a := sh1(t, p, "dumpsys -t 7 meminfo com.shop")
		if want := "\n*** SERVICE 'meminfo' DUMP TIMEOUT (7000ms) EXPIRED ***\n\n"; a.out != want || a.exit != 0 ||
			time.Since(began) != 7*time.Second {
			t.Errorf("frozen: %q after %v", a.out, time.Since(began))
		}
		if local := ask(t, p, "dumpsys meminfo --local com.shop"); !strings.Contains(local, "Native Heap") {
			t.Errorf("--local does not need the app, but printed %q", local)
		}
		if now, _ := p.Memory("com.shop"); now.PSS != before.PSS {
			t.Errorf("grew while frozen: %d kB, now %d kB", before.PSS, now.PSS)
		}
		p.Freeze("com.shop", false)
		time.Sleep(time.Minute)
		if now, _ := p.Memory("com.shop"); now.PSS-before.PSS < 60000 || now.PSS-before.PSS > 62000 {
			t.Errorf("grew by %d kB in the minute after it was unfrozen, want about 60 MB", now.PSS-before.PSS)
		}

		p.SlowDumpsys(12 * time.Second)
		if out := sh1(t, p, "dumpsys meminfo com.shop").out; !strings.Contains(out, "DUMP TIMEOUT (10000ms) EXPIRED") {
			t.Errorf("12 s of 10: %q", out)
		}
		if out := ask(t, p, "dumpsys -t 20 meminfo com.shop"); !strings.Contains(out, "MEMINFO in pid") {
			t.Errorf("12 s of 20: %q", out)
		}
		p.SlowDumpsys(0)

		ask(t, p, "echo kept >/data/local/tmp/f")
		done := make(chan int)
		go func() { done <- p.Shell(t.Context(), "sleep 1000000", nil, nil, nil) }()
		synctest.Wait()
		p.Reboot()
		if exit := <-done; exit != adbd.NoExit {
			t.Errorf("a command survived the reboot, exit status %d", exit)
		}
		if up := uptimeOf(t, p); up != uptimeAtReboot {
			t.Errorf("uptime after the reboot is %v, want %v", up, uptimeAtReboot)
		}
		if kept := ask(t, p, "cat /data/local/tmp/f"); kept != "kept\n" {
			t.Errorf("the reboot lost a file: %q", kept)
		}
		if s := statOf(t, p, p.PID("com.shop")); s.StartTicks.N != ticksOf(uptimeAtReboot) {
			t.Errorf("started at %d", s.StartTicks.N)
		}
	})
}

// The CPU time of system_server includes the cost of dumpsys.
func TestSystemServerPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{DumpsysTime: 8 * time.Second})
		used := func() int64 {
			s := statOf(t, p, p.PID(systemServer))
			return s.Utime.N + s.Stime.N
		}
		idle := -used()
		time.Sleep(100 * time.Second)
		idle += used()
		busy := -used()
		ask(t, p, "dumpsys meminfo com.shop")
		time.Sleep(92 * time.Second)
		busy += used()
		if idle != 600 || busy != 600+800 {
			t.Errorf("got %d ticks while idle and %d with a dump of 8 s, want 600 and 1400", idle, busy)
		}
	})
}

// SIGUSR1 ends processes that do not handle it; /proc/PID/status shows which
// signals a process handles.
func TestCollectionSignalEndsNativeProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := []App{
			{
				Package: "com.shop", Debuggable: true,
				Processes: []ProcessSpec{{Name: "com.shop"}, {Name: "com.shop:tool", Native: true}},
			},
		}
		phone := New(Options{Apps: app})
		for name, want := range map[string]string{
			"com.shop": "SigBlk:\t0000000080001204\n", "com.shop:tool": "SigBlk:\t0000000000000000\n",
		} {
			if out := ask(t, phone, fmt.Sprintf("grep SigBlk /proc/%d/status", phone.PID(name))); out != want {
				t.Errorf("%s: %q, want %q", name, out, want)
			}
			ask(t, phone, fmt.Sprintf("run-as com.shop kill -10 %d", phone.PID(name)))
		}
		if phone.PID("com.shop") == 0 || phone.PID("com.shop:tool") != 0 {
			t.Errorf("pids after SIGUSR1: app %d, native process %d", phone.PID("com.shop"), phone.PID("com.shop:tool"))
		}
	})
}

func TestSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := []App{
			{
				Package: "com.shop", Debuggable: true,
				Processes: []ProcessSpec{
					{Name: "com.shop", Models: []Model{GCSawtooth(50, time.Hour), Steady(JavaHeap, 20)}},
				},
			},
		}
		user := New(Options{Apps: app})
		pid := user.PID("com.shop")
		a := sh1(t, user, fmt.Sprintf("kill -0 %d; kill -9 %d", pid, pid))
		want := fmt.Sprintf("/system/bin/sh: kill: %d: Operation not permitted\n", pid)
		if a.err != want+want || a.exit != 1 || user.PID("com.shop") != pid {
			t.Errorf("the shell of a user build can kill an app: %+v", a)
		}
		if a := sh1(t, user, "kill 29999"); a.err != "/system/bin/sh: kill: 29999: No such process\n" {
			t.Errorf("%+v", a)
		}
		time.Sleep(20 * time.Minute)
		before, _ := user.Memory("com.shop")
		ask(t, user, fmt.Sprintf("run-as com.shop kill -10 %d", pid))
		after, _ := user.Memory("com.shop")
		if after.JavaHeap >= before.JavaHeap || user.PID("com.shop") != pid {
			t.Errorf("SIGUSR1: %d kB before, %d after", before.JavaHeap, after.JavaHeap)
		}
		ask(t, user, fmt.Sprintf("run-as com.shop kill %d", pid))
		if user.PID("com.shop") != 0 {
			t.Error("SIGTERM did not end the app")
		}
		time.Sleep(time.Hour)
		if user.PID("com.shop") != 0 {
			t.Error("an app without RestartAfter restarted")
		}
		if out := ask(t, user, "am start -n com.shop/.Main"); out != "Starting: Intent { cmp=com.shop/.Main }\n" ||
			user.PID("com.shop") == 0 {
			t.Errorf("am start: %q", out)
		}
		ask(t, user, "am force-stop com.shop")
		if user.PID("com.shop") != 0 {
			t.Error("com.shop is still running after force-stop")
		}
	})
}

// A host kills an abandoned command through another shell.
func TestShellIsKilled(t *testing.T) {
	for _, command := range []string{
		"echo $$; exec sleep 1000", "echo $$; sleep 1000; echo no", "echo $$; sleep 1000 | cat; echo no",
		"echo $$; while true; do sleep 1; done",
		"echo $$; cat", "echo $$; (sleep 1000; echo no) & wait; echo no", "echo $$; x=$(sleep 1000); echo no",
		"echo $$; dumpsys -t 9999 meminfo com.shop; echo no",
	} {
		for _, kill := range []string{"kill -9 -%s", "kill -9 %s", "kill %s", "kill -15 %s"} {
			synctest.Test(t, func(t *testing.T) {
				p := shop(Options{DumpsysTime: time.Hour})
				stdin, close := io.Pipe()
				defer close.Close()
				var out bytes.Buffer
				done := make(chan int)
				go func() { done <- p.Shell(t.Context(), command, stdin, &out, nil) }()
				synctest.Wait()
				pid := strings.TrimSpace(out.String())
				if ask(t, p, "kill -0 "+pid+"; ls -d /proc/"+pid) != "/proc/"+pid+"\n" {
					t.Errorf("%s: pid %s does not exist", command, pid)
				}
				ask(t, p, fmt.Sprintf(kill, pid))
				if exit := <-done; exit != 137 && exit != 143 || strings.Contains(out.String(), "no") {
					t.Errorf("%s, %s: exit %d, %q", command, kill, exit, out.String())
				}
				if len(p.tasks) != 0 {
					t.Errorf("%s: %d tasks remain", command, len(p.tasks))
				}
			})
		}
	}
}

func TestContextEndsTheShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{})
		stdin, close := io.Pipe()
		defer close.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		exit := p.Shell(ctx, "cat | (sleep 100 & cat) | while read x; do :; done", stdin, nil, nil)
		if exit == 0 || time.Since(began) != 10*time.Second {
			t.Errorf("exit %d after %v", exit, time.Since(began))
		}
	})
}

func TestPermissions(t *testing.T) {
	release := App{Package: "com.rel", Processes: []ProcessSpec{{Name: "com.rel", Models: []Model{Typical()}}}}
	debug := App{
		Package: "com.deb", Debuggable: true,
		Processes: []ProcessSpec{
			{Name: "com.deb", Models: []Model{Typical()}},
			{Name: "com.deb:iso", Isolated: true, Models: []Model{Typical()}},
		},
	}
	second := App{
		Package: "com.deb", Debuggable: true, User: 10,
		Processes: []ProcessSpec{{Name: "com.deb", Models: []Model{Typical()}}},
	}
	apps := []App{release, debug, second}
	read := func(p *Phone, how string, v view) answer {
		return sh1(t, p, fmt.Sprintf("%s cat /proc/%d/smaps_rollup", how, v.pid))
	}
	find := func(p *Phone, name string, user int) view {
		for _, v := range p.views() {
			if v.name == name && v.uid/perUser == user {
				return v
			}
		}
		t.Fatalf("no %s of user %d", name, user)
		return view{}
	}
	denied := "Permission denied"
	for _, c := range []struct {
		name    string
		options Options
		how     string
		process string
		user    int
		err     string
	}{
		{"user build", Options{}, "", "com.rel", 0, denied},
		{"user build, debuggable", Options{}, "", "com.deb", 0, denied},
		{"run-as", Options{}, "run-as com.deb", "com.deb", 0, ""},
		{"run-as release", Options{}, "run-as com.rel", "com.rel", 0, "run-as: package not debuggable: com.rel"},
		{"run-as unknown", Options{}, "run-as com.none", "com.rel", 0, "run-as: unknown package: com.none"},
		{"run-as wrong user", Options{}, "run-as com.deb", "com.deb", 10, "No such file or directory"},
		{"run-as other user", Options{}, "run-as com.deb --user 10", "com.deb", 10, ""},
		{"run-as isolated", Options{}, "run-as com.deb", "com.deb:iso", 0, "No such file or directory"},
		{
			"run-as isolated, before hidepid", Options{API: 23, SmapsRollup: new(true)}, "run-as com.deb",
			"com.deb:iso", 0, denied,
		},
		{"root", Options{Root: true, BuildType: "userdebug"}, "", "com.rel", 0, ""},
		{"su", Options{SU: true}, "su 0", "com.rel", 0, ""},
		{"su root", Options{SU: true}, "su root", "com.rel", 0, ""},
		{"no su", Options{}, "su 0", "com.rel", 0, "su: inaccessible or not found"},
		{"no su, old", Options{API: 28}, "su 0", "com.rel", 0, "su: not found"},
		{"old kernel", Options{API: 28, Root: true}, "", "com.rel", 0, "No such file or directory"},
		{"back-ported", Options{API: 28, Root: true, SmapsRollup: new(true)}, "", "com.rel", 0, ""},
	} {
		c.options.Apps = apps
		p := New(c.options)
		a := read(p, c.how, find(p, c.process, c.user))
		good := c.err == "" && a.exit == 0 && strings.Contains(a.out, "[rollup]") && strings.Contains(a.out, "\nPss: ")
		bad := c.err != "" && a.exit != 0 && a.out == "" && strings.Contains(a.err, c.err)
		if !good && !bad {
			t.Errorf("%s: %+v", c.name, a)
		}
	}
	p := New(Options{Apps: apps, SU: true})
	pid := find(p, "com.rel", 0).pid
	// These commands require no permission, or run as root through su.
	ask(t, p,
		fmt.Sprintf("cd /proc/%d && cat stat status statm cmdline comm oom_score_adj task/*/comm task/%d/stat "+
			">/dev/null", pid, pid))
	ask(t, p, fmt.Sprintf("su -c 'grep -c Pss /proc/%d/smaps; ls /proc/%d/fd' >/dev/null", pid, pid))
	for command, want := range map[string]string{
		"ls /proc/%d/fd": denied, "cat /proc/%d/maps": denied, "showmap %d": "Failed to parse file",
	} {
		if a := sh1(t, p, fmt.Sprintf(command, pid)); a.exit == 0 || !strings.Contains(a.err, want) {
			t.Errorf("%s: %+v", command, a)
		}
	}
	if a := sh1(t, p, "am dumpheap com.rel"); a.exit != 255 ||
		!strings.HasPrefix(a.err, "Security exception: Process not debuggable: ProcessRecord{") ||
		!strings.Contains(a.err, fmt.Sprintf(" %d:com.rel/u0_a123}", pid)) {
		t.Errorf("dumpheap of a release app: %+v", a)
	}
}

func TestHeapDump(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shop(Options{DumpHeap: func(w io.Writer, h Heap) error {
			_, err := fmt.Fprintf(w, "%0100d %s %d", h.Java, h.Process, h.PID)
			return err
		}})
		began := time.Now()
		if out := ask(t, p,
			"am dumpheap -g com.shop /data/local/tmp/x.hprof"); out != "File: /data/local/tmp/x.hprof\nWaiting for "+
			"dump to finish...\n" || time.Since(began) != dumpTakes {
			t.Errorf("%q after %v", out, time.Since(began))
		}
		m, _ := p.Memory("com.shop")
		if want := fmt.Sprintf("%0100d com.shop %d", m.JavaHeap<<10, m.PID); ask(t, p,
			"cat /data/local/tmp/x.hprof") != want {
			t.Errorf("want %q", want)
		}
		for command, want := range map[string]string{
			"am dumpheap -g -x com.shop /data/local/tmp/y":  "Error: Unknown option: -x\n",
			"am dumpheap com.none /data/local/tmp/y":        "Unknown process: com.none",
			"am dumpheap com.shop /sdcard/y":                "Consider using a file under /data/local/tmp/",
			"am dumpheap com.shop /data/local/tmp/../../y":  "Consider using a file under /data/local/tmp/",
			"am dumpheap -b png com.shop /data/local/tmp/y": "Error: Unknown option: -b\n",
		} {
			if a := sh1(t, p, command); a.exit != 255 || !strings.Contains(a.err, want) {
				t.Errorf("%s: %+v", command, a)
			}
		}

		// Old servers return immediately, while the file is still growing.
		old := shop(Options{API: 27})
		ask(t, old, "am dumpheap com.shop /data/local/tmp/x")
		size := func() string { return strings.TrimSpace(ask(t, old, "stat -c %s /data/local/tmp/x")) }
		begin := size()
		time.Sleep(dumpTakes / 2)
		half := size()
		time.Sleep(dumpTakes)
		whole, _ := strconv.Atoi(size())
		if n, _ := strconv.Atoi(half); begin != "0" || n != whole/2 || n == 0 {
			t.Errorf("size of the dump: %s at the start, %s halfway, %d at the end", begin, half, whole)
		}
	})
}

func TestMonkey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{
			Scale: 50,
			Apps: []App{
				{
					Package: "com.shop",
					Processes: []ProcessSpec{
						{Name: "com.shop", Models: []Model{Typical(), Crash(10*time.Minute, time.Second)}},
					},
				},
			},
		})
		out := ask(t, p, "monkey -p com.shop --throttle 500 -s 42 -v 1000")
		for _, line := range []string{
			":Monkey: seed=42 count=1000", ":AllowPackage: com.shop", "Events injected: 1000",
			"## Network stats: elapsed time=500000ms (0ms mobile, 0ms wifi, 500000ms not connected)",
			"// Monkey finished",
		} {
			if !slices.Contains(strings.Split(out, "\n"), line) {
				t.Errorf("no line %q in\n%s", line, out)
			}
		}
		a := sh1(t, p, "monkey -p com.shop --throttle 500 -s 42 1000")
		if a.exit != 200 || !strings.Contains(a.out, "// CRASH: com.shop (pid ") ||
			!strings.Contains(a.out, "** Monkey aborted due to error.\nEvents injected: 200\n") {
			t.Errorf("output after a crash at 100 s: %+v", a)
		}
		// Monkey restarts a stopped app and does not report it.
		time.AfterFunc(time.Second, func() { ask(t, p, "am force-stop com.shop") })
		if a := sh1(t, p, "monkey -p com.shop --throttle 500 -s 42 200; pidof com.shop"); a.exit != 0 ||
			strings.Contains(a.out, "CRASH") || !strings.Contains(a.out, "Events injected: 200\n") {
			t.Errorf("a stop: %+v", a)
		}
		if a := sh1(t, p, "monkey -p com.none 10"); a.exit != 252 ||
			!strings.Contains(a.out, "No activities found to run") {
			t.Errorf("%+v", a)
		}
		if a := sh1(t, p, "monkey -p com.shop --throttle 1000 1000 & sleep 10; kill $! && wait"); a.exit != 0 {
			t.Errorf("%+v", a)
		}
	})
}

// The phone is read, its hooks run and its files are accessed concurrently, for
// the race detector.
func TestConcurrency(t *testing.T) {
	p := Demo(5000, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	commands := []string{
		"cat /proc/uptime /proc/*/stat >/dev/null", "dumpsys meminfo com.shop", "ls -l /proc/ | grep -c .",
		"cat /proc/*/smaps_rollup | grep -c Pss",
		"echo x >>/data/local/tmp/f; cat /data/local/tmp/f | grep -c x; rm -f /data/local/tmp/f",
		"am dumpheap com.shop /data/local/tmp/h && rm /data/local/tmp/h",
		"kill -10 $(pidof com.shop)", "sleep 100 & kill $!; wait", "ps -A -o PID,NAME,RSS", "dumpsys gfxinfo",
	}
	for i := range 8 {
		wg.Go(func() {
			for j := range 12 {
				p.Shell(ctx, commands[(i+j)%len(commands)], nil, nil, io.Discard)
			}
		})
	}
	wg.Go(func() {
		for i := range 60 {
			p.Freeze("com.shop:push", i%2 == 0)
			p.Restart("com.shop")
			p.SlowDumpsys(time.Duration(i) * time.Millisecond)
			if i%20 == 19 {
				p.Reboot()
			}
			p.Memory("com.shop")
			w, err := p.Create("/data/local/tmp/pushed", 0o644)
			if err != nil {
				t.Error(err)
				continue
			}
			fmt.Fprint(w, i)
			w.Close()
			p.ReadDir("/data/local/tmp")
		}
	})
	wg.Wait()
	if ctx.Err() != nil {
		t.Error("the commands took too long")
	}
	if len(p.tasks) != 0 {
		t.Errorf("%d tasks remain", len(p.tasks))
	}
}
