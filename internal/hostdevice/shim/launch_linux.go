package shim

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/leakgate/leakgate/internal/hostdevice/proctable"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// prSetTHPDisable prevents the kernel from allocating 2 MiB when 4 KiB are
// touched (PR_SET_THP_DISABLE; it persists across execve). Phones do not use
// such large pages.
const prSetTHPDisable = 41

// Launch replaces this process with the program args[1]. The command line of
// the program begins with args[0] instead of its path, because the command line
// of an app begins with the process name.
func Launch(args []string) int {
	if len(args) < 2 {
		return 2
	}
	// The result is ignored: old kernels may not support this, and large pages
	// only make the growth less smooth.
	syscall.Syscall6(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0, 0)
	// ART blocks signal 10 from the start (runtime/signal_catcher.cc); if the
	// signal were not ignored here, it would kill a Java virtual machine whose
	// app has not yet installed its handler.
	signal.Ignore(syscall.SIGUSR1)
	if err := limitFiles(os.Getenv(state.FilesVariable)); err != nil {
		return fail(os.Stderr, args[0], err)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return fail(os.Stderr, args[0], err)
	}
	err = syscall.Exec(path, append([]string{args[0]}, args[2:]...), os.Environ())
	return fail(os.Stderr, args[0], err)
}

// limitFiles sets the maximum number of open files. A Java virtual machine
// raises its soft limit to the hard limit (HotSpot os_linux.cpp, MaxFDLimit),
// so both are set.
func limitFiles(most string) error {
	if most == "" {
		return nil
	}
	n, err := strconv.ParseUint(most, 10, 32)
	if err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		return fmt.Errorf("limit open files: %w", err)
	}
	return nil
}

// WaitForEOF waits until standard input ends, which happens no matter how the
// device ends. Then it kills all processes of the device and removes its
// directory.
func WaitForEOF(args []string) int {
	if len(args) != 1 {
		return 2
	}
	var none [1]byte
	for {
		if n, err := os.Stdin.Read(none[:]); n == 0 && err != nil {
			break
		}
	}
	pids, err := proctable.WithVariable(state.Variable, args[0])
	if err != nil {
		return fail(os.Stderr, "keep", err)
	}
	err = proctable.KillWithVariable(state.Variable, args[0])
	for _, pid := range pids {
		os.Remove(state.AttachSocket(pid))
	}
	if err := os.RemoveAll(args[0]); err != nil {
		return fail(os.Stderr, "keep", err)
	}
	if err != nil {
		return fail(os.Stderr, "keep", err)
	}
	return 0
}
