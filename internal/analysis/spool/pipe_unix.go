//go:build unix

package spool

import (
	"os"
	"syscall"
)

// wake unblocks an open of a FIFO that is waiting for a writer: it opens the
// FIFO for writing and keeps it open until that open has returned. Opening a
// FIFO for both reading and writing does not block (Linux fifo(7), and the
// BSDs). Without write permission, the open keeps waiting.
func wake(path string, ended <-chan struct{}) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	<-ended
}
