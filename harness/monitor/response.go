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
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// sweepEvery is the device time between two sweeps of a device that did not let the
	// first one end.
	sweepEvery = 5 * time.Minute
	// snapshotEvery is the least device time between two snapshots of one process.
	snapshotEvery = 30 * time.Minute
	// maxAttempts is how often a diagnosis is begun that the device did not let end.
	maxAttempts = 3
)

// responses are what a session has to do about leaks: one diagnosis at a time, so that
// the device never does two, and one analysis at a time.
type responses struct {
	collects trip[*response.Case]
	analyses trip[*response.Case]
	// orders wait for the device, one of each process, recipe and trigger; cases for
	// their analysis.
	orders []order
	cases  []collectedCase
	// answer is that of the case that is being analyzed; nil for nobody.
	answer func(record.Diagnosis, error)
	// now is what is being collected.
	now order
	// pauses are told by the errand that dumps a heap.
	pauses chan bool
	// disturbed says that the breakdown on its way is of a process that a heap dump has
	// stopped meanwhile.
	disturbed bool
	// left says that a diagnosis may have left a file on the device: the device went away
	// in the middle, or did not remove it. It is looked for from sweepFrom on, on the
	// session's clock.
	left      bool
	sweepFrom time.Duration
	// ending says that the run is over: what cannot end now is not tried again.
	ending bool
}

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

func newResponses() responses {
	return responses{
		collects: newTrip[*response.Case](), analyses: newTrip[*response.Case](),
		// A dump tells two things; the session listens while it waits for its end, too.
		pauses: make(chan bool, 4),
	}
}

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

// want puts an order in its place: leaks first, then the snapshots that tell later what
// a leak has grown by. It is false where there is such an order already, but for a mark
// whose dumps somebody waits for.
func (s *session) want(o order) bool {
	if s.run.responder == nil {
		return false
	}
	same := func(have order) bool {
		return o.dumps == nil && o.answer == nil && have.subject == o.subject && have.recipe == o.recipe && have.trigger == o.trigger
	}
	if slices.ContainsFunc(s.respond.orders, same) {
		return false
	}
	o.process, o.t = o.subject.Process, s.part.Seconds(max(s.part.Up(), s.part.At(s.clock.now())))
	o.age, o.memory = s.age(o.subject), memoryOf(o.subject)
	if o.marks == 0 {
		o.marks = s.marks
	}
	at := len(s.respond.orders)
	for at > 0 && rank(s.respond.orders[at-1].trigger) > rank(o.trigger) {
		at--
	}
	s.respond.orders = slices.Insert(s.respond.orders, at, o)
	return true
}

// clockTick is the unit of the start of a process: USER_HZ, which is 100 on every Android.
const clockTick = 10 * time.Millisecond

// age is for how long a process has run, in seconds of the device; nil where that is unknown.
func (s *session) age(x *subject) *float64 {
	ran := s.part.At(s.clock.now()) - time.Duration(x.Process.Start)*clockTick
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

// answerDemand orders the diagnosis that the machine of a process demands.
func (s *session) answerDemand(x *subject, kind detector.LeakKind) {
	if kind == detector.None || x.response.ordered || !x.present {
		return
	}
	x.response.ordered = s.want(order{subject: x, recipe: recipeOf(kind), kind: kind, trigger: record.TriggerLeak})
}

// stepped does what a step of the machine asks for: a snapshot where suspicion begins, so
// that growth can be told later, and a word where a leak comes again too soon.
func (s *session) stepped(t ledger.Entry) {
	if s.run.responder == nil || t.Jump() {
		return
	}
	x := s.subjects[t.Of.Key()]
	if x == nil {
		return
	}
	switch t.To {
	case detector.Suspicious:
		now := s.clock.now()
		if x.response.snapshot > 0 && now-x.response.snapshot < snapshotEvery {
			return
		}
		if s.want(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerSuspicious}) {
			x.response.snapshot = max(1, now)
		}
	case detector.Leaking:
		if at := x.Account.Diagnosed; at > 0 && x.Detector.Demand().Diagnose == detector.None {
			s.event(s.repeated(x, t, at))
		}
	}
}

