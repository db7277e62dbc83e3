package dumpsys

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leakgate/leakgate/internal/capture/field"
	"github.com/leakgate/leakgate/internal/known"
)

func scanned(t *testing.T, text string, pid int64, process string) Logcat {
	t.Helper()
	log, err := ScanLogcat(strings.NewReader(text), pid, process)
	if err != nil {
		t.Fatalf("%v in %.300q", err, text)
	}
	return log
}

// counts returns the number of mentions of each kind.
func counts(log Logcat) map[LogKind]int64 {
	n := map[LogKind]int64{}
	for kind, m := range log.Mentions {
		n[kind] = m.Count
	}
	return n
}

// These lines were recorded by others; a comment above each names its source.
func TestRecordedLogs(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		pid     int64
		process string
		want    map[LogKind]int64
		check   func(Logcat) bool
	}{
		// The test logs of thaliproject: Android 5.0 and 5.1, formats brief and
		// threadtime.
		"5 brief": {
			"--------- beginning of main\nI/art     ( 4229): Explicit concurrent mark sweep GC freed 15600(911KB) " +
				"AllocSpace objects, 0(0B) LOS objects, 34% free, 29MB/45MB, paused 538us total 160.028ms\n" +
				"I/art     ( 1034): Explicit concurrent mark sweep GC freed 25641(1109KB) AllocSpace objects, " +
				"4(448KB) LOS objects, 33% free, 44MB/66MB, paused 1.978ms total 150.453ms\n",
			1034, "system_server", map[LogKind]int64{LogGC: 1}, func(l Logcat) bool {
				return l.Entries == 2 && l.First == "" && l.GC.HeapUsed == known.Of(44<<10) &&
					l.GC.HeapTotal == known.Of(66<<10) && l.GC.LongestPause == known.Of(1978)
			}},
		"5 threadtime": {
			"08-30 06:40:43.884  5687  5733 W jxcore-log: JXcore engine is ready\n08-30 06:40:43.900  5687  5696 I " +
				"art     : Background sticky concurrent mark sweep GC freed 85076(8MB) AllocSpace objects, " +
				"18(1892KB) LOS objects, 26% free, 24MB/32MB, paused 1.784ms total 100.514ms\n",
			5687, "", map[LogKind]int64{LogGC: 1}, func(l Logcat) bool {
				return l.First == "08-30 06:40:43.884" && l.Mentions[LogGC].First == "08-30 06:40:43.900" &&
					maps.Equal(l.GC.Causes, map[string]int64{"Background": 1})
			}},
		"5 empty process": {
			"I/ActivityManager(  849): Killing 3239:com.lge.hiddenmenu/1000 (adj 15): empty #11\n", 3239,
			"com.lge.hiddenmenu",
			map[LogKind]int64{LogKill: 1},
			func(l Logcat) bool { return l.Kill() && !l.Crash() && l.KillReason == "empty #11" }},
		// A monkey test of a radio app, in the time format: the app runs out of
		// memory when it creates a thread.
		"6 time": {
			"12-28 21:35:21.571 E/AndroidRuntime(11308): FATAL EXCEPTION: main\n12-28 21:35:21.571 " +
				"E/AndroidRuntime(11308): Process: com.tct.fmradio, PID: 11308\n" +
				"12-28 21:35:21.571 E/AndroidRuntime(11308): java.lang.OutOfMemoryError: Could not allocate JNI " +
				"Env\n12-28 21:35:21.571 E/AndroidRuntime(11308): \tat java.lang.Thread.nativeCreate(Native Method)\n",
			11308, "com.tct.fmradio", map[LogKind]int64{LogCrash: 1, LogOutOfMemory: 1, LogThreadLimit: 1},
			func(l Logcat) bool { return l.Exception == "java.lang.OutOfMemoryError" && l.Crash() }},
		// volantis 7.1.1: the log contains the tombstone.
		"7 tombstone": {
			"12-14 20:25:29.367  1524  1524 F DEBUG   : ABI: 'arm'\n12-14 20:25:29.367  1524  1524 F DEBUG   : pid: " +
				"1509, tid: 1509, name: ersoonal.runner  >>> com.persoonal.runner <<<\n" +
				"12-14 20:25:29.368  1524  1524 F DEBUG   : " +
				"signal 7 (SIGBUS), code 1 (BUS_ADRALN), fault addr 0xffd9b82c\n",
			1509, "com.persoonal.runner", map[LogKind]int64{LogNativeCrash: 1},
			func(l Logcat) bool { return l.Signal == "SIGBUS" && l.Crash() }},
		// A bug report service of Android 8, with -v uid.
		"8 uid": {
			"07-03 20:42:34.094 10031  2011 32761 W zygote  : Throwing OutOfMemoryError \"Failed to allocate a " +
				"38291456 byte allocation with 2097152 free bytes and 5MB until OOM, max allowed footprint 46567600, " +
				"growth limit 50331648\"\n" +
				"07-03 20:42:34.128 10031  2011 32761 E AndroidRuntime: FATAL EXCEPTION: " +
				"IntentService[SendBugReportService]\n07-03 20:42:34.128 10031  2011 32761 E AndroidRuntime: " +
				"Process: com.google.XXX, PID: 2011\n" +
				"07-03 20:42:34.128 10031  2011 32761 E AndroidRuntime: java.lang.OutOfMemoryError: Failed to " +
				"allocate a 38291456 byte allocation with 2097152 free bytes and 5MB until OOM, max allowed " +
				"footprint 46567600, growth limit 50331648\n",
			2011, "com.google.XXX", map[LogKind]int64{LogOutOfMemory: 2, LogCrash: 1}, nil},
		// A walkthrough of ANRs, -v uid.
		"9 ANR": {
			"07-20 15:36:58.711  1000  1520  1597 E ActivityManager: ANR in com.xxxx.moblie " +
				"(com.xxxx.moblie/.ui.MainActivity)\n07-20 15:36:58.711  1000  1520  1597 E ActivityManager: PID: " +
				"1480\n",
			1480, "com.xxxx.moblie", map[LogKind]int64{LogANR: 1},
			func(l Logcat) bool { return !l.Crash() && !l.Kill() }},
		// A phone with Android 14, the format of flutter logs.
		"14 brief": {
			"I/mple.jarvis_app( 7696): Background concurrent mark compact GC freed 10MB AllocSpace bytes, 3(60KB) " +
				"LOS objects, 49% free, 2870KB/5741KB, paused 620us,6.773ms total 61.537ms\n",
			7696, "com.example.jarvis_app", map[LogKind]int64{LogGC: 1}, func(l Logcat) bool {
				return l.GC.HeapUsed == known.Of(2870) && l.GC.LongestPause == known.Of(6773)
			}},
		// A debug build on a phone with Android 15.
		"15 young": {
			"I/r.habitv8.debug( 1105): Background young concurrent mark compact GC freed 115MB AllocSpace bytes, " +
				"257(93MB) LOS objects, 9% free, 196MB/216MB, paused 93us,5.962ms total 1.008s\n",
			1105, "com.hr.habitv8.debug", map[LogKind]int64{LogGC: 1}, nil},
		// An automotive emulator, with a large language model that exceeded its
		// memory.
		"14 lmkd": {
			"07-28 10:46:14.319   479   479 W lowmemorykiller: Failed to open /proc/16854/oom_score_adj; errno=2: " +
				"process 16854 might have been killed\n" +
				"07-28 10:46:14.514   479   479 I lowmemorykiller: Kill 'com.tcs.vehicleassistant' (17757), uid " +
				"1010174, oom_score_adj 0 to free 4445960kB rss, 3990164kB anon rss, 2413008kB swap, 0kB dmabuf_pss, " +
				"0kB dmabuf_rss; reason: min watermark is breached even after kill\n" +
				"07-28 10:46:15.364 30063 30063 I Zygote  : Process 17757 exited due to signal 9 (Killed)\n",
			17757, "com.tcs.vehicleassistant", map[LogKind]int64{LogLowMemoryKill: 1, LogDied: 1}, func(l Logcat) bool {
				return l.Kill() && l.KillReason == "min watermark is breached even after kill" &&
					l.KillAdj == known.Of(0)
			}},
		// The octavia app of React Native.
		"15 native": {
			"10-07 10:59:40.260  2861  2946 F libc    : Fatal signal 11 (SIGSEGV), code 1 (SEGV_MAPERR), fault addr " +
				"0x1e30000000a in tid 2946 (mqt_v_js), pid 2861 (cks.octavia.app)\n" +
				"10-07 10:59:42.145  2995  2995 F DEBUG   : pid: 2861, tid: 2946, name: mqt_v_js  >>> " +
				"rocks.octavia.app <<<\n",
			2861, "rocks.octavia.app", map[LogKind]int64{LogNativeCrash: 2},
			func(l Logcat) bool { return l.Signal == "SIGSEGV" }},
		// The app platformspike of seedengine: -v epoch, all buffers.
		"16 epoch": {
			"1790448214.410  1409  2589 I ActivityManager: Killing 1979:com.seedengine.platformspike/u0a423 (adj " +
				"905): kill background\n1790448214.411  1409  2589 I am_kill : " +
				"[0,1979,com.seedengine.platformspike,905,kill background,79208]\n" +
				"1790448214.412  1409  2589 I ActivityManager: Killing " +
				"2002:com.seedengine.platformspike:seed_platform/u0a423 (adj 905): kill background\n",
			1979, "com.seedengine.platformspike", map[LogKind]int64{LogKill: 2}, func(l Logcat) bool {
				return l.KillReason == "kill background" && l.Mentions[LogKill].First == "1790448214.410" &&
					l.Mentions[LogKill].Last == "1790448214.411"
			}},
		// A Pixel's event log.
		"died": {
			"06-25 00:48:35.804  1500  1600 I am_proc_died: [0,22891,com.android.providers.calendar,905,19]\n", 22891,
			"com.android.providers.calendar", map[LogKind]int64{LogDied: 1}, nil,
		},
		// A kernel message as passed on by the log daemon.
		"kernel": {
			"01-01 00:00:09.000     0     0 I lowmemorykiller: Killing 'd.play.games.ui' (2613), adj 1000,\n01-01 " +
				"00:00:09.000     0     0 I         :    to free 20784kB on behalf of 'kswapd0' (442) because\n",
			2613, "com.google.android.play.games.ui", map[LogKind]int64{LogLowMemoryKill: 1}, nil},
	} {
		for _, eol := range []string{"\n", "\r\n"} {
			log := scanned(t, strings.ReplaceAll(c.text, "\n", eol), c.pid, c.process)
			if !maps.Equal(counts(log), c.want) || c.check != nil && !c.check(log) || log.Warnings != nil ||
				log.Truncated {
				t.Errorf("%s: %+v", name, log)
			}
		}
		if other := scanned(t, c.text, 99999, c.process); len(other.Mentions) != 0 {
			t.Errorf("%s: lines attributed to another pid: %+v", name, other.Mentions)
		}
		// The system's lines contain the name of the process.
		byName, other := scanned(t, c.text, 0, c.process), scanned(t, c.text, c.pid, "another.process")
		for _, kind := range []LogKind{LogKill, LogLowMemoryKill, LogANR, LogCrash} {
			if byName.Mentions[kind].Count < c.want[kind] || c.process != "" && other.Mentions[kind].Count > 0 {
				t.Errorf("%s: %s lines by process name %+v, by another name %+v", name, kind, byName.Mentions,
					other.Mentions)
			}
		}
	}
}

