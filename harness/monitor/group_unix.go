//go:build unix

package monitor

import (
	"os/exec"
	"syscall"
)

// groupOf gives the command a process group of its own, so that what it starts
// can be ended with it.
func groupOf(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// endGroup ends the command and what it has left behind. The group may be empty.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
