//go:build e2e

package hostdevice_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// startTicks returns the start time of a process, which together with the pid
// identifies it.
func startTicks(t testing.TB, pid string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := procfs.ParseStat(text)
	if err != nil {
		t.Fatal(err)
	}
	return stat.StartTicks.N
}

// TestApp observes a process from start to end through the real adb.
func TestApp(t *testing.T) {
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartRooted(t, hostdevice.Options{Scale: 20})
	name := r.Package() + ":java"
	start := "am start -n " + r.Package() + "/.Java --es mb_per_h 300"
	if out := r.Must(t, "shell", start); !strings.HasPrefix(out, "Starting: Intent") {
		t.Errorf("am start: %q", out)
	}
	pid := strings.TrimSpace(r.Must(t, "shell", "pidof "+name))
	if line := r.Must(t, "shell", "ps -A -o PID,NAME | grep "+name); strings.Join(strings.Fields(line), " ") != pid+" "+
		name {
		t.Errorf("ps: %q, pid %s", line, pid)
	}
	if _, errs, exit := r.ADB(t, "shell", start); exit != 0 || !strings.Contains(errs, "brought to the front") {
		t.Errorf("second am start: %q, exit %d", errs, exit)
	}
	checkMeminfo(t, r, name, pid)
	checkCollection(t, r, pid)
	checkDump(t, r, name)
	checkMaps(t, r, pid)

	ticks := startTicks(t, pid)
	r.Must(t, "shell", "am force-stop "+r.Package())
	if out, _, exit := r.ADB(t, "shell", "pidof "+name); exit != 1 {
		t.Errorf("the process still runs after force-stop: %q", out)
	}
	if out := r.Must(t, "shell", "dumpsys meminfo "+pid); out != "No process found for: "+pid+"\n" {
		t.Errorf("meminfo of an ended process: %q", out)
	}
	r.Must(t, "shell", start)
	again := strings.TrimSpace(r.Must(t, "shell", "pidof "+name))
	if again == pid || startTicks(t, again) <= ticks {
		t.Errorf("restarted as %s at %d, was %s at %d", again, startTicks(t, again), pid, ticks)
	}
	// A crash is recorded in the same way as a stop.
	r.Must(t, "shell", "kill -9 "+again)
	eventually(t, "the record of the crash", func() bool {
		return r.Must(t, "shell", "dumpsys meminfo "+name) == "No process found for: "+name+"\n"
	})
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, pid := range []string{pid, again} {
		if _, err := os.Stat("/tmp/.java_pid" + pid); err == nil {
			t.Errorf("a socket of %s was not removed", pid)
		}
	}
}

// checkMeminfo parses the output of meminfo with the parser for real phones and
// compares its total with the kernel's own sum.
func checkMeminfo(t *testing.T, r *hostdevicetest.Running, name, pid string) {
	t.Helper()
	time.Sleep(500 * time.Millisecond)
	rollup := func() int64 {
		return number(t, r.Must(t, "shell", "grep -E '^(Pss|SwapPss):' /proc/"+pid+"/smaps_rollup"), `Pss: +(\d+) kB`)
	}
	for _, options := range []string{"", "-s ", "-a ", "-d ", "--local "} {
		before := rollup()
		out := r.Must(t, "shell", "dumpsys -t 10 meminfo "+options+pid)
		m, err := dumpsys.ParseMeminfo([]byte(out))
		if err != nil || len(m.Blocks) != 1 || len(m.Warnings) > 0 {
			t.Fatalf("meminfo %s: %+v, %v\n%s", options, m, err, out)
		}
		b := m.Blocks[0]
		if fmt.Sprint(b.PID.N) != pid || string(b.Process) != name || b.Truncated || len(b.Warnings) > 0 {
			t.Errorf("meminfo %s: %+v", options, b)
		}
		if sum := b.JavaHeap.N + b.NativeHeap.N + b.Code.N + b.Stack.N + b.Graphics.N + b.PrivateOther.N +
			b.System.N; sum != b.TotalPss.N || sum == 0 {
			t.Errorf("meminfo %s: the sum of the summary is %d, want %d", options, sum, b.TotalPss.N)
		}
		// The process grows by 1.7 MB a second.
		if after := rollup(); b.TotalPss.N < before-3000 || b.TotalPss.N > after+3000 {
			t.Errorf("meminfo %s: TOTAL PSS %d, want %d to %d, as the kernel reports", options, b.TotalPss.N, before,
				after)
		}
	}
}

