//go:build unix

package store

import (
	"os/exec"
	"syscall"
)

// detach gives a program a session of its own: it has no terminal to ask on, and what it starts can
// be ended with it.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endAll ends what is left of a program and what it has started.
func endAll(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
