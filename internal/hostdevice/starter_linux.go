package hostdevice

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// starter starts processes that the kernel kills if this process is killed. The
// kernel kills such a process when the thread that started it ends (prctl(2),
// PR_SET_PDEATHSIG), so a single thread starts all processes and stays alive.
type starter struct {
	jobs chan job
	done chan struct{}
}

type job struct {
	cmd    *exec.Cmd
	result chan<- error
}

func newStarter() *starter {
	s := &starter{jobs: make(chan job), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *starter) run() {
	// The thread is never unlocked, so it ends with the goroutine. The kernel
	// then kills the remaining processes that the thread started.
	runtime.LockOSThread()
	for {
		select {
		case <-s.done:
			return
		case j := <-s.jobs:
			j.result <- j.cmd.Start()
		}
	}
}

var errClosed = errors.New("the device is closed")

// start starts cmd as user uid in a new process group.
func (s *starter) start(cmd *exec.Cmd, uid, self int) error {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if uid != self {
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return s.startWith(cmd, attr)
}

func (s *starter) startWith(cmd *exec.Cmd, attr *syscall.SysProcAttr) error {
	cmd.SysProcAttr = attr
	result := make(chan error, 1)
	select {
	case s.jobs <- job{cmd, result}:
		return <-result
	case <-s.done:
		return errClosed
	}
}

func (s *starter) close() { close(s.done) }
