package main

import (
	"io"
	"time"
)

// asyncWriter writes in the background and in order. A terminal that was stopped
// (Ctrl-S), or a pipe that nobody reads, must not hold up the sampling: text that does
// not fit into the queue is dropped, and the record of the run has it.
type asyncWriter struct {
	w     io.Writer
	queue chan []byte
	done  chan struct{}
}

const (
	// maxWaiting is how many writes may wait.
	maxWaiting = 1024
	// lastWrites is how long the end waits for what is queued.
	lastWrites = time.Second
)

func newAsyncWriter(w io.Writer) *asyncWriter {
	a := &asyncWriter{w: w, queue: make(chan []byte, maxWaiting), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		for text := range a.queue {
			if _, err := a.w.Write(text); err != nil {
				continue // nobody is there any more; the queue is emptied
			}
		}
	}()
	return a
}

// Write implements io.Writer; it never fails and never waits.
func (a *asyncWriter) Write(p []byte) (int, error) {
	select {
	case a.queue <- append([]byte(nil), p...):
	default:
	}
	return len(p), nil
}

// close waits for what is queued, for a moment. Nothing may be written after it.
func (a *asyncWriter) close() {
	close(a.queue)
	select {
	case <-a.done:
	case <-time.After(lastWrites):
	}
}