func TestFullHeap(t *testing.T) {
	// These are the messages of Android 7 to 14 about a full heap; the app was
	// recorded on Android 10.
	const head = "11-22 15:32:47.123  1234  1250 I .gpadc.yolodem: "
	var text strings.Builder
	for _, msg := range []string{
		"Alloc young concurrent copying GC freed 6910(352KB) AllocSpace objects, 17(1984KB) LOS objects, 0% free, " +
			"764MB/768MB, paused 41us,26us total 7.151ms",
		"Forcing collection of SoftReferences for 22MB allocation", "Starting a blocking GC Alloc",
		"Clamp target GC heap from 785MB to 768MB",
		"Waiting for a blocking GC Alloc", "WaitForGcToComplete blocked Alloc on Background for 330.037ms",
		"WaitForGcToComplete blocked for 12.3ms for cause Alloc",
		"WaitForGcToComplete blocked Background on HeapTrim for 1.7s", "Starting a blocking GC NativeAlloc",
		"Alloc concurrent copying GC freed 362KB AllocSpace bytes, 5(148KB) LOS objects, 14% " +
			"free,549MB(M:180MB,L:368MB)/645MB, paused 149us,277us total 2.002s",
		"Throwing OutOfMemoryError \"Failed to allocate a 23969804 byte allocation with 7320896 free bytes\"",
		"Throwing OutOfMemoryError \"pthread_create (1040KB stack) failed: Try again\"",
		"Throwing OutOfMemoryError \"Could not allocate JNI Env: Failed anonymous mmap(0x0, 8192, 0x3, 0x22, -1, 0): " +
			"Out of memory. See process maps in the log.\"",
		"java.io.FileNotFoundException: /x: open failed: EMFILE (Too many open files)",
	} {
		text.WriteString(head + msg + "\n")
	}
	log := scanned(t, text.String(), 1234, "com.ethernet.gpadc.yolodem")
	want := map[LogKind]int64{
		LogGC: 2, LogFullHeap: 6, LogOutOfMemory: 3, LogThreadLimit: 2, LogFileLimit: 1, LogAddressSpace: 1,
	}
	if !maps.Equal(counts(log), want) || !maps.Equal(log.GC.Causes, map[string]int64{"Alloc": 2}) {
		t.Errorf("%v, causes %v", counts(log), log.GC.Causes)
	}
	if log.GC.HeapUsed != known.Of(549<<10) || log.GC.HeapTotal != known.Of(645<<10) ||
		log.GC.LongestPause != known.Of(277) || log.Warnings != nil {
		t.Errorf("%+v", log.GC)
	}
	if log := scanned(t, head+"Background GC freed nothing\n", 1234, ""); len(log.Warnings) != 1 ||
		log.GC.HeapUsed.Known || log.Mentions[LogGC].Count != 1 {
		t.Errorf("%+v", log)
	}
	// A line with the text of an ART message but a different tag was written by
	// the app, and does not count.
	if log := scanned(t, strings.ReplaceAll(head, ".gpadc.yolodem", "MyTag")+"GC freed 5\n", 1234,
		"com.shop"); len(log.Mentions) != 0 {
		t.Errorf("%+v", log.Mentions)
	}
}

