package androidsim

import (
	"context"
	"syscall"
	"time"

	"github.com/leakgate/leakgate/internal/ksh"
)

// The signals that have an effect on the phone.
const (
	sigHUP  = 1
	sigKill = 9
	sigUSR1 = 10
	sigSegv = 11
	sigPipe = 13
	sigTerm = 15
)

// harmless reports whether an Android app survives a signal: ART catches QUIT
// (stack traces) and USR1 (a collection); the others have no effect by default.
func harmless(signal int) bool {
	switch signal {
	case 0, 3, sigUSR1, 17, 18, 19, 20, 23, 28:
		return true
	}
	return false
}

// task is a shell, or one of its jobs, in the process table.
type task struct {
	pid, group, parent, uid int
	name                    string
	start                   time.Duration
	cancel                  context.CancelCauseFunc
}

func (t *task) kill(signal int) { t.cancel(ksh.Signal(signal)) }

func (t *task) view(up time.Duration) view {
	return view{
		name: t.name, pid: t.pid, ppid: t.parent, uid: t.uid, shell: true, start: t.start, up: up,
		age: max(0, up-t.start), gc: never,
	}
}

// startTask adds a task to the table. Its context is canceled when the task is
// killed. A parent of 0 means adbd; a group of 0 starts a new group.
func (p *Phone) startTask(ctx context.Context, name string, uid, parent, group int) (context.Context, *task) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		p.lastTask++
		if p.lastTask > lastPID {
			p.lastTask = firstShellPID
		}
		if p.tasks[p.lastTask] == nil {
			break
		}
	}
	up := p.clock.up()
	if parent == 0 {
		p.advance(up)
		parent = p.processNamed("adbd").pid
	}
	t := &task{pid: p.lastTask, group: group, parent: parent, uid: uid, name: name, start: up, cancel: cancel}
	if group == 0 {
		t.group = t.pid
	}
	p.tasks[t.pid] = t
	return ctx, t
}

func (p *Phone) endTask(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tasks, t.pid)
	t.cancel(nil)
}

// signal sends a signal to a process, or to a group if pid is negative.
func (p *Phone) signal(c cred, pid, signal int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	up := p.clock.up()
	p.advance(up)
	found, sent := false, false
	for _, t := range p.tasks {
		if t.pid != pid && t.group != -pid {
			continue
		}
		found = true
		if c.UID != uidRoot && c.UID != t.uid {
			continue
		}
		sent = true
		if signal != 0 && (!harmless(signal) || signal == 3 || signal == sigUSR1) {
			t.kill(signal)
		}
	}
	for _, proc := range p.procs {
		if !proc.alive() || proc.pid != pid {
			continue
		}
		found = true
		if c.UID != uidRoot && c.UID != proc.uid {
			continue
		}
		sent = true
		p.deliver(proc, signal, up)
	}
	switch {
	case !found:
		return syscall.ESRCH
	case !sent:
		return syscall.EPERM
	}
	return nil
}

// deliver applies a signal to a process; init and kernel threads survive it.
func (p *Phone) deliver(proc *process, signal int, up time.Duration) {
	switch {
	case proc.kernel || proc.pid == 1:
	case signal == sigUSR1 && !proc.native:
		proc.gc = proc.age(up)
		p.logCollection(proc, up, true)
	case !harmless(signal), signal == sigUSR1: // signals whose default action ends a process (signal(7))
		p.end(proc, up, proc.backAfter(), killed(signal))
	}
}
