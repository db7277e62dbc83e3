package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// snapshotEvery is the least device time between two snapshots of one process.
	snapshotEvery = 30 * time.Minute
	// maxAttempts is how often a diagnosis is begun that the device did not let end.
	maxAttempts = 3
)

// responses diagnose leaks: one at a time, so that the device never does two.
type responses struct {
	*port
	call call[*response.Case]
	// orders wait for the device, one of each process, recipe and trigger.
	orders []order
	// now is what is being collected.
	now order
	// pauses are told by the request that dumps a heap.
	pauses chan bool
	// ending says that the run is over: what cannot end now is not tried again.
	ending bool

	analyses   *analyses
	breakdowns *breakdowns
	deaths     *deaths
	marks      *marks
	sweeper    *sweeper
}

func newResponses(p *port) *responses {
	// A dump tells two things; the session listens while it waits for its end, too.
	return &responses{port: p, call: newCall[*response.Case](), pauses: make(chan bool, 4)}
}

// end notes that the run is over.
func (r *responses) end() { r.ending = true }

// busy reports whether a diagnosis is being collected.
func (r *responses) busy() bool { return r.call.inFlight }

// responseTo is what is done about leaks of one incarnation of a process.
type responseTo struct {
	// ordered: the diagnosis that the machine demands waits for its turn, or is going on.
	ordered bool
	// attempts is how often it was begun and could not end.
	attempts int
	// snapshot is when the latest was ordered, in device time since the start; 0 for never.
	snapshot time.Duration
	// seen is what it was at the latest look, to tell later what grew.
	seen *response.Observation
	// since is the device time of its first sample, since the start of the run; 0 before it.
	since time.Duration
	// settled and marked report that the first snapshot was ordered after its startup, or at
	// a mark; first is what the latest of the two shows. early is when the latest was ordered
	// without a mark, for this incarnation or an earlier one; 0 for never.
	settled, marked bool
	early           time.Duration
	first           *response.Observation
	// java is its Java heap at the latest breakdown, in bytes.
	java known.Int
}

// recipeOf is the recipe for a kind of leak.
func recipeOf(kind detector.LeakKind) string {
	switch kind {
	case detector.Java:
		return "java"
	case detector.Native:
		return "native"
	case detector.GPU:
		return "gpu"
	case detector.Thread:
		return "thread"
	}
	return "unknown"
}

// answerDemand orders the diagnosis that the machine of a process demands.
func (r *responses) answerDemand(x *subject, kind detector.LeakKind) {
	if kind == detector.None || x.response.ordered || !x.present {
		return
	}
	x.response.ordered = r.want(order{subject: x, recipe: recipeOf(kind), kind: kind, trigger: record.TriggerLeak})
}

// onTransition does what a step of the machine asks for: a snapshot where suspicion begins, so
// that growth can be told later, and a word where a leak comes again too soon.
func (r *responses) onTransition(t ledger.Entry) {
	if r.run.responder == nil || t.Jump() {
		return
	}
	x := r.subjects.byKey[t.Of.Key()]
	if x == nil {
		return
	}
	switch t.To {
	case detector.Suspicious:
		now := r.clock.now()
		if x.response.snapshot > 0 && now-x.response.snapshot < snapshotEvery {
			return
		}
		if r.want(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerSuspicious}) {
			x.response.snapshot = max(1, now)
		}
	case detector.Leaking:
		if at := x.Account.Diagnosed; at > 0 && x.Detector.Demand().Diagnose == detector.None {
			r.event(r.repeated(x, t, at))
		}
	}
}

// repeated tells a leak of a process whose last diagnosis is less than the cooldown ago.
func (r *responses) repeated(x *subject, t ledger.Entry, diagnosed time.Duration) record.Event {
	v := x.Detector.Verdict()
	rate := "at a rate that is not known"
	if v.RateKnown {
		rate = fmt.Sprintf("at %+.1f MB/h", v.Rate/detector.MB)
	}
	ago := max(0, r.part.Up()-diagnosed).Round(time.Second)
	e := r.naming(x.Account, "repeated", fmt.Sprintf(
		"%s again, %s, %.1f MB now; nothing is collected: the last diagnosis was %v ago", reporters.KindWords(t.Kind), rate, float64(x.LastBytes)/detector.MB, ago))
	e.Kind = t.Kind
	return e
}