func TestLineOwner(t *testing.T) {
	const at = "11-22 15:32:47.123  "
	for text, want := range map[string]LogKind{
		at + "999 999 I ActivityManager: Process com.shop (pid 123) has died: cch  CRE": LogDied,
		at + "999 999 I ActivityManager: Process com.shop (pid 123)(adj 0) has died.":   LogDied,
		at + "999 999 I ActivityManager: Process com.shop (pid 1234) has died":          "",
		at + "999 999 I ActivityManager: Process com.shopper (pid 123) has died":        "",
		at +
			"999 999 I am_crash: " +
			"[123,0,com.shop,955725381,java.lang.NullPointerException,boom, x,Main.kt,12]": LogCrash,

		at + "999 999 I am_crash: [0,123,com.shop,955725381,java.lang.NullPointerException,boom, x,Main.kt,12]": "",

		at + "991 999 I am_crash: [991,0,com.shop,581451334,Native crash,Bus error,unknown,0]":  LogNativeCrash,
		at + "991 999 I am_crash: [991,0,com.other,581451334,Native crash,Bus error,unknown,0]": "",
		at + "999 999 I am_anr  : [0,123,com.shop,955725381,Input dispatching timed out]":       LogANR,
		at + "123 125 E AndroidRuntime: FATAL EXCEPTION: main\n" + at +
			"123 125 E AndroidRuntime: PID: 123": LogCrash,
		at + "123 125 E AndroidRuntime: FATAL EXCEPTION: main\n" + at +
			"123 125 E AndroidRuntime: Process: x, PID: 123": "",
		at + "123 125 E AndroidRuntime: *** FATAL EXCEPTION IN SYSTEM PROCESS: x\n" + at +
			"123 125 E AndroidRuntime: java.lang.X: y": LogCrash,
		at + "999 999 E AndroidRuntime: FATAL EXCEPTION: main\n" + at +
			"999 999 E AndroidRuntime: Process: com.other, PID: 999": "",
		at + "999 999 E ActivityManager: ANR in com.shop\n" + at +
			"999 999 E ActivityManager: PID: 124": "",
		at + "300 300 I lmkd    : Kill 'com.shop' (123), uid 10123, oom_score_adj 900 to free 9kB rss, 9kB swap; " +
			"reason: low watermark": LogLowMemoryKill,
		at + "300 300 I lowmemorykiller: Killing 'com.shop' (123), uid 10123, adj 900":         LogLowMemoryKill,
		at + "300 300 I lowmemorykiller: Kill 'com.other' (123), uid 10123, oom_score_adj 900": "",
		at + "  0   0 E Out of memory: Killed process 123 (com.shop) total-vm:1kB":             LogLowMemoryKill,
		at + "123 125 I MyTag   : Kill 'com.shop' (123), uid 10123, adj 900":                   "",
		at + "300 300 F DEBUG   : pid: 123, tid: 125, name: main  >>> com.shop <<<":            LogNativeCrash,
		at + "300 300 F DEBUG   : pid: 123, tid: 125, name: main  >>> com.other <<<":           "",

		at + "400 400 F libc    : Fatal signal 11 (SIGSEGV), code 1, fault addr 0x0 in tid 400 (x), pid 400 (x)": "",

		at + "+0000 u0_a12 123 125 F libc    : Fatal signal 6 (SIGABRT), " +
			"code -1 (SI_QUEUE) in tid 125 (x), pid 123 (com.shop)": LogNativeCrash,
		"2026-" + at + "123 125 F libc    : Fatal signal 6 (SIGABRT)": LogNativeCrash,
		"F/libc    (  123): Fatal signal 6 (SIGABRT)":                 LogNativeCrash,
	} {
		log := scanned(t, text+"\n", 123, "com.shop")
		if want == "" && len(log.Mentions) > 0 || want != "" &&
			(log.Mentions[want].Count != 1 || len(log.Mentions) != 1) {
			t.Errorf("%q: %+v, want %q", text, log.Mentions, want)
		}
	}
	// If only a process name is given, the log of every process that is started
	// under this name is counted, whatever its pid.
	log := scanned(t, at+"999 999 I ActivityManager: Start proc 7:com.shop/u0a12 for activity\n"+at+
		"7 7 F libc    : Fatal signal 6 (SIGABRT)\n"+
		at+"999 999 I am_proc_start: [0,8,10012,com.shop,activity,x]\n"+at+"8 8 F libc    : Fatal signal 6 (SIGABRT)\n"+
		at+"9 9 F libc    : Fatal signal 6 (SIGABRT)\n", 0, "com.shop")
	if log.Mentions[LogNativeCrash].Count != 2 {
		t.Errorf("%+v", log.Mentions)
	}
	if log := scanned(t, at+"7 7 F libc    : Fatal signal 6 (SIGABRT)\n"+at+
		"8 8 F libc    : Fatal signal 6 (SIGABRT)\n", 0, ""); log.Mentions[LogNativeCrash].Count != 2 {
		t.Errorf("without a pid or a name: got %+v, want 2 native crashes", log.Mentions)
	}
}

