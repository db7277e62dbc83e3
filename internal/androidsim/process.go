package androidsim

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// App is an installed package with its processes.
type App struct {
	Package string
	// User is the Android user that runs the app; 0 is the owner.
	User int
	// UID is the uid of the app, including its user; 0 chooses one.
	UID int
	// Debuggable and LargeHeap are the values of android:debuggable and
	// android:largeHeap in the app's manifest.
	Debuggable, LargeHeap bool
	Processes             []ProcessSpec
	// Screens are the Activities that `am start` opens; the launcher icon opens
	// the first. The screens belong to the process with the name of the
	// package. A process that starts by itself shows no screen. Without
	// screens, each process always has one Activity in front.
	Screens []Screen
}

// ProcessSpec describes a process of an app and its memory.
type ProcessSpec struct {
	// Name is the full name of the process, such as com.shop:push.
	Name   string
	Models []Model
	// StartAfter is the time from New or Reboot to its first start.
	StartAfter time.Duration
	// CrashAfter is the age at which the process dies in every life; 0 means
	// never. Values below one second are raised to one second.
	CrashAfter time.Duration
	// RestartAfter is how long the process stays down after CrashAfter or a
	// signal ended it; 0 means until it is started explicitly.
	RestartAfter time.Duration
	// Isolated runs the process under its own uid, which run-as cannot assume.
	Isolated bool
	// Native makes the process a program without ART: it has no Java heap and
	// dies on SIGUSR1.
	Native bool
	// Threads is the number of threads that are not leaked; 0 means 28.
	Threads int
	// Files is the number of open file descriptors that are not leaked; 0 means
	// 96.
	Files int
	// Bits32 makes the process a 32-bit process on a phone that supports both
	// 32-bit and 64-bit processes.
	Bits32 bool
	// DumpBytes is the minimum size of the process's heap dumps in bytes;
	// generated arrays make up the difference. 0 means the size of the heap.
	DumpBytes int64
}

const (
	defaultThreads = 28
	defaultFiles   = 96
	// maxFDs is the hard limit on open files in the latest releases.
	maxFDs = 32768
	// maxThreads bounds the number of entries in /proc/PID/task.
	maxThreads = 16 << 10
	perUser    = 100000
	never      = time.Duration(-1)
)

// process is an entry of the process table of the phone. The fields below spec
// are guarded by Phone.mu.
type process struct {
	spec ProcessSpec
	app  *App
	uid  int
	ppid int
	// dormant processes do not run until they are started explicitly.
	dormant bool
	id      uint64
	native  bool
	kernel  bool
	bits32  bool
	// fixed is the pid of a system process, 0 for an app's process.
	fixed int

	pid      int
	start    time.Duration
	instance int
	first    time.Duration
	next     time.Duration
	crashes  []Model
	deaths   int
	// crashed counts the crashes of the process, which monkey reports;
	// crashedAt and crashedPID describe the latest one.
	crashed    int
	crashedAt  time.Duration
	crashedPID int
	// died is when the process died or when a system crash delayed its start.
	died    time.Duration
	lastPID int

	// limited is when the memory limiter next checks the process; overLimit is
	// when the process exceeded its limit, or never.
	limited, overLimit time.Duration

	gc        time.Duration
	frozen    bool
	frozenAt  time.Duration
	frozenFor time.Duration

	// run is the test run of this life, or nil; testing means that a test is
	// running, and held lists the leaks of the tests so far.
	run     *testRun
	testing bool
	held    []LeakedActivities

	// ui is set if the process has the app's screens; stack is their state.
	ui    bool
	stack stack
}

type view struct {
	spec       *ProcessSpec
	app        *App
	name       string
	pid, ppid  int
	uid        int
	native     bool
	kernel     bool
	shell      bool
	bits32     bool
	api        int
	start, up  time.Duration
	age, gc    time.Duration
	stream     uint64
	frozen     bool
	extraTicks int64
	models     []Model
	// idle means that the process is between two tests: it has no Activity in
	// front.
	idle bool
	held []LeakedActivities
	// screens lists the screens of the process, or is nil; stack is their
	// state. hidden means that the process has no Activity other than the
	// screens.
	screens []Screen
	stack   stack
	hidden  bool
}

// pkg returns the package of the process, or its name if it belongs to no app.
func (v view) pkg() string {
	if v.app != nil {
		return v.app.Package
	}
	return v.name
}

// comm returns the kernel's name for the process: the last 15 bytes of its
// name.
func (v view) comm() string {
	if len(v.name) > 15 {
		return v.name[len(v.name)-15:]
	}
	return v.name
}

// activities returns the number of Activities in front that are not screens: 0
// between two tests or in an app with screens, otherwise 1.
func (v view) activities() int {
	if v.idle || v.hidden {
		return 0
	}
	return 1
}

func (v view) views() int { return frontViews * v.activities() }

