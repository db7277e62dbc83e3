//go:build !unix

package bisect

import "os/exec"

// groupOf does nothing: os/exec cannot use process groups on this system, so
// only the command itself is killed.
func groupOf(*exec.Cmd) {}

// interruptGroup kills the command: this system cannot interrupt it.
func interruptGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// endGroup kills the command, if it has not ended yet.
func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
