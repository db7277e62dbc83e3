//go:build !unix

package monitor

import "os/exec"

// startInGroup does nothing: os/exec cannot use process groups on this system,
// so only the command itself is killed.
func startInGroup(*exec.Cmd) {}

// killGroup kills the command if it has not ended yet.
func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
