package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// order is a requested diagnosis of one life of a process.
type order struct {
	subject *subject
	process capture.Process
	recipe  string
	kind    detector.LeakKind
	trigger string
	mark    string
	t       float64
	// marks, age and memory have the same meaning as in record.Diagnosis. If
	// marks is 0, the current number of marks is used.
	marks       int
	age, memory *float64
	// unread is set if the dump was taken but could not be analyzed.
	unread bool
	// marked is the wall-clock time at which the mark was set.
	marked time.Time
	// dumps collects the dumps of the mark if a caller waits for them.
	dumps *dumpWait
	// answer is called once, with the result of a diagnosis on demand or with
	// the reason why there is no result.
	answer func(record.Diagnosis, error)
	// requested is set if the run requested this heap dump. If such a dump
	// fails, evidence is missing.
	requested bool
}

// enqueue adds an order to the queue. Leaks come first, followed by the
// snapshots with which the growth of a leak is determined later. It returns
// false if the same order is already in the queue, unless a caller waits for
// its result.
func (r *responses) enqueue(o order) bool {
	if r.run.responder == nil {
		return false
	}
	same := func(have order) bool {
		return o.dumps == nil && o.answer == nil && have.subject == o.subject && have.recipe == o.recipe &&
			have.trigger == o.trigger
	}
	if slices.ContainsFunc(r.orders, same) {
		return false
	}
	o.process, o.t = o.subject.Process, r.part.Seconds(max(r.part.Up(), r.part.At(r.clock.now())))
	o.age, o.memory = r.age(o.subject), memoryOf(o.subject)
	if o.marks == 0 {
		o.marks = r.marks.total()
	}
	at := len(r.orders)
	for at > 0 && priority(r.orders[at-1].trigger) > priority(o.trigger) {
		at--
	}
	r.orders = slices.Insert(r.orders, at, o)
	return true
}

// clockTick is the unit of a process's start time: USER_HZ, which is 100 on
// every version of Android.
const clockTick = 10 * time.Millisecond

// age returns how long a process has been running, in seconds of device time,
// or nil if that is unknown.
func (r *responses) age(x *subject) *float64 {
	ran := r.part.At(r.clock.now()) - time.Duration(x.Process.Start)*clockTick
	if x.Process.Start == 0 || ran < 0 {
		return nil
	}
	return new(record.Round(ran.Seconds(), 3))
}

// memoryOf returns the memory of a process at its latest sample, in MB, or nil
// if there is no sample.
func memoryOf(x *subject) *float64 {
	if x.LastUp == 0 {
		return nil
	}
	return new(record.Round(float64(x.LastBytes)/detector.MB, 3))
}

func priority(trigger string) int {
	return slices.Index([]string{
		record.TriggerLeak, record.TriggerDemand, record.TriggerSuspicious, record.TriggerMark, record.TriggerFirst,
		record.TriggerFinal, record.TriggerEnd, record.TriggerLast,
	}, trigger)
}

// dropUnreachable drops the orders if requests can no longer be sent to the
// device, because the run was aborted or the device does not respond at the end
// of the run.
func (r *responses) dropUnreachable(ctx context.Context, over error) {
	n := len(r.orders)
	if n == 0 || r.silence.available() && ctx.Err() == nil && completed(over) {
		return
	}
	dropped := r.orders
	r.orders = nil
	if r.silence.on() {
		for _, o := range dropped {
			r.recordMissing(o, "the device did not respond")
		}
		r.recordEvent(record.Event{
			Event: "error",
			Text:  fmt.Sprintf("the device does not respond at the end of the run: skipping %d diagnoses", n),
		})
		return
	}
	for _, o := range dropped {
		r.recordMissing(o, "run aborted first")
		if o.trigger == record.TriggerLeak {
			r.recordProcessEvent(o.subject, "error", "leak not diagnosed: run aborted first")
		}
	}
}

// dropAll drops all orders.
func (r *responses) dropAll(why string) {
	for _, o := range r.orders {
		r.recordMissing(o, why)
	}
	r.orders = nil
}

