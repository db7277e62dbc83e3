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

// fault is a fault of the phone; its non-zero fields specify what goes wrong. A
// fault is immutable, except for the values to which its pointers refer.
type fault struct {
	// state is the state that adb reports instead of "device".
	state string
	// rootless means that adbd has dropped root; oldShell means that adbd lacks
	// shell_v2.
	rootless, oldShell bool
	// files is the path.Match pattern of the files that are broken, and file
	// describes how they are broken.
	files string
	file  FileFault
	// truncation, garbled and flood affect the output of commands.
	truncation *truncation
	garbled    *garble
	flood      *int64
	// dumpsys is the duration of one dumpsys; hangs means that no dumpsys
	// returns.
	dumpsys time.Duration
	hangs   bool
	// full is the maximum total size of all files, in bytes.
	full *int64
	dies *sampleDeath
	// cut is the size to which a heap dump is truncated, in bytes.
	cut *int64
	// asked is called for each adb request.
	asked func(Request)
}

// faults returns the active faults in the order in which they started.
func (p *Phone) faults() []*fault {
	if all := p.wrong.Load(); all != nil {
		return *all
	}
	return nil
}

// hold activates a fault until the returned function is called.
func (p *Phone) hold(f *fault) (end func()) {
	p.alter(func(all []*fault) []*fault { return append(slices.Clone(all), f) })
	return sync.OnceFunc(func() {
		p.alter(func(all []*fault) []*fault {
			return slices.DeleteFunc(slices.Clone(all), func(g *fault) bool { return g == f })
		})
	})
}

// alter replaces the list of faults instead of changing it, because readers
// hold no lock.
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

// notify wakes everyone waiting on Changed. The caller must hold altering.
func (p *Phone) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Changed implements adbd.Notifier: a change of Identity closes the channel.
func (p *Phone) Changed() <-chan struct{} {
	p.altering.Lock()
	defer p.altering.Unlock()
	return p.changed
}

// SetAdbState changes the state that adb reports, for example to
// adbd.StateOffline or adbd.StateUnauthorized; the latest fault takes
// precedence. SetAdbState drops connections, which stops their commands.
func (p *Phone) SetAdbState(state string) (end func()) { return p.hold(&fault{state: state}) }

// LoseRoot restarts adbd as the shell user, like `adb unroot`, and restarts it
// again when the fault ends; both drop connections. Without Options.Root,
// LoseRoot only drops the connections.
func (p *Phone) LoseRoot() (end func()) { return p.restartADBD(&fault{rootless: true}) }

// OldShell removes the features that adbd gained in Android 7: stdout and
// stderr are merged, lines end in \r\n, and there is no exit code. OldShell
// restarts adbd, as does the end of the fault; both drop connections.
func (p *Phone) OldShell() (end func()) { return p.restartADBD(&fault{oldShell: true}) }

// restartADBD activates a fault, and restarts adbd when the fault starts and
// when it ends.
func (p *Phone) restartADBD(f *fault) (end func()) {
	release := p.hold(f)
	p.newADBD()
	return sync.OnceFunc(func() {
		release()
		p.newADBD()
	})
}

// newADBD restarts the adbd process, which starts a new session.
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

// FileFault describes how a file is broken.
type FileFault int

const (
	// FileMissing means that the file does not exist and is not listed in its
	// directory.
	FileMissing FileFault = iota + 1
	// FileDenied means that reading fails: "Permission denied", even for root.
	FileDenied
	// FileEmpty means that the file can be read but is empty, like files of
	// /proc/PID while the process ends.
	FileEmpty
	// FileGone means that reading the open file fails: "No such process", like
	// files of /proc/PID when the process ends between open and read (ESRCH,
	// fs/proc/base.c).
	FileGone
)

// BreakFile breaks all files whose absolute path matches a path.Match pattern,
// such as /proc/*/smaps_rollup. A malformed pattern matches no file. If several
// faults match a file, the latest one takes precedence.
func (p *Phone) BreakFile(pattern string, f FileFault) (end func()) {
	return p.hold(&fault{files: pattern, file: f})
}

// broken returns how a file is broken, or 0 if it is not.
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

// read returns the result of reading a broken file; ok is false if the file is
// not broken.
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

