package androidsim

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/recorded"
)

// versions returns all API levels that a phone can have.
func versions() (out []int) {
	for api := oldestAPI; api <= newestAPI; api++ {
		out = append(out, api)
	}
	return out
}

// busyModels returns models that use every dimension, with sizes that have no
// common divisor.
func busyModels(swapped float64) []Model {
	models := []Model{
		Noise(7, 0.7), GCSawtooth(13, 40*time.Second), Leak(Java, 311, 0), Leak(Native, 77, 0), Leak(Thread, 53, 0),
		Leak(GPU, 91, 0),
		Leak(GPU, 17, 0).On(GfxDev), Steady(Code, 3.3), Steady(Other, 5.7), Steady(Shared, 9.1), Steady(GL, 1.1),
	}
	if swapped > 0 {
		models = append(models, Swap(swapped, 0, time.Minute))
	}
	return models
}

// blockOf parses one block; the parser must not print a warning.
func blockOf(t *testing.T, p *Phone, command string) dumpsys.Block {
	t.Helper()
	text := ask(t, p, command)
	m, err := dumpsys.ParseMeminfo([]byte(text))
	if err != nil || len(m.Blocks) != 1 || len(m.Warnings) > 0 || len(m.Blocks[0].Warnings) > 0 ||
		m.Blocks[0].Truncated {
		t.Fatalf("%s: %v, %+v\n%s", command, err, m, text)
	}
	return m.Blocks[0]
}

// At any moment, all outputs agree on the memory of a process, and each output
// is consistent in itself.
func TestIdentities(t *testing.T) {
	for _, api := range versions() {
		for _, swapped := range []float64{0, 0.3} {
			synctest.Test(t, func(t *testing.T) {
				// A dump takes no time here, so all readings are taken at the
				// same moment.
				p := shop(Options{API: api, Root: true, SmapsRollup: new(true), DumpsysTime: 1, Seed: uint64(api)},
					busyModels(swapped)...)
				for range 3 {
					time.Sleep(7 * time.Minute)
					checkTexts(t, p, api)
				}
			})
		}
	}
}

func checkTexts(t *testing.T, p *Phone, api int) {
	truth, ok := p.Memory("com.shop")
	if !ok {
		t.Fatal("com.shop is not running")
	}
	failf := func(format string, args ...any) {
		t.Helper()
		t.Errorf("API %d: "+format+"\ntruth %+v", append(append([]any{api}, args...), truth)...)
	}
	read := func(name string) string { return ask(t, p, fmt.Sprintf("cat /proc/%d/%s", truth.PID, name)) }

	smaps, err := procfs.ParseSmaps(strings.NewReader(read("smaps")))
	if err != nil || smaps.Truncated || len(smaps.Warnings) > 0 {
		t.Fatalf("API %d: smaps: %v %+v", api, err, smaps)
	}
	rollup, err := procfs.ParseRollup([]byte(read("smaps_rollup")))
	if err != nil || rollup.Truncated || len(rollup.Warnings) > 0 {
		t.Fatalf("API %d: rollup: %v %+v", api, err, rollup)
	}
	if smaps.Pss.N != truth.PSS || smaps.Swap.N != truth.SwapPSS || smaps.SwapPss.Known != (api >= 24) ||
		smaps.SwapPss.Known && smaps.SwapPss.N != truth.SwapPSS {
		failf("smaps %+v", smaps.Usage)
	}
	sums := smaps.Usage
	sums.PssAnon, sums.PssFile, sums.PssShmem = rollup.PssAnon, rollup.PssFile, rollup.PssShmem
	if rollup.Usage != sums {
		failf("smaps %+v, rollup %+v", smaps.Usage, rollup.Usage)
	}
	if u := rollup.Usage; u.Rss.N != u.PrivateClean.N+u.PrivateDirty.N+u.SharedClean.N+u.SharedDirty.N {
		failf("Rss of %+v", u)
	}
	if u := rollup.Usage; api >= 31 && u.Pss.N != u.PssAnon.N+u.PssFile.N+u.PssShmem.N {
		failf("Pss of %+v", u)
	}

	showmap, err := procfs.ParseShowmap([]byte(ask(t, p, fmt.Sprintf("showmap %d", truth.PID))))
	if err != nil || showmap.Truncated || len(showmap.Warnings) > 0 || showmap.Total.PSS.N != truth.PSS ||
		showmap.Total.RSS != smaps.Rss || showmap.Total.Count != smaps.Mappings {
		failf("showmap: %v %+v", err, showmap.Total)
	}
	var pss int64
	for _, r := range showmap.Rows {
		pss += r.PSS.N
	}
	if pss != truth.PSS {
		failf("showmap rows add up to %d", pss)
	}

	status, err := procfs.ParseStatus([]byte(read("status")))
	if err != nil || len(status.Warnings) > 0 || status.VmRSS != smaps.Rss || status.VmSwap.N != truth.SwapPSS ||
		status.Threads.N != int64(truth.Threads) {
		failf("status: %v %+v", err, status)
	}
	if status.RssAnon.Known != (api >= 26) || status.RssAnon.Known && status.RssAnon.N+status.RssFile.N+
		status.RssShmem.N != status.VmRSS.N {
		failf("status %+v", status)
	}
	if tasks := strings.Count(ask(t, p, fmt.Sprintf("ls /proc/%d/task", truth.PID)), "\n"); tasks != truth.Threads {
		failf("%d tasks", tasks)
	}
	stat, err := procfs.ParseStat([]byte(read("stat")))
	if err != nil || len(stat.Warnings) > 0 || stat.StartTicks.N != ticksOf(truth.Start) ||
		stat.Threads.N != int64(truth.Threads) {
		failf("stat: %v %+v", err, stat)
	}
	checkMeminfo(t, p, api, truth, failf)
	checkGraphics(t, p, api, truth, failf)
}

