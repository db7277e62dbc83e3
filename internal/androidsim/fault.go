package androidsim

import (
	"context"
	"io"
	"io/fs"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
)

// fault is one thing that is wrong with the phone. The fields that are not zero
// say what; all but the pointers' contents never change.
type fault struct {
	// state is what adb sees instead of device.
	state string
	// rootless: adbd has dropped root. oldShell: it knows no shell_v2.
	rootless, oldShell bool
	// files are those that file is about, as a pattern.
	files string
	file  FileFault
	// torn, garbled and flood are about the output of commands.
	torn    *tear
	garbled *garble
	flood   *int64
	// dumpsys is the time of one, hangs says that none ends.
	dumpsys time.Duration
	hangs   bool
	// full is how many bytes all files may have.
	full *int64
	dies *doom
	// cut is how much of a heap dump there is in the end.
	cut *int64
	// asked is told of what adb asks.
	asked func(Request)
}

// faults are what is wrong now, in the order in which it went wrong.
func (p *Phone) faults() []*fault {
	if all := p.wrong.Load(); all != nil {
		return *all
	}
	return nil
}

// hold keeps a fault on until the returned function is called.
func (p *Phone) hold(f *fault) (end func()) {
	p.alter(func(all []*fault) []*fault { return append(slices.Clone(all), f) })
	return sync.OnceFunc(func() {
		p.alter(func(all []*fault) []*fault {
			return slices.DeleteFunc(slices.Clone(all), func(g *fault) bool { return g == f })
		})
	})
}

// alter replaces the list of faults, which readers hold without a lock.
func (p *Phone) alter(change func([]*fault) []*fault) {
	p.altering.Lock()
	defer p.altering.Unlock()
	if all := change(p.faults()); len(all) > 0 {
		p.wrong.Store(&all)
	} else {
		p.wrong.Store(nil)
	}
	p.notify()
}

// notify tells those who wait for Changed. The caller holds altering.
func (p *Phone) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Changed tells adb when the Identity changes, see adbd.Notifier.
func (p *Phone) Changed() <-chan struct{} {
	p.altering.Lock()
	defer p.altering.Unlock()
	return p.changed
}

// Become puts the phone in another state for adb, such as adbd.StateOffline or
// adbd.StateUnauthorized; the latest one counts. Connections break off, and
// commands with them.
func (p *Phone) Become(state string) (end func()) { return p.hold(&fault{state: state}) }

// LoseRoot lets adbd run as the shell's user, as after `adb unroot`: it starts
// anew, which breaks connections off, and again at the end. A phone without
// Options.Root only has the breaks.
func (p *Phone) LoseRoot() (end func()) { return p.restartADBD(&fault{rootless: true}) }

// OldShell takes the features of adbd away that came with Android 7, so that
// outputs are mixed, lines end in \r\n and no exit code comes. It starts anew,
// which breaks connections off, and again at the end.
func (p *Phone) OldShell() (end func()) { return p.restartADBD(&fault{oldShell: true}) }

// restartADBD holds a fault whose begin and end are a new adbd.
func (p *Phone) restartADBD(f *fault) (end func()) {
	release := p.hold(f)
	p.newADBD()
	return sync.OnceFunc(func() {
		release()
		p.newADBD()
	})
}

// newADBD starts the process adbd, and with it a session.
func (p *Phone) newADBD() {
	p.onProcess("adbd", func(proc *process, up time.Duration) {
		proc.uid = p.shellUID()
		proc.die(up, never)
		p.spawn(proc, up)
	})
	p.session.Add(1)
	p.altering.Lock()
	defer p.altering.Unlock()
	p.notify()
}

// FileFault is what is wrong with a file.
type FileFault int

const (
	// FileMissing is a file that is not there, in its directory neither.
	FileMissing FileFault = iota + 1
	// FileDenied can be seen but not read: "Permission denied", also for root.
	FileDenied
	// FileEmpty can be read and holds nothing, as files of /proc/PID do while the
	// process ends.
	FileEmpty
	// FileGone can be opened but not read: "No such process", as the files of
	// /proc/PID say when it ended in between (ESRCH, fs/proc/base.c).
	FileGone
)

