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

// order is one diagnosis that is wanted of the incarnation of a process.
type order struct {
	subject *subject
	process capture.Process
	recipe  string
	kind    detector.LeakKind
	trigger string
	mark    string
	t       float64
	// marks, age and memory are as in record.Diagnosis; 0 marks stand for those until now.
	marks       int
	age, memory *float64
	// unread reports that its dump was taken and could not be analyzed.
	unread bool
	// marked is the real time of the mark.
	marked time.Time
	// dumps are those of the mark, where somebody waits for them.
	dumps *awaited
	// answer is called once with what a diagnosis on demand has shown, or why there is none.
	answer func(record.Diagnosis, error)
	// owed: the run was asked for this heap dump: without it evidence is missing.
	owed bool
}

// want puts an order in its place: leaks first, then the snapshots that tell later what
// a leak has grown by. It is false where there is such an order already, but for a mark
// whose dumps somebody waits for.
func (r *responses) want(o order) bool {
	if r.run.responder == nil {
		return false
	}
	same := func(have order) bool {
		return o.dumps == nil && o.answer == nil && have.subject == o.subject && have.recipe == o.recipe && have.trigger == o.trigger
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
	for at > 0 && rank(r.orders[at-1].trigger) > rank(o.trigger) {
		at--
	}
	r.orders = slices.Insert(r.orders, at, o)
	return true
}

// clockTick is the unit of the start of a process: USER_HZ, which is 100 on every Android.
const clockTick = 10 * time.Millisecond

// age is for how long a process has run, in seconds of the device; nil where that is unknown.
func (r *responses) age(x *subject) *float64 {
	ran := r.part.At(r.clock.now()) - time.Duration(x.Process.Start)*clockTick
	if x.Process.Start == 0 || ran < 0 {
		return nil
	}
	return new(record.Round(ran.Seconds(), 3))
}

// memoryOf is what a process had at its latest sample, in MB; nil where it has none.
func memoryOf(x *subject) *float64 {
	if x.LastUp == 0 {
		return nil
	}
	return new(record.Round(float64(x.LastBytes)/detector.MB, 3))
}

func rank(trigger string) int {
	return slices.Index([]string{record.TriggerLeak, record.TriggerDemand, record.TriggerSuspicious, record.TriggerMark, record.TriggerFirst, record.TriggerFinal, record.TriggerEnd, record.TriggerLast}, trigger)
}

// drop drops the orders for a device that cannot be asked any more: the run was
// broken off, or the device is away and nobody waits for it once the run is over.
func (r *responses) drop(ctx context.Context, over error) {
	n := len(r.orders)
	if n == 0 || r.silence.available() && ctx.Err() == nil && final(over) {
		return
	}
	dropped := r.orders
	r.orders = nil
	if r.silence.on() {
		for _, o := range dropped {
			r.recordMissing(o, "the device did not answer")
		}
		r.event(record.Event{Event: "error", Text: fmt.Sprintf("the device does not answer at the end of the run: %d diagnoses that were due are left out", n)})
		return
	}
	for _, o := range dropped {
		r.recordMissing(o, "the run was broken off first")
		if o.trigger == record.TriggerLeak {
			r.about(o.subject, "error", "its leak is not diagnosed: the run was broken off before its turn")
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

// orderFinal orders what the end of a run asks for: a diagnosis of every leak that has
// none and of what stayed suspicious, and a heap dump of all that are there, where that
// was asked for.
func (r *responses) orderFinal() {
	r.orders = slices.DeleteFunc(r.orders, func(o order) bool {
		return o.trigger == record.TriggerSuspicious || o.trigger == record.TriggerFirst
	})
	for _, x := range r.subjects.order {
		if !x.present {
			if r.run.atEnd() {
				r.recordMissing(order{subject: x, trigger: record.TriggerEnd, owed: true}, "the process had ended before")
			}
			continue
		}
		v := x.Detector.Verdict()
		cold := x.Account.Diagnosed == 0 || r.part.Up()-x.Account.Diagnosed >= r.run.responder.Options().Cooldown
		// A leak that was diagnosed may be that of an incarnation that is gone.
		suspect := v.State != detector.Normal || v.Gate == detector.Leak && x.Account.Diagnosed == 0
		dumped := false
		if suspect && cold && !x.response.ordered {
			recipe := recipeOf(v.Kind)
			heap := recipe == "java" || recipe == "unknown"
			dumped = r.want(order{subject: x, recipe: recipe, kind: v.Kind, trigger: record.TriggerFinal, owed: heap && r.run.atEnd()}) && heap
		}
		// Once is enough: its heap is the same.
		if r.run.atEnd() && !dumped {
			r.want(order{subject: x, recipe: response.HeapOnly, trigger: record.TriggerEnd, owed: true})
		}
		if x.response.first != nil {
			r.want(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerLast})
		}
	}
}

// recordMissing records that the heap dump of an order that was owed is missing, and why, and lets
// go on who waits for it.
func (r *responses) recordMissing(o order, why string) {
	if o.owed {
		when := "at the end"
		if o.trigger == record.TriggerMark {
			when = "at mark " + text.Quote(o.mark, maxMarkShown)
		}
		e := r.naming(o.subject.Account, "missing", fmt.Sprintf("no heap dump %s: %s", when, why))
		e.Mark, e.Unreadable = o.mark, o.unread
		if !o.subject.Account.MissingUnlisted() {
			r.event(e)
		}
		o.dumps.lack(o.subject.Key().Name + ": " + e.Text)
	}
	o.dumps.end()
	if o.answer != nil {
		o.answer(record.Diagnosis{}, fmt.Errorf("diagnose %s: %s", o.process.Name, why))
	}
}

// snapAfterLoop orders a snapshot of every process that has none after its first loop: what it
// had then is compared with what it has at the end, also where nothing was ever suspicious.
func (r *responses) snapAfterLoop(mark string, number int) {
	for _, x := range r.subjects.order {
		if x.present && !x.response.marked {
			x.response.marked = r.want(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerFirst, mark: mark, marks: number})
		}
	}
}

// startupTime is the device time for which a process is watched before its first snapshot
// without a mark: while it starts, everything grows.
const startupTime = 5 * time.Minute

// snapAfterStartup orders the first snapshot of a process that has started and has seen no
// mark. A process that keeps restarting has one every snapshotEvery.
func (r *responses) snapAfterStartup(x *subject) {
	to, now := &x.response, r.clock.now()
	if to.since == 0 {
		to.since = max(1, now)
	}
	if to.marked || to.settled || now-to.since < startupTime || to.early > 0 && now-to.early < snapshotEvery {
		return
	}
	if r.want(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerFirst}) {
		to.settled, to.early = true, max(1, now)
	}
}

// maxMarkShown bounds the characters of a mark in a message.
const maxMarkShown = 100
