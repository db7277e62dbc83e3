package androidsim

import (
	"cmp"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidtext"
)

var (
	_ adbd.Phone    = (*Phone)(nil)
	_ adbd.Notifier = (*Phone)(nil)
)

// Options describe a phone. The zero value describes a Pixel with Android 14: a
// user build without root and without apps.
type Options struct {
	Serial, Model, Manufacturer string
	// API is the API level, 18 (Android 4.3) to 37 (Android 17); 0 means 34.
	// Other values are replaced with the nearest supported level.
	API int
	// Scale is the number of device seconds per real second; 0 means 1.
	Scale float64
	Seed  uint64
	// Root makes the shell run as root, like `adb root`, so it may read the
	// smaps of every process.
	Root bool
	// SU adds to the phone's PATH a su program that every UID may run.
	SU bool
	// Bits32 means that the phone runs no 64-bit processes.
	Bits32 bool
	// HeapGrowthLimit and HeapSize are dalvik.vm.heapgrowthlimit and
	// dalvik.vm.heapsize in MB: the maximum Java heap of an app without and
	// with a large heap. 0 means 256 and 512.
	HeapGrowthLimit, HeapSize int
	// MemoryLimiter holds the limits of the memory limiter (since API 37); nil
	// means that there is no limiter.
	MemoryLimiter *MemoryLimiter
	// NoGPUMemory means that the GPU driver does not report process memory.
	NoGPUMemory bool
	// BuildType is user (also if empty), userdebug or eng.
	BuildType string
	// SmapsRollup specifies whether the kernel provides /proc/PID/smaps_rollup;
	// nil means that kernels of Android 10 and later do.
	SmapsRollup *bool
	// DumpsysTime is the duration of one dumpsys in device time; 0 means one
	// second.
	DumpsysTime time.Duration
	// Uptime is the phone's uptime when New returns; 0 means one hour.
	Uptime time.Duration
	// ClockSkew is how far the phone's wall clock is ahead of the host's clock.
	ClockSkew time.Duration
	// DumpHeap writes the content of an `am dumpheap` file; if nil, the file
	// contains a heap with the Java leak of the process. If DumpHeap returns an
	// error, the file is empty (before Android 6: truncated), but am reports
	// success.
	DumpHeap func(w io.Writer, h Heap) error
	Apps     []App
	// Instrumentations are the tests that `am instrument` can run.
	Instrumentations []Instrumentation
}

// Heap describes a heap to dump.
type Heap struct {
	Process string
	PID     int
	// Up is the device time of the dump; Age is the age of the process.
	Up, Age time.Duration
	API     int
	// Java is the size of the Java heap in bytes; Leaked is the part of it that
	// leaks retain.
	Java, Leaked int64
	// Collected means that garbage was collected before the dump. Bitmaps is
	// the requested format of bitmaps; "" means that none was requested.
	Collected bool
	Bitmaps   string
}

const (
	systemServer   = "system_server"
	defaultAPI     = 34
	oldestAPI      = 18
	newestAPI      = 37
	usualDump      = time.Second
	uptimeAtNew    = time.Hour
	uptimeAtReboot = 25 * time.Second
)

// Phone is a phone in memory. The methods of a Phone may be called
// concurrently. A Phone starts no goroutines of its own, so an unused Phone
// uses no CPU time.
type Phone struct {
	opt   Options
	born  time.Time
	files *store

	programs map[string]program

	mu       sync.Mutex
	clock    clock
	procs    []*process
	zygote   *process
	zygote32 *process
	tasks    map[int]*task
	lastApp  int
	lastTask int
	dumpTime time.Duration
	busy     ledger
	// dumps and runs hold the heap dumps and the test runs in progress.
	dumps []dumping
	runs  []*testRun
	// exits records the ends of apps' processes. lines and lives make up this
	// boot's log; cleared is when it was last cleared.
	exits   []androidtext.Exit
	lines   []logLine
	lives   []life
	cleared time.Time
	// boots counts the reboots; completed is when sys.boot_completed is set.
	boots int
	// uuids counts the random UUIDs that were read.
	uuids     atomic.Uint64
	completed time.Duration

	// skew is how far the wall clock has been stepped, in ns.
	skew atomic.Int64
	// session counts the starts of adbd.
	session atomic.Uint64
	// wrong holds the active faults, or nil. changed is closed when the
	// Identity may have changed. altering guards writes to both.
	wrong    atomic.Pointer[[]*fault]
	altering sync.Mutex
	changed  chan struct{}
}

