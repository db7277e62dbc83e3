package dumpsys

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// shopAt returns the filter for com.shop, with a process that has run since
// 14:00 and a process that ended at 13:00, and the time of the device's clock.
func shopAt() (AppFilter, time.Time) {
	at := func(clock string) time.Time {
		t, _ := time.Parse(time.DateTime, "2026-03-01 "+clock)
		return t
	}
	return AppFilter{Package: "com.shop", Lifetimes: []Lifetime{
		{PID: 4321, Name: "com.shop", From: at("14:00:00")},
		{PID: 4000, Name: "com.shop:push", From: at("12:00:00"), To: at("13:00:00")},
	}}, at("15:00:00")
}

// logLines are lines of a log: those that begin with + are about com.shop; the
// others are not.
const logLines = `+--------- beginning of main
-03-01 14:10:00.000  5555  5560 I Mail    : login user=alice@example.org password=hunter2 token=ghp_SECRET
+03-01 14:10:01.000  4321  4330 I Shop    : cart has 3 items
+03-01 14:10:01.000  4321  4330 I com.shop: Background concurrent copying GC freed 2MB
-03-01 13:59:00.000  4321  4330 I Bank    : who had the pid before: token=ghp_SECRET
+03-01 12:30:00.000  4000  4001 W Push    : pushed
-03-01 14:30:00.000  4000  4001 W Bank    : who has the pid now: token=ghp_SECRET
-03-01 14:10:02.000  5555  5560 I Mail    : opened https://com.shop/?token=ghp_SECRET of com.shop
+03-01 14:10:03.000  1200  1210 I ActivityManager: Killing 4000:com.shop:push/u0a123 (adj 900): empty #17
-03-01 14:10:03.000  1200  1210 I ActivityManager: Killing 5555:com.mail/u0a99 (adj 900): empty #17, PSS 4321 kB
-03-01 14:10:03.000  1200  1210 I ActivityManager: START u0 {act=android.intent.action.VIEW dat=https://bank.example/4321 cmp=com.bank/.Main}
-03-01 14:10:03.000  1200  1210 I ActivityManager: Start proc 7777:com.shop.other/u0a5 for service
-03-01 14:10:03.000  1200  1210 I ActivityManager: Start proc 7778:my.com.shop/u0a5 for service
-03-01 14:10:03.000  1200  1210 I ActivityManager: Start proc 7779:com.shopping/u0a5 for service
-03-01 14:10:03.000  1200  1210 I ActivityManager: Start proc 7779:com.shopcom.shop/u0a5 for service
+03-01 14:10:03.000  1200  1210 I ActivityManager: Start proc 7780:com.shop/u0a123 for top-activity
+03-01 14:10:03.000  1200  1210 I ActivityManager: Process com.shop (pid 4321) has died: fg  TOP
-03-01 14:10:03.000  1200  1210 I ActivityManager: Process com.mail (pid 5555) has died: fg  TOP
+03-01 14:10:03.000  1200  1210 I ActivityTaskManager: Force removing ActivityRecord{1 u0 com.shop/.Main t7}: app died
+03-01 14:10:03.000  1200  1210 W WindowManager: Window died: Window{12 u0 com.shop/com.shop.Main}.
-03-01 14:10:03.000  1200  1210 W WindowManager: focus is Window{13 u0 Inbox (3) - alice@example.org}
-03-01 14:10:03.000  1200  1210 I PackageManager: com.shop was used by alice@example.org
+03-01 14:10:03.000  1200  1210 I am_proc_died: [0,4321,com.shop,0,2]
-03-01 14:10:03.000  1200  1210 I am_proc_died: [0,5555,com.mail,0,2]
+03-01 14:10:03.000   479   479 I lowmemorykiller: Kill 'com.shop' (4321), uid 10123, oom_score_adj 0 to free 1kB; reason: x
-03-01 14:10:03.000   479   479 I lowmemorykiller: Kill 'com.mail' (4321), uid 10123, oom_score_adj 0 to free 1kB; reason: x
-03-01 14:10:03.000   479   479 I lowmemorykiller: Kill 'com.mail' (5555), uid 10123, oom_score_adj 0 to free 4321kB; reason: x
+03-01 14:10:03.000   479   479 I killinfo: [4321,10123,0,0,1,2]
-03-01 14:10:03.000   479   479 I killinfo: [5555,4321,0,0,1,2]
+03-01 14:10:03.000   600   600 I Zygote  : Process 4321 exited due to signal 9 (Killed)
-03-01 14:10:03.000   600   600 I Zygote  : Process 5555 exited due to signal 9 (Killed)
-03-01 13:10:03.000   600   600 I Zygote  : Process 4321 exited due to signal 9 (Killed)
+03-01 14:10:03.000  1200  1210 I Process : Sending signal. PID: 4321 SIG: 9
+03-01 14:10:03.000  1200  1210 W MemoryLimiter: onLimitExceeded: pid=4321 uid=10123 type=anon+swap memHigh=1 swapHigh=1 pkg=com.shop
+03-01 14:10:04.000  1200  1210 E ActivityManager: ANR in com.shop (com.shop/.Main)
+03-01 14:10:04.000  1200  1210 E ActivityManager: PID: 4321
+03-01 14:10:04.000  1200  1210 E ActivityManager: Reason: Input dispatching timed out
+03-01 14:10:04.000  1200  1210 E ActivityManager: Load: 0.5 / 0.3 / 0.2
-03-01 14:10:04.000  1200  1210 E ActivityManager: CPU usage from 0ms to 5000ms later:
-03-01 14:10:04.000  1200  1210 E ActivityManager:   12% 5555/com.mail: 10% user
+03-01 14:10:04.000  1200  1210 E ActivityManager:   11% 4321/com.shop: 10% user
-03-01 14:10:04.000  1200  1210 E ActivityManager: ANR in com.mail (com.mail/.Compose)
-03-01 14:10:04.000  1200  1210 E ActivityManager: PID: 5555
-03-01 14:10:04.000  1200  1210 E ActivityManager: Reason: Intent of alice@example.org
-03-01 14:10:05.000  6000  6000 F DEBUG   : *** *** *** *** *** ***
-03-01 14:10:05.000  6000  6000 F DEBUG   : Cmdline: com.mail
-03-01 14:10:05.000  6000  6000 F DEBUG   : pid: 5555, tid: 5555, name: com.mail  >>> com.mail <<<
-03-01 14:10:05.000  6000  6000 F DEBUG   : Abort message: 'token=ghp_SECRET'
+03-01 14:10:06.000  6001  6001 F DEBUG   : *** *** *** *** *** ***
+03-01 14:10:06.000  6001  6001 F DEBUG   : Build fingerprint: 'x'
-03-01 14:10:06.000  6000  6000 F DEBUG   : between them
+03-01 14:10:06.000  6001  6001 F DEBUG   : pid: 9999, tid: 9999, name: com.shop  >>> com.shop <<<
+03-01 14:10:06.000  6001  6001 F DEBUG   : signal 11 (SIGSEGV), code 1 (SEGV_MAPERR)
+03-01 14:10:06.000  6001  6001 F DEBUG   :     #00 pc 0000 libshop.so
-03-01 14:10:06.000  6002  6002 D DEBUG   : what an app logs with this tag: token=ghp_SECRET
+03-01 14:10:07.000  8888  8888 E AndroidRuntime: FATAL EXCEPTION: main
+03-01 14:10:07.000  8888  8888 E AndroidRuntime: Process: com.shop, PID: 8888
+03-01 14:10:07.000  8888  8888 E AndroidRuntime: java.lang.OutOfMemoryError: Failed to allocate
-03-01 14:10:07.000  8888  8888 I Shop    : of a life that nobody has seen
-03-01 14:10:08.000  8889  8889 E AndroidRuntime: FATAL EXCEPTION: main
-03-01 14:10:08.000  8889  8889 E AndroidRuntime: Process: com.mail, PID: 8889
-03-01 14:10:08.000  8889  8889 E AndroidRuntime: java.lang.IllegalStateException: alice@example.org
-03-01 14:10:09.000  8890  8890 E AndroidRuntime: FATAL EXCEPTION: main
-03-01 14:10:09.000  8890  8890 E AndroidRuntime: Process: com.shop, PID: 4321
-03-01 14:10:09.000  8890  8890 E AndroidRuntime: of another process than it says
-password=hunter2 without a header
+--------- switch to crash
`

