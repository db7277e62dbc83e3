package monitor

import (
	"context"
	"fmt"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// analyses analyzes the heap dumps and artifacts of diagnoses, one case at a
// time.
type analyses struct {
	*port
	call call[*response.Case]
	// cases lists the cases that have not been analyzed yet. answer receives
	// the result of the case being analyzed; it is nil if no caller waits for
	// that result.
	cases  []collectedCase
	answer func(record.Diagnosis, error)

	responses *responses
}

func newAnalyses(p *port) *analyses { return &analyses{port: p, call: newCall[*response.Case]()} }

// busy reports whether a case is being analyzed.
func (q *analyses) busy() bool { return q.call.inFlight }

// add adds a case to the queue.
func (q *analyses) add(c collectedCase) { q.cases = append(q.cases, c) }

// collectedCase is a case to be analyzed, with the function that receives the
// result.
type collectedCase struct {
	*response.Case
	answer func(record.Diagnosis, error)
}

// send starts the next analysis. Only one analysis runs at a time across all
// devices, because the graph of one heap dump can fill the memory of a host.
func (q *analyses) send(ctx context.Context) {
	if q.call.inFlight || len(q.cases) == 0 {
		return
	}
	c := q.cases[0].Case
	q.answer = q.cases[0].answer
	q.cases = q.cases[1:]
	turn, responder := q.run.analysisSlot, q.run.responder
	send(q.port, &q.call, func() (*response.Case, error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		return c, responder.Analyze(ctx, c)
	})
}

// take records the result of an analysis.
func (q *analyses) take(a answer[*response.Case]) {
	q.call.inFlight = false
	c := a.value
	x := q.subjects.byKey[c.Process.Key()]
	if a.err != nil {
		// This error does not end the run. The run ends only if the lines of
		// the run itself cannot be written.
		q.recordProcessEvent(x, "error", fmt.Sprintf("write analysis of the collected data: %v", a.err))
	}
	if c.Unread && q.responses.dumpRequested(c.Trigger) {
		q.responses.recordMissing(order{subject: x, trigger: c.Trigger, mark: c.Mark, requested: true, unread: true},
			"it could not be analyzed")
	}
	if c.Now != nil && x.Same(c.Process) {
		x.response.latest = c.Now
		if c.Trigger == record.TriggerFirst {
			x.response.first = c.Now
		}
	}
	e := q.processEvent(x.Account, "diagnosed", diagnosedText(c))
	e.Kind, e.Diagnosis = c.Record.Kind, recordOf(c)
	q.recordEvent(e)
	if q.answer != nil {
		q.answer(*recordOf(c), a.err)
		q.answer = nil
	}
}

// dumpRequested reports whether the run requested the heap dump of a diagnosis
// with this trigger.
func (r *responses) dumpRequested(trigger string) bool {
	return trigger == record.TriggerMark || trigger == record.TriggerEnd || trigger == record.TriggerFinal &&
		r.run.atEnd()
}

// diagnosedText returns the headline of a case.
func diagnosedText(c *response.Case) string { return c.Headline() }
