//go:build !linux

package adbtest

import "os/exec"

// runTied runs cmd to its end.
func runTied(cmd *exec.Cmd) error { return cmd.Run() }
