package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture"
)

// rotation decides whose turn it is on the detail channel: one process every
// period, the next one each time, so that the load on system_server does not
// grow with the number of processes (the article, section 4.4). Extra readings
// that a machine asks for take the slots half way between, so that two never
// follow at once. It is pure: the caller tells the time, on the device's clock.
type rotation struct {
	period time.Duration
	order  []capture.Key
	next   int
	extra  []wanted
	rest   map[capture.Key]*restingTurns
	slot   int64
}

// wanted is an extra reading asked for; due is the earliest time for it.
type wanted struct {
	key capture.Key
	due time.Duration
}

// restingTurns is how long a process that did not answer is left out.
type restingTurns struct {
	turns, left int
}

// maxPause bounds the pause, in turns of the process.
const maxPause = 16

// newRotation makes a rotation with one turn every period of device time.
func newRotation(period time.Duration) *rotation {
	return &rotation{period: period, rest: map[capture.Key]*restingTurns{}, slot: -1}
}

// Slot is the time between two chances: half the period.
func (r *rotation) Slot() time.Duration { return r.period / 2 }

// Period is the time between two turns.
func (r *rotation) Period() time.Duration { return r.period }

// SetPeriod changes the period at the time now; the next turn comes with the slot
// after the present one.
func (r *rotation) SetPeriod(period, now time.Duration) {
	r.period = period
	r.slot = int64(now / r.Slot())
}

// Len is the number of processes in the round.
func (r *rotation) Len() int { return len(r.order) }

// Round is the time in which every process has had its turn.
func (r *rotation) Round() time.Duration { return r.period * time.Duration(len(r.order)) }

// Add puts a process at the end of the round; one that is there stays in place.
func (r *rotation) Add(k capture.Key) {
	for _, have := range r.order {
		if have == k {
			return
		}
	}
	r.order = append(r.order, k)
}

// Remove takes a process out of the round, with everything asked for it.
func (r *rotation) Remove(k capture.Key) {
	for i, have := range r.order {
		if have != k {
			continue
		}
		r.order = append(r.order[:i], r.order[i+1:]...)
		if i < r.next {
			r.next--
		}
		break
	}
	r.Cancel(k)
	delete(r.rest, k)
}

// Want asks for n extra readings of k in all, spacing apart, the first as soon
// as a slot is free after now. A process that rests is not asked.
func (r *rotation) Want(k capture.Key, n int, now, spacing time.Duration) {
	r.Cancel(k)
	if r.rest[k] != nil {
		return
	}
	for i := range n {
		r.extra = append(r.extra, wanted{k, now + time.Duration(i)*spacing})
	}
}

// Cancel drops the extra readings of k.
func (r *rotation) Cancel(k capture.Key) {
	kept := r.extra[:0]
	for _, e := range r.extra {
		if e.key != k {
			kept = append(kept, e)
		}
	}
	r.extra = kept
}

// Wanted is how many extra readings of k are still to come.
func (r *rotation) Wanted(k capture.Key) int {
	n := 0
	for _, e := range r.extra {
		if e.key == k {
			n++
		}
	}
	return n
}

// Turn gives the process to read at the time now, counted from the start of the
// run, if there is one. It answers at most once a slot. Even slots belong to the
// round, odd slots to extra readings.
func (r *rotation) Turn(now time.Duration) (capture.Key, bool) {
	slot := int64(now / r.Slot())
	if slot <= r.slot {
		return capture.Key{}, false
	}
	r.slot = slot
	if slot%2 == 1 {
		return r.takeExtra(now)
	}
	return r.takeNext()
}

func (r *rotation) takeExtra(now time.Duration) (capture.Key, bool) {
	best := -1
	for i, e := range r.extra {
		if e.due <= now && (best < 0 || e.due < r.extra[best].due) {
			best = i
		}
	}
	if best < 0 {
		return capture.Key{}, false
	}
	k := r.extra[best].key
	r.extra = append(r.extra[:best], r.extra[best+1:]...)
	return k, true
}

// takeNext gives the next process of the round that is not resting.
func (r *rotation) takeNext() (capture.Key, bool) {
	for range r.order {
		k := r.order[r.next%len(r.order)]
		r.next = (r.next + 1) % len(r.order)
		p := r.rest[k]
		if p == nil || p.left == 0 {
			return k, true
		}
		p.left--
	}
	return capture.Key{}, false
}

// Hung notes that k did not answer: it rests for 1, 2, 4 up to 16 of its turns.
func (r *rotation) Hung(k capture.Key) {
	p := r.rest[k]
	if p == nil {
		p = &restingTurns{}
		r.rest[k] = p
	}
	p.turns = min(max(1, 2*p.turns), maxPause)
	p.left = p.turns
	r.Cancel(k)
}

// Answered notes that k answered: it rests no longer.
func (r *rotation) Answered(k capture.Key) { delete(r.rest, k) }

// Rests reports whether k is left out because it did not answer.
func (r *rotation) Rests(k capture.Key) bool { return r.rest[k] != nil }

// maxBorrowed bounds the slots to come that readings out of turn have taken: two of each period.
const maxBorrowed = 8

// Borrow takes the next slots of one period, those of now first, for a reading at once: as long as
// readings out of turn come once a period, they are instead of those of the round. It is false
// where too many are taken already.
func (r *rotation) Borrow(now time.Duration) bool {
	slot := int64(now / r.Slot())
	last := max(r.slot, slot-1) + 2
	if last-slot >= maxBorrowed {
		return false
	}
	r.slot = last
	return true
}

// Skip leaves out the slot of now and the one after: a reading that was given up
// keeps system_server busy on the device for a while.
func (r *rotation) Skip(now time.Duration) { r.slot = int64(now/r.Slot()) + 1 }
