//go:build unix

package bisect

import (
	"os/exec"
	"syscall"
)

// groupOf puts a command into a process group of its own. Ctrl-C in a terminal
// then reaches only leakgate, which interrupts the command once, together with
// all its child processes.
func groupOf(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interruptGroup interrupts a command. The group may be empty.
func interruptGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

// endGroup kills the processes that a command has left running. The group may
// be empty.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