// checkCollection sends signal 10, which must force a collection and have no
// other effect.
func checkCollection(t *testing.T, r *hostdevicetest.Running, pid string) {
	t.Helper()
	r.Must(t, "shell", "kill -10 "+pid)
	time.Sleep(200 * time.Millisecond)
	r.Must(t, "shell", "kill -0 "+pid)
}

// checkDump checks that the dump is complete and contains the leak.
func checkDump(t *testing.T, r *hostdevicetest.Running, name string) {
	t.Helper()
	const remote = "/data/local/tmp/x.hprof"
	local := filepath.Join(t.TempDir(), "x.hprof")
	out := r.Must(t, "shell", "am dumpheap -g "+name+" "+remote)
	if out != "File: "+remote+"\nWaiting for dump to finish...\n" {
		t.Errorf("am dumpheap: %q", out)
	}
	r.Must(t, "pull", remote, local)
	r.Must(t, "shell", "rm "+remote)
	data, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(data, []byte("JAVA PROFILE 1.0.2\x00")) ||
		!bytes.Contains(data, []byte("com/example/leaky/Leaky$Session")) {
		t.Errorf("not a dump: %q", data[:min(len(data), 40)])
	}
	// HEAP DUMP END: tag 0x2C, time, length 0.
	if end := data[len(data)-9:]; end[0] != 0x2c || binary.BigEndian.Uint32(end[5:]) != 0 {
		t.Errorf("the dump is truncated; its last bytes are %x", end)
	}
	for _, file := range []string{"/etc/x.hprof", "/data/local/tmp/../x.hprof", "/data/local/x.hprof"} {
		if _, errs, exit := r.ADB(t, "shell", "am dumpheap "+name+" "+file); exit != 255 ||
			!strings.Contains(errs, "Consider using a file under /data/local/tmp/") {
			t.Errorf("dump to %s: %q, exit %d", file, errs, exit)
		}
	}
}

func checkMaps(t *testing.T, r *hostdevicetest.Running, pid string) {
	t.Helper()
	m, err := procfs.ParseShowmap([]byte(r.Must(t, "shell", "showmap "+pid)))
	if err != nil || m.Truncated || len(m.Warnings) > 0 {
		t.Fatalf("showmap: %v, %+v", err, m.Warnings)
	}
	seen := map[string]bool{}
	for _, row := range m.Rows {
		seen[row.Object] = true
	}
	for _, want := range []string{"[anon:dalvik-main space]", "[anon:libc_malloc]", "[anon:stack_and_tls]"} {
		if !seen[want] {
			t.Errorf("showmap lacks %s", want)
		}
	}
}

// reading returns the uptime of the device and the memory of a process at that
// time, in kB by row of the App Summary.
func reading(t testing.TB, d *hostdevice.Device, name string) (up time.Duration, kb map[string]int64) {
	t.Helper()
	out, _ := shell(t, d, "dumpsys meminfo "+name)
	m, err := dumpsys.ParseMeminfo([]byte(out))
	if err != nil || len(m.Blocks) != 1 {
		t.Fatalf("%v\n%s", err, out)
	}
	b := m.Blocks[0]
	return time.Duration(m.Uptime.N) * time.Millisecond, map[string]int64{
		"Java Heap": b.JavaHeap.N, "Native Heap": b.NativeHeap.N, "Code": b.Code.N, "Stack": b.Stack.N,
		"Private Other": b.PrivateOther.N,
	}
}

