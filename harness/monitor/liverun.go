package monitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/diagnose"
	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// LiveRun is a run in progress. Its methods may be called concurrently. After
// the run has ended, methods that need a device return an error.
type LiveRun struct {
	run    *run
	ended  chan struct{}
	result record.Run
	err    error

	mu      sync.Mutex
	stopped bool
	// seen holds, for each life, the leaks found in the heap dumps of checks.
	seen map[life]*check.Seen
	// latest holds the object counts of each life at the end of its latest
	// check.
	latest map[life]map[string]int64
}

// carryOut executes the run to its end.
func (w *LiveRun) carryOut(going, user context.Context, box *inbox) {
	m := w.run
	cause := m.watch(going, user, box)
	// The inbox is removed first: if the disk is full, the space reserved in
	// the inbox is needed for the last lines.
	berr := box.close()
	displaced := !m.checkWrite(m.recorder.Check())
	if displaced {
		cause = errDisk
	}
	m.end(cause)
	w.result = m.ledger.Run()
	// Close returns the first error of any earlier write.
	cerr := m.recorder.Close()
	w.err = cmp.Or(m.failure(), cerr)
	if displaced {
		// Nothing is written if the directory was moved: a run.json without
		// samples would be mistaken for a complete run.
		w.err = fmt.Errorf("write run: %w; if %s was moved, finish it with `leakgate report` at its new location",
			w.err, filepath.Base(m.Dir))
	} else {
		w.err = errors.Join(w.err, record.WriteRun(m.Dir, w.result), m.writeLeaks(w.result), m.writeJUnit(w.result),
			berr)
	}
	close(w.ended)
}

// Done returns a channel that is closed when the run has ended and its record
// is written.
func (w *LiveRun) Done() <-chan struct{} { return w.ended }

// Wait waits for the end of the run and returns its record. It returns an error
// if the run could not be written. If the run failed, the record contains the
// reason.
func (w *LiveRun) Wait() (record.Run, error) {
	<-w.ended
	return w.result, w.err
}

// maxReason bounds the reason for a stop, in characters.
const maxReason = 500

// Stop stops the run and waits for its end, like [LiveRun.Wait]. Requested heap
// dumps are still taken and analyzed, including those at the end of the run, as
// they are after the full duration. The reason is written to run.json. If the
// context passed to Start is done, the run counts as interrupted and takes no
// final dumps. If Stop is called more than once, the reason given in the first
// call is used.
func (w *LiveRun) Stop(reason string) (record.Run, error) {
	w.mu.Lock()
	if !w.stopped {
		w.stopped = true
		w.run.reason = text.Head(reason, maxReason)
		w.run.stop(errFinished)
	}
	w.mu.Unlock()
	return w.Wait()
}

// Now returns the current state of the processes with the given name, or with a
// name that matches a pattern such as com.shop*, on all devices. It returns nil
// after the end of the run.
func (w *LiveRun) Now(process string) []Row {
	var out []Row
	for _, s := range w.run.sessions {
		_ = s.ask(func() {
			now := s.clock.now()
			for _, x := range s.subjects.order {
				if capture.Pattern(process).Match(x.Name) {
					out = append(out, s.row(x, now))
				}
			}
		})
	}
	return out
}

// Mark sets a mark on the time axis of every device, for example at the end of
// a loop of a suite. If the run dumps heaps at marks, Mark returns when every
// process has settled and been dumped; the result lists the missing dumps. The
// app must be left alone until then. Mark waits up to 10 s of device time for a
// process to appear. If the run does not dump heaps at marks, the result states
// this.
func (w *LiveRun) Mark(ctx context.Context, mark string) (missing []string, err error) {
	mark = cleanMark(mark)
	if mark == "" {
		return nil, errors.New("mark: the text is empty")
	}
	select {
	case <-w.ended:
		return nil, fmt.Errorf("mark %s: %w", text.Quote(mark, maxMarkShown), errRunEnded)
	default:
	}
	done := make(chan []string, 1)
	w.run.takeMark(mark, func(d markDumps) error {
		done <- d.missing
		return nil
	})
	select {
	case missing = <-done:
		return missing, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-w.ended:
	}
	select {
	case missing = <-done:
		return missing, nil
	default:
		return nil, fmt.Errorf("mark %s: %w", text.Quote(mark, maxMarkShown), errRunEnded)
	}
}

// OpenWindow is a span of a run that is still open and is judged separately,
// such as one test of a suite.
type OpenWindow struct {
	on     []*session
	number int
	once   sync.Once
	closed []record.JudgedWindow
	err    error
}

// Window opens a named window on every device. It causes no readings and no
// dumps.
func (w *LiveRun) Window(name string) (*OpenWindow, error) {
	return w.windowOn(w.run.sessions, name)
}

