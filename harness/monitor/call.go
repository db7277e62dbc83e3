package monitor

import "time"

// call sends one kind of request to the device. At most one such request is in
// flight.
type call[T any] struct {
	done     chan answer[T]
	inFlight bool
}

type answer[T any] struct {
	value T
	err   error
	// after is the latest reading of the device's clock when the request was
	// sent; boot is the number of reboots recorded by then.
	after time.Duration
	boot  int
}

// requestKind names a kind of request. It is used to record each fault only
// once.
type requestKind string

const (
	requestScan     requestKind = "look"
	requestRound    requestKind = "round"
	requestDetail   requestKind = "detail"
	requestPulse    requestKind = "pulse"
	requestSweep    requestKind = "sweep"
	requestHeadroom requestKind = "headroom"
	requestCollect  requestKind = "collect"
	requestGarbage  requestKind = "garbage"
	// The last three values are not requests but faults, which are also
	// recorded only once: too many processes, processes with unusable names,
	// and a failed search for processes of the app that are not watched.
	faultCrowd    requestKind = "crowd"
	faultNames    requestKind = "names"
	faultSiblings requestKind = "siblings"
)

func newCall[T any]() call[T] { return call[T]{done: make(chan answer[T], 1)} }

// send runs a request in a new goroutine.
func send[T any](p *port, c *call[T], request func() (T, error)) {
	c.inFlight = true
	after, boot := p.part.Up(), p.boots
	p.calls.Go(func() {
		v, err := request()
		c.done <- answer[T]{v, err, after, boot}
	})
}