// TestFilterLogcat checks that the app's own lines of a log and the system's
// lines about the app are kept.
func TestFilterLogcat(t *testing.T) {
	var text, want strings.Builder
	all, kept := 0, 0
	for line := range strings.Lines(logLines) {
		text.WriteString(line[1:])
		counts := 1
		if strings.HasPrefix(line[1:], "---------") {
			counts = 0
		}
		all += counts
		if line[0] == '+' {
			want.WriteString(line[1:])
			kept += counts
		}
	}
	app, now := shopAt()
	// A process that claims another's pid may write a line that names the app.
	// Any line that names the app may be kept.
	named := "03-01 14:10:09.000  8890  8890 E AndroidRuntime: Process: com.shop, PID: 4321\n"
	got := app.Logcat([]byte(text.String()), now)
	if text := strings.Replace(string(got.Text), named, "", 1); text != want.String() || got.Kept != kept+1 ||
		got.All != all {
		t.Errorf("%v, want %d of %d\n%s", got, kept+1, all, firstDifference(text, want.String()))
	}
	if strings.Contains(string(got.Text), "SECRET") || strings.Contains(string(got.Text), "alice") {
		t.Error("another app's secret is kept")
	}
	// Without the device's clock, only the pid decides whether a line is kept;
	// the times of the lines are ignored. Without an app, no line is kept.
	if got := app.Logcat([]byte(text.String()), time.Time{}); got.Kept != kept+4 {
		t.Errorf("without a clock: %v", got)
	}
	if got := (AppFilter{}).Logcat([]byte(text.String()), now); got.Kept != 0 || got.All != all {
		t.Errorf("without an app: %v", got)
	}
}

