//go:build unix

package spool

import (
	"os"
	"syscall"
)

// wake ends an open of a FIFO that waits for a writer, by being one until it has
// ended. Opening a FIFO to read and write does not wait (Linux fifo(7), and so do
// the BSDs). Without the right to write to it, the open goes on waiting.
func wake(path string, ended <-chan struct{}) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	<-ended
}
