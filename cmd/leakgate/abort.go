package main

import (
	"context"

	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/checkout"
	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// watch runs p, and stops the run as soon as it breaks a rule.
func (f *runFlags) watch(p *plan, screen monitor.Observer) (record.Run, error) {
	if f.failing == nil {
		return monitor.Run(p.ctx, p.options)
	}
	w := &abortWatch{Observer: screen, news: make(chan struct{}, 1)}
	p.options.Observer = w
	live, err := monitor.Start(p.ctx, p.options)
	if err != nil {
		return record.Run{}, err
	}
	ctx, stop := context.WithCancel(p.ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.judge(ctx, live, func() string { return f.failing(ctx, p.options.Dir) })
	}()
	run, err := live.Wait()
	stop()
	<-ended
	return run, err
}

// abortWatch is an observer that records when a run has something new to judge.
type abortWatch struct {
	monitor.Observer
	news chan struct{}
}

// Happened implements monitor.Observer.
func (w *abortWatch) Happened(e record.Event) {
	w.Observer.Happened(e)
	if e.Event != "death" &&
		(e.Event != "diagnosed" || e.Diagnosis == nil || e.Diagnosis.Trigger != record.TriggerMark) {
		return
	}
	select {
	case w.news <- struct{}{}:
	default: // the pending judgment covers this event as well
	}
}

// judge checks after each event whether the run fails, and stops it if so.
func (w *abortWatch) judge(ctx context.Context, live *monitor.LiveRun, failing func() string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-live.Done():
			return
		case <-w.news:
		}
		if reason := failing(); reason != "" {
			// Stop's result can be ignored because LiveRun.Wait returns it,
			// too.
			_, _ = live.Stop(reason)
			return
		}
	}
}

// failing returns a function that checks a run in progress and returns the
// reason why it has already failed, or "" if it has not. The returned function
// judges the current record as if the run had ended.
func (s *gateSettings) failing(c console, b *gate.Baseline) func(ctx context.Context, dir string) string {
	return func(ctx context.Context, dir string) string {
		run, _, err := ledger.Rebuild(dir)
		if err != nil {
			c.detail("judge the run so far: %v", err)
			return ""
		}
		ev, err := evidence.FromRecord(ctx, dir, run)
		if err != nil {
			c.detail("judge the run so far: %v", err)
			return ""
		}
		s.fillHead(c, ev)
		// Whether evidence is missing, and how the run ended, is known only at
		// the end of the run.
		ev.Missing, ev.Unjudged, ev.RunExit = nil, nil, 0
		in := s.input(ev, b)
		if in.Informational {
			return ""
		}
		// Compare with the same base runs as at the end of the run.
		if tree, err := checkout.Open(ctx, s.checkout); err == nil {
			s.ancestors(ctx, tree, &in)
		}
		result := gate.Compare(in)
		if len(result.Reasons) == 0 {
			return ""
		}
		return "gate: " + result.Text
	}
}