func checkMeminfo(t *testing.T, p *Phone, api int, truth Memory, failf func(string, ...any)) {
	b := blockOf(t, p, "dumpsys meminfo com.shop")
	if int(b.PID.N) != truth.PID || b.Process != "com.shop" {
		failf("block of %v %s", b.PID, b.Process)
	}
	swap := int64(0)
	switch {
	case api < 24 && b.SwapInTotal == dumpsys.Yes, api >= 24 && (b.SwapInTotal == dumpsys.Yes) != (truth.SwapPSS > 0):
		failf("swap in total: %v", b.SwapInTotal)
	case b.SwapInTotal == dumpsys.Yes:
		swap = truth.SwapPSS
	}
	egl, gl := truth.EGL, truth.GL
	if api < 19 { // no driver memory in Android 4.3
		egl, gl = 0, 0
	}
	if b.TotalPss.N-egl-gl != truth.PSS+swap || b.EGLMtrack.N != egl || b.GLMtrack.N != gl {
		failf("TOTAL %d, EGL %d, GL %d", b.TotalPss.N, b.EGLMtrack.N, b.GLMtrack.N)
	}
	if api >= 21 && b.GfxDev.N != truth.GfxDev {
		failf("Gfx dev %d", b.GfxDev.N)
	}
	var pss, dirty, clean, rss int64
	for _, r := range b.Rows {
		if r.Name != "TOTAL" {
			pss, dirty, clean, rss = pss+r.Pss.N, dirty+r.PrivateDirty.N, clean+r.PrivateClean.N, rss+r.Rss.N
		}
	}
	total, _ := b.Row("TOTAL")
	if pss+swap != b.TotalPss.N || total.PrivateDirty.N != dirty || total.PrivateClean.N != clean || api >= 30 &&
		b.TotalRss.N != rss {
		failf("rows add up to %d %d %d %d, TOTAL %+v, RSS %v", pss, dirty, clean, rss, total, b.TotalRss)
	}
	if api == 30 && total.Rss != b.TotalPss {
		failf("Android 11 prints the Pss as Rss, but TOTAL has Rss %v", total.Rss)
	}
	if api > 30 && total.Rss.N != rss {
		failf("TOTAL has Rss %v, want %d", total.Rss, rss)
	}
	if api < 23 {
		if !b.Computed && api >= 19 {
			failf("got an App Summary before Android 6")
		}
		return
	}
	system := truth.System - truth.SwapPSS + swap
	want := [...]int64{
		truth.JavaHeap, truth.NativeHeap, truth.Code, truth.Stack, truth.Graphics, truth.PrivateOther, system,
	}
	got := [...]int64{b.JavaHeap.N, b.NativeHeap.N, b.Code.N, b.Stack.N, b.Graphics.N, b.PrivateOther.N, b.System.N}
	if got != want {
		failf("App Summary %v, want %v", got, want)
	}
	short := blockOf(t, p, "dumpsys meminfo -s com.shop")
	full := blockOf(t, p, fmt.Sprintf("dumpsys meminfo -a %d", truth.PID))
	details := blockOf(t, p, "dumpsys meminfo -d com.shop")
	for _, other := range []dumpsys.Block{short, full, details} {
		if other.TotalPss != b.TotalPss || other.JavaHeap != b.JavaHeap || other.System != b.System ||
			other.PID != b.PID {
			failf("with an option: %+v", other)
		}
	}
	if activities := b.Objects["Activities"]; activities < 2 {
		failf("got %d Activities with a Java leak, want at least 2", activities)
	}
}

