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
	// snapshotEvery is the minimum device time between two snapshots of one
	// process.
	snapshotEvery = 30 * time.Minute
	// maxAttempts is the maximum number of attempts at a diagnosis that keeps
	// failing.
	maxAttempts = 3
)

// responses diagnoses leaks, one at a time per device.
type responses struct {
	*port
	call call[*response.Case]
	// orders lists the diagnoses that wait for the device, one per process,
	// recipe and trigger.
	orders []order
	// current is the diagnosis that is being collected.
	current order
	// pauses receives true when a heap dump suspends the process, and false
	// when the dump has ended.
	pauses chan bool
	// ending is set when the run is ending. Failed diagnoses are then not
	// retried.
	ending bool

	analyses   *analyses
	breakdowns *breakdowns
	deaths     *deaths
	marks      *marks
	sweeper    *sweeper
}

func newResponses(p *port) *responses {
	// A dump sends two values to pauses, possibly while the session waits for
	// the dump to end.
	return &responses{port: p, call: newCall[*response.Case](), pauses: make(chan bool, 4)}
}

// end marks the run as ending.
func (r *responses) end() { r.ending = true }

// busy reports whether a diagnosis is being collected.
func (r *responses) busy() bool { return r.call.inFlight }

// responseState is the state of the responses for one life of a process.
type responseState struct {
	// ordered is set while the diagnosis that the detector demands is queued or
	// in progress.
	ordered bool
	// attempts is the number of failed attempts at the diagnosis.
	attempts int
	// snapshotAt is when the latest snapshot was requested, in device time
	// since the start, or 0 if none was requested.
	snapshotAt time.Duration
	// latest is the latest snapshot, which is used later to determine growth.
	latest *response.MemorySnapshot
	// firstSampleAt is when the first sample was taken, in device time since
	// the start of the run, or 0 before that.
	firstSampleAt time.Duration
	// settled is set once the first snapshot after startup has been requested.
	// marked is set once the first snapshot at a mark has been requested. first
	// is the later of these two snapshots. startupSnapshotAt is when the latest
	// snapshot without a mark was requested for this or an earlier life, or 0
	// if none was requested.
	settled, marked   bool
	startupSnapshotAt time.Duration
	first             *response.MemorySnapshot
	// java is the used part of the Java heap at the latest breakdown, in bytes.
	java known.Int
}

// recipeOf returns the recipe for a kind of leak.
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

// orderDemanded queues the diagnosis that the detector of a process demands.
func (r *responses) orderDemanded(x *subject, kind detector.LeakKind) {
	if kind == detector.None || x.response.ordered || !x.present {
		return
	}
	x.response.ordered = r.enqueue(order{subject: x, recipe: recipeOf(kind), kind: kind, trigger: record.TriggerLeak})
}

// onTransition requests a snapshot when a process becomes suspicious, so that
// its growth can be determined later. It records a leak that recurs within the
// cooldown.
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
		if x.response.snapshotAt > 0 && now-x.response.snapshotAt < snapshotEvery {
			return
		}
		if r.enqueue(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerSuspicious}) {
			x.response.snapshotAt = max(1, now)
		}
	case detector.Leaking:
		if at := x.Account.Diagnosed; at > 0 && x.Detector.Demand().Diagnose == detector.None {
			r.recordEvent(r.repeatedLeak(x, t, at))
		}
	}
}

// repeatedLeak describes a repeated leak of a process that is not diagnosed
// again until the cooldown ends.
func (r *responses) repeatedLeak(x *subject, t ledger.Entry, diagnosed time.Duration) record.Event {
	v := x.Detector.Verdict()
	rate := "at an unknown rate"
	if v.RateKnown {
		rate = fmt.Sprintf("at %+.1f MB/h", v.Rate/detector.MB)
	}
	ago := max(0, r.part.Up()-diagnosed).Round(time.Second)
	e := r.processEvent(x.Account, "repeated", fmt.Sprintf(
		"%s again, %s, %.1f MB now; not diagnosed again: the last diagnosis was %v ago", reporters.DescribeKind(t.Kind),
		rate, float64(x.LastBytes)/detector.MB, ago))
	e.Kind = t.Kind
	return e
}

// send starts the next diagnosis. Only one runs at a time. Orders for processes
// that have ended or restarted are skipped.
func (r *responses) send(ctx context.Context) {
	// A sweep must not remove a dump of this run.
	for !r.call.inFlight && !r.sweeper.busy() && len(r.orders) > 0 {
		o := r.orders[0]
		r.orders = r.orders[1:]
		if !r.run.checkWrite(r.run.recorder.Check()) {
			// The responder would recreate the run directory.
			r.recordMissing(o, "the run directory is gone")
			continue
		}
		if o.subject.present && o.subject.Same(o.process) {
			r.collect(ctx, o)
			return
		}
		r.recordMissing(o, "the process ended before it was diagnosed")
		o.subject.response.ordered = o.subject.response.ordered && o.trigger != record.TriggerLeak
	}
}