// New returns a phone that booted Options.Uptime ago; its apps start now.
func New(o Options) *Phone {
	o.Serial = cmp.Or(o.Serial, "SIM0000000001")
	o.Model = cmp.Or(o.Model, "Pixel 7")
	o.Manufacturer = cmp.Or(o.Manufacturer, "Google")
	o.API = min(max(cmp.Or(o.API, defaultAPI), oldestAPI), newestAPI)
	o.BuildType = cmp.Or(o.BuildType, "user")
	o.DumpsysTime = cmp.Or(o.DumpsysTime, usualDump)
	o.Uptime = cmp.Or(o.Uptime, uptimeAtNew)
	o.HeapGrowthLimit, o.HeapSize = cmp.Or(o.HeapGrowthLimit, 256), cmp.Or(o.HeapSize, 512)
	if !(o.Scale > 0) {
		o.Scale = 1
	}
	if o.SmapsRollup == nil {
		o.SmapsRollup = new(o.API >= 29)
	}
	o.Apps, o.Instrumentations = slices.Clone(o.Apps), slices.Clone(o.Instrumentations)
	p := &Phone{
		opt: o, born: time.Now(), tasks: map[int]*task{}, dumpTime: o.DumpsysTime, lastTask: firstShellPID,
		changed: make(chan struct{}),
	}
	p.clock = clock{origin: p.born, offset: o.Uptime, scale: o.Scale}
	p.install()
	p.files = newStore(p)
	p.programs = p.programTable()
	p.boot(o.Uptime)
	return p
}

func (p *Phone) install() {
	p.procs = systemProcesses(p.opt)
	for _, proc := range p.procs {
		switch proc.fixed {
		case zygotePID:
			p.zygote = proc
			p.zygote32 = cmp.Or(p.zygote32, proc)
		case zygotePID + 1:
			p.zygote32 = proc
		}
	}
	for i := range p.opt.Apps {
		app := &p.opt.Apps[i]
		if app.UID == 0 {
			app.UID = app.User*perUser + 10123 + i
		}
		for j, spec := range app.Processes {
			proc := &process{spec: spec, app: app, uid: app.UID, ppid: zygotePID, ui: app.shows(j)}
			if proc.bits32 = spec.Bits32 || p.opt.Bits32; proc.bits32 && !p.opt.Bits32 {
				proc.ppid = zygotePID + 1
			}
			if proc.native = spec.Native; proc.native {
				proc.ppid = 1
			}
			if spec.Isolated {
				proc.uid = app.User*perUser + 99000 + i*16 + j
			}
			p.procs = append(p.procs, proc)
		}
	}
	for _, proc := range p.procs {
		proc.bits32 = proc.bits32 || proc.fixed == zygotePID+1 || p.opt.Bits32 && !proc.kernel
		proc.id = mix(p.opt.Seed, hashText(proc.spec.Name)+uint64(proc.uid/perUser))
	}
}

// boot ends all processes and schedules their starts, relative to the given
// uptime. Only init and kernel threads keep their pids.
func (p *Phone) boot(up time.Duration) {
	p.lastApp, p.runs = firstAppPID, nil
	for _, proc := range p.procs {
		proc.run, proc.testing, proc.held, proc.stack = nil, false, nil, empty()
		proc.lastPID, proc.pid, proc.first, proc.crashes = proc.pid, 0, never, nil
		for _, m := range proc.spec.Models {
			if m.crashes {
				proc.crashes = append(proc.crashes, m)
			}
		}
		slices.SortFunc(proc.crashes, func(a, b Model) int { return cmp.Compare(a.crashAt, b.crashAt) })
		proc.next = up + max(proc.spec.StartAfter, 0)
		switch {
		case proc.dormant:
			proc.next = never
		case proc.fixed != 0:
			proc.next = proc.spec.StartAfter
		}
	}
}

