//go:build unix

package bisect

import (
	"os/exec"
	"syscall"
)

// groupOf gives a command a process group of its own: Ctrl-C on a terminal does not reach it, and
// it is asked to end once, with all that it has started.
func groupOf(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interruptGroup asks a command to end. The group may be empty.
func interruptGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

// endGroup ends what a command has left behind. The group may be empty.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