// TestLeaks checks that each process grows only in its own dimension, at the
// requested rate in device time, and that the control process does not grow.
func TestLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	hostdevicetest.RequireJava(t)
	const rate = 900 // MB per hour of device time: 5 MB per second at scale 20
	d := hostdevicetest.New(t, hostdevice.Options{Scale: 20})
	if out, exit := shell(t, d, fmt.Sprintf("am start -n %s/.All --es mb_per_h %d", d.Package(), rate)); exit != 0 {
		t.Fatalf("%s, exit %d", out, exit)
	}
	grows := map[string]string{"java": "Java Heap", "native": "Native Heap", "thread": "Stack", "control": ""}
	began, first := map[string]time.Duration{}, map[string]map[string]int64{}
	time.Sleep(5 * time.Second)
	// On a busy machine, Java may take longer than these 5 s to start.
	for mode, own := range grows {
		if own == "" {
			continue
		}
		_, at := reading(t, d, d.Package()+":"+mode)
		eventually(t, mode+" to leak", func() bool {
			_, now := reading(t, d, d.Package()+":"+mode)
			return now[own] > at[own]+10<<10
		})
	}
	for mode := range grows {
		began[mode], first[mode] = reading(t, d, d.Package()+":"+mode)
	}
	time.Sleep(12 * time.Second)
	for mode, own := range grows {
		ended, last := reading(t, d, d.Package()+":"+mode)
		hours := (ended - began[mode]).Hours()
		for dim := range last {
			got := float64(last[dim]-first[mode][dim]) / 1024 / hours
			if dim == own && (got < 0.85*rate || got > 1.15*rate) {
				t.Errorf("%s grows by %.0f MB/h in %s, want %d", mode, got, dim, rate)
			}
			if dim != own && (got < -0.04*rate || got > 0.04*rate) {
				t.Errorf("%s grows by %.0f MB/h in %s, but leaks %d", mode, got, dim, rate)
			}
			t.Logf("%s: %s %+.1f MB/h", mode, dim, got)
		}
	}
	threads := func(mode string) int64 {
		out, _ := shell(t, d, "grep Threads /proc/$(pidof "+d.Package()+":"+mode+")/status")
		return number(t, out, `Threads:\s+(\d+)`)
	}
	if leaking, control := threads("thread"), threads("control"); leaking < control+60 {
		t.Errorf("got %d threads, %d in the process without a leak, want at least 60 more", leaking, control)
	}
	dir := d.Dir()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if pids := left(t, dir); len(pids) > 0 {
		t.Errorf("processes %v are still running after the device was closed", pids)
	}
}

// TestSettles checks that a leak with a duration ends and that the app stays
// alive.
func TestSettles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 5 s")
	}
	hostdevicetest.RequireJava(t)
	d := hostdevicetest.New(t, hostdevice.Options{Scale: 100})
	// 7200 MB/h for 36 s is 72 MB; at this scale, the 36 s take 0.36 s of real
	// time.
	if out, exit := shell(t, d, "am start -W -n "+d.Package()+"/.Native --ef mb_per_h 7200 --ef for_s 36"); exit != 0 ||
		!strings.Contains(out, "Status: ok") {
		t.Fatalf("%s, exit %d", out, exit)
	}
	time.Sleep(3 * time.Second)
	kb := int64(0)
	eventually(t, "the process to stop growing", func() bool {
		_, a := reading(t, d, d.Package()+":native")
		time.Sleep(time.Second)
		_, b := reading(t, d, d.Package()+":native")
		kb = b["Native Heap"]
		return kb >= 72<<10 && kb-a["Native Heap"] <= 500
	})
	if mb := float64(kb) / 1024; mb > 85 {
		t.Errorf("got %.1f MB, want 72 MB plus the memory of the process", mb)
	}
}

// TestLevels checks that the warm-up and the cache grow to their levels and
// stay there, and that the cache remains in use.
func TestLevels(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s")
	}
	hostdevicetest.RequireJava(t)
	d := hostdevicetest.New(t, hostdevice.Options{Scale: 100})
	// The level is 60 MB, reached within a second; garbage from the cache adds
	// 16 MB.
	for _, activity := range []string{"WarmUp", "Cache"} {
		if out, exit := shell(t, d, "am start -n "+d.Package()+"/."+activity+
			" --ef mb_per_h 2160 --ef for_s 100"); exit != 0 {
			t.Fatalf("%s, exit %d", out, exit)
		}
	}
	time.Sleep(5 * time.Second)
	worked := func() int64 {
		out, _ := shell(t, d, "cat /proc/$(pidof "+d.Package()+":cache)/stat")
		return number(t, out, `^(?:\S+ ){13}(\d+) `)
	}
	var before int64
	var warm, cache map[string]int64
	eventually(t, "the processes to stop growing", func() bool {
		before = worked()
		_, warm = reading(t, d, d.Package()+":warmup")
		_, cache = reading(t, d, d.Package()+":cache")
		time.Sleep(3 * time.Second)
		_, warmer := reading(t, d, d.Package()+":warmup")
		_, fuller := reading(t, d, d.Package()+":cache")
		for dim := range warm {
			if warmer[dim]-warm[dim] > 500 || fuller[dim]-cache[dim] > 1000 {
				t.Logf("%s: warm-up %d kB, then %d kB; cache %d kB, then %d kB", dim, warm[dim], warmer[dim],
					cache[dim], fuller[dim])
				return false
			}
		}
		return min(warm["Java Heap"], warm["Native Heap"]) >= 30<<10 && cache["Java Heap"] >= 60<<10
	})
	if java, native := warm["Java Heap"]/1024, warm["Native Heap"]/1024; java < 30 || java > 40 || native < 30 ||
		native > 42 {
		t.Errorf("warm-up: %d MB of Java memory, %d MB native, want 30 plus the memory of the process", java, native)
	}
	if java := cache["Java Heap"] / 1024; java < 60 || java > 85 {
		t.Errorf("cache: %d MB", java)
	}
	if after := worked(); after <= before {
		t.Errorf("the cache process became idle: %d ticks, then %d", before, after)
	}
}