func TestNotALog(t *testing.T) {
	for text, kind := range map[string]Kind{
		"": Empty,
		"Unable to open log device '/dev/log/main': No such file or directory\n": NoFile,
		"Unable to open log device '/dev/log/events': Permission denied\n":       Permission,
		"Unable to open log device\n":                                            NoFile,
		"logcat: unknown option -- pid\n":                                        UnknownOption,
		"Unrecognized Option ?\nUsage: logcat [options] [filterspecs]\n":         Usage,
		"logcat: Unrecognized Option -z\n":                                       UnknownOption,
		"Logcat read failure: Try again\n":                                       InputOutput,
		"read: unexpected EOF!\n":                                                InputOutput,
		"/system/bin/sh: logcat: inaccessible or not found\n":                    NoCommand,
		"error: device offline\n":                                                Disconnected,
		"hello\n":                                                                Format,
		"\x00\x1b[2J\n":                                                          Format,
		"11-22 15:3":                                                             Truncated,
		"I/ar":                                                                   Truncated,
	} {
		log, err := ScanLogcat(strings.NewReader(text), 1, "x")
		var e DeviceError
		if !errors.As(err, &e) || e.Kind != kind || !printable(e.Text) || !reflect.DeepEqual(log, Logcat{}) {
			t.Errorf("%q: %v, want %s", text, err, kind)
		}
	}
	if log := scanned(t, "--------- beginning of main\n", 1, "x"); log.Entries != 0 || log.Mentions != nil {
		t.Errorf("%+v", log)
	}
	broken := io.MultiReader(strings.NewReader("11-22 15:32:47.123 1 1 I x: y\n"),
		iotest.ErrReader(io.ErrUnexpectedEOF))
	if _, err := ScanLogcat(broken, 1, "x"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestDurationsAndSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "56us": 56, "2.462ms": 2462, "1.008s": 1008000, "999ns": 0, "3s": 3000000,
	} {
		if got, ok := microseconds(text); !ok || got != want {
			t.Errorf("%s: %d, %t", text, got, ok)
		}
	}
	for text, want := range map[string]int64{"0B": 0, "2048B": 2, "2870KB": 2870, "73MB": 73 << 10, "2GB": 2 << 20} {
		if got, ok := prettySize(text); !ok || got != want {
			t.Errorf("%s: %d, %t", text, got, ok)
		}
	}
	for _, text := range []string{
		"", "s", "-1us", "1.us", "1.xms", "99999999999s", "us1", "B", "MB", "-1MB", "99999999999GB",
	} {
		_, ok := microseconds(text)
		_, ok2 := prettySize(text)
		if ok || ok2 {
			t.Errorf("%q is accepted", text)
		}
	}
}