func checkGraphics(t *testing.T, p *Phone, api int, truth Memory, failf func(string, ...any)) {
	g, err := dumpsys.ParseGfxinfo([]byte(ask(t, p, "dumpsys gfxinfo com.shop")))
	if err != nil || g.Truncated || len(g.Warnings) > 0 || len(g.Processes) != 1 ||
		int(g.Processes[0].PID.N) != truth.PID || g.Processes[0].GPUBytes.N != (truth.GL+truth.GfxDev)<<10 {
		failf("gfxinfo: %v %+v", err, g)
	} else if v := g.Processes[0].GrallocKB; v.Known != (api >= 31) || v.Known && v.N != truth.EGL {
		failf("gralloc %v", v)
	}
	sf, err := dumpsys.ParseSurfaceFlinger([]byte(ask(t, p, "dumpsys SurfaceFlinger")))
	if err != nil || sf.Buffers.N < 3 {
		failf("SurfaceFlinger: %v %+v", err, sf)
	}
	if api < 31 {
		return
	}
	gpu, err := dumpsys.ParseGPU([]byte(ask(t, p, "dumpsys gpu")))
	var sum int64
	found := false
	for _, m := range gpu.GPUs {
		for _, proc := range m.Processes {
			sum += proc.Bytes.N
			found = found || int(proc.PID) == truth.PID && proc.Bytes.N == (truth.EGL+truth.GL+truth.GfxDev)<<10
		}
	}
	if err != nil || !found || gpu.Global().N != sum {
		failf("gpu: %v %+v", err, gpu)
	}
}

var digits = regexp.MustCompile(`[0-9]+`)

// fixedLines returns the lines of an output that contain no number, without
// trailing blanks: the part of a layout that is the same in every reading.
func fixedLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, " \n"); line != "" && !digits.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// columnsOf returns the label of each row of numbers and the positions at which
// its columns end.
func columnsOf(text string) map[string][]int {
	row := regexp.MustCompile(`^ *([.A-Za-z][A-Za-z_ .()]*:?) +([0-9]+ .*|[0-9]+)$`)
	out := map[string][]int{}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		m := row.FindStringSubmatchIndex(line)
		if m == nil || strings.HasPrefix(line, "** ") || strings.HasPrefix(line, "Uptime") {
			continue
		}
		label := strings.TrimSpace(line[m[2]:m[3]])
		if _, again := out[label]; again {
			continue
		}
		for _, span := range digits.FindAllStringIndex(line[m[3]:], -1) {
			out[label] = append(out[label], m[3]+span[1])
		}
	}
	return out
}

