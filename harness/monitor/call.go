package monitor

import "time"

// call is one kind of request to the device: at most one is in flight.
type call[T any] struct {
	done     chan answer[T]
	inFlight bool
}

type answer[T any] struct {
	value T
	err   error
	// after is the latest reading of the device's clock when the request began, and
	// boot the number of reboots until then.
	after time.Duration
	boot  int
}

// requestKind names a kind of request, for faults that are recorded once.
type requestKind string

const (
	requestLook     requestKind = "look"
	requestRound    requestKind = "round"
	requestDetail   requestKind = "detail"
	requestPulse    requestKind = "pulse"
	requestSweep    requestKind = "sweep"
	requestHeadroom requestKind = "headroom"
	requestCollect  requestKind = "collect"
	requestGarbage  requestKind = "garbage"
	// Two more faults are recorded once: too many processes, and those that cannot be named.
	faultCrowd requestKind = "crowd"
	faultNames requestKind = "names"
)

func newCall[T any]() call[T] { return call[T]{done: make(chan answer[T], 1)} }

// send starts a request beside the loop.
func send[T any](p *port, c *call[T], request func() (T, error)) {
	c.inFlight = true
	after, boot := p.part.Up(), p.boots
	p.calls.Go(func() {
		v, err := request()
		c.done <- answer[T]{v, err, after, boot}
	})
}