// BreakFile makes reading all files fail whose absolute path matches the pattern,
// by the rules of path.Match: /proc/*/smaps_rollup. A malformed pattern matches
// none. The latest fault of a file counts.
func (p *Phone) BreakFile(pattern string, f FileFault) (end func()) {
	return p.hold(&fault{files: pattern, file: f})
}

// broken is what is wrong with a file, 0 for nothing.
func (p *Phone) broken(name string) FileFault {
	for _, f := range slices.Backward(p.faults()) {
		if f.file == 0 {
			continue
		}
		if hit, err := path.Match(f.files, name); hit && err == nil {
			return f.file
		}
	}
	return 0
}

// read is what reading such a file gives, in the place of content if ok.
func (f FileFault) read() (err error, ok bool) {
	switch f {
	case FileMissing:
		return fs.ErrNotExist, true
	case FileDenied:
		return fs.ErrPermission, true
	case FileGone:
		return syscall.ESRCH, true
	}
	return nil, f == FileEmpty
}

// tear cuts outputs.
type tear struct {
	after int64
	exit  int
}

// TearOutput cuts the standard output of each command that begins from now on
// after n bytes, if it has more; the command is killed and its stream ends. The
// exit status is lost, or it is 0, as with phones whose adbd reads no status.
func (p *Phone) TearOutput(n int64, status bool) (end func()) {
	t := &tear{after: max(n, 0), exit: adbd.NoExit}
	if status {
		t.exit = 0
	}
	return p.hold(&fault{torn: t})
}

// garble replaces bytes of outputs.
type garble struct {
	every    int64
	seed     uint64
	commands atomic.Uint64
}

// GarbleOutput replaces every n-th byte, at least the first, in the standard
// output of each command that begins from now on by another one. Which one
// depends on the seed, the position and how many commands came before.
func (p *Phone) GarbleOutput(n int64, seed uint64) (end func()) {
	return p.hold(&fault{garbled: &garble{every: max(n, 1), seed: seed}})
}

// FloodOutput adds n bytes without a line's end to the standard output of each
// command that begins from now on; less than 0 is for ever. The end of the fault
// ends the flood, and then the command with its own status.
func (p *Phone) FloodOutput(n int64) (end func()) { return p.hold(&fault{flood: &n}) }

// SlowDumpsys sets the device time of one dumpsys from now on; 0 or less is the
// one of the options again. One that takes longer than its -t, 10 s without,
// prints that its time is up.
func (p *Phone) SlowDumpsys(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dumpTime = p.opt.DumpsysTime
	if d > 0 {
		p.dumpTime = d
	}
}

// DelayDumpsys is SlowDumpsys until it ends; of several the longest counts.
func (p *Phone) DelayDumpsys(d time.Duration) (end func()) { return p.hold(&fault{dumpsys: d}) }

// HangDumpsys lets no dumpsys end that begins from now on, whatever its -t. Those
// that hang do so until they are killed, also after the fault.
func (p *Phone) HangDumpsys() (end func()) { return p.hold(&fault{hangs: true}) }

// FillDisk leaves n bytes of space for files: more than that cannot be written,
// pushed or dumped, and df shows it. Removing files makes space.
func (p *Phone) FillDisk(n int64) (end func()) {
	p.files.mu.Lock()
	full := p.files.used + max(n, 0)
	p.files.mu.Unlock()
	return p.hold(&fault{full: &full})
}

// CutDump leaves the first n bytes of each heap dump that begins from now on, though
// am says that all is well.
func (p *Phone) CutDump(n int64) (end func()) {
	n = max(n, 0)
	return p.hold(&fault{cut: &n})
}

// StepClock moves the phone's wall clock; the uptime goes on as ever. The end
// moves it back.
func (p *Phone) StepClock(by time.Duration) (end func()) {
	p.skew.Add(int64(by))
	return sync.OnceFunc(func() { p.skew.Add(-int64(by)) })
}