// The simulated outputs contain the headings that real phones print, in the
// same order, and the columns of the rows end at the same positions.
func TestLayoutsAreThoseOfRealPhones(t *testing.T) {
	for _, c := range []struct {
		file, command string
		api           int
		swapped       float64
	}{
		{file: "api18-sample-meminfo.txt", api: 18},
		{file: "api19-sample-meminfo.txt", api: 19},
		{file: "api23-sample-meminfo.txt", api: 23, swapped: 0.3},
		{file: "api23-private-gfx-meminfo.txt", api: 23},
		{file: "api30-unity-meminfo.txt", api: 30, swapped: 0.3},
		{file: "api36-emulator-flutter-meminfo.txt", api: 36},
		// The simulated phone has fewer parts of the Dalvik heap and no native
		// allocations.
		{file: "api36-memorylab-meminfo-d.txt", api: 34, swapped: 0.3, command: "dumpsys meminfo -d com.shop"},
	} {
		answer := string(recorded.Read(t, "device", c.file))
		if c.command == "" {
			c.command = "dumpsys meminfo com.shop"
		}
		var ours string
		synctest.Test(t, func(t *testing.T) {
			p := shop(Options{API: c.api}, busyModels(c.swapped)...)
			time.Sleep(5 * time.Minute)
			ours = ask(t, p, c.command)
		})
		at := 0
		mine := fixedLines(ours)
		for _, line := range fixedLines(answer) {
			// Databases and assets depend on the app.
			if strings.Contains(line, "/data") || strings.Contains(line, "Asset Allocations") {
				break
			}
			i := slices.Index(mine[at:], line)
			if i < 0 {
				t.Errorf("%s: line %q is missing or out of order in\n%s", c.file, line, ours)
				break
			}
			at += i + 1
		}
		real, own := columnsOf(answer), columnsOf(ours)
		common := 0
		for label, ends := range real {
			if mine := own[label]; mine != nil {
				common++
				if !slices.Equal(mine, ends) {
					t.Errorf("%s: the recorded columns of %q end at %v, the simulated ones at %v", c.file, label, ends,
						mine)
				}
			}
		}
		if common < len(real)*3/4 {
			t.Errorf("%s: only %d of %d recorded rows are simulated", c.file, common, len(real))
		}
	}
	// In the kernel's lines only the numbers vary: label, position and unit are
	// fixed.
	for _, c := range []struct {
		file, name string
		api        int
	}{
		{"api30-galaxy-a52-smaps_rollup.txt", "smaps_rollup", 30},
		{"api29-x86_64-smaps_short.txt", "smaps", 29},
	} {
		answer := string(recorded.Read(t, "device", c.file))
		p := shop(Options{API: c.api, Root: true})
		ours := ask(t, p, fmt.Sprintf("cat /proc/%d/%s", p.PID("com.shop"), c.name))
		real, own := columnsOf(answer), columnsOf(ours)
		for label, ends := range real {
			if mine := own[label]; mine != nil && !slices.Equal(mine, ends) {
				t.Errorf("%s: recorded %q ends at %v, simulated at %v", c.file, label, ends, mine)
			}
		}
		var missing []string
		for _, label := range []string{
			"Rss:", "Pss:", "Private_Dirty:", "Private_Clean:", "Shared_Clean:", "Shared_Dirty:", "Swap:", "SwapPss:",
			"Locked:",
		} {
			if own[label] == nil || real[label] == nil {
				missing = append(missing, label)
			}
		}
		if missing != nil {
			t.Errorf("%s: no %v", c.file, missing)
		}
	}
	head := strings.SplitN(string(recorded.Read(t, "device", "api36-memorylab-showmap.txt")), "\n", 4)
	p := shop(Options{API: 36, Root: true})
	if ours := ask(t, p, fmt.Sprintf("showmap %d", p.PID("com.shop"))); !strings.HasPrefix(ours,
		strings.Join(head[:3], "\n")+"\n") {
		t.Errorf("showmap begins with\n%s", ours)
	}
}

// Error messages are the same as on real phones.
func TestErrorTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{
			API: 30, Apps: []App{{Package: "a.b", Processes: []ProcessSpec{{Name: "a.b", Models: []Model{Typical()}}}}},
		})
		pid := p.PID("a.b")
		mask := func(text string) string {
			text = regexp.MustCompile(`ProcessRecord\{\S+ \d+:\S+\}`).
				ReplaceAllString(strings.TrimSpace(text), "ProcessRecord{}")
			return regexp.MustCompile(`[0-9a-z.]+$|/proc/[0-9]+|: [0-9]+:|[0-9]+ms`).ReplaceAllString(text, "#")
		}
		for file, command := range map[string]string{
			"error-dumpheap-not-debuggable.txt": "am dumpheap a.b 2>&1 >/dev/null",
			"error-smaps_rollup-permission.txt": fmt.Sprintf("cat /proc/%d/smaps_rollup 2>&1", pid),
			"error-kill-not-permitted.txt":      fmt.Sprintf("kill %d 2>&1", pid),
			"error-meminfo-no-process.txt":      "dumpsys meminfo x.y.z",
			"error-dumpsys-timeout.txt":         "dumpsys -T 100 meminfo a.b",
		} {
			// The command on the real phone used head, which the simulated
			// phone lacks.
			text := strings.Replace(string(recorded.Read(t, "device", file)), "head: ", "cat: ", 1)
			if ours, real := mask(sh1(t, p, command).out), mask(text); ours != real {
				t.Errorf("%s: the simulated phone prints %q, a real one %q", command, ours, real)
			}
		}
	})
}

