//go:build !unix

package store

import "os/exec"

// detach does nothing: this system has no process groups that os/exec can use,
// so that only the program itself is ended.
func detach(*exec.Cmd) {}

func endAll(*exec.Cmd) {}
