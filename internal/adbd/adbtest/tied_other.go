//go:build !linux

package adbtest

import "os/exec"

// runTied runs cmd until it exits.
func runTied(cmd *exec.Cmd) error { return cmd.Run() }
