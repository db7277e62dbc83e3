package androidsim

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLogcat ends a process in two ways, dumps its heap, and reads the log.
func TestLogcat(t *testing.T) {
	for _, api := range apis {
		synctest.Test(t, func(t *testing.T) {
			p := asked(Options{API: api, SU: true, BuildType: "userdebug"},
				ProcessSpec{Models: []Model{Leak(Java, 100, 0), Crash(4*time.Minute, 10*time.Second)}})
			time.Sleep(3 * time.Minute)
			first := p.PID("com.shop")
			ask(t, p, fmt.Sprintf("su 0 kill -10 %d", first))
			ask(t, p, "am dumpheap com.shop "+dumpFile)
			if early := ask(t, p, "logcat -d -b main"); api < heapWaits &&
				strings.Contains(early, "heap dump completed") {
				t.Errorf("API %d: the dump completes too early", api)
			}
			time.Sleep(90 * time.Second)
			second := p.PID("com.shop")
			p.Kill("com.shop")
			time.Sleep(time.Second)
			text := ask(t, p, "logcat -d -v threadtime")
			tag := "art"
			switch {
			case api >= 28:
				tag = "com.shop"
			case api >= 26:
				tag = "zygote64"
			}
			died := map[bool]string{false: "has died", true: `has died: f(ore|g ) TOP`}[api >= 26]
			for what, pattern := range map[string]string{
				"collection": fmt.Sprintf(
					`%5d %5d I %-8s: Background .*GC freed .* AllocSpace (objects|bytes), .*%% free, \d+MB/\d+MB, paused .* total `, first, first+5, tag),
				"signal": fmt.Sprintf(`%5d %5d I %-8s: SIGUSR1 forcing GC`, first, first+1, tag),
				"dump":   fmt.Sprintf(`%5d %5d I %-8s: hprof: heap dump completed \(\d+[KM]B\)`, first, first, tag),
				"crash": fmt.Sprintf(
					`%5d %5d E AndroidRuntime: FATAL EXCEPTION: main\n.*Process: com.shop, PID: %d\n.*java.lang.OutOfMemoryError: `, first, first, first),
				"death":      fmt.Sprintf(`I ActivityManager: Process com.shop \(pid %d\) %s`, first, died),
				"next death": fmt.Sprintf(`I ActivityManager: Process com.shop \(pid %d\) %s`, second, died),
			} {
				if !regexp.MustCompile(pattern).MatchString(text) {
					t.Errorf("API %d: no %s by %s in\n%.2000s", api, what, pattern, text)
				}
			}
			killer := ask(t, p, "logcat -d -b kernel -b main -s lowmemorykiller")
			if !strings.Contains(killer, "'com.shop' ("+fmt.Sprint(second)+")") || strings.Contains(killer, "art") {
				t.Errorf("API %d: the low memory killer logs %q", api, killer)
			}
			if crash := ask(t, p, "logcat -d -b crash"); strings.Contains(crash, "beginning of") != (api >= 30) ||
				strings.Count(crash, "AndroidRuntime") != 6 {
				t.Errorf("API %d: %q", api, crash)
			}
			checkLogOptions(t, p, api, second)
		})
	}
}