// windowOn opens a window on some devices.
func (w *LiveRun) windowOn(on []*session, name string) (*OpenWindow, error) {
	name = cleanMark(name)
	if name == "" {
		return nil, errors.New("open window: the name is empty")
	}
	w.mu.Lock()
	w.run.windows++
	number := w.run.windows
	w.mu.Unlock()
	var errs []error
	for _, s := range on {
		var full bool
		err := s.ask(func() {
			if full = s.part.OpenWindows() == ledger.MaxOpenWindows; !full {
				s.recordEvent(record.Event{Event: "window", Text: name, Window: number})
			}
		})
		if full {
			err = fmt.Errorf("%d windows are open", ledger.MaxOpenWindows)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("open window %s: %w", text.Quote(name, maxMarkShown), err)
	}
	return &OpenWindow{on: on, number: number}, nil
}

// Close closes the window and returns the verdicts on the window for each
// device, as in run.json. A second call returns the same verdicts.
func (w *OpenWindow) Close() ([]record.JudgedWindow, error) {
	w.once.Do(func() {
		for _, s := range w.on {
			err := s.ask(func() {
				s.marks.recordSkips(true) // so that the verdicts of the window are included
				s.recordEvent(record.Event{Event: "window_end", Window: w.number})
				if closed := s.part.Window(w.number); closed != nil {
					w.closed = append(w.closed, *closed)
				}
			})
			if err != nil {
				w.err = fmt.Errorf("close window: %w", err)
			}
		}
	})
	return w.closed, w.err
}

// Diagnose diagnoses a process and returns the result, which becomes part of
// the record. device may be "" if there is only one device. recipe is java,
// native, gpu, thread, unknown, snapshot or dump. Diagnose returns an error if
// the process is not running or the diagnosis failed.
func (w *LiveRun) Diagnose(ctx context.Context, device, process, recipe string) (record.Diagnosis, error) {
	if w.run.responder == nil {
		return record.Diagnosis{}, fmt.Errorf("diagnose %s: the run collects nothing; set Options.Respond", process)
	}
	if _, ok := diagnose.RecipeOf(recipe); !ok {
		return record.Diagnosis{}, fmt.Errorf("diagnose %s: unknown recipe %s: want java, "+
			"native, gpu, thread, unknown, snapshot or dump", process, text.Quote(recipe, maxMarkShown))
	}
	type answer struct {
		diagnosis record.Diagnosis
		err       error
	}
	answers := make(chan answer, 1)
	err := w.withProcess(device, process, func(s *session, x *subject) {
		o := order{subject: x, recipe: recipe, trigger: record.TriggerDemand, marked: time.Now()}
		o.answer = func(d record.Diagnosis, err error) { answers <- answer{d, err} }
		s.responses.enqueue(o)
	})
	if err != nil {
		return record.Diagnosis{}, fmt.Errorf("diagnose %s: %w", process, err)
	}
	select {
	case a := <-answers:
		return a.diagnosis, a.err
	case <-ctx.Done():
		return record.Diagnosis{}, ctx.Err()
	case <-w.ended:
	}
	select {
	case a := <-answers:
		return a.diagnosis, a.err
	default:
		return record.Diagnosis{}, fmt.Errorf("diagnose %s: %w", process, errRunEnded)
	}
}

// Objects returns the object counts that dumpsys meminfo prints for a process
// after a garbage collection: Activities, Views, ViewRootImpl and so on. device
// may be "" if there is only one device. Objects returns an error if the
// process is not running or the device does not respond.
func (w *LiveRun) Objects(ctx context.Context, device, process string) (map[string]int64, error) {
	s, target, err := w.runningProcess(ctx, device, process)
	if err != nil {
		return nil, fmt.Errorf("count objects of %s: %w", process, err)
	}
	return readObjects(ctx, s.dev, target.Process)
}

// withProcess calls do with a process on the goroutine of the process's
// session, if the process is running.
func (w *LiveRun) withProcess(device, process string, do func(*session, *subject)) error {
	s, err := w.session(device)
	if err != nil {
		return err
	}
	found := false
	err = s.ask(func() {
		i := slices.IndexFunc(s.subjects.order,
			func(x *subject) bool { return x.present && x.Key().String() == process })
		if i < 0 { // accept a process of any user
			i = slices.IndexFunc(s.subjects.order, func(x *subject) bool { return x.present && x.Name == process })
		}
		if found = i >= 0; found {
			do(s, s.subjects.order[i])
		}
	})
	switch {
	case err != nil:
		return err
	case !found:
		return errors.New("not running, or not watched")
	}
	return nil
}

// session returns the session of a device. The device may be "" if there is
// only one.
func (w *LiveRun) session(device string) (*session, error) {
	var of []*session
	for _, s := range w.run.sessions {
		if device == "" || device == s.dev.Serial() {
			of = append(of, s)
		}
	}
	if len(of) != 1 {
		return nil, fmt.Errorf("want one device of the run, but %s matches %d",
			text.Quote(device, maxMarkShown), len(of))
	}
	return of[0], nil
}
