//go:build !unix

package store

import "os/exec"

// detach does nothing: os/exec cannot use process groups on this system, so
// only the program itself is terminated.
func detach(*exec.Cmd) {}

func endAll(*exec.Cmd) {}
