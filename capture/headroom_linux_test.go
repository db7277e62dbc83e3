package capture

//unit:program a real shell reads the command lines

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/capture/dumpsys"
	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/shelltest"
	"github.com/leakgate/leakgate/internal/text"
)

// targetsOf finds processes and probes their levels.
func targetsOf(t *testing.T, dev Device, facts Facts, patterns ...Pattern) []Target {
	t.Helper()
	levels := NewLevels(dev, facts)
	var out []Target
	for _, p := range find(t, dev, patterns...) {
		probe, err := levels.Probe(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, Target{p, probe.Level})
	}
	return out
}

func phoneDevice(opt androidsim.Options) (*androidsim.Phone, *shelltest.Device) {
	phone := androidsim.New(opt)
	return phone,
		&shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
			return phone.Shell(ctx, command, strings.NewReader(""), stdout, stderr), ctx.Err()
		}}
}

// On each release of Android and with each permission, the values match those
// of the simulated phone, and each missing value has a reason.
func TestHeadroomByRelease(t *testing.T) {
	for _, api := range []int{21, 22, 24, 26, 28, 29, 31, 34, 36, 37} {
		for _, right := range []string{"none", "debuggable", "su", "root"} {
			for _, only32 := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d %s %t", api, right, only32), func(t *testing.T) {
					headroomByRelease(t, api, right, only32)
				})
			}
		}
	}
}

