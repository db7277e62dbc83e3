package androidsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
)

// pair returns a rooted phone with an app that has two processes, one of which
// does not restart.
func pair(o Options) *Phone {
	o.Apps = []App{{Package: "com.shop", Debuggable: true, Processes: []ProcessSpec{
		{Name: "com.shop", RestartAfter: 10 * time.Second, Models: []Model{Typical()}},
		{Name: "com.shop:push", Models: []Model{Typical()}},
	}}}
	o.Root, o.BuildType = true, "userdebug"
	return New(o)
}

// pids returns the pids of all running processes, by name.
func pids(p *Phone) map[string]int {
	out := map[string]int{}
	for _, v := range p.views() {
		if !v.shell {
			out[v.name] = v.pid
		}
	}
	return out
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n$`)

func TestReboot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{Scale: 10})
		boots := map[string]bool{}
		before := pids(p)
		for round := range 50 {
			id := ask(t, p, "cat /proc/sys/kernel/random/boot_id")
			if !uuid.MatchString(id) || boots[id] || id != ask(t, p, "cat /proc/sys/kernel/random/boot_id") {
				t.Errorf("boot id %q", id)
			}
			boots[id] = true
			session := p.Identity().Session
			done := make(chan int)
			go func() { done <- p.Shell(t.Context(), "sleep 1000000", nil, nil, nil) }()
			synctest.Wait()
			changed := p.Changed()
			back := p.RebootFor(30 * time.Second)
			if exit := <-done; exit != adbd.NoExit {
				t.Fatalf("a command survived the reboot, exit status %d", exit)
			}
			<-changed
			if id := p.Identity(); id.State != adbd.StateOffline || id.Session == session {
				t.Errorf("identity during the boot: %+v", id)
			}
			if up := p.Uptime(); up != uptimeAtReboot {
				t.Errorf("uptime %v", up)
			}
			if round == 0 {
				back()
				back()
				if done := ask(t, p, "getprop sys.boot_completed"); done != "\n" {
					t.Errorf("the boot is complete immediately: %q", done)
				}
			}
			// One second of device time is a tenth of a second of real time.
			time.Sleep(2990 * time.Millisecond)
			if s := p.Identity().State; (s == adbd.StateOffline) != (round > 0) {
				t.Errorf("round %d: after 29.9 s the state is %q", round, s)
			}
			time.Sleep(20 * time.Millisecond)
			if s := p.Identity().State; s != "" {
				t.Errorf("after 30.1 s the state is %q", s)
			}
			if done := ask(t, p, "getprop sys.boot_completed"); done != "1\n" {
				t.Errorf("the boot does not complete: %q", done)
			}
			after := pids(p)
			if len(after) != len(before) {
				t.Errorf("%d processes before, %d after", len(before), len(after))
			}
			seen := map[int]bool{}
			for name, pid := range after {
				if seen[pid] || (pid == before[name]) != (pid < 100) {
					t.Errorf("%s had pid %d and now has %d", name, before[name], pid)
				}
				seen[pid] = true
			}
			for _, v := range p.views() {
				if v.app != nil && v.app.Package == "com.shop" && v.ppid != after["zygote64"] {
					t.Errorf("the parent of %s is %d", v.name, v.ppid)
				}
			}
			before = after
		}
		if p.wrong.Load() != nil {
			t.Error("a fault remains set")
		}
	})
}

func TestBootIDIsAFile(t *testing.T) {
	p := New(Options{API: 23})
	const dir = "/proc/sys/kernel/random"
	if out := ask(t, p, "ls "+dir+"; ls /proc/sys; ls -d "+dir+"; test -f "+dir+
		"/boot_id && grep -c ^....................................$ "+dir+
		"/boot_id; ls /proc | grep ^sys"); out != "boot_id\nuuid\nkernel\n"+dir+"\n1\nsys\n" {
		t.Errorf("%q", out)
	}
	if a := sh1(t, p, "cat "+dir); a.err != "cat: "+dir+": Is a directory\n" {
		t.Errorf("%+v", a)
	}
	r, err := p.Open(dir + "/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := io.ReadAll(r); !uuid.Match(id) {
		t.Errorf("%q", id)
	}
	if other := New(Options{Seed: 1}); ask(t, other, "cat "+dir+"/boot_id") == ask(t, p, "cat "+dir+"/boot_id") {
		t.Error("two phones have the same boot id")
	}
}

func TestCrashSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{})
		before := pids(p)
		dump := make(chan answer)
		go func() { dump <- sh1(t, p, "dumpsys meminfo com.shop") }()
		synctest.Wait()
		back := p.CrashSystem(time.Minute)
		if a := <-dump; a.out != "" || !strings.Contains(a.err, "DEAD_OBJECT meminfo") {
			t.Errorf("a dump during the crash: %+v", a)
		}
		for command, want := range map[string]answer{
			"dumpsys meminfo com.shop":  {"", "Can't find service: meminfo\n", 0},
			"dumpsys gfxinfo com.shop":  {"", "Can't find service: gfxinfo\n", 0},
			"am start -n com.shop/.Top": {"", "cmd: Can't find service: activity\n", 20},
			"pm list packages":          {"", "cmd: Can't find service: package\n", 20},
			"monkey -p com.shop 10": {
				"", "** Error: Unable to connect to activity manager; is the system running?\n", 253,
			},
			"pidof com.shop":       {"", "", 1},
			"pidof surfaceflinger": {fmt.Sprintln(before["surfaceflinger"]), "", 0},
		} {
			if a := sh1(t, p, command); command != "monkey -p com.shop 10" && a != want || a.err != want.err ||
				a.exit != want.exit {
				t.Errorf("%s: %+v", command, a)
			}
		}
		if out := ask(t, p, "dumpsys gpu --gpumem"); out == "" {
			t.Error("the crash stopped a service that runs in its own process")
		}
		time.Sleep(time.Minute)
		after := pids(p)
		for _, name := range []string{systemServer, "zygote64", "zygote"} {
			if after[name] == 0 || after[name] == before[name] {
				t.Errorf("%s had pid %d and now has %d", name, before[name], after[name])
			}
		}
		if out := ask(t, p, "dumpsys meminfo system_server"); !strings.Contains(out,
			fmt.Sprintf("MEMINFO in pid %d ", after[systemServer])) {
			t.Errorf("%q", out)
		}
		time.Sleep(10 * time.Second)
		after = pids(p)
		if after["com.shop"] == 0 || after["com.shop:push"] != 0 || after["com.android.systemui"] == 0 {
			t.Errorf("processes after the crash: %v", after)
		}
		back()
		if now := pids(p); now[systemServer] != after[systemServer] {
			t.Error("ending a crash that was already over changed system_server")
		}

		// Ending the fault early does not change the restart times of other
		// processes.
		back = p.CrashSystem(time.Hour)
		time.Sleep(time.Second)
		back()
		if now := pids(p); now[systemServer] == 0 || now[systemServer] == after[systemServer] || now["com.shop"] != 0 {
			t.Errorf("processes after an early end: %v", now)
		}
		time.Sleep(10 * time.Second)
		if p.PID("com.shop") == 0 {
			t.Error("the app did not restart")
		}

		// A process that was down restarts with the system if the long crash is
		// ended early.
		p.Kill("com.shop")
		back = p.CrashSystem(forEver)
		time.Sleep(time.Hour)
		if p.PID("com.shop") != 0 {
			t.Error("an app starts without system_server")
		}
		back()
		if p.PID("com.shop") == 0 {
			t.Error("the killed app did not restart with the system")
		}

		// A process that waits for the end of one crash restarts at the end of
		// a second crash that began a moment later.
		time.Sleep(10 * time.Second)
		p.CrashSystem(forEver)
		time.Sleep(time.Second)
		back = p.CrashSystem(forEver)
		back()
		time.Sleep(10 * time.Second)
		for _, name := range append(slices.Clone(systemPackages), "com.shop") {
			if p.PID(name) == 0 {
				t.Errorf("%s did not restart after two crashes", name)
			}
		}

		// Killing system_server with a signal also restarts the system.
		ask(t, p, "kill -9 $(pidof system_server)")
		if p.PID("com.shop") != 0 || p.PID(systemServer) != 0 {
			t.Error("the app survives the death of system_server")
		}
		time.Sleep(5 * time.Second)
		if p.PID(systemServer) == 0 {
			t.Error("init does not start system_server again")
		}
		if old := New(Options{API: 22}); !old.Kill(systemServer) ||
			sh1(t, old, "am help").err != "Error: Unable to connect to activity manager; is the system running?\n" {
			t.Errorf("API 22 prints %+v", sh1(t, old, "am help"))
		}
	})
}

func TestBreakFile(t *testing.T) {
	p := pair(Options{})
	pid := p.PID("com.shop")
	file := fmt.Sprintf("/proc/%d/smaps_rollup", pid)
	for _, c := range []struct {
		how  FileFault
		want answer
	}{
		{FileMissing, answer{"", "No such file or directory", 1}},
		{FileDenied, answer{"", "Permission denied", 1}},
		{FileGone, answer{"", "No such process", 1}},
		{FileEmpty, answer{"", "", 0}},
	} {
		end := p.BreakFile("/proc/*/smaps_rollup", c.how)
		if c.want.err != "" {
			c.want.err = "cat: " + file + ": " + c.want.err + "\n"
		}
		if a := sh1(t, p, "cat "+file); a != c.want {
			t.Errorf("fault %d: %+v, want %+v", c.how, a, c.want)
		}
		// After an error, grep continues with the next file.
		a := sh1(t, p, "grep -H ^Pss: "+file+fmt.Sprintf("; grep -c . %s /proc/%d/stat", file, pid))
		if !strings.HasSuffix(a.out, fmt.Sprintf("/proc/%d/stat:1\n", pid)) {
			t.Errorf("fault %d: %+v", c.how, a)
		}
		listed := strings.Contains(ask(t, p, fmt.Sprintf("ls /proc/%d", pid)), "smaps_rollup")
		_, err := p.Stat(file)
		if missing := c.how == FileMissing; listed == missing || (err != nil) != missing {
			t.Errorf("fault %d: listed %v, %v", c.how, listed, err)
		}
		// The latest fault takes precedence, and ending it does not affect the
		// others.
		newer := p.BreakFile(file, FileEmpty)
		if out := ask(t, p, "cat "+file); out != "" {
			t.Errorf("%q", out)
		}
		newer()
		newer()
		if a := sh1(t, p, "cat "+file); a != c.want {
			t.Errorf("fault %d replaces another: %+v", c.how, a)
		}
		end()
		if out := ask(t, p, "cat "+file); !strings.Contains(out, "[rollup]") {
			t.Errorf("after the fault: %q", out)
		}
	}
	defer p.BreakFile("[", FileMissing)()
	ask(t, p, "ls /proc; cat /proc/uptime")
	ask(t, p, "echo x >/data/local/tmp/f")
	defer p.BreakFile("/data/local/tmp/f", FileDenied)()
	if _, err := p.Open("/data/local/tmp/f"); !errors.Is(err, syscall.EACCES) &&
		!strings.Contains(fmt.Sprint(err), "permission") {
		t.Errorf("a pull returns %v", err)
	}
}

func TestDieInSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			how  FileFault
			n    int
			want string
		}{
			{FileGone, 1, "F/stat:1\nF/statm: No such process\nF/oom_score_adj: No such file or directory\n"},
			{FileEmpty, 1, "F/stat:1\nF/statm:0\nF/oom_score_adj: No such file or directory\n"},
			{FileGone, 2, "F/stat:1\nF/statm:1\nF/oom_score_adj: No such process\n"},
			{FileGone, 3, "F/stat:1\nF/statm:1\nF/oom_score_adj:1\n"},
		} {
			p := pair(Options{})
			pid := p.PID("com.shop")
			end := p.DieInSample("com.shop", c.n, c.how)
			// Files of other processes, and files that do not belong to a
			// process, do not count.
			ask(t, p, fmt.Sprintf("cat /proc/%d/stat /proc/uptime; ls /proc/%d", p.PID("com.shop:push"), pid))
			if p.PID("com.shop") != pid {
				t.Fatal("the process died too early")
			}
			f := fmt.Sprintf("/proc/%d", pid)
			a := sh1(t, p, strings.ReplaceAll("grep -c . F/stat F/statm F/oom_score_adj 2>&1", "F", f))
			if got := strings.ReplaceAll(strings.ReplaceAll(a.out, f, "F"), "grep: ", ""); got != c.want {
				t.Errorf("%d after %d: %q, want %q", c.how, c.n, got, c.want)
			}
			if p.PID("com.shop") != 0 {
				t.Error("the process is alive")
			}
			time.Sleep(10 * time.Second)
			if now := p.PID("com.shop"); now == 0 || now == pid {
				t.Errorf("the process restarted with pid %d", now)
			}
			ask(t, p, "cat /proc/$(pidof com.shop)/stat /proc/$(pidof com.shop)/statm")
			end()

			p.DieInSample("com.shop", 1, FileGone)()
			ask(t, p, "cat /proc/$(pidof com.shop)/stat")
			if p.PID("com.shop") == 0 {
				t.Error("a fault killed the process after the fault had ended")
			}
		}
	})
}

func TestReusePID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{})
		time.Sleep(time.Minute)
		shop, push := p.PID("com.shop"), p.PID("com.shop:push")
		old := statOf(t, p, shop)
		if out := ask(t, p, "ps -A"); strings.Contains(out, stranger) {
			t.Errorf("%s runs:\n%s", stranger, out)
		}
		if !p.ReusePID("com.shop", stranger) {
			t.Fatal("refused")
		}
		if name := ask(t, p, fmt.Sprintf("cat /proc/%d/comm", shop)); name != stranger+"\n" {
			t.Errorf("pid %d is %q", shop, name)
		}
		if s := statOf(t, p, shop); s.StartTicks.N <= old.StartTicks.N {
			t.Errorf("the old process started at %d, the new one at %d, want later", old.StartTicks.N, s.StartTicks.N)
		}
		time.Sleep(10 * time.Second)
		now := p.PID("com.shop")
		if now == 0 || now == shop {
			t.Errorf("the app restarted with pid %d", now)
		}
		if !p.ReusePID("com.shop:push", "com.shop") || p.PID("com.shop") != push || p.PID("com.shop:push") != 0 {
			t.Errorf("com.shop has pid %d, not %d", p.PID("com.shop"), push)
		}
		if p.ReusePID("com.shop:push", stranger) || p.ReusePID("com.shop", "com.shop") ||
			p.ReusePID("com.shop", "nobody") || p.ReusePID("nobody", "com.shop") {
			t.Error("ReusePID accepts an impossible reuse")
		}
		p.Kill(stranger)
		time.Sleep(time.Hour)
		if p.PID(stranger) != 0 {
			t.Errorf("%s restarted", stranger)
		}
	})
}

func TestFillDisk(t *testing.T) {
	const no = "No space left on device"
	p := pair(Options{Scale: 1000, DumpHeap: func(w io.Writer, _ Heap) error {
		_, err := w.Write(make([]byte, 1000))
		return err
	}})
	free := func() int {
		fields := strings.Fields(ask(t, p, "df /data | grep ^/"))
		n, err := strconv.Atoi(fields[3])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	old := strings.Repeat("x", 8191)
	ask(t, p, "echo "+old+" >/data/local/tmp/old")
	before := free()
	end := p.FillDisk(4096)
	if n := free(); n != 4 {
		t.Errorf("df reports %d kB free", n)
	}
	if a := sh1(t, p, "cat /data/local/tmp/old >/data/local/tmp/new"); a.exit != 1 || !strings.Contains(a.err, no) {
		t.Errorf("a copy: %+v", a)
	}
	// As on a phone, the part of the file that fits on the disk is written.
	if out := ask(t, p, "stat -c %s /data/local/tmp/new; df /data"); out != "4096\n"+
		"Filesystem       1K-blocks      Used Available Use% Mounted on\n/dev/block/dm-43 117440512 117440512        "+
		" 0 100% /data\n" {
		t.Errorf("%s", out)
	}
	for _, command := range []string{
		"echo x >/data/local/tmp/x", "printf x >>/data/local/tmp/x", "cat /proc/uptime >/data/local/tmp/x",
		"ls >/data/local/tmp/x",
	} {
		if a := sh1(t, p, command); a.exit == 0 || !strings.Contains(a.err, no) {
			t.Errorf("%s: %+v", command, a)
		}
	}
	push := func(n int) error {
		w, err := p.Create("/data/local/tmp/pushed", 0o644)
		if err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, n)); err != nil {
			return err
		}
		return w.Close()
	}
	if err := push(1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("push: %v", err)
	}
	ask(t, p, "rm /data/local/tmp/new")
	if err := push(4096); err != nil {
		t.Errorf("push into the space of a removed file: %v", err)
	}
	if err := push(4097); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("push over a file: %v", err)
	}
	end()
	ask(t, p,
		"cat /data/local/tmp/old >/data/local/tmp/new; "+
			"am dumpheap com.shop /data/local/tmp/d; rm /data/local/tmp/[!o]*")
	if n := free(); n != before {
		t.Errorf("%d kB free before, %d after", before, n)
	}
}

// Only the app's log reports that the disk is full; am prints no error.
func TestHeapDumpOnAFullDisk(t *testing.T) {
	for _, tt := range []struct {
		api     int
		options string
		out     string
		left    int64
	}{
		{34, "", "File: /data/local/tmp/d\nWaiting for dump to finish...\n", 0},
		{27, "", "File: /data/local/tmp/d\n", 0},
		{19, "", "", 10}, {34, "-n", "File: /data/local/tmp/d\nWaiting for dump to finish...\n", 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := pair(Options{API: tt.api, DumpHeap: func(w io.Writer, _ Heap) error {
				_, err := w.Write(make([]byte, 1000))
				return err
			}})
			command := "am dumpheap " + tt.options + " com.shop /data/local/tmp/d"
			size := func() int64 {
				time.Sleep(dumpTakes)
				i, err := p.Stat("/data/local/tmp/d")
				if err != nil {
					t.Fatal(err)
				}
				return i.Size()
			}
			end := p.FillDisk(10)
			if a := sh1(t, p, command); a != (answer{out: tt.out}) {
				t.Errorf("API %d, %q: %+v", tt.api, command, a)
			}
			if n := size(); n != tt.left || p.files.used != n {
				t.Errorf("API %d, %q: file of %d bytes, %d bytes counted", tt.api, command, n, p.files.used)
			}
			end()
			if ask(t, p, command); size() <= 10 {
				t.Errorf("API %d, %q: no dump although there is space", tt.api, command)
			}
		})
	}
}

func TestDF(t *testing.T) {
	p := New(Options{})
	all := "/dev/block/dm-6     912456   909688      2768 100% /\ntmpfs              3847680     1424   3846256   1% " +
		"/dev\n" +
		"/dev/block/dm-43 117440512 20971520  96468992  18% /data\n/dev/fuse        117440512 20971520  96468992  " +
		"18% /storage/emulated\n"
	const head = "Filesystem       1K-blocks     Used Available Use% Mounted on\n"
	line := func(n int) string { return strings.SplitAfter(all, "\n")[n] }
	for command, want := range map[string]string{
		"df":                        head + all,
		"df -k /data":               head + line(2),
		"df /data/local/tmp/../tmp": head + line(2),
		"df /sdcard/Download": "Filesystem     1K-blocks     Used Available Use% Mounted on\n/dev/fuse      " +
			"117440512 20971520  96468992  18% /storage/emulated\n",
		"cd /system; df .": "Filesystem      1K-blocks   Used Available Use% Mounted on\n/dev/block/dm-6    912456 " +
			"909688      2768 100% /\n",
	} {
		if out := ask(t, p, command); out != want {
			t.Errorf("%s:\n%swant\n%s", command, out, want)
		}
	}
	if a := sh1(t, p, "df /none /data"); a.err != "df: '/none': No such file or directory\n" || a.exit != 1 ||
		a.out != head+line(2) {
		t.Errorf("%+v", a)
	}
	if out := ask(t, New(Options{API: 19}), "df /data"); out != "Filesystem             Size   Used   Free   "+
		"Blksize\n/data                  112G    20G    92G   4096\n" {
		t.Errorf("toolbox:\n%s", out)
	}
}

func TestStepClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{Scale: 60})
		wall := func() time.Time {
			n, err := strconv.ParseInt(strings.TrimSpace(ask(t, p, "date +%s")), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return time.Unix(n, 0)
		}
		start, up := wall(), p.Uptime()
		first := p.StepClock(-2 * time.Hour)
		second := p.StepClock(-50 * 365 * 24 * time.Hour)
		if d := wall().Sub(start); d != -50*365*24*time.Hour-2*time.Hour {
			t.Errorf("the clock was stepped by %v", d)
		}
		first()
		first()
		second()
		time.Sleep(time.Minute)
		if d := wall().Sub(start); d != time.Hour || p.Uptime()-up != time.Hour {
			t.Errorf("an hour later: clock %v, uptime %v", d, p.Uptime()-up)
		}
	})
}

func TestDoctorsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{Serial: "0A1B2C", ClockSkew: time.Hour})
		if out, want := ask(t, p, "date +%s; getprop ro.boot.serialno; getprop sys.boot_completed"),
			fmt.Sprintf("%d\n0A1B2C\n1\n", time.Now().Add(time.Hour).Unix()); out != want {
			t.Errorf("%q, want %q", out, want)
		}
	})
}

func TestStates(t *testing.T) {
	p := pair(Options{})
	state := func(want string) {
		t.Helper()
		if s := p.Identity().State; s != want {
			t.Errorf("the state is %q, want %q", s, want)
		}
	}
	state("")
	first := p.SetAdbState(adbd.StateOffline)
	second := p.SetAdbState(adbd.StateUnauthorized)
	state(adbd.StateUnauthorized)
	first()
	state(adbd.StateUnauthorized)
	second()
	state("")

	root := ask(t, p, "id -u; grep ^Uid /proc/$PPID/status; cat /proc/1/smaps_rollup | grep -c .")
	before := p.Identity()
	changed := p.Changed()
	end := p.LoseRoot()
	<-changed
	a := sh1(t, p, "id -u; grep ^Uid /proc/$PPID/status; cat /proc/1/smaps_rollup")
	if a.out != "2000\nUid:\t2000\t2000\t2000\t2000\n" ||
		!strings.Contains(a.err, "Permission denied") || p.Identity().Session == before.Session {
		t.Errorf("after losing root: %+v", a)
	}
	end()
	end()
	if again := ask(t, p, "id -u; grep ^Uid /proc/$PPID/status; cat /proc/1/smaps_rollup | grep -c ."); again != root ||
		p.Identity().Session != before.Session+2 {
		t.Errorf("%q before the fault, %q after it", root, again)
	}
	end = p.OldShell()
	if f := p.Identity().Features; len(f) != 0 {
		t.Errorf("the old shell has features %q", f)
	}
	end()
	if f := p.Identity().Features; !slices.Equal(f, before.Features) {
		t.Errorf("%q", f)
	}
}

func TestDumpsysFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pair(Options{})
		long := p.DelayDumpsys(time.Hour)
		short := p.DelayDumpsys(5 * time.Second)
		began := time.Now()
		if out := ask(t, p, "dumpsys -t 3 meminfo com.shop"); out != "\n*** SERVICE 'meminfo' DUMP TIMEOUT (3000ms) "+
			"EXPIRED ***\n\n" || time.Since(began) != 3*time.Second {
			t.Errorf("%q after %v", out, time.Since(began))
		}
		if out := ask(t, p, "dumpsys meminfo com.shop"); !strings.Contains(out, "(10000ms)") {
			t.Errorf("%q", out)
		}
		long()
		began = time.Now()
		if out := ask(t, p, "dumpsys meminfo com.shop"); !strings.Contains(out, "MEMINFO in pid") ||
			time.Since(began) != 5*time.Second {
			t.Errorf("%q after %v", out, time.Since(began))
		}
		short()
		began = time.Now()
		ask(t, p, "dumpsys meminfo com.shop")
		if time.Since(began) != time.Second {
			t.Errorf("after the faults, dumpsys takes %v, want 1s", time.Since(began))
		}
		end := p.HangDumpsys()
		a := sh1(t, p, "dumpsys -t 5 meminfo com.shop & sleep 100; kill $! && wait")
		if a != (answer{}) {
			t.Errorf("hanging: %+v", a)
		}
		hung := make(chan answer)
		go func() { hung <- sh1(t, p, "echo $$; dumpsys gpu") }()
		synctest.Wait()
		end()
		ask(t, p, "dumpsys gpu")
		select {
		case a := <-hung:
			t.Errorf("dumpsys no longer hangs: %+v", a)
		default:
		}
		p.Reboot()
		if a := <-hung; a.exit != adbd.NoExit {
			t.Errorf("%+v", a)
		}
	})
}

func TestOutputFaults(t *testing.T) {
	p := pair(Options{})
	const full = "0123456789"
	end := p.TruncateOutput(4, true)
	for command, want := range map[string]answer{
		"printf 0123; exit 7":                         {"0123", "", 7},
		"printf 01234; exit 7":                        {"0123", "", 0},
		"printf 01; printf 23456; echo x >&2":         {"0123", "", 0},
		"printf x >&2; printf 0123; echo on >&2":      {"0123", "xon\n", 0},
		"while :; do printf 0123; done":               {"0123", "", 0},
		"printf 012345 | cat; sleep 100":              {"0123", "", 0},
		"sleep 1000 & printf 012345; wait; printf no": {"0123", "", 0},
	} {
		if a := sh1(t, p, command); a != want {
			t.Errorf("%s: %+v", command, a)
		}
	}
	end()
	end = p.TruncateOutput(4, false)
	if a := sh1(t, p, "printf "+full); a != (answer{"0123", "", adbd.NoExit}) {
		t.Errorf("%+v", a)
	}
	end()
	if out := ask(t, p, "printf "+full); out != full {
		t.Errorf("%q", out)
	}

	// If both outputs use the same writer, both are truncated.
	end = p.TruncateOutput(4, true)
	var both bytes.Buffer
	p.Shell(t.Context(), "printf 01 >&2; printf 23456", nil, &both, &both)
	if both.String() != "0123" {
		t.Errorf("%q", both.String())
	}
	end()

	garble := func(seed uint64) (outs []string) {
		defer p.GarbleOutput(3, seed)()
		for range 2 {
			outs = append(outs, ask(t, p, "printf 01; printf "+full))
		}
		return outs
	}
	a, b, c := garble(1), garble(1), garble(2)
	if !slices.Equal(a, b) || slices.Equal(a, c) || a[0] == a[1] {
		t.Errorf("%q, %q, %q", a, b, c)
	}
	for i := range a[0] {
		if ("01" + full)[i] != a[0][i] != ((i+1)%3 == 0) {
			t.Errorf("byte %d of %q", i, a[0])
		}
	}

	end = p.FloodOutput(100_000)
	if a := sh1(t, p, "echo end; exit 3"); a.out != "end\n"+strings.Repeat("x", 100_000) || a.exit != 3 {
		t.Errorf("%d bytes, exit %d", len(a.out), a.exit)
	}
	end()
	end = p.FloodOutput(-1)
	out := &limited{left: 10 << 20, full: end}
	if exit := p.Shell(t.Context(), "exit 3", nil, out, nil); exit != 3 || out.left > 0 {
		t.Errorf("exit %d, %d bytes missing", exit, out.left)
	}
	// An endless output ends when its reader closes it or when its context is
	// canceled.
	end = p.FloodOutput(-1)
	defer end()
	if exit := p.Shell(t.Context(), ":", nil, broken{}, nil); exit != 0 {
		t.Errorf("exit %d", exit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if exit := p.Shell(ctx, ":", nil, io.Discard, nil); exit == 0 {
		t.Error("the command ended without an error")
	}
}

// limited calls full when it has received the maximum number of bytes.
type limited struct {
	left int
	full func()
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left <= 0 {
		l.full()
	}
	return len(b), nil
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestEndlessFiles(t *testing.T) {
	p := pair(Options{})
	for command, want := range map[string]string{
		"[ -e /dev/zero ] && ls /dev":                                        "null\nzero\n",
		"cat /dev/zero >/dev/null & sleep 0.05; kill $! && echo on":          "on\n",
		"grep x /dev/zero & sleep 0.05; kill $! && echo on":                  "on\n",
		"echo x >/dev/zero && echo on":                                       "on\n",
		"x=$(cat /dev/zero); echo ${#x}; sh /dev/zero || echo not a program": "0\nnot a program\n",
	} {
		a := sh1(t, p, command)
		if a.out != want {
			t.Errorf("%s: %q %q", command, a.out, a.err)
		}
	}
	defer p.FillDisk(1 << 20)()
	if a := sh1(t, p, "cat /dev/zero >/data/local/tmp/z"); a.exit == 0 || !strings.Contains(a.err, "No space left") {
		t.Errorf("%+v", a)
	}
	r, err := p.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.CopyN(io.Discard, r, 1<<20); n != 1<<20 || err != nil {
		t.Errorf("a pull returns %d bytes, %v", n, err)
	}
}

// BenchmarkShell measures one sample of the fast channel: when no fault is
// active, the support for faults must not slow it down.
func BenchmarkShell(b *testing.B) {
	p := pair(Options{})
	command := fmt.Sprintf("cat /proc/uptime; grep -E '^(Pss|SwapPss):' /proc/%d/smaps_rollup; cat /proc/%d/stat",
		p.PID("com.shop"), p.PID("com.shop"))
	for b.Loop() {
		p.Shell(b.Context(), command, nil, io.Discard, io.Discard)
	}
}