func firstDifference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d is\n%swant\n%s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// In January, log entries from December belong to the previous year.
func TestFilterLogcatAcrossTheYear(t *testing.T) {
	at := func(text string) time.Time { t, _ := time.Parse(time.DateTime, text); return t }
	app := AppFilter{
		Package: "com.shop", Lifetimes: []Lifetime{{PID: 7, Name: "com.shop", From: at("2025-12-31 23:00:00")}},
	}
	text := "12-31 22:59:00.000     7     7 I a: before\n12-31 23:30:00.000     7     7 I a: yes\n01-01 00:30:00.000 " +
		"    7     7 I a: yes\n"
	if got := app.Logcat([]byte(text), at("2026-01-01 01:00:00")); got.Kept != 2 ||
		strings.Contains(string(got.Text), "before") {
		t.Errorf("%s", got.Text)
	}
}

// The kept part of a log contains the same information about the end of the app
// as the whole log.
func TestFilterLogcatKeepsTheEnd(t *testing.T) {
	var text strings.Builder
	for line := range strings.Lines(logLines) {
		if !strings.Contains(line, "  8890  8890 ") { // written by a process that claims another pid
			text.WriteString(line[1:])
		}
	}
	app, now := shopAt()
	kept := app.Logcat([]byte(text.String()), now)
	for _, pid := range []int64{4321, 8888, 9999} {
		whole, err := ScanLogcat(strings.NewReader(text.String()), pid, "com.shop")
		part, perr := ScanLogcat(strings.NewReader(string(kept.Text)), pid, "com.shop")
		if err != nil || perr != nil ||
			fmt.Sprint(whole.LogEnd, whole.Crash(), whole.Kill()) != fmt.Sprint(part.LogEnd, part.Crash(),
				part.Kill()) {
			t.Errorf("pid %d: %+v, %v\n%+v, %v", pid, whole.LogEnd, err, part.LogEnd, perr)
		}
		for kind, m := range whole.Mentions {
			// A line of the earlier process with this pid is not kept.
			if n := part.Mentions[kind].Count; n != m.Count && kind != LogDied {
				t.Errorf("pid %d: %d lines of %s, want %d", pid, n, kind, m.Count)
			}
		}
	}
}

func TestExitInfoOfApp(t *testing.T) {
	text := "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n  package: com.mail\n    " +
		"description=alice\n  package: com.shop\n    Historical\n  package: com.shop.other\n    description=bob\n"
	want := "ACTIVITY MANAGER PROCESS EXIT INFO (dumpsys activity exit-info)\n  package: com.shop\n    Historical\n"
	if got := (AppFilter{Package: "com.shop"}).ExitInfo([]byte(text)); string(got.Text) != want ||
		got.String() != "3 of 7 lines kept" {
		t.Errorf("%v\n%s", got, got.Text)
	}
}

func TestGraphicsOfApp(t *testing.T) {
	app := AppFilter{Package: "com.shop", Lifetimes: []Lifetime{{PID: 7}}}
	gfx := "Applications Graphics Acceleration Info:\n** Graphics info for pid 8 [com.mail] **\nInbox/alice\n** " +
		"Graphics info for pid 7 [com.shop] **\nviews\n"
	if got := app.Gfxinfo([]byte(gfx)); string(got.Text) != "Applications Graphics Acceleration Info:\n** Graphics "+
		"info for pid 7 [com.shop] **\nviews\n" {
		t.Errorf("%s", got.Text)
	}
	gpu := "driverPackageName = com.mail\nMemory snapshot for GPU 0:\nGlobal total: 9\nProc 7 total: 4\nProc 77 " +
		"total: 5\n"
	if got := app.GPU([]byte(gpu)); string(
		got.Text) != "Memory snapshot for GPU 0:\nGlobal total: 9\nProc 7 total: 4\n" {
		t.Errorf("%s", got.Text)
	}
}