type truncation struct {
	after int64
	exit  int
}

// TruncateOutput truncates the standard output of each command that starts from
// now on after n bytes; the command is then killed and its stream ends. The
// exit status is lost; if status is true, it is reported as 0, as if adbd had
// not read it.
func (p *Phone) TruncateOutput(n int64, status bool) (end func()) {
	t := &truncation{after: max(n, 0), exit: adbd.NoExit}
	if status {
		t.exit = 0
	}
	return p.hold(&fault{truncation: t})
}

// garble is a fault that corrupts bytes in the output of commands.
type garble struct {
	every    int64
	seed     uint64
	commands atomic.Uint64
}

// GarbleOutput replaces every n-th byte (n is at least 1) in the standard
// output of each command that starts from now on. The new bytes depend on the
// seed, the position, and the number of earlier commands.
func (p *Phone) GarbleOutput(n int64, seed uint64) (end func()) {
	return p.hold(&fault{garbled: &garble{every: max(n, 1), seed: seed}})
}

// FloodOutput appends n bytes without a newline to the standard output of each
// command that starts from now on; if n is negative, the flood is endless. When
// the fault ends, the flood ends, and the command exits with its own status.
func (p *Phone) FloodOutput(n int64) (end func()) { return p.hold(&fault{flood: &n}) }

// SlowDumpsys sets the device time that each dumpsys takes from now on; 0 or
// less restores the value in the options. A dumpsys that takes longer than its
// -t (default: 10 s) prints that it timed out.
func (p *Phone) SlowDumpsys(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dumpTime = p.opt.DumpsysTime
	if d > 0 {
		p.dumpTime = d
	}
}

// DelayDumpsys is like SlowDumpsys, but the delay ends with the fault; if
// several delays are active, the longest applies.
func (p *Phone) DelayDumpsys(d time.Duration) (end func()) { return p.hold(&fault{dumpsys: d}) }

// HangDumpsys makes every dumpsys that starts from now on hang until it is
// killed, whatever its -t, even after the fault has ended.
func (p *Phone) HangDumpsys() (end func()) { return p.hold(&fault{hangs: true}) }

// FillDisk leaves n bytes of free space: no more can be written, pushed or
// dumped, and df reports n bytes. Removing files frees space.
func (p *Phone) FillDisk(n int64) (end func()) {
	p.files.mu.Lock()
	full := p.files.used + max(n, 0)
	p.files.mu.Unlock()
	return p.hold(&fault{full: &full})
}

// TruncateDump truncates each heap dump that starts from now on to n bytes,
// though am reports success.
func (p *Phone) TruncateDump(n int64) (end func()) {
	n = max(n, 0)
	return p.hold(&fault{cut: &n})
}

// StepClock steps the phone's wall clock, but not its uptime. Ending the fault
// steps the clock back.
func (p *Phone) StepClock(by time.Duration) (end func()) {
	p.skew.Add(int64(by))
	return sync.OnceFunc(func() { p.skew.Add(-int64(by)) })
}

type sampleDeath struct {
	name string
	how  FileFault

	mu   sync.Mutex
	left int
	// deadPID is the pid whose file can still be read once; spent means that
	// this read has happened.
	deadPID int
	spent   bool
}

// DieInSample kills a process once, after n more reads of files in its
// /proc/PID; n is at least 1. The next read of such a file fails as specified
// by how, which is FileGone or FileEmpty; then the directory is gone. The
// process restarts after the delay that its RestartAfter field specifies.
func (p *Phone) DieInSample(process string, n int, how FileFault) (end func()) {
	return p.hold(&fault{dies: &sampleDeath{name: process, how: how, left: max(n, 1)}})
}

// countRead counts one read of a file in the /proc/PID of a process, and kills
// the process when no reads are left.
func (d *sampleDeath) countRead(p *Phone, v view) {
	if v.name != d.name || v.shell {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return
	}
	if d.left--; d.left == 0 {
		d.deadPID = v.pid
		p.onProcess(v.name, func(proc *process, up time.Duration) {
			if proc.pid == v.pid {
				p.end(proc, up, proc.backAfter(), killed(sigKill))
			}
		})
	}
}