// zygotePID is the pid of zygote, the parent of every Java process of an app,
// in the first boot.
const zygotePID = 780

func systemProcesses(o Options) []*process {
	adbdUID := uidShell
	if o.Root {
		adbdUID = uidRoot
	}
	native := func(pid, uid int, name string, mb float64) *process {
		return &process{fixed: pid, uid: uid, ppid: min(pid-1, 1), native: true, spec: ProcessSpec{
			Name: name, Threads: 8, StartAfter: time.Duration(pid) * 10 * time.Millisecond,
			Models: []Model{
				Steady(NativeHeap, mb), Steady(Code, 2), Steady(Stack, 0.2), Steady(Other, 1), Steady(Shared, 2),
			},
		}}
	}
	kernel := func(pid int, name string) *process {
		return &process{fixed: pid, kernel: true, ppid: min(pid-1, 2), spec: ProcessSpec{Name: name, Threads: 1}}
	}
	java := func(pid, uid, parent int, name string, models ...Model) *process {
		return &process{fixed: pid, uid: uid, ppid: parent, app: &App{Package: name, UID: uid}, spec: ProcessSpec{
			Name: name, StartAfter: time.Duration(pid) * 10 * time.Millisecond, Models: append(models,
				Steady(JavaHeap, 12), Steady(NativeHeap, 8), Steady(Code, 14), Steady(Stack, 1), Steady(Other, 6),
				Steady(Shared, 18)),
		}}
	}
	sleeper := native(0, uidShell, stranger, 6)
	sleeper.ppid, sleeper.dormant = 1, true
	server := java(1523, uidSystem, zygotePID, systemServer, Steady(JavaHeap, 90), Steady(NativeHeap, 60),
		Noise(3, 0.7))
	server.app, server.spec.Threads = nil, 180
	zygotes := []*process{java(zygotePID, uidRoot, 1, "zygote64"), java(zygotePID+1, uidRoot, 1, "zygote")}
	if o.Bits32 {
		zygotes = []*process{java(zygotePID, uidRoot, 1, "zygote")}
	}
	return slices.Concat([]*process{
		native(1, uidRoot, "init", 2), kernel(2, "kthreadd"), kernel(41, "kworker/0:1"), kernel(83, "kswapd0"),
		native(560, uidSystem, "surfaceflinger", 24), native(905, adbdUID, "adbd", 3),
	}, zygotes, []*process{
		server,
		java(2104, 10087, zygotePID, "com.android.systemui", Typical(), GCSawtooth(8, 4*time.Minute), Noise(2, 0.7)),
		java(2250, 1001, zygotePID, "com.android.phone", Noise(1, 0.7)), sleeper,
	})
}

// Packages returns the packages of the apps and their tests.
func (p *Phone) Packages() (out []string) {
	for _, a := range p.opt.Apps {
		if !slices.Contains(out, a.Package) {
			out = append(out, a.Package)
		}
	}
	return append(out, p.testPackages()...)
}

// Instrumentations returns the instrumentations that `am instrument` can run,
// as PACKAGE/RUNNER.
func (p *Phone) Instrumentations() (out []string) {
	for _, i := range p.opt.Instrumentations {
		out = append(out, i.component())
	}
	return out
}

// Identity describes the phone to adb. Phones before Android 7 support neither
// the shell protocol nor stat_v2.
func (p *Phone) Identity() adbd.Identity {
	id := adbd.Identity{Serial: p.opt.Serial, Product: "androidsim", Model: p.opt.Model, Device: "androidsim"}
	id.Session = p.session.Load()
	old := p.opt.API < 24
	for _, f := range p.faults() {
		old = old || f.oldShell
		id.State = cmp.Or(f.state, id.State)
	}
	if !old {
		id.Features = []string{"shell_v2", "cmd", "stat_v2", "ls_v2", "fixed_push_mkdir"}
	}
	return id
}

