package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// workloads are those of a run: its own, and those that play beside it.
type workloads struct {
	run *run
	// work is what the run's own workload did.
	work record.Workload
	// emptyMark records once that a mark has no text.
	emptyMark sync.Once
}

func (w *workloads) stress(ctx context.Context, stop context.CancelCauseFunc) {
	stage, err := w.passes(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.work.Error = w.run.paths.Error(err)
	}
	if w.run.alone() {
		return // the workload ended with the last device, and that is the cause
	}
	if errors.Is(err, errDropped) && w.run.Duration > 0 {
		return // what it has begun may go on without it, and there is time to watch
	}
	if stage.over != nil { // it was begun
		stage.over("")
	}
	stop(errWorkload)
}

// passes runs the workload, and repeats it as long as a suspicion extends the run: an app that
// nobody uses shows no leak. What a repetition fails at fails the workload.
func (w *workloads) passes(ctx context.Context) (Stage, error) {
	work := w.run.Workload
	for repeats := 0; ; repeats++ {
		stage, err := w.stage()
		if err != nil {
			return stage, err
		}
		w.begin(&stage, w.work)
		began := time.Now()
		pass := w.work.Pass
		w.work, err = work.Run(ctx, stage)
		if repeats > 0 {
			w.work.Repeats, w.work.Pass = repeats, pass
		}
		if cerr := stage.Output.Close(); err == nil && cerr != nil {
			w.run.keep(cerr)
		}
		if err != nil || ctx.Err() != nil || !w.run.extension.goesOn(ctx) {
			return stage, err
		}
		stage.over("")
		if repeats == 0 {
			w.work.Pass = record.Round(time.Since(began).Seconds()*w.run.sessions[0].clock.scale, 3)
		}
		work = again(w.run.Workload, repeats+1)
		w.run.note("", record.Event{Event: "workload", Text: fmt.Sprintf("the workload has ended and is repeated, time %d", repeats+1)})
		// One that ends at once must not be begun without end.
		if nap(ctx, w.run.sessions[0].clock.real(leastPass)-time.Since(began)) != nil {
			return stage, nil
		}
	}
}

// again is the workload of a repetition. Monkey sends other events: the same seed would send the
// same ones again.
func again(w Workload, repeats int) Workload {
	if monkey, ok := w.(Monkey); ok {
		monkey.Seed += int64(repeats)
		return monkey
	}
	return w
}

func (w *workloads) stage() (Stage, error) {
	f, err := newLog(w.run.Dir)
	if err != nil {
		// Its path on the host is not for the record.
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return Stage{}, fmt.Errorf("create workload.log: %w", err)
	}
	st := Stage{
		Dir: w.run.Dir, log: filepath.Base(f.Name()), Output: &paced{w: &logFile{f: f, left: maxWorkloadLog, failed: func(err error) { w.run.keep(err) }}},
		Mark: w.mark, Note: w.noteOfWorkload, skips: w.skipsMark, Gone: w.run.gone, Hurry: w.run.Hurry, Live: w.run.live,
	}
	for _, d := range w.run.Devices {
		st.Devices = append(st.Devices, d.Device)
	}
	return st, nil
}

// maxWorkloadLog bounds workload.log, in bytes.
const maxWorkloadLog = 32 << 20

// begin records that a workload begins on the devices of a stage, and has it record where it ends.
func (w *workloads) begin(st *Stage, of record.Workload) {
	running := map[string]bool{}
	for _, d := range st.Devices {
		running[d.Serial()] = true
		w.run.note(d.Serial(), record.Event{Event: "workload_begin", Text: of.Kind + " began"})
	}
	var mu sync.Mutex
	devices := st.Devices
	st.over = func(device string) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range devices {
			if serial := d.Serial(); running[serial] && (device == "" || device == serial) {
				delete(running, serial)
				w.run.note(serial, record.Event{Event: "workload_end", Text: of.Kind + " ended"})
			}
		}
	}
}

// mark puts a mark on the time axis of every device, or of one. One without text says nothing, and
// `leakgate mark` refuses it; the first one is recorded.
func (w *workloads) mark(device, text string) {
	if text != "" {
		w.run.note(device, record.Event{Event: "mark", Text: text})
		return
	}
	w.emptyMark.Do(func() {
		w.run.note("", record.Event{Event: "error", Text: "a mark without a text was ignored, as others of the kind will be: write `" + markPrefix + "TEXT`"})
	})
}

// noteOfWorkload records an event of a workload. It may cause any number of them, but for those
// that say how it went.
func (w *workloads) noteOfWorkload(device string, e record.Event) {
	w.run.send(device, letter{Event: e, bounded: e.Event != "dropped" && e.Event != "missing"})
}

// skipsMark reports whether a mark has no room on any device that it is for, and counts it there.
// It is called for each mark that a workload prints, before anything is done about it.
func (w *workloads) skipsMark(device string) bool {
	now := time.Now()
	for _, s := range w.run.sessions {
		if (device == "" || device == s.dev.Serial()) && !s.notes.marks.isFull(now) {
			return false
		}
	}
	for _, s := range w.run.sessions {
		if device == "" || device == s.dev.Serial() {
			s.notes.marks.skipped.Add(1)
		}
	}
	return true
}