// readFault returns the fault for the one read after the process has ended.
func (d *sampleDeath) readFault(pid int) FileFault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.spent || pid == 0 || pid != d.deadPID {
		return 0
	}
	d.spent = true
	return d.how
}

// stranger is a native process that runs only after an explicit start.
const stranger = "logcat"

// ReusePID kills a process and immediately starts another process with the same
// pid; if the other process is already running, it is killed first. Every phone
// has a native process for ReusePID, "logcat", which does not run until
// ReusePID starts it. ReusePID returns false if the process is not running or
// the other process does not exist.
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

// Reboot restarts the phone with an uptime of 25 s, new pids except for init
// and kernel threads, and a new boot id; files are kept. Reboot drops
// connections.
func (p *Phone) Reboot() { p.RebootFor(0) }

// RebootFor is like Reboot, but the phone is then offline for a period of
// device time, which counts toward its uptime; back ends the period early.
func (p *Phone) RebootFor(down time.Duration) (back func()) {
	online := func() {}
	if down > 0 {
		online = p.SetAdbState(adbd.StateOffline)
	}
	// A command stopped by the reboot must see the new session.
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

// CrashSystem kills system_server, and with it zygote and every app, as a crash
// of zygote does (frameworks/base, com_android_internal_os_Zygote.cpp). The
// system services return with new pids after the given period of device time (0
// means immediately); the apps that restart by themselves follow. During the
// period, dumpsys and cmd find no service. back ends the period early.
func (p *Phone) CrashSystem(down time.Duration) (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	p.crashSystem(up, max(down, 0))
	return sync.OnceFunc(p.hurrySystem)
}

// ofSystem reports whether the process is system_server or a process it depends
// on.
func (p *process) ofSystem() bool { return p.spec.Name == systemServer || p.isZygote() }

func (p *process) isZygote() bool { return p.fixed == zygotePID || p.fixed == zygotePID+1 }

// crashSystem implements CrashSystem for the given time. The caller must hold
// the lock.
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
			// Processes that ended with the system stay down until the system
			// returns.
			proc.next, proc.died = max(proc.next, at+down), at
		}
	}
}

// hurrySystem restarts the services now and brings the apps' restarts forward.
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

// server returns the pid of system_server, or 0 while it is down.
func (p *Phone) server() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance(p.clock.up())
	return p.processNamed(systemServer).pid
}

// faultyOutput is the standard output of one command, subject to the faults
// that were active when it started.
type faultyOutput struct {
	w io.Writer
	// kill stops the command.
	kill       func()
	truncation *truncation
	left       int64

	garbled *garble
	stream  uint64
	at      int64

	flood *fault

	done atomic.Bool
}

// faultyOutput wraps the output of a command; it returns nil if no active fault
// affects output.
func (p *Phone) faultyOutput(w io.Writer, kill func()) *faultyOutput {
	var s *faultyOutput
	for _, f := range p.faults() {
		if f.truncation == nil && f.garbled == nil && f.flood == nil {
			continue
		}
		if s == nil {
			s = &faultyOutput{w: w, kill: kill}
		}
		switch {
		case f.truncation != nil:
			s.truncation, s.left = f.truncation, f.truncation.after
		case f.garbled != nil:
			s.garbled, s.stream = f.garbled, mix(f.garbled.seed, f.garbled.commands.Add(1))
		default:
			s.flood = f
		}
	}
	return s
}

// Write is never called concurrently: the shell guarantees that.
func (s *faultyOutput) Write(b []byte) (int, error) {
	if s.done.Load() {
		return 0, io.ErrClosedPipe
	}
	out := b
	if s.truncation != nil {
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

// garble corrupts bytes in a copy of the data.
func (s *faultyOutput) garble(b []byte) []byte {
	b = slices.Clone(b)
	every := s.garbled.every
	for i := every - 1 - s.at%every; i < int64(len(b)); i += every {
		b[i] ^= byte(1 + mix(s.stream, uint64(s.at+i))%255)
	}
	s.at += int64(len(b))
	return b
}

// floods writes the flood until it ends, the command is killed or a write
// fails.
func (s *faultyOutput) floods(ctx context.Context, p *Phone) {
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
