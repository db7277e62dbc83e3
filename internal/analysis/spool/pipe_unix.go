//go:build unix

package spool

import (
	"os"
	"syscall"
)

// wake ends an open of a FIFO that waits for a writer, by being one until it
// has returned. Opening a FIFO to read and write does not block (Linux fifo(7),
// and the BSDs). Without write permission, the open keeps waiting.
func wake(path string, ended <-chan struct{}) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	<-ended
}