const frontViews = 120

// memory evaluates the models and adds the memory of screens and what the tests
// have leaked.
func (v view) memory() memory {
	if v.spec == nil {
		return memory{threads: 1, files: 4}
	}
	l := evaluate(v.models, v.stream, v.age, v.gc)
	v.addScreens(&l)
	held := activitiesIn(v.held)
	l.mb[JavaHeap] = min(l.mb[JavaHeap]+float64(held*mbPerActivity), maxMB)
	base := v.spec.Threads
	if base == 0 {
		base = defaultThreads
	}
	m := layout(l, min(base+l.threads, maxThreads))
	m.leakedActivities = int(l.leaked/mbPerActivity) + held
	m.files += defaultFiles
	if v.spec.Files != 0 {
		m.files = l.files + v.spec.Files
	}
	soft, _ := fileLimit(v.api)
	m.files = min(m.files, soft)
	return m
}

func (p *process) alive() bool { return p.pid != 0 }

// age returns the age of the life at the given time, excluding frozen time.
func (p *process) age(at time.Duration) time.Duration {
	if p.frozen {
		at = p.frozenAt
	}
	return max(0, at-p.start-p.frozenFor)
}

func (p *process) view(up time.Duration) view {
	models := p.spec.Models
	if p.run != nil && p.run.Models != nil {
		models = p.run.Models
	}
	var screens []Screen
	if p.ui {
		screens = p.app.Screens
	}
	return view{
		screens: screens, stack: p.stack, hidden: p.app != nil && p.app.Screens != nil && p.run == nil,
		models: models, idle: p.run != nil && !p.testing, held: p.held,
		spec: &p.spec, app: p.app, name: p.spec.Name, pid: p.pid, ppid: p.ppid, uid: p.uid, native: p.native,
		kernel: p.kernel, bits32: p.bits32,
		start: p.start, up: up, age: p.age(up), gc: p.gc, stream: mix(p.id, uint64(p.instance)), frozen: p.frozen,
	}
}

// due returns the time of the process's next event, if there is one.
func (p *process) due() (time.Duration, bool) {
	if !p.alive() {
		return p.next, p.next != never
	}
	at, ok := never, false
	if p.spec.CrashAfter > 0 {
		at, ok = p.start+max(p.spec.CrashAfter, time.Second), true
	}
	if p.stack.hung != never && (!ok || p.stack.hung+anrAfter < at) {
		at, ok = p.stack.hung+anrAfter, true
	}
	if len(p.crashes) > 0 {
		if c := p.first + p.crashes[0].crashAt; !ok || c < at {
			at, ok = c, true
		}
	}
	if p.limited != never && (!ok || p.limited < at) {
		at, ok = p.limited, true
	}
	return at, ok
}

// die ends the current life of the process. The process restarts after back; if
// back is never, it restarts only when it is started explicitly.
func (p *process) die(at, back time.Duration) {
	p.lastPID, p.pid, p.died = p.pid, 0, at
	p.run, p.testing, p.held, p.stack = nil, false, nil, empty()
	p.deaths++
	p.next = never
	if back != never {
		p.next = at + back
	}
}

// backAfter returns ProcessSpec.RestartAfter, or never; init restarts system
// processes after 5 s.
func (p *process) backAfter() time.Duration {
	if p.fixed != 0 {
		return 5 * time.Second
	}
	if p.spec.RestartAfter > 0 {
		return p.spec.RestartAfter
	}
	return never
}

// advance executes all events up to the given time in order, so pids do not
// depend on when they are read. The caller must hold the lock.
func (p *Phone) advance(up time.Duration) {
	for {
		p.noticeDeaths(up)
		var first *process
		var at time.Duration
		for _, proc := range p.procs {
			if due, ok := proc.due(); ok && due <= up && (first == nil || due < at) {
				first, at = proc, due
			}
		}
		var run *testRun
		for _, r := range p.runs {
			if due, ok := r.due(); ok && due <= up && (first == nil && run == nil || due < at) {
				run, at = r, due
			}
		}
		switch {
		case run != nil:
			p.step(run)
		case first != nil:
			p.fire(first, at)
		default:
			return
		}
	}
}

func (p *Phone) fire(proc *process, at time.Duration) {
	if !proc.alive() {
		p.spawn(proc, at)
		return
	}
	if proc.stack.hung != never && proc.stack.hung+anrAfter <= at {
		p.stopResponding(proc, at)
		return
	}
	if proc.limited == at {
		p.limitMemory(proc, at)
		return
	}
	p.recordExit(proc, at, crashed)
	back := proc.backAfter()
	if len(proc.crashes) > 0 && proc.first+proc.crashes[0].crashAt <= at {
		back = never
		if d := proc.crashes[0].downFor; d > 0 {
			back = d
		}
		proc.crashes = proc.crashes[1:]
	}
	proc.die(at, back)
}

