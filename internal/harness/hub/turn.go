package hub

import (
	"context"
	"slices"
	"sync"
)

// turns lends devices to specs in the order of the requests. Each device is
// lent to one spec at a time. Before the run starts, the number of devices is
// unknown, so only one spec has a turn.
type turns struct{ *ring }

type ring struct {
	mu sync.Mutex
	// free lists the devices that are not lent; "" stands for the first device
	// of a run that has not started.
	free    []string
	all     []string
	holders map[*Turn]bool
	numbers int
	waiting []chan *Turn
}

func newTurns() turns {
	return turns{&ring{free: []string{""}, holders: map[*Turn]bool{}}}
}

// Turn is the right of one spec to drive a device until Release is called.
type Turn struct {
	// Device is the serial of the device, or "" if the run has not started.
	Device string
	// number identifies the turn in the suite.
	number int
	holder string
	of     *ring
	once   sync.Once
}

// Release passes the device to the next spec. It may be called more than once.
func (t *Turn) Release() {
	t.once.Do(func() { t.of.release(t) })
}

// open adds the devices of the run. A spec that already holds a turn keeps it
// and gets the first device.
func (r *ring) open(devices []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = devices
	held := len(r.holders) > 0
	for t := range r.holders {
		t.Device = devices[0]
	}
	r.free = slices.Clone(devices)
	if held {
		r.free = r.free[1:]
	}
	r.serve()
}

// first returns the device if the run has only one; otherwise, it returns "".
func (r *ring) first() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) == 1 {
		return r.all[0]
	}
	return ""
}

// deviceOf returns the device of a turn that another process holds, or "" if
// the turn has no device yet.
func (r *ring) deviceOf(number int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for t := range r.holders {
		if t.number == number {
			return t.Device
		}
	}
	return ""
}

// serve lends free devices to waiting specs.
func (r *ring) serve() {
	for len(r.free) > 0 && len(r.waiting) > 0 {
		r.numbers++
		t := &Turn{Device: r.free[0], number: r.numbers, of: r}
		r.free = r.free[1:]
		r.holders[t] = true
		r.waiting[0] <- t
		r.waiting = r.waiting[1:]
	}
}

func (r *ring) release(t *Turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holders, t)
	r.free = append(r.free, t.Device)
	r.serve()
}

// take waits for a turn. If it has to wait, it calls waiting once with the
// holder of the devices.
func (r *ring) take(ctx context.Context, who string, waiting func(holder string)) (*Turn, error) {
	got := make(chan *Turn, 1)
	r.mu.Lock()
	r.waiting = append(r.waiting, got)
	r.serve()
	holder := ""
	for t := range r.holders {
		if t.holder != "" {
			holder = t.holder
		}
	}
	r.mu.Unlock()
	select {
	case t := <-got:
		return r.name(t, who), nil
	default:
	}
	waiting(holder)
	select {
	case t := <-got:
		return r.name(t, who), nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	r.waiting = slices.DeleteFunc(r.waiting, func(c chan *Turn) bool { return c == got })
	r.mu.Unlock()
	select {
	case t := <-got: // the device was assigned at the last moment
		t.Release()
	default:
	}
	return nil, context.Cause(ctx)
}

func (r *ring) name(t *Turn, who string) *Turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.holder = who
	return t
}

// Turn waits until a device is free, and lends it to a spec. If it has to wait,
// it calls waiting with the spec that holds the device.
func (h *Hub) Turn(ctx context.Context, spec string, waiting func(holder string)) (Lent, error) {
	return h.turn(ctx, spec, waiting)
}

func (h *Hub) turn(ctx context.Context, spec string, waiting func(holder string)) (lent, error) {
	t, err := h.turns.take(ctx, spec, waiting)
	return lent{t}, err
}

// Lent is a device that is lent to a spec.
type Lent interface {
	// Serial is the serial of the device, or "" if the run has not started.
	Serial() string
	Release()
}

type lent struct{ *Turn }

func (l lent) Serial() string {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	return l.Device
}
