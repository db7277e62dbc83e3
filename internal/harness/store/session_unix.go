//go:build unix

package store

import (
	"os/exec"
	"syscall"
)

// detach makes a program start in its own session: the program has no terminal
// to prompt on, and can be terminated together with its child processes.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endAll kills the remaining processes of a program.
func endAll(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