// logFormats maps each format of logcat to a function that returns an entry in
// this format.
var logFormats = map[string]func(n int, pid int64, tag, msg string) string{
	"threadtime": func(n int, pid int64, tag, msg string) string {
		return fmt.Sprintf("11-22 15:32:47.%03d %5d %5d I %-8s: %s", n%1000, pid, pid+1, tag, msg)
	},
	"epoch": func(n int, pid int64, tag, msg string) string {
		return fmt.Sprintf("%19d.%03d %5d %5d I %-8s: %s", 1732289567+n/1000, n%1000, pid, pid+1, tag, msg)
	},
	"time": func(n int, pid int64, tag, msg string) string {
		return fmt.Sprintf("11-22 15:32:47.%03d I/%-8s(%5d): %s", n%1000, tag, pid, msg)
	},
	"brief": func(_ int, pid int64, tag, msg string) string {
		return fmt.Sprintf("I/%-8s(%5d): %s", tag, pid, msg)
	},
	"uid": func(n int, pid int64, tag, msg string) string {
		return fmt.Sprintf("11-22 15:32:47.%03d u0_a12 %5d %5d I %-8s: %s", n%1000, pid, pid+1, tag, msg)
	},
}

// stamped returns the time of a line as printed.
func stamped(line string) field.Text {
	stamp, _ := stampOf(line)
	return field.Text(stamp)
}