// send lets the next order go, one at a time. What has ended meanwhile, or is
// another process now, is not looked at.
func (r *responses) send(ctx context.Context) {
	// The sweep must not find a dump of this run.
	for !r.call.inFlight && !r.sweeper.busy() && len(r.orders) > 0 {
		o := r.orders[0]
		r.orders = r.orders[1:]
		if !r.run.keep(r.run.recorder.Check()) {
			// The responder would make the directory anew.
			r.recordMissing(o, "the run directory is gone")
			continue
		}
		if o.subject.present && o.subject.Same(o.process) {
			r.collect(ctx, o)
			return
		}
		r.recordMissing(o, "the process ended before its turn")
		o.subject.response.ordered = o.subject.response.ordered && o.trigger != record.TriggerLeak
	}
}

func (r *responses) collect(ctx context.Context, o order) {
	r.now = o
	x, dev, pauses := o.subject, r.dev, r.pauses
	ask := response.Order{
		Process: o.process, Level: x.probe.Level, Findings: x.probe.Findings, Recipe: o.recipe, Kind: o.kind,
		Trigger: o.trigger, Mark: o.mark, T: o.t, Marks: o.marks, Age: o.age, Memory: o.memory, Expect: x.response.java.N * 3 / 2, Before: x.response.seen, App: r.deaths.incarnationsOfApp(x),
		Paused: func(on bool) {
			select {
			case pauses <- on:
			case <-ctx.Done():
			}
		},
	}
	if o.trigger == record.TriggerLast {
		ask.Before = x.response.first
	}
	timing := r.clock
	send(r.port, &r.call, func() (*response.Case, error) {
		if o.dumps != nil {
			ask.Settled = settle(ctx, dev, timing, o.process, o.marked)
		}
		return r.run.responder.Collect(ctx, dev, dev.Facts, ask)
	})
}

// setPaused marks in the series that a process is stopped by a heap dump, or goes on.
func (r *responses) setPaused(on bool) {
	x := r.now.subject
	if x == nil || on == x.pause.on {
		return
	}
	x.pause.on = on
	now := r.clock.now()
	if on {
		x.pause.since = now
		r.breakdowns.paused(x.Key())
		return
	}
	lasted := now - x.pause.since
	e := r.naming(x.Account, "pause", fmt.Sprintf("not sampled for %v, for a heap dump", lasted.Round(100*time.Millisecond)))
	e.Duration = record.Round(lasted.Seconds(), 3)
	x.pause.total += lasted
	x.sampling.due = now
	r.event(e)
}

// take takes what was collected.
func (r *responses) take(ctx context.Context, a answer[*response.Case]) {
	r.call.inFlight = false
	r.drainPauses()
	o, c := r.now, a.value
	r.now = order{}
	x := o.subject
	r.resume(x)
	if c == nil {
		r.collectFailed(ctx, o, a.err)
		return
	}
	e := r.naming(x.Account, "diagnose", collectedText(c))
	e.Kind, e.Diagnosis, e.Retry = c.Record.Kind, recordOf(c), r.again(ctx, o, a.err)
	r.event(e)
	if why := heapError(c); o.owed && why != nil {
		r.recordMissing(o, why.Error())
	} else {
		o.dumps.got()
		o.dumps.end()
	}
	r.analyses.add(collectedCase{c, o.answer})
	if len(c.Left) > 0 {
		r.sweeper.noteLeft()
	}
	switch {
	case a.err == nil:
		r.clearFault(requestCollect)
	case ctx.Err() == nil && errors.Is(a.err, capture.ErrDevice):
		r.sweeper.noteLeft()
		r.silence.requestFailed(ctx, requestCollect, a.err)
	}
}

