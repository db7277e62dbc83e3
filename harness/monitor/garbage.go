package monitor

import (
	"context"
	"time"

	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/ledger"
)

// Collect defines the marks at which the run forces garbage collections and
// counts the remaining objects.
type Collect string

// The values of Collect. CollectAuto, the default, collects garbage at the
// marks of a loop, at most every 10 s, in three kinds of runs: those shorter
// than 2 h, those that end with their workload, and those that dump heaps at
// marks.
const (
	CollectAuto    Collect = "auto"
	CollectAtMarks Collect = "at_marks"
	CollectNever   Collect = "never"
)

const (
	// collectSettle is the device time between a forced collection and the
	// readings after it. HandleSigUsr1 runs on its own thread and collects the
	// whole heap, which takes up to a second. Finalizers and reference queues,
	// which free native memory, are processed after the collection.
	collectSettle = 2 * time.Second
	// collectSpacing is the minimum device time between two automatic
	// collections: an app that spends most of its time collecting no longer
	// behaves like the app under test.
	collectSpacing = 10 * time.Second
	// A run of at least collectShort has a trend even without forced
	// collections.
	collectShort = 2 * time.Hour
	// maxLoopFamilies bounds the number of mark families that are examined for
	// a loop.
	maxLoopFamilies = 8
	// collectDeadline is the wall-clock time within which the collections must
	// be forced.
	collectDeadline = 10 * time.Second
)

// garbage forces garbage collections at marks.
type garbage struct {
	*port
	call call[collection]
	// loopFamily is the first family of marks that occurred twice; families are
	// those that occurred before a loop was recognized.
	loopFamily string
	families   map[string]bool
	// wanted is the mark of a pending collection, or "" if no collection is
	// pending.
	wanted string
	// latest is when the latest collection was forced, in device time since the
	// start. It is negative if there was none.
	latest time.Duration

	limits *limits
}

func newGarbage(p *port, l *limits) *garbage {
	return &garbage{port: p, call: newCall[collection](), families: map[string]bool{}, latest: -1, limits: l}
}

// collection is the result of one forced collection in all processes.
type collection struct {
	mark string
	up   time.Duration
	done []diagnose.CollectResult
}

// requestAt requests a collection at a mark if the run forces one at this mark.
func (g *garbage) requestAt(mark string) {
	loop := g.addMark(ledger.MarkFamily(mark))
	now := g.clock.now()
	switch {
	case g.run.Collect == CollectNever || g.call.inFlight:
	case g.run.Collect == CollectAtMarks, loop && g.enabled() && (g.latest < 0 || now-g.latest >= collectSpacing):
		g.wanted = mark
	}
}

// addMark counts a mark and reports whether it may begin a loop. Until a mark
// family occurs for the second time, each new family may begin a loop; from
// then on, only that family may.
func (g *garbage) addMark(family string) bool {
	switch {
	case g.loopFamily != "":
		return family == g.loopFamily
	case g.families[family]:
		g.loopFamily, g.families = family, nil
		return true
	case len(g.families) == maxLoopFamilies:
		return false
	}
	g.families[family] = true
	return true
}

// enabled reports whether a run with CollectAuto forces collections.
func (g *garbage) enabled() bool {
	switch d := g.run.Duration; {
	case g.run.atMarks(), d > 0 && d < collectShort:
		return true
	default:
		return d <= 0 && g.run.Workload != nil
	}
}

// send forces the pending collection.
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

// take records the processes in which a collection was forced, and schedules
// readings for when the collection has settled.
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
	if stale(g.port, a) { // the clock revealed the reboot only after the request was sent
		return
	}
	settled := g.clock.now() + collectSettle
	for _, c := range a.value.done {
		x := g.subjects.byKey[c.Key()]
		if x == nil || !x.Same(c.Process) || !x.present {
			continue
		}
		e := g.processEvent(x.Account, "collected", "a garbage collection was forced")
		if c.Refused != "" {
			e.Event, e.Text = "not_collected", "no garbage collection: "+c.Refused
		}
		e.Mark = a.value.mark
		g.recordEventAt(e, a.value.up)
		x.sampleAt(settled)
	}
	g.limits.readBy(settled)
}

// nextDue returns when the next sample is due. The result is no later than the
// time when a forced collection has settled.
func (x *subject) nextDue(due, now time.Duration) time.Duration {
	if x.sampling.settlesAt > now {
		return min(due, x.sampling.settlesAt)
	}
	return due
}

// cancel cancels the pending collection.
func (g *garbage) cancel() { g.wanted = "" }

// nextWake returns the earliest device time at which a collection is due, or
// next if that is earlier.
func (g *garbage) nextWake(now, next time.Duration) time.Duration {
	if g.wanted != "" && !g.call.inFlight {
		return min(now, next)
	}
	return next
}
