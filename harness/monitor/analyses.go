package monitor

import (
	"context"
	"fmt"

	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// analyses analyze what was collected, one case at a time.
type analyses struct {
	*port
	call call[*response.Case]
	// cases wait for their analysis; answer is that of the one being analyzed, nil for nobody.
	cases  []collectedCase
	answer func(record.Diagnosis, error)

	responses *responses
}

func newAnalyses(p *port) *analyses { return &analyses{port: p, call: newCall[*response.Case]()} }

// busy reports whether a case is being analyzed.
func (q *analyses) busy() bool { return q.call.inFlight }

// add puts a case at the end of the queue.
func (q *analyses) add(c collectedCase) { q.cases = append(q.cases, c) }

// collectedCase is a case that waits for its analysis, with who waits for its answer.
type collectedCase struct {
	*response.Case
	answer func(record.Diagnosis, error)
}

// send lets the next case be analysed. Over all devices there is one at a time:
// the graph of one heap dump is enough for the memory of a host.
func (q *analyses) send(ctx context.Context) {
	if q.call.inFlight || len(q.cases) == 0 {
		return
	}
	c := q.cases[0].Case
	q.answer = q.cases[0].answer
	q.cases = q.cases[1:]
	turn, responder := q.run.analysing, q.run.responder
	send(q.port, &q.call, func() (*response.Case, error) {
		turn <- struct{}{}
		defer func() { <-turn }()
		return c, responder.Analyse(ctx, c)
	})
}

// take takes what a case has shown.
func (q *analyses) take(a answer[*response.Case]) {
	q.call.inFlight = false
	c := a.value
	x := q.subjects.byKey[c.Process.Key()]
	if a.err != nil {
		// What is measured goes on: only the run's own lines must be written.
		q.about(x, "error", fmt.Sprintf("what was collected cannot be told in its folder: %v", a.err))
	}
	if c.Unread && q.responses.owed(c.Trigger) {
		q.responses.recordMissing(order{subject: x, trigger: c.Trigger, mark: c.Mark, owed: true, unread: true}, "it could not be analyzed")
	}
	if c.Now != nil && x.Same(c.Process) {
		x.response.seen = c.Now
		if c.Trigger == record.TriggerFirst {
			x.response.first = c.Now
		}
	}
	e := q.naming(x.Account, "diagnosed", diagnosedText(c))
	e.Kind, e.Diagnosis = c.Record.Kind, recordOf(c)
	q.event(e)
	if q.answer != nil {
		q.answer(*recordOf(c), a.err)
		q.answer = nil
	}
}

// owed reports whether the run was asked for the heap dump of a diagnosis with that trigger.
func (r *responses) owed(trigger string) bool {
	return trigger == record.TriggerMark || trigger == record.TriggerEnd || trigger == record.TriggerFinal && r.run.atEnd()
}

// diagnosedText is what there is to know first.
func diagnosedText(c *response.Case) string { return c.Headline() }
