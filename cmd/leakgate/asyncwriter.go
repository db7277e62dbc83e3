package main

import (
	"io"
	"time"
)

// asyncWriter writes in the background; it preserves the order of the writes. A
// stopped terminal (Ctrl-S), or a pipe that nobody reads, must not delay the
// sampling. Text that does not fit into the queue is dropped; the record of the
// run still contains it.
type asyncWriter struct {
	w     io.Writer
	queue chan []byte
	done  chan struct{}
}

const (
	// maxWaiting is the capacity of the queue, in writes.
	maxWaiting = 1024
	// lastWrites is how long close waits for the queue to empty.
	lastWrites = time.Second
)

func newAsyncWriter(w io.Writer) *asyncWriter {
	a := &asyncWriter{w: w, queue: make(chan []byte, maxWaiting), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for text := range a.queue {
			if _, err := a.w.Write(text); err != nil {
				continue // nobody reads the output any more; keep emptying the queue
			}
		}
	}()
	return a
}

// Write implements io.Writer; it never fails and never blocks.
func (a *asyncWriter) Write(p []byte) (int, error) {
	select {
	case a.queue <- append([]byte(nil), p...):
	default:
	}
	return len(p), nil
}

// close waits briefly for the queued writes. Write must not be called after
// close.
func (a *asyncWriter) close() {
	close(a.queue)
	select {
	case <-a.done:
	case <-time.After(lastWrites):
	}
}
