package monitor

import (
	"context"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// Collect says at which marks garbage collections are forced, and what is left is counted.
type Collect string

// The values of Collect. CollectAuto, which is also the empty value, does so at the marks of a
// loop, at most every 10 s, in runs shorter than 2 h, in those that end with their workload, and
// in those that dump heaps at marks.
const (
	CollectAuto    Collect = "auto"
	CollectAtMarks Collect = "at_marks"
	CollectNever   Collect = "never"
)

const (
	// collectSettle is the device time between a forced collection and the readings of what is
	// left. HandleSigUsr1 runs in a thread of its own and collects the whole heap, which takes up
	// to a second; finalizers and reference queues, which free native memory, run after it.
	collectSettle = 2 * time.Second
	// collectSpacing is the least device time between two collections that nobody asked for: an
	// app that does little else is not the app that is tested.
	collectSpacing = 10 * time.Second
	// collectShort is the duration from which on a run has a trend without collections.
	collectShort = 2 * time.Hour
	// maxLoopFamilies bounds the marks that may turn out to be of a loop.
	maxLoopFamilies = 8
	// collectDeadline is the real time that forcing the collections may take.
	collectDeadline = 10 * time.Second
)

// collecting forces garbage collections at marks.
type collecting struct {
	trip trip[collection]
	// loop is the family of marks that has come twice, families are those that came before.
	loop     string
	families map[string]bool
	// wanted is the mark at which a collection is wanted that was not sent, "" for none.
	wanted string
	// latest is when the latest was sent, in device time since the start; less than zero for never.
	latest time.Duration
}

// collection is what became of one collection in all processes.
type collection struct {
	mark string
	up   time.Duration
	done []diagnose.CollectResult
}

func newCollecting() collecting {
	return collecting{trip: newTrip[collection](), families: map[string]bool{}, latest: -1}
}

// collectAt wants a collection at a mark, where the run has them at this mark.
func (s *session) collectAt(mark string) {
	g := &s.garbage
	loop := g.addMark(ledger.MarkFamily(mark))
	now := s.clock.now()
	switch {
	case s.run.Collect == CollectNever || g.trip.away:
	case s.run.Collect == CollectAtMarks, loop && s.collects() && (g.latest < 0 || now-g.latest >= collectSpacing):
		g.wanted = mark
	}
}

// addMark notes a mark and reports whether it may begin a loop: it is of the first family that came
// twice, or none has and it is new.
func (g *collecting) addMark(family string) bool {
	switch {
	case g.loop != "":
		return family == g.loop
	case g.families[family]:
		g.loop, g.families = family, nil
		return true
	case len(g.families) == maxLoopFamilies:
		return false
	}
	g.families[family] = true
	return true
}

// collects reports whether collections are forced in a run for which nobody has said so.
func (s *session) collects() bool {
	switch d := s.run.Duration; {
	case s.run.atMarks(), d > 0 && d < collectShort:
		return true
	default:
		return d <= 0 && s.run.Workload != nil
	}
}

// sendCollection forces the collection that is wanted.
func (s *session) sendCollection(ctx context.Context) {
	g := &s.garbage
	if g.wanted == "" || g.trip.away {
		return
	}
	mark, uid, dev := g.wanted, s.dev.Facts.UID, s.dev
	g.wanted, g.latest = "", s.clock.now()
	var targets []capture.Target
	for _, x := range s.order {
		if x.present && !x.paused {
			targets = append(targets, x.target())
		}
	}
	if len(targets) == 0 {
		return
	}
	send(s, &g.trip, func() (collection, error) {
		up, done, err := diagnose.CollectGarbage(ctx, dev, uid, targets, collectDeadline)
		return collection{mark, up, done}, err
	})
}

// takeCollection records in which processes a collection was forced, and has all of them read once
// it has settled.
func (s *session) takeCollection(ctx context.Context, a answer[collection]) {
	s.garbage.trip.away = false
	switch {
	case a.boot != s.boots || ctx.Err() != nil:
		return
	case a.err != nil:
		s.failed(ctx, errandGarbage, a.err)
		return
	}
	s.well(errandGarbage)
	s.advance(ctx, a.value.up, a.after)
	if a.boot != s.boots { // the clock has shown it only now
		return
	}
	settled := s.clock.now() + collectSettle
	for _, c := range a.value.done {
		x := s.subjects[c.Key()]
		if x == nil || !x.Same(c.Process) || !x.present {
			continue
		}
		e := s.naming(x.Account, "collected", "a garbage collection was forced")
		if c.Refused != "" {
			e.Event, e.Text = "not_collected", "no garbage collection: "+c.Refused
		}
		e.Mark = a.value.mark
		s.at(e, a.value.up)
		x.settles, x.counts = settled, settled
		x.due = min(x.due, settled)
	}
	s.roomsAt = min(s.roomsAt, settled)
}

// nextDue is when the next sample of a process is wanted, which was due at a time: not after what is
// left of a forced collection has settled.
func (x *subject) nextDue(due, now time.Duration) time.Duration {
	if x.settles > now {
		return min(due, x.settles)
	}
	return due
}

// countsTurn is the process whose objects are to be counted now because a collection has settled:
// of several the one that was counted the longest time ago. Such a reading takes the place of one
// of the round, so that breakdowns do not become more; where those to come are spent, it is left
// out.
func (s *session) countsTurn(now time.Duration) (capture.Key, bool) {
	var next *subject
	for _, x := range s.order {
		switch {
		case x.counts == 0 || x.counts > now:
		case !x.present || x.paused || s.rotation.Rests(x.Key()):
			x.counts = 0
		case next == nil || x.counted < next.counted:
			next = x
		}
	}
	if next == nil {
		return capture.Key{}, false
	}
	next.counts = 0
	if !s.rotation.Borrow(now) {
		return capture.Key{}, false
	}
	next.counted = max(1, now)
	return next.Key(), true
}

// collectWake is the earliest device time at which a collection is wanted or counts are due.
func (s *session) collectWake(now, next time.Duration) time.Duration {
	if s.garbage.wanted != "" && !s.garbage.trip.away {
		return now
	}
	for _, x := range s.order {
		if x.counts > 0 && !s.details.away {
			next = min(next, x.counts)
		}
	}
	return next
}