// repeated tells a leak of a process whose last diagnosis is less than the cooldown ago.
func (s *session) repeated(x *subject, t ledger.Entry, diagnosed time.Duration) record.Event {
	v := x.Detector.Verdict()
	rate := "at a rate that is not known"
	if v.RateKnown {
		rate = fmt.Sprintf("at %+.1f MB/h", v.Rate/detector.MB)
	}
	ago := max(0, s.part.Up()-diagnosed).Round(time.Second)
	e := s.naming(x.Account, "repeated", fmt.Sprintf(
		"%s again, %s, %.1f MB now; nothing is collected: the last diagnosis was %v ago", reporters.KindWords(t.Kind), rate, float64(x.LastBytes)/detector.MB, ago))
	e.Kind = t.Kind
	return e
}

// sendCollect lets the next order go, one at a time. What has ended meanwhile, or is
// another process now, is not looked at.
func (s *session) sendCollect(ctx context.Context) {
	// The sweep must not find a dump of this run.
	for !s.respond.collects.away && !s.sweeps.away && len(s.respond.orders) > 0 {
		o := s.respond.orders[0]
		s.respond.orders = s.respond.orders[1:]
		if !s.run.keep(s.run.recorder.Check()) {
			// The responder would make the directory anew.
			s.lack(o, "the run directory is gone")
			continue
		}
		if o.subject.present && o.subject.Same(o.process) {
			s.collect(ctx, o)
			return
		}
		s.lack(o, "the process ended before its turn")
		o.subject.response.ordered = o.subject.response.ordered && o.trigger != record.TriggerLeak
	}
}

