package monitor

import (
	"context"
	"sync"

	"github.com/leakgate/leakgate/reporters/record"
)

// recording writes the lines of a run, and ends the run if they cannot be
// written.
type recording struct {
	recorder *record.Recorder
	// stop ends the run.
	stop context.CancelCauseFunc

	mu  sync.Mutex
	err error
}

// checkWrite keeps the first write error and ends the run, because measurements
// that cannot be recorded are useless.
func (r *recording) checkWrite(err error) (written bool) {
	if err == nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
		r.stop(errDisk)
	}
	return false
}

func (r *recording) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