func TestSurfaceFlingerOfApp(t *testing.T) {
	text := `Build configuration: x
+ Layer 0x1 (com.shop/com.shop.Main#3)
+ Layer 0x2 (com.mail/com.mail.Inbox - alice@example.org#3)
GraphicBufferAllocator buffers:
        Handle |        Size |     W (Stride) x H | Layers |   Format |      Usage | Requestor
0x01 | 10200.00 KiB | 1080 (1088) x 2400 |      1 |        1 | 0x     b00 | FramebufferSurface
0x02 | 10200.00 KiB | 1080 (1088) x 2400 |      1 |        1 | 0x     b00 | com.shop/com.shop.Main#0
0x03 | 10200.00 KiB | 1080 (1088) x 2400 |      1 |        1 | 0x     b00 | com.mail/com.mail.Inbox#0
0x04 | 10200.00 KiB | 1080 (1088) x 2400 |      1 |        1 | 0x     b00 | alice | bob
Total allocated by GraphicBufferAllocator (estimate): 40800.00 KB
Imported gralloc buffers:
+ name:VRI[Main]#0(BLAST Consumer)0, id:1, size:10.00KiB, w/h:1080x2400
+ name:VRI[Chat with alice]#0(BLAST Consumer)0, id:2, size:10.00KiB, w/h:1080x2400
+ name:SurfaceView[com.mail/.Inbox], id:9#1, id:3, size:10.00KiB, w/h:1080x2400
Total imported by gralloc: 30.00KiB
`
	got := (AppFilter{Package: "com.shop"}).SurfaceFlinger([]byte(text))
	for _, secret := range []string{"alice", "bob", "com.mail", "Inbox"} {
		if strings.Contains(string(got.Text), secret) {
			t.Errorf("%q is kept in\n%s", secret, got.Text)
		}
	}
	whole, err := ParseSurfaceFlinger([]byte(text))
	part, perr := ParseSurfaceFlinger(got.Text)
	if err != nil || perr != nil || whole.Buffers != part.Buffers || whole.TotalKB != part.TotalKB ||
		whole.ImportedBuffers != part.ImportedBuffers || whole.ImportedKB != part.ImportedKB || len(part.List) != 4 ||
		len(part.Imported) != 3 {
		t.Fatalf("%+v, %v\n%+v, %v", whole, err, part, perr)
	}
	var names []string
	for _, b := range append(part.List, part.Imported...) {
		names = append(names, string(b.Requestor))
		if !b.KB.Known {
			t.Errorf("%+v has no size", b)
		}
	}
	if want := "FramebufferSurface;com.shop/com.shop.Main#0;(another app);(title hidden);VRI[Main]#0(BLAST " +
		"Consumer)0;(title hidden);(another app)"; strings.Join(names, ";") != want {
		t.Errorf("%s\nwant %s", strings.Join(names, ";"), want)
	}
}

// The filters do not lose any numbers in output recorded on real devices.
func TestFiltersKeepRecordedNumbers(t *testing.T) {
	text := recorded.Read(t, "device", "api33-surfaceflinger-buffers.txt")
	whole, err := ParseSurfaceFlinger(text)
	part, perr := ParseSurfaceFlinger((AppFilter{Package: "com.shop"}).SurfaceFlinger(text).Text)
	if err != nil || perr != nil || whole.Buffers != part.Buffers || whole.TotalKB != part.TotalKB ||
		len(whole.List) != len(part.List) || len(whole.Imported) != len(part.Imported) {
		t.Errorf("%+v, %v\n%+v, %v", whole, err, part, perr)
	}
	text = recorded.Read(t, "device", "api31-angle-gpumem.txt")
	gpu, err := ParseGPU(text)
	if err != nil {
		t.Fatal(err)
	}
	p := gpu.Processes()[0]
	own, err := ParseGPU((AppFilter{Lifetimes: []Lifetime{{PID: p.PID}}}).GPU(text).Text)
	if err != nil || own.Global() != gpu.Global() || len(own.Processes()) != 1 || own.Processes()[0] != p {
		t.Errorf("%+v, %v", own, err)
	}
}

// FuzzFilterLogcat: every kept line names the app or is from one of its
// processes.
func FuzzFilterLogcat(f *testing.F) {
	for line := range strings.Lines(logLines) {
		f.Add([]byte(line[1:]))
	}
	app, now := shopAt()
	f.Fuzz(func(t *testing.T, text []byte) {
		got := app.Logcat(text, now)
		again := app.Logcat(got.Text, now)
		if again.Kept != got.Kept || len(got.Text) > len(text) {
			t.Errorf("%v, then %v, of %q", got, again, text)
		}
		for line := range strings.Lines(string(got.Text)) {
			e, ok := entryOf(strings.TrimRight(line, "\r\n"))
			if !ok && !strings.HasPrefix(line, "--------- ") {
				t.Errorf("%q is not a log entry", line)
			}
			if ok && e.pid != 4321 && e.pid != 4000 && !systemTag(e.tag) {
				t.Errorf("%q belongs to another app", line)
			}
		}
	})
}
