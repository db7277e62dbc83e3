package monitor

import (
	"time"

	"github.com/leakgate/leakgate/capture"
)

// rotation decides which process the detail channel reads next. It reads one
// process per period, in turn, so the load on system_server does not grow with
// the number of processes (the article, section 4.4). Extra readings that a
// detector demands use the slots halfway between two turns, so no reading
// immediately follows another. A rotation has no clock: the caller passes the
// time on the device's clock.
type rotation struct {
	period  time.Duration
	order   []capture.Key
	next    int
	extra   []extraReading
	resting map[capture.Key]*restState
	slot    int64
}

// extraReading is a requested extra reading; due is its earliest time.
type extraReading struct {
	key capture.Key
	due time.Duration
}

// restState records for how many turns a process that did not respond is
// skipped.
type restState struct {
	turns, left int
}

// maxPause is the maximum number of turns for which a process that did not
// respond is skipped.
const maxPause = 16

// newRotation returns a rotation with one turn per period. The period is in
// device time.
func newRotation(period time.Duration) *rotation {
	return &rotation{period: period, resting: map[capture.Key]*restState{}, slot: -1}
}

// Slot returns the time between two slots: half the period.
func (r *rotation) Slot() time.Duration { return r.period / 2 }

// Period returns the time between two turns.
func (r *rotation) Period() time.Duration { return r.period }

// SetPeriod changes the period, effective at now. The next turn is in the slot
// after the present one.
func (r *rotation) SetPeriod(period, now time.Duration) {
	r.period = period
	r.slot = int64(now / r.Slot())
}

// Len returns the number of processes in a round.
func (r *rotation) Len() int { return len(r.order) }

// Round returns the time within which every process has one turn.
func (r *rotation) Round() time.Duration { return r.period * time.Duration(len(r.order)) }

// Add appends a process to the round, unless it is already in the round.
func (r *rotation) Add(k capture.Key) {
	for _, have := range r.order {
		if have == k {
			return
		}
	}
	r.order = append(r.order, k)
}

// Remove removes a process and its extra readings from the round.
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
	delete(r.resting, k)
}

// Want replaces the pending extra readings of k with n new ones. The first one
// is in the next free slot after now, and the others follow at the given
// spacing. A resting process gets no extra readings.
func (r *rotation) Want(k capture.Key, n int, now, spacing time.Duration) {
	r.Cancel(k)
	if r.resting[k] != nil {
		return
	}
	for i := range n {
		r.extra = append(r.extra, extraReading{k, now + time.Duration(i)*spacing})
	}
}

// Cancel removes the pending extra readings of k.
func (r *rotation) Cancel(k capture.Key) {
	kept := r.extra[:0]
	for _, e := range r.extra {
		if e.key != k {
			kept = append(kept, e)
		}
	}
	r.extra = kept
}

// Wanted returns the number of pending extra readings of k.
func (r *rotation) Wanted(k capture.Key) int {
	n := 0
	for _, e := range r.extra {
		if e.key == k {
			n++
		}
	}
	return n
}

// Turn returns the process to read at the time now, counted from the start of
// the run. It returns false if there is no process to read. Each slot has at
// most one reading. Even slots belong to the round, odd slots to extra
// readings.
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

// takeNext returns the next process in the round, skipping processes that rest.
func (r *rotation) takeNext() (capture.Key, bool) {
	for range r.order {
		k := r.order[r.next%len(r.order)]
		r.next = (r.next + 1) % len(r.order)
		p := r.resting[k]
		if p == nil || p.left == 0 {
			return k, true
		}
		p.left--
	}
	return capture.Key{}, false
}

// MarkUnanswered records that k did not respond: k skips 1 turn, then 2, 4 and
// so on, up to 16.
func (r *rotation) MarkUnanswered(k capture.Key) {
	p := r.resting[k]
	if p == nil {
		p = &restState{}
		r.resting[k] = p
	}
	p.turns = min(max(1, 2*p.turns), maxPause)
	p.left = p.turns
	r.Cancel(k)
}

// Answered records that k has responded, which ends its rest.
func (r *rotation) Answered(k capture.Key) { delete(r.resting, k) }

// Resting reports whether k is skipped because it did not respond.
func (r *rotation) Resting(k capture.Key) bool { return r.resting[k] != nil }

// maxBorrowed bounds the number of future slots that out-of-turn readings may
// take. There are two slots per period.
const maxBorrowed = 8

// Borrow takes the slots of one period, starting now, for an immediate reading.
// If immediate readings occur at most once per period, they replace the
// readings of the round. It returns false if too many slots have been taken
// already.
func (r *rotation) Borrow(now time.Duration) bool {
	slot := int64(now / r.Slot())
	last := max(r.slot, slot-1) + 2
	if last-slot >= maxBorrowed {
		return false
	}
	r.slot = last
	return true
}

// Skip skips the present slot and the next one: after an aborted reading,
// system_server on the device stays busy for a while.
func (r *rotation) Skip(now time.Duration) { r.slot = int64(now/r.Slot()) + 1 }
