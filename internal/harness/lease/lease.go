package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Request lists the requested keys, for whom, and what to do if another run has
// one.
type Request struct {
	// Folder of the leases, from Folder.
	Folder string
	// Keys to take, all or none, in any order.
	Keys []Key
	// Holder is shown to others.
	Holder Holder
	// Wait until all keys are free; only the context ends the wait.
	Wait bool
	// Waiting, if not nil, is called once if a key is held by another run.
	Waiting func(HeldError)
}

// HeldError is a key that another run holds.
type HeldError struct {
	Key Key
	// Holder may be unknown: it has just started, or its note is unreadable.
	Holder Holder
}

// Error returns one printable line.
func (e HeldError) Error() string {
	return fmt.Sprintf("%v is in use by %v", e.Key, e.Holder)
}

// Lease is the right to use some keys. Keep it until Release: the lock of an
// unreachable Lease is lost.
type Lease struct {
	mu   sync.Mutex
	held []*flock.Flock
}

// pollEvery is the mean real time between two attempts of a waiter.
const pollEvery = time.Second

// Take takes all keys of a request, or none. A key that another run holds is a
// HeldError, unless the request waits. Then the error is the end of the
// context, and wraps the last HeldError.
func Take(ctx context.Context, r Request) (*Lease, error) {
	note, err := r.Holder.encode()
	if err != nil {
		return nil, err
	}
	keys := inOrder(r.Keys, r.Folder)
	for told := false; ; told = true {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("take lease: %w", context.Cause(ctx))
		}
		lease, err := takeAll(r.Folder, keys, note)
		var held HeldError
		if !r.Wait || !errors.As(err, &held) {
			return lease, err
		}
		if !told && r.Waiting != nil {
			r.Waiting(held)
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("wait for a lease: %w: %w", err, held)
		}
	}
}

// inOrder returns each key once, in the order in which every run takes them.
// Since none waits while it holds another, no order could cause a deadlock, but
// a common order keeps the later of two runs from blocking the earlier
// needlessly.
func inOrder(keys []Key, folder string) []Key {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.path(folder), b.path(folder)) })
	return slices.CompactFunc(keys, func(a, b Key) bool { return a.path(folder) == b.path(folder) })
}

// takeAll takes every key or releases those that it has taken.
func takeAll(folder string, keys []Key, note []byte) (*Lease, error) {
	l := &Lease{}
	for _, key := range keys {
		lock, err := take(folder, key, note)
		if err != nil {
			return nil, errors.Join(err, l.Release())
		}
		l.held = append(l.held, lock)
	}
	return l, nil
}

// pause waits for the next attempt. It is randomized, so that waiters do not
// all come at once.
func pause(ctx context.Context) error {
	t := time.NewTimer(pollEvery*3/4 + rand.N(pollEvery/2))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Release releases all keys and leaves no file. It may be called again.
func (l *Lease) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, lock := range slices.Backward(l.held) {
		errs = append(errs, drop(lock))
	}
	l.held = nil
	return errors.Join(errs...)
}
