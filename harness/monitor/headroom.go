package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

// DefaultHeadroom is the device time between two looks at what processes have left until
// their limits.
const DefaultHeadroom = 2 * time.Minute

// sendHeadroom asks for all processes at once how near they are to their limits.
func (s *session) sendHeadroom(ctx context.Context, now time.Duration) {
	if s.run.Headroom <= 0 || s.rooms.away || now < s.roomsAt {
		return
	}
	var targets []capture.Target
	for _, x := range s.order {
		if x.present && !x.paused {
			targets = append(targets, x.target())
		}
	}
	s.roomsAt = align(now, s.run.Headroom)
	if len(targets) == 0 {
		return
	}
	rooms := s.headrooms
	send(s, &s.rooms, func() ([]capture.Headroom, error) { return rooms.Read(ctx, targets) })
}

func (s *session) takeHeadroom(ctx context.Context, a answer[[]capture.Headroom]) {
	s.rooms.away = false
	if a.boot != s.boots || ctx.Err() != nil {
		return
	}
	if a.err != nil {
		s.failed(ctx, errandHeadroom, a.err)
		return
	}
	s.well(errandHeadroom)
	for _, h := range a.value {
		x := s.subjects[h.Key()]
		if x == nil || !x.Same(h.Process) || errors.Is(h.Err, capture.ErrGone) {
			continue
		}
		s.advance(ctx, h.Up, a.after)
		s.roomOf(x, h)
	}
}

// roomOf records how near a process is to its limits, and tells the warnings that follow.
func (s *session) roomOf(x *subject, h capture.Headroom) {
	room := &record.Headroom{
		Files: number(h.Files), FileLimit: number(h.FileLimit),
		Threads: number(h.Threads), ThreadLimit: number(h.ThreadLimit), ThreadLimitBy: h.ThreadLimitBy,
		Anonymous: number(h.Anonymous), AnonymousLimit: number(h.AnonymousLimit), AnonymousAssumed: h.AnonymousAssumed,
		Virtual: number(h.Virtual), VirtualLimit: number(h.VirtualLimit), Bits: h.Bits, Reasons: h.Reasons,
	}
	if use := x.response.java; use.Known {
		most, reason := h.HeapLimit(use)
		room.JavaHeap, room.JavaLimit = new(use.N), number(most)
		if reason != "" {
			room.Reasons = append(room.Reasons[:len(room.Reasons):len(room.Reasons)], reason)
		}
	}
	room.JavaGarbage = number(h.Garbage)
	x.room = h
	if h.Err != nil {
		room.Reasons = append(room.Reasons[:len(room.Reasons):len(room.Reasons)], h.Err.Error())
	}
	e := s.naming(x.Account, "headroom", "")
	e.Headroom = room
	s.at(e, h.Up)
	s.tellLimits(x)
}

// tellLimits tells the warnings that nobody was told yet. They follow from the lines, so
// that a rebuild does not hear them.
func (s *session) tellLimits(x *subject) {
	limits := x.Limits()
	for _, w := range limits[min(x.told, len(limits)):] {
		e := s.naming(x.Account, "limit", w.Text)
		e.T, e.Up = w.T, record.Round(s.part.At(0).Seconds()+w.T, 3)
		s.tell(e)
	}
	x.told = len(limits)
}