func (r *responses) collect(ctx context.Context, o order) {
	r.current = o
	x, dev, pauses := o.subject, r.dev, r.pauses
	ask := response.Order{
		Process: o.process, Level: x.probe.Level, Findings: x.probe.Findings, Recipe: o.recipe, Kind: o.kind,
		Trigger: o.trigger, Mark: o.mark, T: o.t, Marks: o.marks, Age: o.age, Memory: o.memory,
		Expect: x.response.java.N * 3 / 2, Before: x.response.latest, App: r.deaths.livesOfApp(x),
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

// setPaused records that a heap dump suspends a process, or that the dump has
// ended.
func (r *responses) setPaused(on bool) {
	x := r.current.subject
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
	e := r.processEvent(x.Account, "pause",
		fmt.Sprintf("not sampled for %v during a heap dump", lasted.Round(100*time.Millisecond)))
	e.Duration = record.Round(lasted.Seconds(), 3)
	x.pause.total += lasted
	x.sampling.due = now
	r.recordEvent(e)
}

// take records what was collected.
func (r *responses) take(ctx context.Context, a answer[*response.Case]) {
	r.call.inFlight = false
	r.drainPauses()
	o, c := r.current, a.value
	r.current = order{}
	x := o.subject
	r.endPause(x)
	if c == nil {
		r.collectFailed(ctx, o, a.err)
		return
	}
	e := r.processEvent(x.Account, "diagnose", collectedText(c))
	e.Kind, e.Diagnosis, e.Retry = c.Record.Kind, recordOf(c), r.willRetry(ctx, o, a.err)
	r.recordEvent(e)
	if why := heapError(c); o.requested && why != nil {
		r.recordMissing(o, why.Error())
	} else {
		o.dumps.addTaken()
		o.dumps.finishOne()
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

// willRetry reports whether a diagnosis that ended with err will be retried.
// Only the diagnosis of a leak is retried, because the detector continues to
// demand it.
func (r *responses) willRetry(ctx context.Context, o order, err error) bool {
	if o.trigger != record.TriggerLeak {
		return false
	}
	if !o.subject.Same(o.process) {
		return err != nil && ctx.Err() == nil // retried for the next leak of the new life
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

// recordOf returns a copy of a record, because the analysis continues to change
// the original.
func recordOf(c *response.Case) *record.Diagnosis {
	d := c.Record
	d.Steps, d.Findings = slices.Clone(d.Steps), slices.Clone(d.Findings)
	d.Summary, d.Warnings = slices.Clone(d.Summary), slices.Clone(d.Warnings)
	return &d
}

// endPause ends a pause whose end was not reported by the dump.
func (r *responses) endPause(x *subject) {
	if x.pause.on {
		r.current.subject = x
		r.setPaused(false)
		r.current = order{}
	}
}

// collectFailed records a diagnosis without a folder. A diagnosis that was
// abandoned is recorded too, because a leak was found and the detector waits
// for a diagnosis.
func (r *responses) collectFailed(ctx context.Context, o order, err error) {
	e := r.processEvent(o.subject.Account, "diagnose", "nothing was collected: "+r.run.paths.Error(err))
	if e.Retry = r.willRetry(ctx, o, err); !e.Retry {
		e.Kind = o.kind
		e.Diagnosis = &record.Diagnosis{
			Device: r.dev.Serial(), User: o.process.User, Process: o.process.Key().Name, PID: o.process.PID,
			T: o.t, Trigger: o.trigger, Mark: o.mark, Marks: o.marks, Age: o.age, Memory: o.memory, Kind: e.Kind,
			Recipe: o.recipe, Outcome: record.DiagnosisNothing,
			Keep: string(r.run.responder.Options().Keep), Analyzed: true,
			Steps: []record.Collected{}, Findings: []record.Finding{}, Summary: []string{},
			Warnings: []string{text.Head(r.run.paths.Error(err), 500)},
		}
	}
	r.recordEvent(e)
	r.recordMissing(o, r.run.paths.Error(err))
}

// drainPauses handles the pending notifications of a dump.
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

// collectedText describes what was collected and where the artifacts are
// stored.
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
		what = reporters.DescribeKind(c.Record.Kind)
	}
	artifacts := strings.Join(have, ", ")
	if c.Recipe == response.Snapshot {
		artifacts = text.Plural(len(have), "artifact", "artifacts")
	}
	line := fmt.Sprintf("%s: %s in %s, %.1f s", what, artifacts, c.Record.Folder, c.Record.Duration)
	if len(have) == 0 {
		line = fmt.Sprintf("%s: nothing could be collected", what)
	}
	if len(lack) > 0 {
		line += "; without " + strings.Join(lack, ", ")
	}
	return line
}

// recordGrowth records which objects grew between the heap dumps of a process
// at marks.
func (r *responses) recordGrowth(d record.Diagnosis) {
	x := r.subjects.byKey[capture.Key{User: d.User, Name: d.Process}]
	if x == nil {
		return
	}
	text := ""
	if len(d.Summary) > 0 {
		text = d.Summary[0]
	}
	e := r.processEvent(x.Account, "diagnosed", text)
	e.Diagnosis = &d
	r.recordEvent(e)
}
