package spool

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// asOther runs f without root privileges, because root may read everything.
func asOther(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		const nobody = 65534
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Error(err)
			return
		}
		f()
	}()
	<-done
}

// TestFull writes to a disk that is full.
func TestFull(t *testing.T) {
	dir := folder(t)
	closed := 0
	full := func(string) (*os.File, func() error, error) {
		f, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		return f, func() error { closed++; return f.Close() }, nil
	}
	f, err := open(t, gzipped(t, dumpLike(5000)), Options{Dir: dir, create: full})
	if f != nil || closed != 1 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v, %v, closed %d", f, err, closed)
	}
	for _, part := range []string{
		"spool standard input: write a temporary file in " + dir +
			": no space left on device; written: 0 bytes, free there: ", "TMPDIR",
	} {
		if err != nil && !strings.Contains(err.Error(), part) {
			t.Errorf("%v, want %s", err, part)
		}
	}
	checkNoGoroutine(t)
}
