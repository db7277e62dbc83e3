package monitor

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector/limit"
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
	if h.Err != nil {
		room.Reasons = append(room.Reasons[:len(room.Reasons):len(room.Reasons)], h.Err.Error())
	}
	e := s.naming(x.account, "headroom", "")
	e.Headroom = room
	s.at(e, h.Up)
	s.tellLimits(x)
}

// tellLimits tells the warnings that nobody was told yet. They follow from the lines, so
// that a rebuild does not hear them.
func (s *session) tellLimits(x *subject) {
	for _, w := range x.limits[min(x.told, len(x.limits)):] {
		e := s.naming(x.account, "limit", w.Text)
		e.T, e.Up = w.T, round(s.ledger.begun.Seconds()+w.T, 3)
		s.tell(e)
	}
	x.told = len(x.limits)
}

// maxLimits bounds the warnings of one process; the rules warn of each limit once or twice
// as long as it is near.
const maxLimits = 100

// roomHeard judges one reading. It is part of the account, so that a rebuild comes to the
// same warnings.
func (a *account) roomHeard(h record.Headroom, up time.Duration, seconds func(time.Duration) float64) {
	a.roomReasons = h.Reasons
	if h.JavaLimit != nil {
		a.javaLimit = *h.JavaLimit
	}
	if h.JavaGarbage != nil {
		a.javaGarbage = *h.JavaGarbage
	}
	for _, u := range []struct {
		of         limit.Resource
		used, most *int64
	}{
		{limit.FileDescriptors, h.Files, h.FileLimit},
		{limit.Threads, h.Threads, h.ThreadLimit},
		{limit.AddressSpace, h.Virtual, h.VirtualLimit},
	} {
		if u.used != nil && u.most != nil {
			a.use(u.of, limit.Use{At: up, Used: *u.used, Limit: *u.most}, seconds)
		}
	}
}

// javaHeard judges the Java heap of a breakdown: there are more of them than looks at the
// other limits, and between two of them a collection must be seen.
func (a *account) javaHeard(b record.Breakdown, up time.Duration, seconds func(time.Duration) float64) {
	if b.JavaAlloc != nil && *b.JavaAlloc <= maxBytes>>10 && a.javaLimit > 0 {
		a.use(limit.JavaHeap, limit.Use{At: up, Used: *b.JavaAlloc << 10, Limit: a.javaLimit, Garbage: a.javaGarbage}, seconds)
	}
}

func (a *account) use(of limit.Resource, u limit.Use, seconds func(time.Duration) float64) {
	for _, w := range a.room.Hear(of, u) {
		if len(a.limits) == maxLimits {
			a.limitsCut++
			continue
		}
		a.limits = append(a.limits, limitWarning(w, seconds))
	}
}

func limitWarning(w limit.Warning, seconds func(time.Duration) float64) record.LimitWarning {
	out := record.LimitWarning{T: max(0, seconds(w.At)), Resource: w.Resource.String(), Used: w.Used, Limit: w.Limit, Urgent: w.Urgent, Text: w.Text}
	if w.TimeKnown {
		out.TimeLeft = new(round(w.TimeLeft.Seconds(), 0))
	}
	return out
}

// standings are how the process stands with each limit that was seen.
func (a *account) standings() []record.Standing {
	out := []record.Standing{}
	for _, st := range a.room.State() {
		s := record.Standing{Resource: st.Resource.String(), Used: st.Used, Limit: st.Limit, Exceeded: st.Exceeded, Warned: st.Warned}
		if st.LevelKnown && !math.IsNaN(st.Share) && !math.IsInf(st.Share, 0) {
			s.Share = new(round(st.Share, 4))
		}
		if st.Rate.Known && !math.IsNaN(st.Rate.PerHour) && !math.IsInf(st.Rate.PerHour, 0) {
			s.Rate = new(round(st.Rate.PerHour, 1))
		}
		if st.TimeKnown {
			s.TimeLeft = new(round(st.TimeLeft.Seconds(), 0))
		}
		out = append(out, s)
	}
	return out
}
