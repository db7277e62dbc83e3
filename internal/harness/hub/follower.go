package hub

import (
	"sync"

	"github.com/leakgate/leakgate/reporters/record"
)

// followers are told of the checks of tests that an instrumentation runs on a device.
type followers struct {
	mu   sync.Mutex
	next int
	of   map[int]follower
}

type follower struct {
	device string
	told   func(record.Check)
}

// follow has a function told of the tests on a device, until done is called.
func (f *followers) follow(device string, told func(record.Check)) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[int]follower{}
	}
	f.next++
	n := f.next
	f.of[n] = follower{device, told}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.of, n)
	}
}

// happened tells an event to those whom it concerns.
func (f *followers) happened(e record.Event) {
	if e.Check == nil || e.Check.Of != record.CheckTest {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.of {
		if one.device == "" || one.device == e.Device {
			one.told(*e.Check)
		}
	}
}
