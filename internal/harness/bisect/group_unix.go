//go:build unix

package bisect

import (
	"os/exec"
	"syscall"
)

// groupOf puts a command into its own process group: Ctrl-C on a terminal does
// not reach it, and it is interrupted once, with all its child processes.
func groupOf(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interruptGroup interrupts a command. The group may be empty.
func interruptGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }

// endGroup kills what a command has left behind. The group may be empty.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