// orderFinal requests the diagnoses that are required at the end of a run: one
// of every undiagnosed leak, one of every process that is still suspicious and,
// if the run dumps heaps at its end, a heap dump of all processes.
func (r *responses) orderFinal() {
	r.orders = slices.DeleteFunc(r.orders, func(o order) bool {
		return o.trigger == record.TriggerSuspicious || o.trigger == record.TriggerFirst
	})
	for _, x := range r.subjects.order {
		if !x.present {
			if r.run.atEnd() {
				r.recordMissing(order{subject: x, trigger: record.TriggerEnd, requested: true},
					"the process had already ended")
			}
			continue
		}
		v := x.Detector.Verdict()
		cold := x.Account.Diagnosed == 0 || r.part.Up()-x.Account.Diagnosed >= r.run.responder.Options().Cooldown
		// A diagnosed leak may belong to an earlier life of the process.
		suspect := v.State != detector.Normal || v.Gate == detector.Leak && x.Account.Diagnosed == 0
		dumped := false
		if suspect && cold && !x.response.ordered {
			recipe := recipeOf(v.Kind)
			heap := recipe == "java" || recipe == "unknown"
			dumped = r.enqueue(
				order{
					subject: x, recipe: recipe, kind: v.Kind, trigger: record.TriggerFinal, requested: heap &&
						r.run.atEnd(),
				}) && heap
		}
		// One dump is enough, because both orders would dump the same heap.
		if r.run.atEnd() && !dumped {
			r.enqueue(order{subject: x, recipe: response.HeapOnly, trigger: record.TriggerEnd, requested: true})
		}
		if x.response.first != nil {
			r.enqueue(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerLast})
		}
	}
}

// recordMissing records that a requested heap dump is missing, with the reason,
// and notifies the caller that waits for it.
func (r *responses) recordMissing(o order, why string) {
	if o.requested {
		when := "at the end"
		if o.trigger == record.TriggerMark {
			when = "at mark " + text.Quote(o.mark, maxMarkShown)
		}
		e := r.processEvent(o.subject.Account, "missing", fmt.Sprintf("no heap dump %s: %s", when, why))
		e.Mark, e.Unreadable = o.mark, o.unread
		if !o.subject.Account.MissingUnlisted() {
			r.recordEvent(e)
		}
		o.dumps.addMissing(o.subject.Key().Name + ": " + e.Text)
	}
	o.dumps.finishOne()
	if o.answer != nil {
		o.answer(record.Diagnosis{}, fmt.Errorf("diagnose %s: %s", o.process.Name, why))
	}
}

// orderLoopSnapshots requests, after the first loop, a snapshot of every
// process that does not have one yet. At the end of the run, the snapshot is
// compared with the final state even if no process was suspicious.
func (r *responses) orderLoopSnapshots(mark string, number int) {
	for _, x := range r.subjects.order {
		if x.present && !x.response.marked {
			x.response.marked = r.enqueue(
				order{subject: x, recipe: response.Snapshot, trigger: record.TriggerFirst, mark: mark, marks: number})
		}
	}
}

// startupTime is how long, in device time, a process is watched before its
// first snapshot if no mark requests one. During startup, everything grows.
const startupTime = 5 * time.Minute

// orderStartupSnapshot requests the first snapshot of a process that has
// completed its startup, unless a mark has requested one. A process that keeps
// restarting gets at most one such snapshot every snapshotEvery.
func (r *responses) orderStartupSnapshot(x *subject) {
	to, now := &x.response, r.clock.now()
	if to.firstSampleAt == 0 {
		to.firstSampleAt = max(1, now)
	}
	if to.marked || to.settled || now-to.firstSampleAt < startupTime || to.startupSnapshotAt > 0 &&
		now-to.startupSnapshotAt < snapshotEvery {
		return
	}
	if r.enqueue(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerFirst}) {
		to.settled, to.startupSnapshotAt = true, max(1, now)
	}
}

// maxMarkShown bounds the length of a mark in a message, in characters.
const maxMarkShown = 100
