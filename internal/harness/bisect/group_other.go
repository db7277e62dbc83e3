//go:build !unix

package bisect

import "os/exec"

// groupOf leaves the command as it is: this system has no process groups that os/exec can use, so
// that only the command itself is ended.
func groupOf(*exec.Cmd) {}

// interruptGroup ends the command: this system cannot ask it to end.
func interruptGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

// endGroup ends the command, where it has not ended yet.
func endGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
