package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/harness/hub"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/gomega"
)

// ProcessState is the current state of a process.
type ProcessState struct {
	Device, Process string
	PID             int
	// State is the current state, Worst is the worst state so far, and Gate is
	// the verdict that would result if the run ended now.
	State, Worst detector.State
	Gate         detector.Gate
	Kind         detector.LeakKind
	// MB is the latest value of the memory of the process, in MB of 1,048,576
	// bytes.
	MB float64
	// Slope is the slope of the memory in MB/h with its 95 % interval; nil if
	// it is still unknown.
	Slope *Slope
	// Because is the evidence for the state, in one sentence.
	Because string
	// Age is the device time since the latest reading.
	Age time.Duration

	leaks *Leaks
}

// Slope is the slope of a memory series with its 95 % interval.
type Slope struct{ MBPerHour, Low, High float64 }

// GomegaString returns a description of the state for a failure message.
func (s ProcessState) GomegaString() string {
	rate := "no rate yet"
	if s.Slope != nil {
		rate = fmt.Sprintf("%+.1f MB/h (%+.1f to %+.1f)", s.Slope.MBPerHour, s.Slope.Low, s.Slope.High)
	}
	return fmt.Sprintf("%s, pid %d: %s, %.1f MB, %s: %s", s.Process, s.PID, s.State, s.MB, rate, s.Because)
}

// Process returns a function that returns the state of a process, for Gomega's
// Eventually, Consistently and the matchers of this package. The function
// returns an error if several processes match, if the process is not running,
// if the device does not respond, or if the latest reading is older than three
// intervals.
func (l *Leaks) Process(name string) func(context.Context) (ProcessState, error) {
	return func(ctx context.Context) (ProcessState, error) {
		h, err := l.watcher()
		if err != nil {
			return ProcessState{}, err
		}
		rows, err := h.Now(ctx, name)
		if err != nil {
			return ProcessState{}, err
		}
		return l.state(name, rows)
	}
}

func (l *Leaks) state(name string, rows []hub.Standing) (ProcessState, error) {
	if device := l.Device(); device != "" {
		rows = slices.DeleteFunc(rows, func(r hub.Standing) bool { return r.Device != device })
	}
	switch {
	case len(rows) == 0:
		return ProcessState{}, fmt.Errorf("read %s: it has not been seen", name)
	case len(rows) > 1:
		return ProcessState{},
			gomega.StopTrying(fmt.Sprintf("read %s: %d processes match: name one of them", name, len(rows)))
	}
	r := rows[0]
	switch {
	case !r.Answers:
		return ProcessState{}, fmt.Errorf("read %s: the device %s does not respond", name, r.Device)
	case !r.Present:
		return ProcessState{}, fmt.Errorf("read %s: it is not running", name)
	case r.Age < 0:
		return ProcessState{}, fmt.Errorf("read %s: it has not been sampled yet", name)
	case r.Age > r.MaxAge:
		return ProcessState{}, fmt.Errorf("read %s: the latest sample is %v old", name, r.Age.Round(time.Second))
	}
	s := ProcessState{
		Device: r.Device, Process: r.Process, PID: r.PID, State: r.State, Worst: r.Worst, Gate: r.Gate, Kind: r.Kind,
		MB: r.MB, Because: r.Because, Age: r.Age, leaks: l,
	}
	if r.RateKnown {
		s.Slope = &Slope{r.Rate, r.RateLow, r.RateHigh}
	}
	return s, nil
}

// Snapshot holds the resource usage of a process at one point in time.
type Snapshot = monitor.ProcessSnapshot

// Snapshot counts the resources that a process uses now: objects, threads, open
// files, memory. It starts the watch if necessary.
func (l *Leaks) Snapshot(ctx context.Context, process string) (*Snapshot, error) {
	h, err := l.watcher()
	if err != nil {
		return nil, err
	}
	s, err := h.Snapshot(ctx, hub.ProcessRequest{Device: l.Device(), Process: process})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// Dump is an analyzed heap dump of a process.
type Dump struct {
	Device, Process string
	// Folder is the directory of the dump and its analysis.
	Folder string
	// Leaks are the leaks in the dump; Report is the entire analysis.
	Leaks  []record.DumpLeak
	Report *analysis.Report
}

// GomegaString returns a description of the dump for a failure message.
func (d *Dump) GomegaString() string {
	return fmt.Sprintf("the heap dump of %s in %s", d.Process, d.Folder)
}

// maxReport bounds the size of an analysis that is read, in bytes.
const maxReport = 512 << 20

// Dump takes a heap dump of a process and analyzes it. The dump becomes part of
// the run.
func (l *Leaks) Dump(ctx context.Context, process string) (*Dump, error) {
	h, err := l.watcher()
	if err != nil {
		return nil, err
	}
	d, err := h.Dump(ctx, hub.ProcessRequest{Device: l.Device(), Process: process})
	if err != nil {
		return nil, err
	}
	if d.Heap == nil {
		return nil, fmt.Errorf("dump %s: %w", process, noHeap(d))
	}
	out := &Dump{
		Device: d.Device, Process: process, Folder: filepath.Join(l.Dir(), filepath.FromSlash(d.Folder)),
		Leaks: d.Leaks,
	}
	out.Report, err = readReport(filepath.Join(out.Folder, "analysis.json"))
	return out, err
}

// noHeap returns an error that states why a diagnosis has no heap dump.
func noHeap(d record.Diagnosis) error {
	for _, step := range d.Steps {
		if step.Step == "heap" && len(step.Reasons) > 0 {
			return errors.New(step.Reasons[0])
		}
	}
	if len(d.Warnings) > 0 {
		return errors.New(d.Warnings[0])
	}
	return errors.New("the device returned no heap dump")
}

func readReport(path string) (*analysis.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open analysis: %w", err)
	}
	defer f.Close()
	r := &analysis.Report{}
	if err := json.NewDecoder(io.LimitReader(f, maxReport)).Decode(r); err != nil {
		return nil, fmt.Errorf("decode analysis: %w", err)
	}
	return r, nil
}
