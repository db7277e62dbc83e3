//go:build e2e

package hostdevice_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
)

// TestEnds checks that the log and exit-info distinguish all the ways in which
// a process can end.
func TestEnds(t *testing.T) {
	hostdevicetest.RequireJava(t)
	d := hostdevicetest.New(t, hostdevice.Options{Scale: 20, HeapMB: 24})
	pkg := d.Package()
	run := func(command string) string {
		t.Helper()
		out, exit := shell(t, d, command)
		if exit != 0 {
			t.Fatalf("%s: exit %d, %s", command, exit, out)
		}
		return out
	}
	exitInfo := func() string { return run("dumpsys activity exit-info " + pkg) }
	if out := exitInfo(); strings.Contains(out, "package:") {
		t.Errorf("exit-info before any exit: %s", out)
	}
	ended := 0
	for _, tt := range []struct{ class, mode, end, reason string }{
		{"Control", "control", "kill -9 $PID", `reason=2 \(SIGNALED\) subreason=0 \(UNKNOWN\) status=9`},
		{
			"Native", "native", "am force-stop $PKG",
			`reason=10 \(USER REQUESTED\) subreason=21 \(FORCE STOP\) status=0\n.* description=stop ` + pkg +
				` due to from pid \d+ `,
		},
		{"Threads", "thread", "am kill $PID", `reason=10 \(USER REQUESTED\) subreason=24 \(KILL BACKGROUND\) status=0`},
		{
			"Cache", "cache", "am crash $PID",
			`reason=4 \(APP CRASH\(EXCEPTION\)\) subreason=0 \(UNKNOWN\) status=0\n.* description=crash `,
		},
		// In ten seconds the process allocates twice the size of its heap.
		{
			"Java", "java", "true",
			`reason=4 \(APP CRASH\(EXCEPTION\)\) subreason=0 \(UNKNOWN\) status=0\n.* description=crash `,
		},
	} {
		run(fmt.Sprintf("am start -n %s/.%s --es mb_per_h 9000", pkg, tt.class))
		pid := strings.TrimSpace(run("pidof " + pkg + ":" + tt.mode))
		run(strings.NewReplacer("$PID", pid, "$PKG", pkg).Replace(tt.end))
		ended++
		want := regexp.MustCompile(`(?m)#0:\n +timestamp=\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} pid=` + pid +
			` realUid=\d+ packageUid=\d+ definingUid=\d+ user=0\n` +
			` +process=` + pkg + ":" + tt.mode + ` ` + tt.reason)
		eventually(t, "the end of "+tt.mode+" as "+tt.reason, func() bool { return want.MatchString(exitInfo()) })
		if n := strings.Count(exitInfo(), "ApplicationExitInfo #"); n != ended {
			t.Errorf("%d exit records, want %d", n, ended)
		}
		log := run("logcat -d")
		for _, line := range []string{
			`I ActivityManager: Start proc ` + pid + ":" + pkg + ":" + tt.mode + `/`,
			`I ActivityManager: Process ` + pkg + ":" + tt.mode + ` \(pid ` + pid + `\) has died`,
		} {
			if !regexp.MustCompile(line).MatchString(log) {
				t.Errorf("the log lacks %s:\n%s", line, log)
			}
		}
	}
	crash := run("logcat -d -b crash")
	for _, want := range []string{
		"FATAL EXCEPTION: main", "CrashedByAdbException",
		" E AndroidRuntime: java.lang.OutOfMemoryError: Java heap space",
	} {
		if !strings.Contains(crash, want) {
			t.Errorf("the crash buffer lacks %s:\n%s", want, crash)
		}
	}
	if out := run("dumpsys activity exit-info com.example.absent"); strings.Contains(out, "package:") {
		t.Errorf("exit-info of another package: %s", out)
	}
}

// TestExitInfoIsYoung checks that exit-info does not exist before Android 11.
func TestExitInfoIsYoung(t *testing.T) {
	d := hostdevicetest.New(t, hostdevice.Options{API: 29, Release: "10"})
	const want = "Unknown command: exit-info\n" +
		"Bad activity command, or no activities match: exit-info\nUse -h for help.\n"
	if out, exit := shell(t, d, "dumpsys activity exit-info "+d.Package()); exit != 0 || out != want {
		t.Errorf("%q, exit %d", out, exit)
	}
}

// TestCollectionsInLog checks that collections and heap dumps are logged.
func TestCollectionsInLog(t *testing.T) {
	hostdevicetest.RequireJava(t)
	d := hostdevicetest.New(t, hostdevice.Options{})
	name := d.Package() + ":java"
	shell(t, d, "am start -n "+d.Package()+"/.Java")
	out, exit := shell(t, d, "am dumpheap -g "+name+" /data/local/tmp/x && "+
		"am dumpheap -n "+name+" /data/local/tmp/n && cat /data/local/tmp/n")
	if exit != 0 || !strings.Contains(out, "Native heap dump not available.") {
		t.Fatalf("%s, exit %d", out, exit)
	}
	for _, want := range []string{
		`(?m)^\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} +\d+ +\d+ I \S+ *: hprof: heap dump "/data/local/tmp/x" starting\.\.\.$`,
		`(?m)I \S+ *: Explicit concurrent copying GC freed \d+[KM]?B AllocSpace bytes, 0\(0B\) LOS objects, ` +
			`\d+% free, \d+[KM]?B/\d+[KM]B, paused [0-9.]+ms total [0-9.]+ms$`,
		`(?m)I \S+ *: hprof: heap dump completed \(\d+[KM]B\) in [0-9.]+m?s$`,
	} {
		seen := regexp.MustCompile(want)
		eventually(t, want, func() bool {
			out, _ := shell(t, d, "logcat -d --pid=$(pidof "+name+")")
			return seen.MatchString(out)
		})
	}
}