// madeLog returns a log of random events of one process and of others, and the
// expected result of scanning it.
func madeLog(r *rand.Rand, format string, size int) (text string, want Logcat) {
	const pid, process = 123, "com.example.shop"
	want.Mentions = map[LogKind]Mention{}
	want.GC.Causes = map[string]int64{}
	var b strings.Builder
	n := 0
	entry := func(pid int64, tag, msg string, kinds ...LogKind) {
		line := logFormats[format](n, pid, tag, msg)
		stamp := stamped(line)
		n++
		b.WriteString(line + "\n")
		want.Entries++
		if want.First == "" {
			want.First = stamp
		}
		want.Last = stamp
		for _, kind := range kinds {
			m := want.Mentions[kind]
			if m.First == "" {
				m.First = stamp
			}
			want.Mentions[kind] = Mention{m.Count + 1, m.First, stamp, line}
		}
	}
	for range size {
		who, name, mine := int64(123), process, r.IntN(2) == 0
		if !mine {
			who, name = 4000+r.Int64N(100), "com.other.app"
		}
		is := func(kind LogKind) []LogKind {
			if mine {
				return []LogKind{kind}
			}
			return nil
		}
		switch r.IntN(8) {
		case 0:
			cause := []string{"Alloc", "Background", "Explicit"}[r.IntN(3)]
			used, total, pause := r.Int64N(500), 500+r.Int64N(12), r.Int64N(900)
			entry(who, []string{"art", name[1:]}[r.IntN(2)],
				fmt.Sprintf("%s concurrent copying GC freed 5(8KB) AllocSpace objects, 0(0B) LOS objects, 4%% free, "+
					"%dMB/%dMB, paused %dus,7us total 1.5ms", cause, used, total, pause), is(LogGC)...)
			if mine {
				want.GC.Causes[cause]++
				want.GC.HeapUsed, want.GC.HeapTotal = known.Of(used<<10), known.Of(total<<10)
				want.GC.LongestPause = known.Of(max(want.GC.LongestPause.N, pause, 7))
			}
		case 1:
			entry(who, "art", "Clamp target GC heap from 5MB to 4MB", is(LogFullHeap)...)
		case 2:
			entry(999, "lowmemorykiller",
				fmt.Sprintf("Kill '%s' (%d), uid 10123, oom_score_adj %d to free 5kB rss, 0kB swap; reason: r%d", name,
					who, 10*n, n), is(LogLowMemoryKill)...)
			if mine {
				want.KillAdj = known.Of(int64(10 * (n - 1)))
				want.KillReason = field.Text(fmt.Sprintf("r%d", n-1))
			}
		case 3:
			entry(999, "ActivityManager", fmt.Sprintf("Killing %d:%s/u0a12 (adj 900): empty #%d", who, name, n),
				is(LogKill)...)
			if mine {
				want.KillReason = field.Text(fmt.Sprintf("empty #%d", n-1))
			}
		case 4:
			line := logFormats[format](n, who, "AndroidRuntime", "FATAL EXCEPTION: main")
			stamp := stamped(line)
			entry(who, "AndroidRuntime", "FATAL EXCEPTION: main", is(LogCrash)...)
			entry(who, "AndroidRuntime", fmt.Sprintf("Process: %s, PID: %d", name, who))
			entry(who, "AndroidRuntime", fmt.Sprintf("java.lang.Error%d: x", n))
			if mine {
				want.Exception = field.Text(fmt.Sprintf("java.lang.Error%d", n-1))
				m := want.Mentions[LogCrash]
				m.Last, m.Line = stamp, line
				want.Mentions[LogCrash] = m
			}
		case 5:
			entry(who, "libc", "Fatal signal 11 (SIGSEGV), code 1", is(LogNativeCrash)...)
			if mine {
				want.Signal = "SIGSEGV"
			}
		case 6:
			entry(999, "ActivityManager", fmt.Sprintf("Process %s (pid %d) has died: cch CRE", name, who),
				is(LogDied)...)
		case 7:
			entry(who, "chatty", "unrelated message")
			b.WriteString("--------- beginning of crash\n")
		}
	}
	if len(want.Mentions) == 0 {
		want.Mentions = nil
	}
	if len(want.GC.Causes) == 0 {
		want.GC.Causes = nil
	}
	return b.String(), want
}

func TestLogcatRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for format := range logFormats {
		for range 100 {
			text, want := madeLog(r, format, 1+r.IntN(60))
			if got := scanned(t, text, 123, "com.example.shop"); !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\n%s\ngot  %+v\nwant %+v", format, text, got, want)
			}
		}
	}
}