// doom ends a process in the middle of a sample.
type doom struct {
	name string
	how  FileFault

	mu   sync.Mutex
	left int
	// ghost is the pid that answers once more; spent says that it has.
	ghost int
	spent bool
}

// DieInSample ends a process, once, when n more of the files of its /proc/PID
// have been read; n is at least 1. The next read of such a file still finds it,
// and gives how, which is FileGone or FileEmpty; then the directory is gone. The
// process comes back as its RestartAfter says.
func (p *Phone) DieInSample(process string, n int, how FileFault) (end func()) {
	return p.hold(&fault{dies: &doom{name: process, how: how, left: max(n, 1)}})
}

// witness counts the reading of a file of a process.
func (d *doom) witness(p *Phone, v view) {
	if v.name != d.name || v.shell {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return
	}
	if d.left--; d.left == 0 {
		d.ghost = v.pid
		p.onProcess(v.name, func(proc *process, up time.Duration) {
			if proc.pid == v.pid {
				p.end(proc, up, proc.backAfter(), killed(sigKill))
			}
		})
	}
}

// haunts is what a file of a pid answers after its end, once.
func (d *doom) haunts(pid int) FileFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spent || pid == 0 || pid != d.ghost {
		return 0
	}
	d.spent = true
	return d.how
}

// stranger is a native process that does not run until somebody starts it.
const stranger = "logcat"

// ReusePID ends a process and starts another one, at the same moment, under its
// pid: one that runs is ended first. Every phone has a native process "logcat"
// for this, which does not run before. It returns false if the process does not run or the
// other one does not exist.
func (p *Phone) ReusePID(process, by string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	from, to := p.processNamed(process), p.processNamed(by)
	if from == nil || to == nil || from == to || !from.alive() {
		return false
	}
	pid := from.pid
	p.end(from, up, from.backAfter(), killed(sigKill))
	if to.alive() {
		p.end(to, up, never, killed(sigKill))
	}
	p.spawnAs(to, up, pid)
	return true
}

// Reboot ends everything that runs and starts over, with an uptime of 25 s, new
// pids for all but init and the kernel, a new boot id, and the files as they are.
// Connections break off.
func (p *Phone) Reboot() { p.RebootFor(0) }

// RebootFor is Reboot with the phone offline for a device time, in which its
// uptime already runs; back ends that early.
func (p *Phone) RebootFor(down time.Duration) (back func()) {
	online := func() {}
	if down > 0 {
		online = p.Become(adbd.StateOffline)
	}
	// A command that ends because of the reboot must see the new session.
	p.session.Add(1)
	p.reset()
	p.altering.Lock()
	p.notify()
	p.altering.Unlock()
	if down <= 0 {
		return online
	}
	timer := time.AfterFunc(p.now().real(down), online)
	return func() {
		timer.Stop()
		online()
	}
}

// bootTakes is the device time from the first command to sys.boot_completed.
const bootTakes = 10 * time.Second

func (p *Phone) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tasks {
		t.kill(sigKill)
	}
	p.busy = ledger{}
	p.endDumps(p.clock.up(), true)
	p.clock = clock{origin: time.Now(), offset: uptimeAtReboot, scale: p.opt.Scale}
	p.lines, p.lives = nil, nil
	p.boots++
	p.completed = uptimeAtReboot + bootTakes
	p.boot(uptimeAtReboot)
}

// CrashSystem ends system_server, and with it zygote and every app, as zygote
// does (frameworks/base, com_android_internal_os_Zygote.cpp). The system's
// services are back after a device time, at once if it is 0, under another pid;
// the apps that come back by themselves do so afterwards. Until then dumpsys and
// cmd find no service. back ends the time early.
func (p *Phone) CrashSystem(down time.Duration) (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	p.crashSystem(up, max(down, 0))
	return sync.OnceFunc(p.hurrySystem)
}

// ofSystem tells what runs in, or above, system_server.
func (p *process) ofSystem() bool { return p.spec.Name == systemServer || p.isZygote() }

