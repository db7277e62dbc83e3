package monitor

import (
	"context"
	"errors"

	"github.com/leakgate/leakgate/reporters/record"
)

// end ends the device's part of the run, after ctx is done or the device is
// lost.
func (s *session) end(ctx, responding context.Context, giveUp func()) {
	s.discovery.finishScan(ctx)
	if s.silence.lost() == nil {
		s.silence.lose(s.discovery.listingError())
	}
	cause := context.Cause(ctx)
	lost := s.silence.lost() != nil
	if lost || !completed(cause) {
		giveUp()
	} else {
		s.silence.finalProbe(responding)
	}
	// From here on nothing is sampled, and the remaining diagnoses are
	// completed.
	for _, x := range s.subjects.order {
		s.sampling.recordTrailingGap(x)
	}
	s.finishResponses(responding, cause)
	s.deaths.readAll(responding)
	if !lost {
		return
	}
	s.recordEnd(s.silence.lost())
	close(s.gone)
}

// finishResponses completes the diagnoses in progress and those that are
// required at the end of the run.
func (s *session) finishResponses(ctx context.Context, over error) {
	if s.run.responder == nil {
		return
	}
	s.responses.end()
	s.takeMessages()
	s.orderLastMarks(ctx, over)
	switch {
	case completed(over):
		s.responses.orderFinal()
	case s.run.atEnd():
		s.recordEvent(record.Event{Event: "error", Text: "no heap dumps at the end: the run was aborted"})
	}
	s.sweeper.sweepNow()
	for {
		s.responses.dropUnreachable(ctx, over)
		if ctx.Err() == nil && !s.silence.on() && !s.responses.busy() {
			s.sweeper.sweepDue(ctx)
		}
		s.responses.send(ctx)
		s.analyses.send(ctx)
		if !s.sweeper.busy() && !s.responses.busy() && !s.analyses.busy() {
			return
		}
		select {
		case a := <-s.sweeper.call.done:
			s.sweeper.take(ctx, a)
		case a := <-s.responses.call.done:
			s.responses.take(ctx, a)
		case a := <-s.analyses.call.done:
			s.analyses.take(a)
		case on := <-s.responses.pauses:
			s.responses.setPaused(on)
		case <-s.mailbox.notify:
			s.takeMessages()
			s.orderLastMarks(ctx, over)
		}
	}
}

// orderLastMarks requests the dumps for the marks that are pending at the end
// of the run. One more scan finds the processes to dump. If the device does not
// respond, the result of the previous scan is used.
func (s *session) orderLastMarks(ctx context.Context, over error) {
	if s.marks.waiting() && s.silence.available() && completed(over) && ctx.Err() == nil {
		s.discovery.awaitScan()
		s.discovery.send(ctx)
		s.discovery.take(ctx, <-s.discovery.call.done)
		s.discovery.finishScan(ctx)
	}
	s.marks.orderAll()
}

// completed reports whether a run ended normally rather than being aborted.
func completed(over error) bool {
	return errors.Is(over, errDuration) || errors.Is(over, errWorkload) || errors.Is(over, errFinished)
}

// sendResponses starts the next sweep, diagnosis and analysis. It sends no
// request to a device that does not respond.
func (s *session) sendResponses(ctx context.Context) {
	if !s.silence.on() {
		if !s.responses.busy() {
			s.sweeper.sweepDue(ctx)
		}
		s.responses.send(ctx)
	}
	s.analyses.send(ctx)
}

// recordEnd records the end of the device's part of the run, once.
func (s *session) recordEnd(cause error) {
	select {
	case <-s.over:
		return
	default:
	}
	s.takeMessages()
	s.marks.orderAll()
	s.responses.dropAll("the run had ended")
	s.marks.recordSkips(true)
	s.overhead.record()
	end := record.Event{Event: "end", Text: cause.Error()}
	if err := s.silence.lost(); err != nil {
		end.Event, end.Text = "lost", err.Error()
	}
	s.recordEvent(end)
	close(s.over)
	s.mailbox.close()
}

// recordProofs records the leaks that the heap dumps at marks prove.
func (s *session) recordProofs() {
	for _, x := range s.subjects.order {
		for _, proof := range x.Account.Proofs() {
			s.recordProcessEvent(x, "proof", proof)
		}
	}
}

var errRunEnded = errors.New("the run has ended")
