package monitor

import (
	"context"
	"time"

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

// garbage forces garbage collections at marks.
type garbage struct {
	*port
	call call[collection]
	// loop is the family of marks that has come twice, families are those that came before.
	loop     string
	families map[string]bool
	// wanted is the mark at which a collection is wanted that was not sent, "" for none.
	wanted string
	// latest is when the latest was sent, in device time since the start; less than zero for never.
	latest time.Duration

	limits *limits
}

func newGarbage(p *port, l *limits) *garbage {
	return &garbage{port: p, call: newCall[collection](), families: map[string]bool{}, latest: -1, limits: l}
}

// collection is what became of one collection in all processes.
type collection struct {
	mark string
	up   time.Duration
	done []diagnose.CollectResult
}

// collectAt wants a collection at a mark, where the run has them at this mark.
func (g *garbage) collectAt(mark string) {
	loop := g.addMark(ledger.MarkFamily(mark))
	now := g.clock.now()
	switch {
	case g.run.Collect == CollectNever || g.call.inFlight:
	case g.run.Collect == CollectAtMarks, loop && g.collects() && (g.latest < 0 || now-g.latest >= collectSpacing):
		g.wanted = mark
	}
}

// addMark notes a mark and reports whether it may begin a loop: it is of the first family that came
// twice, or none has and it is new.
func (g *garbage) addMark(family string) bool {
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
func (g *garbage) collects() bool {
	switch d := g.run.Duration; {
	case g.run.atMarks(), d > 0 && d < collectShort:
		return true
	default:
		return d <= 0 && g.run.Workload != nil
	}
}

// send forces the collection that is wanted.
func (g *garbage) send(ctx context.Context) {
	if g.wanted == "" || g.call.inFlight {
		return
	}
	mark, uid, dev := g.wanted, g.dev.Facts.UID, g.dev
	g.wanted, g.latest = "", g.clock.now()
	targets := g.subjects.targets()
	if len(targets) == 0 {
		return
	}
	send(g.port, &g.call, func() (collection, error) {
		up, done, err := diagnose.CollectGarbage(ctx, dev, uid, targets, collectDeadline)
		return collection{mark, up, done}, err
	})
}

// take records in which processes a collection was forced, and has all of them read once
// it has settled.
func (g *garbage) take(ctx context.Context, a answer[collection]) {
	g.call.inFlight = false
	switch {
	case stale(g.port, a) || ctx.Err() != nil:
		return
	case a.err != nil:
		g.silence.requestFailed(ctx, requestGarbage, a.err)
		return
	}
	g.silence.requestSucceeded(requestGarbage)
	g.silence.advance(ctx, a.value.up, a.after)
	if stale(g.port, a) { // the clock has shown it only now
		return
	}
	settled := g.clock.now() + collectSettle
	for _, c := range a.value.done {
		x := g.subjects.byKey[c.Key()]
		if x == nil || !x.Same(c.Process) || !x.present {
			continue
		}
		e := g.naming(x.Account, "collected", "a garbage collection was forced")
		if c.Refused != "" {
			e.Event, e.Text = "not_collected", "no garbage collection: "+c.Refused
		}
		e.Mark = a.value.mark
		g.at(e, a.value.up)
		x.readSettled(settled)
	}
	g.limits.readBy(settled)
}

// nextDue is when the next sample of a process is wanted, which was due at a time: not after what is
// left of a forced collection has settled.
func (x *subject) nextDue(due, now time.Duration) time.Duration {
	if x.sampling.settles > now {
		return min(due, x.sampling.settles)
	}
	return due
}

// cancel drops the collection that is wanted.
func (g *garbage) cancel() { g.wanted = "" }

// nextWake is the earliest device time at which a collection is wanted, at most next.
func (g *garbage) nextWake(now, next time.Duration) time.Duration {
	if g.wanted != "" && !g.call.inFlight {
		return min(now, next)
	}
	return next
}
