package monitor

import (
	"context"
	"errors"

	"github.com/leakgate/leakgate/reporters/record"
)

// end ends the device's part of the run: ctx has ended, or the device is lost.
func (s *session) end(ctx, responding context.Context, giveUp func()) {
	s.discovery.finishLook(ctx)
	if s.silence.lost() == nil {
		s.silence.lose(s.discovery.listingError())
	}
	cause := context.Cause(ctx)
	lost := s.silence.lost() != nil
	if lost || !final(cause) {
		giveUp()
	} else {
		s.silence.finalProbe(responding)
	}
	// Nothing is sampled from here on, and what is still collected takes its time.
	for _, x := range s.subjects.order {
		s.sampling.recordTrailingGap(x)
	}
	s.conclude(responding, cause)
	s.deaths.readAll(responding)
	if !lost {
		return
	}
	s.finish(s.silence.lost())
	close(s.gone)
}

// conclude ends the responses of a session whose run is over: what is on its way comes
// to its end, and what the end itself asks for is done.
func (s *session) conclude(ctx context.Context, over error) {
	if s.run.responder == nil {
		return
	}
	s.responses.end()
	s.takeLetters()
	s.orderLastMarks(ctx, over)
	switch {
	case final(over):
		s.responses.orderFinal()
	case s.run.atEnd():
		s.event(record.Event{Event: "error", Text: "no heap dumps at the end: the run was broken off"})
	}
	s.sweeper.hurry()
	for {
		s.responses.drop(ctx, over)
		if ctx.Err() == nil && !s.silence.on() && !s.responses.busy() {
			s.sweeper.again(ctx)
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
		case <-s.notes.bell:
			s.takeLetters()
			s.orderLastMarks(ctx, over)
		}
	}
}

// orderLastMarks orders the dumps of the marks that the end of the run has caught. One more
// look finds their processes; where the device cannot be asked, the look before counts.
func (s *session) orderLastMarks(ctx context.Context, over error) {
	if s.marks.waiting() && s.silence.available() && final(over) && ctx.Err() == nil {
		s.discovery.endLooks()
		s.discovery.send(ctx)
		s.discovery.take(ctx, <-s.discovery.call.done)
		s.discovery.finishLook(ctx)
	}
	s.marks.orderAll()
}

// final tells whether a run has come to its end and was not broken off.
func final(over error) bool {
	return errors.Is(over, errDuration) || errors.Is(over, errWorkload) || errors.Is(over, errFinished)
}

// sendResponses lets go what waits: an order for the device, a case for its analysis. A
// device that is silent is asked for nothing.
func (s *session) sendResponses(ctx context.Context) {
	if !s.silence.on() {
		if !s.responses.busy() {
			s.sweeper.again(ctx)
		}
		s.responses.send(ctx)
	}
	s.analyses.send(ctx)
}

// finish ends the device's part of the run in its record, once.
func (s *session) finish(cause error) {
	select {
	case <-s.over:
		return
	default:
	}
	s.takeLetters()
	s.marks.orderAll()
	s.responses.dropAll("the run had ended")
	s.marks.recordSkips(true)
	s.overhead.record()
	end := record.Event{Event: "end", Text: cause.Error()}
	if err := s.silence.lost(); err != nil {
		end.Event, end.Text = "lost", err.Error()
	}
	s.event(end)
	close(s.over)
	s.notes.close()
}

// recordProofs records the leaks that the heap dumps at marks prove.
func (s *session) recordProofs() {
	for _, x := range s.subjects.order {
		for _, proof := range x.Account.Proofs() {
			s.about(x, "proof", proof)
		}
	}
}

var errOver = errors.New("the run has ended")
