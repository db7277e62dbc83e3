package main

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// The program exits if the disk is full. Only the record remains, and it
// contains the reason.
func TestWatchOnADiskThatFills(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("leakgate-test", disk, "tmpfs", 0, "size=3M"); err != nil {
		recorded.Missing(t, "this test requires a small disk: mount tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	t.Chdir(disk)
	synctest.Test(t,
		end{3 * time.Second, func(func(), *adbd.Server) { fill(t) }, record.ExitUnwritten, record.StoppedDisk}.check)
}

// fill writes to the working directory until it is full.
func fill(t *testing.T) {
	f, err := os.Create("filler")
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
	}
}
