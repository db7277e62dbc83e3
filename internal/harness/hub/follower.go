package hub

import (
	"sync"

	"github.com/leakgate/leakgate/reporters/record"
)

// followers are functions that receive the checks of the tests that an
// instrumentation runs on a device.
type followers struct {
	mu   sync.Mutex
	next int
	of   map[int]follower
}

type follower struct {
	device  string
	receive func(record.Check)
}

// follow calls receive with each check of a test on a device, until done is
// called.
func (f *followers) follow(device string, receive func(record.Check)) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[int]follower{}
	}
	f.next++
	n := f.next
	f.of[n] = follower{device, receive}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.of, n)
	}
}

// happened handles an event: if it records the check of a test, the followers
// of the device receive this check.
func (f *followers) happened(e record.Event) {
	if e.Check == nil || e.Check.Type != record.CheckTest {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.of {
		if one.device == "" || one.device == e.Device {
			one.receive(*e.Check)
		}
	}
}