// checkLogOptions tests the options that Android 7 added, and limits by number
// and time.
func checkLogOptions(t *testing.T, p *Phone, api, pid int) {
	t.Helper()
	for command, want := range map[string]string{
		"logcat -d -b main,system,crash": "main,system,crash", "logcat -d -v epoch": "-v", "logcat -d --pid=1": "--",
		"logcat -d -T 946684800.5": "time format",
		"logcat -d -e GC":          "invalid option",
	} {
		a := sh1(t, p, command)
		if old := api < 24; old != (a.exit == 255) || old != strings.Contains(a.err, want) || old && a.out != "" {
			t.Errorf("API %d: %s: %d %q", api, command, a.exit, a.err)
		}
	}
	for _, command := range []string{
		"logcat -d -v nosuch", "logcat -d -b nosuch", "logcat -d -t then", "logcat -d -q", "logcat -t",
	} {
		if a := sh1(t, p, command); a.exit != 255 || a.err == "" || a.out != "" {
			t.Errorf("API %d: %s: %+v", api, command, a)
		}
	}
	// entries returns the output without the divider; since Android 11 the
	// divider names the buffer even if there is only one.
	entries := func(command string) string {
		text, named := strings.CutPrefix(ask(t, p, command), "--------- beginning of main\n")
		if named != (api >= 30) && text != "" {
			t.Errorf("API %d: %s: named: %t", api, command, named)
		}
		return text
	}
	ask(t, p, "log -t Mark -p w a mark")
	if last := entries("logcat -b main -t 1 -v tag"); last != "W/Mark    : a mark\n" {
		t.Errorf("API %d: the last entry is %q", api, last)
	}
	brief := entries("logcat -d -b main -s Mark")
	if modern := regexp.MustCompile(`^01-01 00:0\d:\d\d\.\d{3} 2\d{4} 2\d{4} W Mark    : a mark\n$`).
		MatchString(brief); modern != (api >= 24) || !modern &&
		!regexp.MustCompile(`^W/Mark    \(2\d{4}\): a mark\n$`).MatchString(brief) {
		t.Errorf("API %d: %q", api, brief)
	}
	at := p.wall().UTC()
	if since := entries(at.Format("logcat -d -b main -T '01-02 15:04:05.000'")); strings.Count(since, "\n") != 1 {
		t.Errorf("API %d: got entries %q since the current time, want one", api, since)
	}
	if api >= 24 {
		want := fmt.Sprintf("%19d.%03d ", at.Unix(), at.Nanosecond()/1e6)
		if text := entries("logcat -d -b main -v epoch -T 1"); !strings.HasPrefix(text, want) {
			t.Errorf("API %d: %q, want %q", api, text, want)
		}
		for line := range strings.Lines(entries(fmt.Sprintf("logcat -d -b main --pid=%d", pid))) {
			if !strings.Contains(line, fmt.Sprintf(" %d ", pid)) {
				t.Errorf("API %d: %q belongs to a different process", api, line)
			}
		}
	}
	// An app can read only its own entries.
	own := ask(t, p, "run-as com.shop logcat -d -b main")
	if !strings.Contains(own, "GC freed") || strings.Contains(own, "Mark") || strings.Contains(own, "Zygote") {
		t.Errorf("API %d: logcat, run as the app, prints %.500s", api, own)
	}
	ask(t, p, "logcat -c")
	if text := ask(t, p, "logcat -d -b main"); text != "" {
		t.Errorf("API %d: after -c: %q", api, text)
	}
}

// TestLogcatFollows checks that logcat without -d follows the log, that the log
// is bounded, and that a reboot clears it.
func TestLogcatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := asked(Options{}, ProcessSpec{})
		ctx, cancel := context.WithCancel(t.Context())
		var out strings.Builder
		done := make(chan int)
		go func() { done <- p.Shell(ctx, "logcat -s Mark -v raw", nil, &out, nil) }()
		for i := range 3 {
			time.Sleep(time.Second)
			ask(t, p, fmt.Sprintf("log -t Mark %d", i))
		}
		time.Sleep(2 * logPoll)
		cancel()
		<-done
		if out.String() != "--------- beginning of main\n0\n1\n2\n" {
			t.Errorf("%q", out.String())
		}
		for i := range maxLogLines + 100 {
			p.mu.Lock()
			p.logf(p.wall(), "main", view{}, 0, 'I', "Flood", "%d", i)
			p.mu.Unlock()
		}
		text := strings.TrimPrefix(ask(t, p, "logcat -d -b main -v raw"), "--------- beginning of main\n")
		if n := strings.Count(text, "\n"); n > maxLogLines ||
			!strings.HasSuffix(text, fmt.Sprintf("\n%d\n", maxLogLines+99)) {
			t.Errorf("%d lines", n)
		}
		p.Reboot()
		time.Sleep(time.Minute)
		if text := ask(t, p, "logcat -d -b main -v raw"); strings.Contains(text, "Flood") ||
			!strings.Contains(text, "GC freed") {
			t.Errorf("after a reboot: %.500s", text)
		}
	})
}

// TestFailedDumpInTheLog checks that a dump is not logged as complete if the
// process died or the disk was full.
func TestFailedDumpInTheLog(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(p *Phone)
		says  string
	}{
		"died": {func(p *Phone) { time.Sleep(dumpTakes / 2); p.Kill("com.shop") }, "has died"},
		"full": {
			func(p *Phone) { time.Sleep(dumpTakes) }, "Couldn't dump heap; writing \"" + dumpFile +
				"\" failed: No space left on device",
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := asked(Options{API: 28}, ProcessSpec{})
			if name == "full" {
				defer p.FillDisk(1000)()
			}
			ask(t, p, "am dumpheap -g com.shop "+dumpFile)
			c.fault(p)
			time.Sleep(time.Minute)
			text := ask(t, p, "logcat -d")
			if !strings.Contains(text, "starting...") || !strings.Contains(text, c.says) ||
				strings.Contains(text, "completed") || !strings.Contains(text, ": Explicit ") ||
				strings.Contains(text, "SIGUSR1") {
				t.Errorf("%s: %s", name, text)
			}
		})
	}
}