// TestLogcatTruncatedAnywhere checks that every mention in a truncated log is
// also in the whole log.
func TestLogcatTruncatedAnywhere(t *testing.T) {
	for format := range logFormats {
		text, _ := madeLog(rand.New(rand.NewPCG(7, 8)), format, 30)
		whole := scanned(t, text, 123, "com.example.shop")
		var before Logcat
		for at := range len(text) {
			log, err := ScanLogcat(strings.NewReader(text[:at]), 123, "com.example.shop")
			if err != nil {
				continue
			}
			if log.Truncated != (text[at-1] != '\n') {
				t.Fatalf("%s: truncated at %d: truncated %t", format, at, log.Truncated)
			}
			for kind, m := range log.Mentions {
				if m.Count > whole.Mentions[kind].Count || m.Count < before.Mentions[kind].Count ||
					m.First != whole.Mentions[kind].First {
					t.Fatalf("%s: truncated at %d: %s %+v, at the previous line %+v, in the complete log %+v", format,
						at, kind, m,
						before.Mentions[kind], whole.Mentions[kind])
				}
			}
			before = log
		}
	}
}

// endless repeats a unit of junk until it has returned at least left bytes.
type endless struct {
	left int
	unit string
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.unit)
	}
	e.left -= n
	return n, nil
}

func TestLongLogs(t *testing.T) {
	for _, unit := range []string{
		"\x00", "x", "11-22 15:32:47.123 1 1 I x: Kill '", "11-22 15:32:47.123 1 1 I art: a GC freed ,1,2/(% free,\n",
		"I/(((((): ): ", "11-22 15:32:47.123 1 1 E ActivityManager: ANR in \n", "\n", "\xff\xfe 1 1 1 I I I I \r\n",
	} {
		log, err := ScanLogcat(io.MultiReader(strings.NewReader("11-22 15:32:47.123 1 1 I x: y\n"),
			&endless{8 << 20, unit}), 1, "")
		if err != nil || log.Entries == 0 || len(log.Warnings) > field.MaxWarnings+1 {
			t.Errorf("%q: %+v, %v", unit, log, err)
		}
	}
	long := "11-22 15:32:47.123 1 1 F libc: Fatal signal 11 (SIGSEGV)" + strings.Repeat("\x1b[2J", 1<<20) +
		"\n11-22 15:32:47.124 1 1 I x: y\n"
	if log := scanned(t, long, 1, ""); log.Entries != 2 || len(log.Mentions[LogNativeCrash].Line) != maxClip ||
		!printable(log.Mentions[LogNativeCrash].Line) {
		t.Errorf("%+v", log)
	}
}

func FuzzLogcat(f *testing.F) {
	for format := range logFormats {
		text, _ := madeLog(rand.New(rand.NewPCG(9, 10)), format, 20)
		f.Add([]byte(text), int64(123), "com.example.shop")
	}
	f.Add([]byte("Unable to open log device '/dev/log/main': Permission denied\n"), int64(0), "")
	f.Fuzz(func(t *testing.T, text []byte, pid int64, process string) {
		log, err := ScanLogcat(strings.NewReader(string(text)), pid, process)
		var e DeviceError
		if err != nil && (!errors.As(err, &e) || !reflect.DeepEqual(log, Logcat{}) || !printable(e.Text)) {
			t.Fatalf("%v, %+v", err, log)
		}
		if len(log.GC.Causes) > maxCauses || len(log.Warnings) > field.MaxWarnings+1 || log.GC.HeapUsed.N < 0 ||
			log.GC.LongestPause.N < 0 {
			t.Fatalf("%+v", log)
		}
		for _, s := range []field.Text{log.First, log.Last, log.Exception, log.Signal, log.KillReason} {
			if len(s) > maxClip || !printable(string(s)) {
				t.Fatalf("%q", s)
			}
		}
		for kind, m := range log.Mentions {
			if m.Count < 1 || m.Count > log.Entries || len(m.Line) > maxClip ||
				!printable(m.Line+string(m.First+m.Last)) || len(m.First)+len(m.Last) > 2*maxStamp+2 {
				t.Fatalf("%s: %+v of %d", kind, m, log.Entries)
			}
		}
		again, err2 := ScanLogcat(iotest.OneByteReader(strings.NewReader(string(text))), pid, process)
		if (err == nil) != (err2 == nil) || !reflect.DeepEqual(log, again) {
			t.Fatalf("read byte by byte: %+v, want %+v", again, log)
		}
	})
}

func BenchmarkLogcat(b *testing.B) {
	text, _ := madeLog(rand.New(rand.NewPCG(9, 10)), "threadtime", 5000)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ScanLogcat(strings.NewReader(text), 123, "com.example.shop"); err != nil {
			b.Fatal(err)
		}
	}
}

