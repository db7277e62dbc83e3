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

// workloads manages the workloads of a run: the run's own workload, and others
// started during the run.
type workloads struct {
	run *run
	// work is the result of the run's own workload.
	work record.Workload
	// emptyMark ensures that the error about marks without text is recorded
	// only once.
	emptyMark sync.Once
}

func (w *workloads) runWorkload(ctx context.Context, stop context.CancelCauseFunc) {
	env, err := w.runRepeatedly(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		w.work.Error = w.run.paths.Error(err)
	}
	if w.run.allLost() {
		return // the loss of the last device caused the end of the workload
	}
	if errors.Is(err, errDropped) && w.run.Duration > 0 {
		return // the command may still be running on the device, and there is time left to watch it
	}
	if env.workloadEnded != nil { // the workload was started
		env.workloadEnded("")
	}
	stop(errWorkload)
}

// runRepeatedly runs the workload and repeats it as long as a suspicion extends
// the run, because a leak does not appear in an app that is not used. If a
// repetition fails, the workload counts as failed.
func (w *workloads) runRepeatedly(ctx context.Context) (Env, error) {
	work := w.run.Workload
	for repeats := 0; ; repeats++ {
		env, err := w.newEnv()
		if err != nil {
			return env, err
		}
		w.begin(&env, w.work)
		began := time.Now()
		pass := w.work.Pass
		w.work, err = work.Run(ctx, env)
		if repeats > 0 {
			w.work.Repeats, w.work.Pass = repeats, pass
		}
		if cerr := env.Output.Close(); err == nil && cerr != nil {
			w.run.checkWrite(cerr)
		}
		if err != nil || ctx.Err() != nil || !w.run.extension.extends(ctx) {
			return env, err
		}
		env.workloadEnded("")
		if repeats == 0 {
			w.work.Pass = record.Round(time.Since(began).Seconds()*w.run.sessions[0].clock.scale, 3)
		}
		work = repetition(w.run.Workload, repeats+1)
		w.run.postEvent("",
			record.Event{
				Event: "workload",
				Text:  fmt.Sprintf("the workload has ended and is repeated, repetition %d", repeats+1),
			})
		// A workload that ends immediately must not be restarted continuously.
		if sleep(ctx, w.run.sessions[0].clock.real(minRepeatInterval)-time.Since(began)) != nil {
			return env, nil
		}
	}
}

// repetition returns the workload for a repetition. Monkey gets a different
// seed, because with the same seed it would send the same events.
func repetition(w Workload, repeats int) Workload {
	if monkey, ok := w.(Monkey); ok {
		monkey.Seed += int64(repeats)
		return monkey
	}
	return w
}

func (w *workloads) newEnv() (Env, error) {
	f, err := newLog(w.run.Dir)
	if err != nil {
		// The path of the program on the host must not be recorded.
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		return Env{}, fmt.Errorf("create workload.log: %w", err)
	}
	st := Env{
		Dir: w.run.Dir, log: filepath.Base(f.Name()),
		Output: &pacedWriter{
			w: &logFile{f: f, left: maxWorkloadLog, failed: func(err error) { w.run.checkWrite(err) }},
		},
		Mark: w.mark, Record: w.recordEvent, skipMark: w.skipMark, DeviceLost: w.run.deviceLost,
		ForceStop: w.run.ForceStop, Live: w.run.live,
	}
	for _, d := range w.run.Devices {
		st.Devices = append(st.Devices, d.Device)
	}
	return st, nil
}

// maxWorkloadLog bounds workload.log, in bytes.
const maxWorkloadLog = 32 << 20

// begin records that a workload begins on the devices of an Env, and sets the
// Env's workloadEnded.
func (w *workloads) begin(st *Env, of record.Workload) {
	running := map[string]bool{}
	for _, d := range st.Devices {
		running[d.Serial()] = true
		w.run.postEvent(d.Serial(), record.Event{Event: "workload_begin", Text: of.Kind + " began"})
	}
	var mu sync.Mutex
	devices := st.Devices
	st.workloadEnded = func(device string) {
		mu.Lock()
		defer mu.Unlock()
		for _, d := range devices {
			if serial := d.Serial(); running[serial] && (device == "" || device == serial) {
				delete(running, serial)
				w.run.postEvent(serial, record.Event{Event: "workload_end", Text: of.Kind + " ended"})
			}
		}
	}
}

// mark sets a mark on one device, or on all devices. A mark without text is
// meaningless, and `leakgate mark` rejects it; here, an error is recorded for
// the first such mark.
func (w *workloads) mark(device, text string) {
	if text != "" {
		w.run.postEvent(device, record.Event{Event: "mark", Text: text})
		return
	}
	w.emptyMark.Do(func() {
		w.run.postEvent("",
			record.Event{Event: "error", Text: "ignoring marks without text: write `" + markPrefix + "TEXT`"})
	})
}

// recordEvent records an event of a workload. A workload may cause any number
// of events, so their rate is limited; events about its outcome are exempt.
func (w *workloads) recordEvent(device string, e record.Event) {
	w.run.post(device, message{Event: e, bounded: e.Event != "dropped" && e.Event != "missing"})
}

// skipMark reports whether a mark exceeds the rate limit on all of its devices.
// If so, the mark is counted as skipped on each of them. It is called for each
// mark that a workload prints, before any other processing.
func (w *workloads) skipMark(device string) bool {
	now := time.Now()
	for _, s := range w.run.sessions {
		if (device == "" || device == s.dev.Serial()) && !s.mailbox.marks.isFull(now) {
			return false
		}
	}
	for _, s := range w.run.sessions {
		if device == "" || device == s.dev.Serial() {
			s.mailbox.marks.skipped.Add(1)
		}
	}
	return true
}
