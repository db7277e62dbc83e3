//go:build !unix

package monitor

import "os/exec"

// startInGroup does nothing: this system has no process groups that os/exec can
// use, so that only the command itself is killed.
func startInGroup(*exec.Cmd) {}

// killGroup kills the command, if it has not ended yet.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