// The output for a native process lacks the line with the process name.
func TestNativeProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{Root: true})
		text := ask(t, p, fmt.Sprintf("dumpsys meminfo %d", p.PID("surfaceflinger")))
		m, err := dumpsys.ParseMeminfo([]byte(text))
		if err != nil || len(m.Blocks) != 1 || m.Blocks[0].PID.Known || m.Blocks[0].NativeHeap.N != 24<<10 ||
			strings.Contains(text, "MEMINFO") || strings.Contains(text, "Objects") {
			t.Errorf("%v %+v\n%s", err, m, text)
		}
	})
}

// If two users run the same app, there are two blocks with one pid each.
func TestTwoUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spec := []ProcessSpec{{Name: "a.b", Models: []Model{Typical(), Noise(9, 0)}}}
		p := New(Options{
			Root: true, Apps: []App{{Package: "a.b", Processes: spec}, {Package: "a.b", User: 10, Processes: spec}},
		})
		m, err := dumpsys.ParseMeminfo([]byte(ask(t, p, "dumpsys meminfo a.b")))
		if err != nil || len(m.Blocks) != 2 || m.Blocks[0].PID == m.Blocks[1].PID ||
			m.Blocks[0].TotalPss == m.Blocks[1].TotalPss {
			t.Errorf("%v %+v", err, m)
		}
		pids := strings.Fields(ask(t, p, "pidof a.b"))
		if len(pids) != 2 {
			t.Errorf("pidof: %v", pids)
		}
		if uids := ask(t, p, "grep -h ^Uid /proc/"+pids[0]+"/status /proc/"+pids[1]+"/status"); !strings.Contains(uids,
			"\t10123\t") || !strings.Contains(uids, "\t1010124\t") {
			t.Errorf("uids %q", uids)
		}
	})
}

// The sample has the same form as those that the fast channel requests.
func TestFastChannelShape(t *testing.T) {
	p := shop(Options{Root: true, BuildType: "userdebug"})
	pid, server := p.PID("com.shop"), p.PID(systemServer)
	out := ask(t, p,
		fmt.Sprintf(`cat /proc/uptime; cd /proc && exec grep -E '^(Pss|SwapPss|Threads|RssAnon|VmSwap):|^[0-9]+ [(]|[)] [A-Za-z] -?[0-9]+ ' /dev/null %d/stat %d/stat %d/status %d/smaps_rollup`, server, pid, pid, pid))
	var labels []string
	for _, line := range strings.Split(strings.TrimSpace(out), "\n")[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok || bytes.ContainsAny([]byte(name), " \t") {
			t.Fatalf("line %q", line)
		}
		labels = append(labels, strings.Fields(strings.ReplaceAll(name+" "+value, "(", " "))[:2]...)
	}
	want := []string{
		fmt.Sprintf("%d/stat", server), fmt.Sprint(server), fmt.Sprintf("%d/stat", pid), fmt.Sprint(pid),
		fmt.Sprintf("%d/status", pid), "RssAnon:", fmt.Sprintf("%d/status", pid), "VmSwap:",
		fmt.Sprintf("%d/status", pid), "Threads:",
		fmt.Sprintf("%d/smaps_rollup", pid), "Pss:", fmt.Sprintf("%d/smaps_rollup", pid), "SwapPss:",
	}
	if !slices.Equal(labels, want) {
		t.Errorf("lines %v\nwant  %v", labels, want)
	}
}