// end ends a process, and others that depend on it, and records the cause as
// Android does. The caller must hold the lock.
func (p *Phone) end(proc *process, at, back time.Duration, why cause) {
	if proc.spec.Name == systemServer || proc == p.zygote {
		p.crashSystem(at, max(back, 0))
		return
	}
	p.recordExit(proc, at, why)
	proc.die(at, back)
}

func (p *Phone) spawn(proc *process, at time.Duration) { p.spawnAs(proc, at, 0) }

// spawnAs starts a process; a pid of 0 chooses one.
func (p *Phone) spawnAs(proc *process, at time.Duration, pid int) {
	fresh := proc.first == never
	proc.start, proc.gc, proc.frozen, proc.frozenFor = at, never, false, 0
	proc.next = never
	proc.instance++
	proc.limited, proc.overLimit = never, never
	if p.limits(proc) {
		proc.limited = at + limiterPeriod
	}
	if proc.first == never {
		proc.first = at
	}
	// A crash that was due while the process was down does not happen.
	for len(proc.crashes) > 0 && proc.first+proc.crashes[0].crashAt <= at {
		proc.crashes = proc.crashes[1:]
	}
	switch {
	case pid != 0:
		proc.pid = pid
	case fresh && proc.fixed != 0:
		proc.pid = p.pidAtBoot(proc.fixed)
	default:
		proc.pid = p.freePID(proc)
	}
	p.startLife(proc)
}

// pidAtBoot returns the pid of a system process in this boot. Except for init
// and kernel threads, the pid differs from the one in the previous boot.
func (p *Phone) pidAtBoot(fixed int) int {
	const steps, step = 40, 17
	if fixed < 100 {
		return fixed
	}
	return fixed + p.boots%steps*step
}

// The pids of apps start at firstAppPID, and the pids of shells at
// firstShellPID.
const (
	firstAppPID   = 3000
	firstShellPID = 20000
	lastPID       = 32767
)

// freePID returns an unused pid: it counts up like the kernel, with gaps for a
// phone's other processes.
func (p *Phone) freePID(proc *process) int {
	for {
		p.lastApp += 1 + int(mix(proc.id, uint64(proc.instance)+1<<32)%90)
		if p.lastApp >= firstShellPID {
			p.lastApp = firstAppPID
		}
		taken := func(q *process) bool { return q.pid == p.lastApp || q.lastPID == p.lastApp }
		if !slices.ContainsFunc(p.procs, taken) {
			return p.lastApp
		}
	}
}

// views returns all running processes, sorted by pid.
func (p *Phone) views() []view {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	var out []view
	for _, proc := range p.procs {
		if proc.alive() {
			out = append(out, p.view(proc, up))
		}
	}
	for _, t := range p.tasks {
		out = append(out, t.view(up))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].pid < out[j].pid })
	return out
}

// view returns a snapshot of a running process. The caller must hold the lock.
func (p *Phone) view(proc *process, up time.Duration) view {
	v := proc.view(up)
	v.api = p.opt.API
	switch proc.ppid {
	case zygotePID:
		v.ppid = p.zygote.pid
	case zygotePID + 1:
		v.ppid = p.zygote32.pid
	}
	if v.name == systemServer {
		v.extraTicks = p.busy.ticks(up)
	}
	return v
}

func (p *Phone) find(pid int) (view, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	for _, proc := range p.procs {
		if proc.alive() && proc.pid == pid {
			return p.view(proc, up), true
		}
	}
	if t := p.tasks[pid]; t != nil {
		return t.view(up), true
	}
	return view{}, false
}

// processNamed returns the process with the given name, running or not; if
// several users run it, the process of the first user is returned. The caller
// must hold the lock.
func (p *Phone) processNamed(name string) *process {
	for _, proc := range p.procs {
		if proc.spec.Name == name && !proc.kernel {
			return proc
		}
	}
	return nil
}

func (v view) belongs(pkg string) bool {
	return v.app != nil && v.app.Package == pkg || v.name == pkg || strings.HasPrefix(v.name, pkg+":")
}

// ledger adds up the CPU time that dumpsys uses in system_server.
type ledger struct {
	done    time.Duration
	running map[int]time.Duration
	next    int
}

func (l *ledger) begin(up time.Duration) int {
	if l.running == nil {
		l.running = map[int]time.Duration{}
	}
	l.next++
	l.running[l.next] = up
	return l.next
}

func (l *ledger) end(id int, up time.Duration) {
	if began, ok := l.running[id]; ok {
		l.done += up - began
		delete(l.running, id)
	}
}

// ticks returns the CPU time in 10 ms ticks; each dumpsys uses one core.
func (l *ledger) ticks(up time.Duration) int64 {
	sum := l.done
	for _, began := range l.running {
		sum += up - began
	}
	return int64(sum / (10 * time.Millisecond))
}