func (s *session) collect(ctx context.Context, o order) {
	s.respond.now = o
	x, dev, pauses := o.subject, s.dev, s.respond.pauses
	ask := response.Order{
		Process: o.process, Level: x.probe.Level, Findings: x.probe.Findings, Recipe: o.recipe, Kind: o.kind,
		Trigger: o.trigger, Mark: o.mark, T: o.t, Marks: o.marks, Age: o.age, Memory: o.memory, Expect: x.response.java.N * 3 / 2, Before: x.response.seen, App: s.incarnations(x),
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
	timing := s.clock
	send(s, &s.respond.collects, func() (*response.Case, error) {
		if o.dumps != nil {
			ask.Settled = settle(ctx, dev, timing, o.process, o.marked)
		}
		return s.run.responder.Collect(ctx, dev, dev.Facts, ask)
	})
}

// incarnations are those of the app of a process that the session knows, but for that of the
// process itself.
func (s *session) incarnations(x *subject) []diagnose.Incarnation {
	var out []diagnose.Incarnation
	same := func(p capture.Process) bool {
		return p.User == x.User && p.Package() == x.Package() && !p.Same(x.Process)
	}
	for _, y := range s.order {
		if y.present && same(y.Process) {
			out = append(out, diagnose.Incarnation{Process: y.Process})
		}
	}
	for _, p := range s.past {
		if p.boots == s.boots && same(p.Process) {
			out = append(out, p.Incarnation)
		}
	}
	return out
}

// paused marks in the series that a process is stopped by a heap dump, or goes on.
func (s *session) paused(on bool) {
	x := s.respond.now.subject
	if x == nil || on == x.paused {
		return
	}
	x.paused = on
	now := s.clock.now()
	if on {
		x.pausedAt = now
		s.respond.disturbed = s.respond.disturbed || s.reading == x.Key()
		return
	}
	lasted := now - x.pausedAt
	e := s.naming(x.Account, "pause", fmt.Sprintf("not sampled for %v, for a heap dump", lasted.Round(100*time.Millisecond)))
	e.Duration = record.Round(lasted.Seconds(), 3)
	x.pauses += lasted
	x.due = now
	s.event(e)
}

// takeCollect takes what was collected.
func (s *session) takeCollect(ctx context.Context, a answer[*response.Case]) {
	s.respond.collects.away = false
	s.hearPauses()
	o, c := s.respond.now, a.value
	s.respond.now = order{}
	x := o.subject
	s.resume(x)
	if c == nil {
		s.fruitless(ctx, o, a.err)
		return
	}
	e := s.naming(x.Account, "diagnose", collectedText(c))
	e.Kind, e.Diagnosis, e.Retry = c.Record.Kind, recordOf(c), s.again(ctx, o, a.err)
	s.event(e)
	if why := heapError(c); o.owed && why != nil {
		s.lack(o, why.Error())
	} else {
		o.dumps.got()
		o.dumps.end()
	}
	s.respond.cases = append(s.respond.cases, collectedCase{c, o.answer})
	s.respond.left = s.respond.left || len(c.Left) > 0
	switch {
	case a.err == nil:
		delete(s.complaints, errandCollect)
	case ctx.Err() == nil && errors.Is(a.err, capture.ErrDevice):
		s.respond.left = true
		s.failed(ctx, errandCollect, a.err)
	}
}

// again tells whether a diagnosis that has ended so will be tried again: the machine goes
// on to demand that of a leak. Nothing else is.
func (s *session) again(ctx context.Context, o order, err error) bool {
	if o.trigger != record.TriggerLeak {
		return false
	}
	if !o.subject.Same(o.process) {
		return err != nil && ctx.Err() == nil // with the next leak of the process that came after
	}
	r := &o.subject.response
	r.ordered = false
	r.attempts++
	if err != nil && ctx.Err() == nil && !s.respond.ending && r.attempts < maxAttempts {
		return true
	}
	r.attempts = 0
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
func (s *session) resume(x *subject) {
	if x.paused {
		s.respond.now.subject = x
		s.paused(false)
		s.respond.now = order{}
	}
}

// fruitless takes an order of which there is not even a folder. It has a record all the
// same once it is given up: a leak was found, and the machine waits for a diagnosis.
func (s *session) fruitless(ctx context.Context, o order, err error) {
	e := s.naming(o.subject.Account, "diagnose", "nothing was collected: "+s.run.paths.Error(err))
	if e.Retry = s.again(ctx, o, err); !e.Retry {
		e.Kind = o.kind
		e.Diagnosis = &record.Diagnosis{
			Device: s.dev.Serial(), User: o.process.User, Process: o.process.Key().Name, PID: o.process.PID,
			T: o.t, Trigger: o.trigger, Mark: o.mark, Marks: o.marks, Age: o.age, Memory: o.memory, Kind: e.Kind, Recipe: o.recipe, Outcome: record.DiagnosisNothing,
			Keep: string(s.run.responder.Options().Keep), Analyzed: true,
			Steps: []record.Collected{}, Findings: []record.Finding{}, Summary: []string{}, Warnings: []string{text.Head(s.run.paths.Error(err), 500)},
		}
	}
	s.event(e)
	s.lack(o, s.run.paths.Error(err))
}

// hearPauses hears what a dump has told and nobody has heard.
func (s *session) hearPauses() {
	for {
		select {
		case on := <-s.respond.pauses:
			s.paused(on)
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

// sendAnalysis lets the next case be analysed. Over all devices there is one at a time:
// the graph of one heap dump is enough for the memory of a host.
func (s *session) sendAnalysis(ctx context.Context) {
	if s.respond.analyses.away || len(s.respond.cases) == 0 {
		return
	}
	c := s.respond.cases[0].Case
	s.respond.answer = s.respond.cases[0].answer
	s.respond.cases = s.respond.cases[1:]
	turn, responder := s.run.analysing, s.run.responder
	send(s, &s.respond.analyses, func() (*response.Case, error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		return c, responder.Analyse(ctx, c)
	})
}

// takeAnalysis takes what a case has shown.
func (s *session) takeAnalysis(a answer[*response.Case]) {
	s.respond.analyses.away = false
	c := a.value
	x := s.subjects[c.Process.Key()]
	if a.err != nil {
		// What is measured goes on: only the run's own lines must be written.
		s.about(x, "error", fmt.Sprintf("what was collected cannot be told in its folder: %v", a.err))
	}
	if c.Unread && s.owed(c.Trigger) {
		s.lack(order{subject: x, trigger: c.Trigger, mark: c.Mark, owed: true, unread: true}, "it could not be analyzed")
	}
	if c.Now != nil && x.Same(c.Process) {
		x.response.seen = c.Now
		if c.Trigger == record.TriggerFirst {
			x.response.first = c.Now
		}
	}
	e := s.naming(x.Account, "diagnosed", diagnosedText(c))
	e.Kind, e.Diagnosis = c.Record.Kind, recordOf(c)
	s.event(e)
	if s.respond.answer != nil {
		s.respond.answer(*recordOf(c), a.err)
		s.respond.answer = nil
	}
}

// collectedCase is a case that waits for its analysis, with who waits for its answer.
type collectedCase struct {
	*response.Case
	answer func(record.Diagnosis, error)
}

// owed reports whether the run was asked for the heap dump of a diagnosis with that trigger.
func (s *session) owed(trigger string) bool {
	return trigger == record.TriggerMark || trigger == record.TriggerEnd || trigger == record.TriggerFinal && s.run.atEnd()
}

// diagnosedText is what there is to know first.
func diagnosedText(c *response.Case) string { return c.Headline() }

// conclude ends the responses of a session whose run is over: what is on its way comes
// to its end, and what the end itself asks for is done.
func (s *session) conclude(ctx context.Context, over error) {
	if s.run.responder == nil {
		return
	}
	s.respond.ending = true
	s.takeNotes()
	s.orderLastMarks(ctx, over)
	switch {
	case final(over):
		s.orderFinal()
	case s.run.atEnd():
		s.event(record.Event{Event: "error", Text: "no heap dumps at the end: the run was broken off"})
	}
	s.respond.sweepFrom = 0
	for {
		s.dropOrders(ctx, over)
		if ctx.Err() == nil && !s.silent.on() {
			s.sweepAgain(ctx)
		}
		s.sendCollect(ctx)
		s.sendAnalysis(ctx)
		if !s.sweeps.away && !s.respond.collects.away && !s.respond.analyses.away {
			return
		}
		select {
		case a := <-s.sweeps.done:
			s.takeSweep(ctx, a)
		case a := <-s.respond.collects.done:
			s.takeCollect(ctx, a)
		case a := <-s.respond.analyses.done:
			s.takeAnalysis(a)
		case on := <-s.respond.pauses:
			s.paused(on)
		case <-s.notes.bell:
			s.takeNotes()
			s.orderLastMarks(ctx, over)
		}
	}
}

// orderLastMarks orders the dumps of the marks that the end of the run has caught. One more
// look finds their processes; where the device cannot be asked, the look before counts.
func (s *session) orderLastMarks(ctx context.Context, over error) {
	if len(s.pending) > 0 && s.err == nil && final(over) && ctx.Err() == nil && !s.silent.on() {
		s.endLooks()
		s.sendLook(ctx)
		s.takeLook(ctx, <-s.looks.done)
		s.finishLook(ctx)
	}
	for len(s.pending) > 0 {
		s.orderFirstMark()
	}
}

// dropOrders drops the orders for a device that cannot be asked any more: the run was
// broken off, or the device is away and nobody waits for it once the run is over.
func (s *session) dropOrders(ctx context.Context, over error) {
	n := len(s.respond.orders)
	if n == 0 || s.err == nil && ctx.Err() == nil && final(over) && !s.silent.on() {
		return
	}
	dropped := s.respond.orders
	s.respond.orders = nil
	if s.silent.on() {
		for _, o := range dropped {
			s.lack(o, "the device did not answer")
		}
		s.event(record.Event{Event: "error", Text: fmt.Sprintf("the device does not answer at the end of the run: %d diagnoses that were due are left out", n)})
		return
	}
	for _, o := range dropped {
		s.lack(o, "the run was broken off first")
		if o.trigger == record.TriggerLeak {
			s.about(o.subject, "error", "its leak is not diagnosed: the run was broken off before its turn")
		}
	}
}

// final tells whether a run has come to its end and was not broken off.
func final(over error) bool {
	return errors.Is(over, errDuration) || errors.Is(over, errWorkload) || errors.Is(over, errFinished)
}

// orderFinal orders what the end of a run asks for: a diagnosis of every leak that has
// none and of what stayed suspicious, and a heap dump of all that are there, where that
// was asked for.
func (s *session) orderFinal() {
	s.respond.orders = slices.DeleteFunc(s.respond.orders, func(o order) bool {
		return o.trigger == record.TriggerSuspicious || o.trigger == record.TriggerFirst
	})
	for _, x := range s.order {
		if !x.present {
			if s.run.atEnd() {
				s.lack(order{subject: x, trigger: record.TriggerEnd, owed: true}, "the process had ended before")
			}
			continue
		}
		v := x.Detector.Verdict()
		cold := x.Account.Diagnosed == 0 || s.part.Up()-x.Account.Diagnosed >= s.run.responder.Options().Cooldown
		// A leak that was diagnosed may be that of an incarnation that is gone.
		suspect := v.State != detector.Normal || v.Gate == detector.Leak && x.Account.Diagnosed == 0
		dumped := false
		if suspect && cold && !x.response.ordered {
			recipe := recipeOf(v.Kind)
			heap := recipe == "java" || recipe == "unknown"
			dumped = s.want(order{subject: x, recipe: recipe, kind: v.Kind, trigger: record.TriggerFinal, owed: heap && s.run.atEnd()}) && heap
		}
		// Once is enough: its heap is the same.
		if s.run.atEnd() && !dumped {
			s.want(order{subject: x, recipe: response.HeapOnly, trigger: record.TriggerEnd, owed: true})
		}
		if x.response.first != nil {
			s.want(order{subject: x, recipe: response.Snapshot, trigger: record.TriggerLast})
		}
	}
}

// sendResponses lets go what waits: an order for the device, a case for its analysis. A
// device that is silent is asked for nothing.
func (s *session) sendResponses(ctx context.Context) {
	if !s.silent.on() {
		s.sweepAgain(ctx)
		s.sendCollect(ctx)
	}
	s.sendAnalysis(ctx)
}

// sweepAgain removes what a diagnosis has left on the device.
func (s *session) sweepAgain(ctx context.Context) {
	if s.respond.left && !s.sweeps.away && !s.respond.collects.away && s.clock.now() >= s.respond.sweepFrom {
		s.respond.left = false
		s.sendSweep(ctx)
	}
}

// sendSweep has removed what a run that crashed has left on the device.
func (s *session) sendSweep(ctx context.Context) {
	if s.run.responder == nil {
		return
	}
	dev := s.dev
	send(s, &s.sweeps, func() ([]string, error) { return diagnose.Sweep(ctx, dev) })
}

func (s *session) takeSweep(ctx context.Context, a answer[[]string]) {
	s.sweeps.away = false
	if len(a.value) > 0 {
		s.event(record.Event{Event: "swept", Text: "removed what an earlier diagnosis has left on the device: " + strings.Join(a.value, ", ")})
	}
	switch {
	case a.err == nil:
		delete(s.complaints, errandSweep)
	case ctx.Err() == nil:
		s.respond.left, s.respond.sweepFrom = true, s.clock.now()+sweepEvery
		s.complainOfDevice(errandSweep, a.err)
	}
}

// grown records what grew in the heap dumps of a process that were taken at marks.
func (s *session) grown(d record.Diagnosis) {
	x := s.subjects[capture.Key{User: d.User, Name: d.Process}]
	if x == nil {
		return
	}
	text := ""
	if len(d.Summary) > 0 {
		text = d.Summary[0]
	}
	e := s.naming(x.Account, "diagnosed", text)
	e.Diagnosis = &d
	s.event(e)
}
