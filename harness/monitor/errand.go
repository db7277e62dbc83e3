package monitor

import (
	"time"
)

// trip is one kind of errand to the device: at most one is on its way.
type trip[T any] struct {
	done chan answer[T]
	away bool
}

type answer[T any] struct {
	value T
	err   error
	// after is the latest reading of the device's clock when the errand began, and
	// boot the number of reboots until then.
	after time.Duration
	boot  int
}

// errand names a kind of errand for complaints.
type errand string

const (
	errandLook     errand = "look"
	errandRound    errand = "round"
	errandDetail   errand = "detail"
	errandPulse    errand = "pulse"
	errandSweep    errand = "sweep"
	errandHeadroom errand = "headroom"
	errandCollect  errand = "collect"
	errandGarbage  errand = "garbage"
	// crowd is no errand: too many processes are told once for the whole run.
	crowd errand = "crowd"
	// names is no errand either: processes that cannot be named.
	names errand = "names"
)

func newTrip[T any]() trip[T] { return trip[T]{done: make(chan answer[T], 1)} }

// send starts an errand beside the session.
func send[T any](s *session, t *trip[T], errand func() (T, error)) {
	t.away = true
	after, boot := s.part.Up(), s.boots
	s.trips.Go(func() {
		v, err := errand()
		t.done <- answer[T]{v, err, after, boot}
	})
}