// TestUsers checks that with separate UIDs, the kernel denies the shell the
// same access as on a phone, and that the same workarounds help.
func TestUsers(t *testing.T) {
	if os.Getuid() != 0 {
		recorded.Missing(t, "needs root to run as other users")
	}
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.Start(t, hostdevice.Options{BuildType: "user", ShellUID: 2000, AppUID: 10123})
	r.Must(t, "shell", "am start -n "+r.Package()+"/.Control")
	name := r.Package() + ":control"
	pid := strings.TrimSpace(r.Must(t, "shell", "pidof "+name))
	if out := r.Must(t, "shell", "id -u; run-as "+r.Package()+" id -u; ps -A -o USER,PID | grep "+
		pid); strings.Join(strings.Fields(out), " ") != "2000 10123 u0_a123 "+pid {
		t.Errorf("users: %q", out)
	}
	for command, complaint := range map[string]string{
		"cat /proc/" + pid + "/smaps_rollup": "Permission denied",
		"cat /proc/" + pid + "/smaps":        "Permission denied",
		"showmap " + pid:                     "Failed to parse file /proc/" + pid + "/smaps",
		"kill -10 " + pid:                    "not permitted",
	} {
		if out, errs, exit := r.ADB(t, "shell", command); exit == 0 || !strings.Contains(errs, complaint) {
			t.Errorf("%s: %q, %q, exit %d", command, out, errs, exit)
		}
	}
	for command, want := range map[string]string{
		"cat /proc/" + pid + "/status":                                  "RssAnon:",
		"run-as " + r.Package() + " cat /proc/" + pid + "/smaps_rollup": "Pss:",
		"run-as " + r.Package() + " kill -10 " + pid:                    "",
		"dumpsys meminfo " + name:                                       "TOTAL PSS:",
		"am dumpheap -g " + name + " /data/local/tmp/d":                 "File: /data/local/tmp/d",
		"run-as " + r.Package() + " sh -c 'touch mine; ls -l mine'":     "mine",
	} {
		if out := r.Must(t, "shell", command); !strings.Contains(out, want) {
			t.Errorf("%s: %q", command, out)
		}
	}
	r.Must(t, "shell", "am dumpheap -g "+name+" /data/local/tmp/e && test -s /data/local/tmp/e && rm /data/local/tmp/e")
	if _, _, exit := r.ADB(t, "pull", "/proc/"+pid+"/smaps", filepath.Join(t.TempDir(), "x")); exit == 0 {
		t.Error("the sync protocol read a file that the shell may not read")
	}
}

// TestReleased checks that neither run-as nor am dumpheap works for an app that
// is not debuggable on a user build.
func TestReleased(t *testing.T) {
	hostdevicetest.RequireJava(t)
	d := hostdevicetest.New(t, hostdevice.Options{BuildType: "user", Released: true})
	if out, exit := shell(t, d, "am start -n "+d.Package()+"/.Control"); exit != 0 {
		t.Fatal(out)
	}
	for command, want := range map[string]string{
		"run-as " + d.Package() + " id": "run-as: package not debuggable: " +
			d.Package(),
		"am dumpheap " + d.Package() +
			":control /data/local/tmp/x.hprof": "Security exception: Process not debuggable: ProcessRecord{",
	} {
		out, exit := shell(t, d, command)
		if exit == 0 || !strings.HasPrefix(out, want) {
			t.Errorf("%s: %q, exit %d", command, out, exit)
		}
	}
}
