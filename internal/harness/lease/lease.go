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

// Request specifies the keys to take, the holder, and whether to wait if
// another run holds one of the keys.
type Request struct {
	// Folder is the folder of the leases, as returned by the function Folder.
	Folder string
	// Keys are the keys to take, in any order. Either all keys are taken or
	// none.
	Keys []Key
	// Holder is shown to other runs.
	Holder Holder
	// Wait makes Take wait until all keys are free or the context is done.
	Wait bool
	// Waiting, if not nil, is called once if a key is held by another run.
	Waiting func(HeldError)
}

// HeldError is returned for a key that another run holds.
type HeldError struct {
	Key Key
	// Holder may be unknown if the other run has only just started or its note
	// is unreadable.
	Holder Holder
}

// Error returns one printable line.
func (e HeldError) Error() string {
	return fmt.Sprintf("%v is in use by %v", e.Key, e.Holder)
}

// Lease is the right to use some keys. Keep a reference to the Lease until
// Release is called, because the lock is lost when the Lease becomes
// unreachable.
type Lease struct {
	mu   sync.Mutex
	held []*flock.Flock
}

// pollEvery is the average wall-clock time between two attempts of a waiter.
const pollEvery = time.Second

// Take takes all keys of a request, or none. If another run holds a key, the
// error is a HeldError. A request that waits gets this error only if the
// context is done; the returned error then wraps both the error of the context
// and the last HeldError.
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

// inOrder returns each key once, in the order in which every run takes them. A
// run never waits while it holds a key, so a deadlock is impossible in any
// order. But a common order keeps the later of two runs from blocking the
// earlier one unnecessarily.
func inOrder(keys []Key, folder string) []Key {
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b Key) int { return cmp.Compare(a.path(folder), b.path(folder)) })
	return slices.CompactFunc(keys, func(a, b Key) bool { return a.path(folder) == b.path(folder) })
}

// takeAll takes the keys in the given order. If a key cannot be taken, takeAll
// releases the keys that it has already taken.
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

// pause waits for the next attempt. The duration is random, which prevents all
// waiters from trying at the same time.
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

// Release releases all keys and removes their files. Release may be called more
// than once.
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