// Uptime returns the device time since boot.
func (p *Phone) Uptime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock.up()
}

// now returns the clock of this boot.
func (p *Phone) now() clock {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clock
}

// wall returns the phone's wall clock.
func (p *Phone) wall() time.Time {
	elapsed := time.Duration(float64(time.Since(p.born)) * p.opt.Scale)
	return p.born.Add(elapsed + p.opt.ClockSkew + time.Duration(p.skew.Load()))
}

// Memory is a snapshot of the memory of a process, in kB.
type Memory struct {
	PID int
	// Start and Up are device times since boot: when the process started, and
	// when the memory was read.
	Start, Up time.Duration
	// PSS and SwapPSS are the sums over smaps; they include GfxDev, but not the
	// driver memory EGL and GL.
	PSS, SwapPSS    int64
	EGL, GL, GfxDev int64
	// The values of the App Summary. System includes swap; Total is PSS +
	// SwapPSS + EGL + GL, as Android has printed it since 7.0.
	JavaHeap, NativeHeap, Code, Stack, Graphics, PrivateOther, System, Total int64
	Threads                                                                  int
}

// Memory returns the true memory of a process; ok is false if the process is
// not running.
func (p *Phone) Memory(process string) (m Memory, ok bool) {
	v, ok := p.running(process)
	if !ok {
		return Memory{}, false
	}
	mem := v.memory()
	s, mapped := mem.summarize(), mem.mapped()
	return Memory{
		PID: v.pid, Start: v.start, Up: v.up, PSS: mapped.pss(), SwapPSS: mapped.swap,
		EGL: mem.rows[androidtext.EGLMtrack].pss(), GL: mem.rows[androidtext.GLMtrack].pss(),
		GfxDev:   mem.rows[androidtext.GfxDev].pss(),
		JavaHeap: s.JavaHeap, NativeHeap: s.NativeHeap, Code: s.Code, Stack: s.Stack, Graphics: s.Graphics,
		PrivateOther: s.PrivateOther, System: s.System, Total: s.Total, Threads: mem.threads,
	}, true
}

// PID returns the pid of a process, or 0 if it is not running.
func (p *Phone) PID(process string) int {
	v, _ := p.running(process)
	return v.pid
}

func (p *Phone) running(process string) (view, bool) {
	for _, v := range p.views() {
		if v.name == process && !v.shell {
			return v, true
		}
	}
	return view{}, false
}

// Kill kills a process as the low memory killer does. The process restarts
// after the delay that its RestartAfter field specifies; if system_server is
// killed, all apps end too (see CrashSystem). Like the other hooks, Kill
// returns false if there is no such process.
func (p *Phone) Kill(name string) bool {
	return p.onProcess(name, func(proc *process, up time.Duration) {
		if proc.alive() {
			p.end(proc, up, proc.backAfter(), lowMemory)
		}
	})
}

// Restart ends a process and restarts it immediately.
func (p *Phone) Restart(name string) bool {
	return p.onProcess(name, func(proc *process, up time.Duration) {
		if proc.alive() {
			p.end(proc, up, 0, killed(sigKill))
		}
		if p.advance(up); !proc.alive() {
			p.spawn(proc, up)
		}
	})
}

// Freeze stops or thaws a process, like Android's freezer for cached apps: a
// frozen process does not change its memory or respond to dumpsys.
func (p *Phone) Freeze(name string, frozen bool) bool {
	return p.onProcess(name, func(proc *process, up time.Duration) {
		if proc.frozen == frozen || !proc.alive() {
			return
		}
		if !frozen {
			proc.frozenFor += up - proc.frozenAt
		}
		proc.frozen, proc.frozenAt = frozen, up
	})
}

func (p *Phone) onProcess(name string, do func(*process, time.Duration)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	proc := p.processNamed(name)
	if proc == nil {
		return false
	}
	do(proc, up)
	return true
}