func (p *process) isZygote() bool { return p.fixed == zygotePID || p.fixed == zygotePID+1 }

// crashSystem is CrashSystem at a time. The caller holds the lock.
func (p *Phone) crashSystem(at, down time.Duration) {
	before := never
	if server := p.processNamed(systemServer); !server.alive() {
		before = server.died
	}
	for _, proc := range p.procs {
		if !proc.ofSystem() && proc.app == nil {
			continue
		}
		back := down
		if !proc.ofSystem() {
			if back = proc.backAfter(); back != never {
				back += down
			}
		}
		switch {
		case proc.alive():
			proc.die(at, back)
		case proc.next != never && (proc.next < at+down || proc.died == before):
			// What went down with the system goes on waiting for it.
			proc.next, proc.died = max(proc.next, at+down), at
		}
	}
}

// hurrySystem brings the services back now, and the apps as much earlier.
func (p *Phone) hurrySystem() {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	server := p.processNamed(systemServer)
	if server.alive() || server.next == never {
		return
	}
	early := server.next - up
	for _, proc := range p.procs {
		if !proc.alive() && proc.next != never && proc.died == server.died && (proc.ofSystem() || proc.app != nil) {
			proc.next = max(up, proc.next-early)
		}
	}
	p.advance(up)
}

// server is the pid of system_server, 0 while it is down.
func (p *Phone) server() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(p.clock.up())
	return p.processNamed(systemServer).pid
}

// spoiled is the standard output of one command under the faults of its begin.
type spoiled struct {
	w io.Writer
	// kill ends the command.
	kill func()
	torn *tear
	left int64

	garbled *garble
	stream  uint64
	at      int64

	flood *fault

	done atomic.Bool
}

// spoil wraps the output of a command; it is nil if nothing spoils it.
func (p *Phone) spoil(w io.Writer, kill func()) *spoiled {
	var s *spoiled
	for _, f := range p.faults() {
		if f.torn == nil && f.garbled == nil && f.flood == nil {
			continue
		}
		if s == nil {
			s = &spoiled{w: w, kill: kill}
		}
		switch {
		case f.torn != nil:
			s.torn, s.left = f.torn, f.torn.after
		case f.garbled != nil:
			s.garbled, s.stream = f.garbled, mix(f.garbled.seed, f.garbled.commands.Add(1))
		default:
			s.flood = f
		}
	}
	return s
}

// Write is never called concurrently: the shell sees to that.
func (s *spoiled) Write(b []byte) (int, error) {
	if s.done.Load() {
		return 0, io.ErrClosedPipe
	}
	out := b
	if s.torn != nil {
		out = b[:min(int64(len(b)), s.left)]
		s.left -= int64(len(out))
	}
	if s.garbled != nil {
		out = s.garble(out)
	}
	n, err := s.w.Write(out)
	if err == nil && n < len(b) {
		s.done.Store(true)
		s.kill()
		return n, io.ErrClosedPipe
	}
	return n, err
}

// garble replaces bytes in a copy.
func (s *spoiled) garble(b []byte) []byte {
	b = slices.Clone(b)
	every := s.garbled.every
	for i := every - 1 - s.at%every; i < int64(len(b)); i += every {
		b[i] ^= byte(1 + mix(s.stream, uint64(s.at+i))%255)
	}
	s.at += int64(len(b))
	return b
}

// floods writes the flood until it is over, the command is killed or nobody reads
// any more.
func (s *spoiled) floods(ctx context.Context, p *Phone) {
	if s.flood == nil {
		return
	}
	const size = 32 << 10
	chunk := slices.Repeat([]byte{'x'}, size)
	for left := *s.flood.flood; left != 0 && ctx.Err() == nil && slices.Contains(p.faults(), s.flood); {
		if left > 0 {
			chunk = chunk[:min(left, size)]
			left -= int64(len(chunk))
		}
		if _, err := s.Write(chunk); err != nil {
			return
		}
	}
}