func headroomByRelease(t *testing.T, api int, right string, only32 bool) {
	opt := androidsim.Options{
		API: api, DumpsysTime: time.Millisecond, SU: right == "su", Root: right == "root", Bits32: only32,
		HeapGrowthLimit: 192, HeapSize: 512,
		Apps: []androidsim.App{
			{
				Package: "com.big", LargeHeap: true, Debuggable: right == "debuggable",
				Processes: []androidsim.ProcessSpec{
					{Name: "com.big", Threads: 40, Files: 130, Models: []androidsim.Model{androidsim.Typical()}},
					{Name: "com.big:push", Threads: 30, Files: 70, Models: []androidsim.Model{androidsim.Typical()}},
				}},
			{Package: "com.old", Debuggable: right == "debuggable", Processes: []androidsim.ProcessSpec{
				{Name: "com.old", Bits32: true, Models: []androidsim.Model{androidsim.Typical()}},
			}},
		},
	}
	_, dev := phoneDevice(opt)
	facts, err := ReadFacts(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	targets := targetsOf(t, dev, facts, "com.big*", "com.old")
	if len(targets) != 3 {
		t.Fatalf("%+v", targets)
	}
	rooms := NewHeadrooms(dev, facts)
	before := len(dev.Commands)
	got, err := rooms.Read(t.Context(), targets)
	if err != nil || len(got) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if requests := len(dev.Commands) - before; requests != 2 {
		t.Errorf("the first reading took %d round trips, want 2", requests)
	}
	// Two processes of one package cause only one request about the package.
	if n := strings.Count(strings.Join(dev.Commands[before:], "\n"), " package 'com.big' "); n != 1 {
		t.Errorf("the package was requested %d times, want once", n)
	}
	again, err := rooms.Read(t.Context(), targets)
	if requests := len(dev.Commands) - before; err != nil || requests != 3 {
		t.Errorf("the two readings took %d round trips, want 3: %v", requests, err)
	}
	for i, h := range got {
		if h.Err != nil || h.Process != targets[i].Process || h.Up <= 0 {
			t.Fatalf("%+v", h)
		}
		h.Up, again[i].Up = 0, 0
		h.Virtual, again[i].Virtual = known.Int{}, known.Int{} // this value changes
		if fmt.Sprint(h) != fmt.Sprint(again[i]) {
			t.Errorf("first reading\n%+v\nsecond reading\n%+v", h, again[i])
		}
	}
	for _, want := range []struct {
		name           string
		files, threads int64
		bits           int
		large          dumpsys.Answer
	}{{"com.big", 130, 40, 64, dumpsys.Yes}, {"com.big:push", 70, 30, 64, dumpsys.Yes},
		{"com.old", 96, 28, 32, dumpsys.No}} {
		h := got[slices.IndexFunc(got, func(h Headroom) bool { return h.Name == want.name })]
		if only32 {
			want.bits = 32
		}
		if h.Threads != known.Of(want.threads) || h.Bits != want.bits || h.largeHeap != want.large || !h.Virtual.Known {
			t.Errorf("%+v", h)
		}
		if counted := right != "none" || api >= 36; counted && h.Files != known.Of(want.files) || !counted &&
			(h.Files.Known || !hasReason(h, "open files: the shell is not allowed to list them")) {
			t.Errorf("%s: %v files, %q", h.Name, h.Files, h.Reasons)
		}
		limit := int64(32768)
		if api < 28 {
			limit = 1024
		}
		if h.FileLimit != known.Of(limit) || h.ThreadLimit != known.Of(21550) ||
			h.ThreadLimitBy != "Max processes of the uid" {
			t.Errorf("%+v", h)
		}
		if h.GrowthLimit != known.Of(192<<20) || h.HeapSize != known.Of(512<<20) || h.Garbage != known.Of(24<<20) {
			t.Errorf("%+v", h)
		}
		switch {
		case h.Bits == 64 && (h.VirtualLimit.Known || !hasReason(h, "address space: a 64-bit process")):
			t.Errorf("%v, %q", h.VirtualLimit, h.Reasons)
		case h.Bits == 32 && h.VirtualLimit != known.Of(3<<30) && h.VirtualLimit != known.Of(4<<30):
			t.Errorf("%v, %q", h.VirtualLimit, h.Reasons)
		case h.Bits == 32 && !only32 && h.VirtualLimit != known.Of(4<<30):
			t.Errorf("%v, %q", h.VirtualLimit, h.Reasons)
		}
	}
}

func hasReason(h Headroom, reason string) bool {
	return slices.ContainsFunc(h.Reasons, func(r string) bool { return strings.HasPrefix(r, reason) })
}

// A process that has ended, or whose pid now belongs to another process, is
// reported with an error; the other processes are reported as usual.
func TestHeadroomOfEndedProcess(t *testing.T) {
	_, dev := phoneDevice(androidsim.Options{
		DumpsysTime: time.Millisecond,
		Apps:        []androidsim.App{{Package: "com.x", Processes: []androidsim.ProcessSpec{{Name: "com.x"}}}},
	})
	targets := targetsOf(t, dev, Facts{UID: 2000, API: 34}, "com.x")
	other := targets[0]
	other.Start++
	gone := targets[0]
	gone.PID = 99999
	got, err := NewHeadrooms(dev, Facts{UID: 2000, API: 34}).Read(t.Context(), []Target{other, targets[0], gone})
	if err != nil || len(got) != 3 || !errors.Is(got[0].Err, ErrGone) || got[1].Err != nil || !got[1].Threads.Known ||
		!errors.Is(got[2].Err, ErrGone) {
		t.Errorf("%+v, %v", got, err)
	}
	if got[0].Threads.Known || got[2].FileLimit.Known {
		t.Errorf("%+v", got)
	}
	if got, err := NewHeadrooms(dev, Facts{}).Read(t.Context(), nil); err != nil || got != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

// If the package service hangs, only the kind of the heap is unknown, and the
// timeout is spent once.
func TestHeadroomWithoutPackageService(t *testing.T) {
	phone, dev := phoneDevice(androidsim.Options{
		DumpsysTime: time.Millisecond,
		Apps: []androidsim.App{
			{Package: "com.x", LargeHeap: true, Processes: []androidsim.ProcessSpec{{Name: "com.x"}}},
		},
	})
	facts := Facts{UID: 2000, API: 34}
	targets := targetsOf(t, dev, facts, "com.x")
	rooms := NewHeadrooms(dev, facts)
	serve := dev.Run
	dev.Run = func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		before, _, hangs := strings.Cut(command, "dumpsys -t 5 package")
		if !hangs {
			return serve(ctx, command, stdout, stderr)
		}
		if _, err := serve(ctx, before+":", stdout, stderr); err != nil {
			return 0, err
		}
		return 0, context.DeadlineExceeded
	}
	got, err := rooms.Read(t.Context(), targets)
	if err != nil || got[0].largeHeap != dumpsys.Unknown || !hasReason(got[0], "large heap: ") ||
		!got[0].GrowthLimit.Known || got[0].Bits != 64 {
		t.Fatalf("%+v, %v", got, err)
	}
	before := len(dev.Commands)
	if got, err = rooms.Read(t.Context(), targets); err != nil || len(dev.Commands) != before+1 ||
		got[0].largeHeap != dumpsys.Unknown {
		t.Errorf("%+v, %v, %d requests", got, err, len(dev.Commands)-before)
	}
	phone.Kill("com.x")
	if got, err = rooms.Read(t.Context(), targets); err != nil || !errors.Is(got[0].Err, ErrGone) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Before Android 7 a command line has at most 4095 bytes. Processes that do not
// fit on one command line need several commands; processes that fit need only
// one. If the package service hangs, its timeout is spent only once.
func TestHeadroomInShortLines(t *testing.T) {
	for _, api := range []int{21, 23, 24} {
		for _, n := range []int{1, 10, 15, 42, 60} {
			t.Run(fmt.Sprintf("%d of %d", n, api),
				func(t *testing.T) { synctest.Test(t, func(t *testing.T) { headroomInShortLines(t, api, n) }) })
		}
	}
}

func headroomInShortLines(t *testing.T, api, n int) {
	app := androidsim.App{Package: "com.example.shop", LargeHeap: true}
	var targets []Target
	for i := range n {
		app.Processes = append(app.Processes,
			androidsim.ProcessSpec{Name: fmt.Sprintf("com.example.shop:p%d", i), Threads: 20 + i})
	}
	phone, dev := phoneDevice(androidsim.Options{
		API: api, Root: true, DumpsysTime: time.Millisecond, Apps: []androidsim.App{app},
	})
	for _, p := range find(t, dev, "com.example.shop*") {
		targets = append(targets, Target{Process: p})
	}
	serve := dev.Run
	dev.Run = func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		// line is the command line as package adb sends it.
		if line := "shell:echo lg0123456789abcdef01234567 $$; exec </dev/null; (eval " + text.ShellQuote(command) +
			"); echo lg0123456789abcdef01234567:$?"; api < 24 && len(line) > 4095 {
			return -1, fmt.Errorf("the command line is %d bytes long, want at most 4095", len(line))
		}
		return serve(ctx, command, stdout, stderr)
	}
	facts := Facts{API: api}
	for _, hangs := range []bool{false, true} {
		dev.Commands = nil
		if hangs {
			defer phone.HangDumpsys()()
		}
		rooms, began := NewHeadrooms(dev, facts), time.Now()
		got, err := rooms.Read(t.Context(), targets)
		if err != nil || len(got) != n {
			t.Fatalf("%d headrooms, %v", len(got), err)
		}
		for i, h := range got {
			if h.Err != nil || h.Process != targets[i].Process || !h.Threads.Known || !h.Files.Known || h.Bits == 0 ||
				(h.largeHeap == dumpsys.Yes) == hangs || !h.GrowthLimit.Known {
				t.Errorf("%+v", h)
			}
		}
		asked := strings.Count(strings.Join(dev.Commands, "\n"), " package 'com.example.shop' ")
		if requests := len(dev.Commands); (requests == 2) != (api >= 24 || n <= 10) || requests > 2+n/5 {
			t.Errorf("%d requests", requests)
		}
		if took := time.Since(began); asked != 1 || took > traitsTimeout+time.Second {
			t.Errorf("requested the package %d times in %v, want once", asked, took)
		}
	}
}

func TestHeapLimit(t *testing.T) {
	none := known.Int{}
	for _, c := range []struct {
		growth, size known.Int
		large        dumpsys.Answer
		used         known.Int
		want         known.Int
		doubt        bool
	}{
		{known.Of(256), known.Of(512), dumpsys.No, known.Of(100), known.Of(256), false},
		{known.Of(256), known.Of(512), dumpsys.Yes, known.Of(100), known.Of(512), false},
		{known.Of(256), known.Of(512), dumpsys.Unknown, known.Of(100), known.Of(256), true},
		{known.Of(256), known.Of(512), dumpsys.Unknown, known.Of(300), known.Of(512), true},
		{known.Of(256), known.Of(512), dumpsys.Unknown, none, known.Of(256), true},
		{none, known.Of(512), dumpsys.No, known.Of(100), known.Of(512), false},
		{known.Of(256), none, dumpsys.Yes, known.Of(100), none, true},
		{none, none, dumpsys.Unknown, known.Of(100), none, true},
	} {
		h := Headroom{GrowthLimit: c.growth, HeapSize: c.size, largeHeap: c.large}
		got, reason := h.HeapLimit(c.used)
		if got != c.want || (reason != "") != c.doubt {
			t.Errorf("%+v: %v, %q", c, got, reason)
		}
	}
}

func TestLargeHeap(t *testing.T) {
	for text, want := range map[string]dumpsys.Answer{
		"    flags=[ HAS_CODE ALLOW_CLEAR_USER_DATA LARGE_HEAP ]\r\n": dumpsys.Yes,
		"    flags=[ HAS_CODE ]\n    flags=[ LARGE_HEAP ]\n":          dumpsys.No,
		"    flags=[ ]\n":                     dumpsys.No,
		"    flags=[ HAS_CODE LARGE_HE":       dumpsys.Unknown,
		"":                                    dumpsys.Unknown,
		"Unable to find package: flags=[ ]\n": dumpsys.Unknown,
	} {
		if got := largeHeap([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestWordSize(t *testing.T) {
	both := bounds{abi32: "armeabi-v7a", abi64: "arm64-v8a", machine: "aarch64"}
	for name, c := range map[string]struct {
		bounds
		virtual known.Int
		parent  string
		want    int
		space   int64
	}{
		"child of zygote":         {both, known.Of(1 << 30), "zygote", 32, 4 << 30},
		"child of zygote64":       {both, known.Of(1 << 30), "zygote64", 64, 0},
		"too large for 32 bits":   {both, known.Of(5 << 30), "zygote", 64, 0},
		"child of webview_zygote": {both, known.Of(1 << 30), "webview_zygote", 0, 0},
		"unknown parent":          {both, known.Int{}, "", 0, 0},
		"only 64 bits": {
			bounds{abi64: "arm64-v8a", machine: "aarch64"}, known.Of(1 << 30), "init", 64, 0,
		},
		"only 32 bits": {
			bounds{abi32: "armeabi-v7a", machine: "armv7l"}, known.Of(1 << 30), "x", 32, 3 << 30,
		},
		"32 bits, 64-bit kernel": {
			bounds{abi32: "armeabi-v7a", machine: "armv8l"}, known.Of(1 << 30), "x", 32, 4 << 30,
		},
		"32 bits, no uname":             {bounds{abi32: "armeabi-v7a"}, known.Of(1 << 30), "x", 32, 3 << 30},
		"32 bits, no uname, 3.5 GB":     {bounds{abi32: "armeabi-v7a"}, known.Of(7 << 29), "x", 32, 4 << 30},
		"no ABI lists, child of zygote": {bounds{}, known.Of(1 << 30), "zygote", 32, 3 << 30},
		"both ABIs, no uname, small": {
			bounds{abi32: "x86", abi64: "x86_64"}, known.Of(1 << 30), "zygote", 32, 4 << 30,
		},
	} {
		bits, reason := c.bits(c.virtual, c.parent)
		if bits != c.want || (bits == 0) == (reason == "") {
			t.Errorf("%s: %d, %q", name, bits, reason)
		}
		if space, _ := c.bounds.space(c.virtual); bits == 32 && space != known.Of(c.space) {
			t.Errorf("%s: %v", name, space)
		}
	}
}

func TestThreadLimitIsTheLowest(t *testing.T) {
	h := NewHeadrooms(nil, Facts{})
	h.phone = bounds{threadsMax: known.Of(5000), pidMax: known.Of(32768)}
	p := Process{Name: "a", UID: 10100}
	of := func(uid int, ofUser procfs.Limit, pids known.Int) (known.Int, string) {
		p.UID = uid
		h.known = map[Process]traits{p: {pidsMax: pids}}
		room := Headroom{Target: Target{Process: p}}
		h.bound(&room, procfs.Limits{Processes: ofUser})
		return room.ThreadLimit, room.ThreadLimitBy
	}
	for _, c := range []struct {
		uid    int
		ofUser procfs.Limit
		pids   known.Int
		want   int64
		by     string
	}{
		{10100, procfs.Limit{Soft: known.Of(500)}, known.Int{}, 500, "Max processes of the uid"},
		{10100, procfs.Limit{Unlimited: true}, known.Int{}, 5000, "threads-max of the device"},
		{10100, procfs.Limit{Soft: known.Of(9000)}, known.Of(400), 400, "pids.max of its cgroup"},
		{0, procfs.Limit{Soft: known.Of(500)}, known.Int{}, 5000, "threads-max of the device"},
	} {
		if got, by := of(c.uid, c.ofUser, c.pids); got != known.Of(c.want) || by != c.by {
			t.Errorf("%+v: %v by %q", c, got, by)
		}
	}
	h.phone = bounds{reasons: []string{"threads-max: denied"}}
	p.UID = 10100
	h.known = map[Process]traits{p: {}}
	room := Headroom{Target: Target{Process: p}}
	h.bound(&room, procfs.Limits{})
	if room.ThreadLimit.Known || room.ThreadLimitBy != "" || !hasReason(room, "threads: no known limit") ||
		!hasReason(room, "threads-max: denied") {
		t.Errorf("%+v", room)
	}
}

// unprivileged returns this machine's shell under a uid that owns no files or
// processes.
func unprivileged(t *testing.T) *shelltest.Device {
	t.Helper()
	if os.Getuid() != 0 {
		recorded.Missing(t, "root is needed to become another user")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		recorded.Missing(t, "setpriv is needed: %v", err)
	}
	return &shelltest.Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		cmd := exec.CommandContext(ctx, setpriv, "--reuid", "54321", "--clear-groups", "/bin/sh", "-c", command)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			return exit.ExitCode(), nil
		}
		return 0, err
	}}
}

// If the output is arbitrary text, all numbers are unknown.
func FuzzHeadroom(f *testing.F) {
	stat := "20602 (a b) S 631 631 0 0 -1 1077952832 117654 0 1014 " +
		"0 2843 1207 0 0 20 0 71 0 277749 15032385536 49213 1\n"
	f.Add([]byte("/proc/20602/stat:"+stat+
		"/proc/20602/status:Threads:\t71\n/proc/20602/status:VmSize:\t 8999999 kB\n/proc/20602/limits:Max open files "+
		"           1024                 4096                 files     \n"),
		[]byte("/proc/20602/fd/0 /proc/20602/fd/12 /proc/20602/fd/*\n"), []byte("/proc/20602/fd 12\n"),
		[]byte("32768\n"))
	f.Add([]byte("grep: /proc/20602/limits: Permission denied\n/proc/20602/stat:"+stat), []byte("su: not found"),
		[]byte("stat: '/proc/1/fd': No"), []byte("cat: x"))
	f.Fuzz(func(t *testing.T, files, fds, sizes, sysctl []byte) {
		dev := &shelltest.Device{}
		dev.Run = func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
			for piece := range strings.SplitSeq(command, "echo; echo ") {
				head, _, _ := strings.Cut(piece, ";")
				m, label, ok := strings.Cut(head, " ")
				if !ok {
					continue
				}
				label = strings.Trim(label, "'")
				text := map[string][]byte{
					"up": []byte("100.5 20\n"), "files": files, "fd0": fds, "size": sizes, "threads-max": sysctl,
					"pid_max":            sysctl,
					"dalvik.vm.heapsize": sysctl, "parent0": fds, "flags0": files, "pids0": sysctl}[label]
				fmt.Fprintf(stdout, "\n%s %s\n%s", m, label, text)
			}
			return 0, nil
		}
		p := Process{Name: "com.x", PID: 20602, Start: 277749, UID: 10123}
		got, err := NewHeadrooms(dev, Facts{UID: 2000, API: 34}).Read(t.Context(), []Target{{Process: p}})
		if err != nil || len(got) != 1 {
			return
		}
		h := got[0]
		if h.Up != 100500*time.Millisecond {
			t.Fatalf("%+v", h)
		}
		for _, v := range []known.Int{
			h.Files, h.FileLimit, h.Threads, h.ThreadLimit, h.Virtual, h.VirtualLimit, h.GrowthLimit, h.HeapSize,
			h.Garbage,
		} {
			if v.N < 0 || !v.Known && v.N != 0 || h.Err != nil && v.Known {
				t.Fatalf("%+v", h)
			}
		}
		if h.ThreadLimit.Known == (h.ThreadLimitBy == "") || h.Err == nil && !h.Files.Known &&
			!hasReason(h, "open files: ") || len(h.Reasons) > 20 {
			t.Fatalf("%+v", h)
		}
		for _, r := range h.Reasons {
			if len(r) > 1000 || strings.ContainsAny(r, "\x1b\n\r") {
				t.Fatalf("%q", r)
			}
		}
	})
}

// The limit depends on the process's state; if the device does not report its
// limits, the limit is assumed. Before Android 17, and on a device without a
// memory limiter, there is no limit.
func TestAnonymousLimit(t *testing.T) {
	limiter := androidsim.MemoryLimiter{Visible: 2000, VisibleSwap: 1000, NotVisible: 600, NotVisibleSwap: 400}
	silent := limiter
	silent.Silent = true
	for name, c := range map[string]struct {
		api     int
		limiter *androidsim.MemoryLimiter
		process string
		limit   known.Int
		assumed bool
		reason  string
	}{
		"visible":           {37, &limiter, "com.shop", known.Of(3000 << 20), false, ""},
		"in the background": {37, &limiter, "com.shop:push", known.Of(1000 << 20), false, ""},
		"assumed": {
			37, &silent, "com.shop", known.Of(8192 << 20), true,
			"anonymous memory: the limit is assumed from the RAM of the device",
		},
		"assumed, in the background": {
			37, &silent, "com.shop:push", known.Of(6144 << 20), true,
			"anonymous memory: the limit is assumed from the RAM of the device",
		},
		"no limiter": {
			37, nil, "com.shop", known.Int{}, false,
			"anonymous memory: the device has no memory limiter, so the process does not run out of it",
		},
		"Android 16": {36, &limiter, "com.shop", known.Int{}, false, ""},
	} {
		_, dev := phoneDevice(
			androidsim.Options{
				API: c.api, MemoryLimiter: c.limiter,
				Apps: []androidsim.App{{Package: "com.shop", Processes: []androidsim.ProcessSpec{
					{Name: "com.shop", Models: []androidsim.Model{androidsim.Typical()}},
					{Name: "com.shop:push", Models: []androidsim.Model{androidsim.Typical()}},
				}}}})
		facts, err := ReadFacts(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		rooms, err := NewHeadrooms(dev, facts).Read(t.Context(), targetsOf(t, dev, facts, Pattern(c.process)))
		if err != nil || len(rooms) != 1 || rooms[0].Err != nil {
			t.Fatalf("%s: %+v, %v", name, rooms, err)
		}
		h := rooms[0]
		reason := ""
		for _, r := range h.Reasons {
			if strings.HasPrefix(r, "anonymous memory: ") {
				reason = r
			}
		}
		if h.AnonymousLimit != c.limit || h.AnonymousAssumed != c.assumed || !strings.HasPrefix(reason, c.reason) ||
			(reason == "") != (c.reason == "") {
			t.Errorf("%s: limit %v, assumed %t, %q", name, h.AnonymousLimit, h.AnonymousAssumed, reason)
		}
		if h.Anonymous.Known != (c.api >= 37) || c.api >= 37 && h.Anonymous.N < 10<<20 {
			t.Errorf("%s: %v used", name, h.Anonymous)
		}
	}
}
