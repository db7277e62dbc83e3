package main

import (
	"io"
	"time"
)

// lane writes what it is given in the background and in order. A terminal that was
// stopped (Ctrl-S), or a pipe that nobody reads, must not hold up the sampling: what
// does not fit into the lane is left out, and the record of the run has it.
type lane struct {
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

func newLane(w io.Writer) *lane {
	l := &lane{w: w, queue: make(chan []byte, maxWaiting), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for text := range l.queue {
			if _, err := l.w.Write(text); err != nil {
				continue // nobody is there any more; the queue is emptied
			}
		}
	}()
	return l
}

// Write implements io.Writer; it never fails and never waits.
func (l *lane) Write(p []byte) (int, error) {
	select {
	case l.queue <- append([]byte(nil), p...):
	default:
	}
	return len(p), nil
}

// close waits for what is queued, for a moment. Nothing may be written after it.
func (l *lane) close() {
	close(l.queue)
	select {
	case <-l.done:
	case <-time.After(lastWrites):
	}
}