// An uncaught OutOfMemoryError is distinguished from a caught one, and the
// lines of the memory limiter contain the limit.
func TestDeathsOfMemory(t *testing.T) {
	const crash = "01-02 10:00:04.900   77   77 E AndroidRuntime: FATAL EXCEPTION: main\n" +
		"01-02 10:00:04.900   77   77 E AndroidRuntime: Process: com.shop, PID: 77\n"
	const limiter = "01-02 10:00:04.000  900  910 I MemoryLimiter: onLimitExceeded: pid=77 uid=10123 type=anon+swap " +
		"memHigh=268435456 swapHigh=268435456 pkg=com.shop\n"
	const kill = "01-02 10:00:34.000  900  910 I ActivityManager: Killing 77:com.shop/u0a123 (adj 0): " +
		"MemoryLimiter:AnonSwap\n"
	for name, c := range map[string]struct {
		log         string
		outOfMemory bool
		limiter     bool
		limit       known.Int
	}{
		"OutOfMemoryError": {
			log: crash +
				"01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.OutOfMemoryError: Failed to allocate\n",
			outOfMemory: true,
		},
		"cause of another exception": {
			log: crash +
				"01-02 10:00:04.900   77   77 E AndroidRuntime: android.view.InflateException: Binary XML file line " +
				"#7\n" +
				"01-02 10:00:04.900   77   77 E AndroidRuntime: Caused by: " +
				"java.lang.OutOfMemoryError: Failed to allocate\n", outOfMemory: true},
		"caught before another crash": {
			log: "01-02 10:00:01.000   77   77 W System.err: Caused by: java.lang.OutOfMemoryError: x\n" + crash +
				"01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.IllegalStateException: x\n"},
		"in an earlier crash": {
			log: crash + "01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.OutOfMemoryError: x\n" +
				crash + "01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.IllegalStateException: x\n"},
		"in another process": {
			log: crash + "01-02 10:00:04.900   77   77 E AndroidRuntime: java.lang.IllegalStateException: x\n" +
				"01-02 10:00:04.900   78   78 E AndroidRuntime: Caused by: java.lang.OutOfMemoryError: x\n"},
		"memory limiter":               {log: limiter + kill, limiter: true, limit: known.Of(512 << 20)},
		"limiter without its log line": {log: kill, limiter: true},
		"other limit type":             {log: strings.Replace(limiter, "anon+swap", "memory.high", 1)},
		"another pid":                  {log: strings.ReplaceAll(limiter+kill, "77", "78")},
		"overflow":                     {log: strings.ReplaceAll(limiter, "=268435456", "=9223372036854775807")},
		"without a limit":              {log: strings.ReplaceAll(limiter, "=268435456", "=-1")},
	} {
		log := scanned(t, c.log, 77, "com.shop")
		if log.OutOfMemory() != c.outOfMemory || log.MemoryLimiter() != c.limiter || log.MemoryLimit != c.limit {
			t.Errorf("%s: out of memory %t, limiter %t, limit %v, want %t, %t, %v", name, log.OutOfMemory(),
				log.MemoryLimiter(), log.MemoryLimit, c.outOfMemory, c.limiter, c.limit)
		}
	}
}

// TestKillAdj checks the adj of a low-memory kill in the format of each killer.
func TestKillAdj(t *testing.T) {
	const at = "11-22 15:32:47.123 300 300 I "
	for log, want := range map[string]known.Int{
		at +
			"lmkd: Kill 'com.shop' (123), uid 10123, " +
			"oom_score_adj 905 to free 9kB rss, 9kB swap; reason: low": known.Of(905),
		at + "lowmemorykiller: Killing 'com.shop' (123), uid 10123, adj 900":              known.Of(900),
		at + "lmkd: Kill 'com.shop' (123), uid 10123, oom_score_adj -800 to free 9kB rss": known.Of(-800),
		"11-22 15:32:47.123 0 0 E Out of memory: Killed process 123 (com.shop) total-vm:1kB, UID:10123 pgtables:9kB " +
			"oom_score_adj:700": known.Of(700),
		"11-22 15:32:47.123 0 0 E Out of memory: Killed process 123 (com.shop) total-vm:1kB": {},
		at + "lmkd: Kill 'adj 7' (123), uid 10123, oom_score_adj 99999999999999999999":       {},
		at + "lmkd: Kill 'com.shop' (123), uid 10123, oom_score_adj":                         {},
		at + "lmkd: Kill 'com.other' (124), uid 10123, oom_score_adj 900":                    {},
		at + "lmkd: Kill 'com.shop' (123), oom_score_adj 900\n" + at +
			"lmkd: Kill 'com.shop' (123), oom_score_adj 0": known.Of(0),
	} {
		l, err := ScanLogcat(strings.NewReader(log+"\n"), 123, "")
		if err != nil || l.KillAdj != want {
			t.Errorf("%s: %+v, want %+v, %v", log, l.KillAdj, want, err)
		}
	}
}