// again tells whether a diagnosis that has ended so will be tried again: the machine goes
// on to demand that of a leak. Nothing else is.
func (r *responses) again(ctx context.Context, o order, err error) bool {
	if o.trigger != record.TriggerLeak {
		return false
	}
	if !o.subject.Same(o.process) {
		return err != nil && ctx.Err() == nil // with the next leak of the process that came after
	}
	to := &o.subject.response
	to.ordered = false
	to.attempts++
	if err != nil && ctx.Err() == nil && !r.ending && to.attempts < maxAttempts {
		return true
	}
	to.attempts = 0
	return false
}

// recordOf is a copy of a record, which its analysis goes on to change.
func recordOf(c *response.Case) *record.Diagnosis {
	d := c.Record
	d.Steps, d.Findings = slices.Clone(d.Steps), slices.Clone(d.Findings)
	d.Summary, d.Warnings = slices.Clone(d.Summary), slices.Clone(d.Warnings)
	return &d
}

// resume ends a pause of which no end was told.
func (r *responses) resume(x *subject) {
	if x.pause.on {
		r.now.subject = x
		r.setPaused(false)
		r.now = order{}
	}
}

// collectFailed takes an order of which there is not even a folder. It has a record all the
// same once it is given up: a leak was found, and the machine waits for a diagnosis.
func (r *responses) collectFailed(ctx context.Context, o order, err error) {
	e := r.naming(o.subject.Account, "diagnose", "nothing was collected: "+r.run.paths.Error(err))
	if e.Retry = r.again(ctx, o, err); !e.Retry {
		e.Kind = o.kind
		e.Diagnosis = &record.Diagnosis{
			Device: r.dev.Serial(), User: o.process.User, Process: o.process.Key().Name, PID: o.process.PID,
			T: o.t, Trigger: o.trigger, Mark: o.mark, Marks: o.marks, Age: o.age, Memory: o.memory, Kind: e.Kind, Recipe: o.recipe, Outcome: record.DiagnosisNothing,
			Keep: string(r.run.responder.Options().Keep), Analyzed: true,
			Steps: []record.Collected{}, Findings: []record.Finding{}, Summary: []string{}, Warnings: []string{text.Head(r.run.paths.Error(err), 500)},
		}
	}
	r.event(e)
	r.recordMissing(o, r.run.paths.Error(err))
}

// drainPauses hears what a dump has told and nobody has heard.
func (r *responses) drainPauses() {
	for {
		select {
		case on := <-r.pauses:
			r.setPaused(on)
		default:
			return
		}
	}
}

// collectedText says what was collected, and where it is.
func collectedText(c *response.Case) string {
	var have, lack []string
	for _, step := range c.Record.Steps {
		if step.File != "" {
			have = append(have, step.Step)
		} else {
			lack = append(lack, step.Step)
		}
	}
	what := c.Record.Recipe
	if c.Record.Kind != detector.None {
		what = reporters.KindWords(c.Record.Kind)
	}
	text := fmt.Sprintf("%s: %s in %s, %.1f s", what, strings.Join(have, ", "), c.Record.Folder, c.Record.Duration)
	if len(have) == 0 {
		text = fmt.Sprintf("%s: nothing could be collected", what)
	}
	if len(lack) > 0 {
		text += "; without " + strings.Join(lack, ", ")
	}
	return text
}

// recordGrowth records what grew in the heap dumps of a process that were taken at marks.
func (r *responses) recordGrowth(d record.Diagnosis) {
	x := r.subjects.byKey[capture.Key{User: d.User, Name: d.Process}]
	if x == nil {
		return
	}
	text := ""
	if len(d.Summary) > 0 {
		text = d.Summary[0]
	}
	e := r.naming(x.Account, "diagnosed", text)
	e.Diagnosis = &d
	r.event(e)
}
