package adbtest

import (
	"os/exec"
	"runtime"
	"syscall"
)

// runTied runs cmd until it exits, and makes the kernel kill it if the test
// binary is killed before its cleanups run. The signal is tied to the thread
// that starts the process, so runTied keeps the thread until the process exits.
func runTied(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd.Run()
}
