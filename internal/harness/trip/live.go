package trip

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/analysis/spool"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

// RunInProgress is a monitor.LiveRun of this process or of another one.
type RunInProgress interface {
	Discover(ctx context.Context) error
	Now(process string) []monitor.Row
	Settle(ctx context.Context, device, process string) (bool, error)
	Snapshot(ctx context.Context, device, process string) (monitor.ProcessSnapshot, error)
	Diagnose(ctx context.Context, device, process, recipe string) (record.Diagnosis, error)
}

// Live is the subject of a trip if a run watches the process. The run must
// respond to requests and keep its heap dumps.
type Live struct {
	Run             RunInProgress
	Device, Process string
	// Dir is the run directory.
	Dir string
	// Heap holds the options for reading dumps.
	Heap analysis.Options

	// files holds the paths of the dumps that were taken, relative to Dir.
	files []string
}

// Alive implements Subject.
func (l *Live) Alive(ctx context.Context) (Life, error) {
	if err := l.Run.Discover(ctx); err != nil {
		return Life{}, err
	}
	row, ok := l.row()
	if !ok {
		return Life{}, fmt.Errorf("%s: %w", text.Printable(l.Process), ErrGone)
	}
	return Life{row.PID, row.Start}, nil
}

// row returns the process if it is running.
func (l *Live) row() (monitor.Row, bool) {
	rows := l.Run.Now(l.Process)
	i := slices.IndexFunc(rows, func(r monitor.Row) bool {
		return r.Present && (l.Device == "" || r.Device == l.Device)
	})
	if i < 0 {
		return monitor.Row{}, false
	}
	return rows[i], true
}

// gone converts an error about a process that has ended to ErrGone.
func (l *Live) gone(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if lerr := l.Run.Discover(ctx); lerr != nil {
		return err
	}
	if _, ok := l.row(); ok {
		return err
	}
	return fmt.Errorf("%w: %w", ErrGone, err)
}

// Settle implements Subject.
func (l *Live) Settle(ctx context.Context) (bool, error) {
	settled, err := l.Run.Settle(ctx, l.Device, l.Process)
	return settled, l.gone(ctx, err)
}

// Snapshot implements Subject.
func (l *Live) Snapshot(ctx context.Context) (Measured, error) {
	s, err := l.Run.Snapshot(ctx, l.Device, l.Process)
	if err != nil {
		return Measured{}, l.gone(ctx, err)
	}
	return Measured{
		Life: Life{s.PID, s.Start}, User: s.User, Objects: s.Objects, Threads: s.Threads, Files: s.Files,
		Breakdown: s.Breakdown, PSS: s.PSS, Reasons: s.Reasons,
	}, nil
}

// heapStep is the name of the diagnosis step that dumps the heap.
const heapStep = "heap"

// Dump implements Subject.
func (l *Live) Dump(ctx context.Context) (*Dump, error) {
	d, err := l.Run.Diagnose(ctx, l.Device, l.Process, "dump")
	if err != nil {
		return nil, l.gone(ctx, err)
	}
	i := slices.IndexFunc(d.Steps, func(c record.Collected) bool { return c.Step == heapStep })
	if i < 0 || d.Steps[i].File == "" {
		return nil, errors.New(lacking(d, i))
	}
	name := d.Folder + "/" + d.Steps[i].File
	path := filepath.Join(l.Dir, filepath.FromSlash(name))
	l.files = append(l.files, path)
	f, err := spool.Open(ctx, path, nil, spool.Options{})
	if err != nil {
		return nil, err
	}
	if f.Damage != nil {
		return nil, errors.Join(f.Damage, f.Close())
	}
	o := l.Heap
	o.Cut = f.Truncated
	return &Dump{Name: name, ReaderAt: f, Size: f.Size(), Options: o, Close: f.Close}, nil
}

// lacking returns the reason why a diagnosis has no heap dump.
func lacking(d record.Diagnosis, step int) string {
	var reasons []string
	if step >= 0 {
		reasons = append(append(reasons, d.Steps[step].Reasons...), d.Steps[step].Note)
	}
	reasons = slices.DeleteFunc(append(reasons, d.Warnings...), func(s string) bool { return s == "" })
	if len(reasons) == 0 {
		return "the device wrote no heap dump"
	}
	return strings.Join(reasons[:min(len(reasons), 2)], "; ")
}

// RemoveDumps removes the heap dumps of the trip from the run directory.
func (l *Live) RemoveDumps() error {
	var errs []error
	for _, path := range l.files {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove heap dump: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Deaths records why processes have ended, from the events of a run.
type Deaths struct {
	mu      sync.Mutex
	reasons map[int]string
	changed chan struct{}
}

// maxDeaths is the maximum number of deaths that are remembered.
const maxDeaths = 1000

// Happened records why a process has ended, from an event of the run.
func (d *Deaths) Happened(e record.Event) {
	if e.Event != "death" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.reasons == nil {
		d.reasons = map[int]string{}
	}
	if len(d.reasons) < maxDeaths {
		d.reasons[e.PID] = deathText(e)
	}
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

func deathText(e record.Event) string {
	reason := strings.ReplaceAll(e.Reason, "_", " ")
	if e.Text == "" || e.Text == reason {
		return reason
	}
	return reason + ", " + text.Head(e.Text, maxStep)
}

// deathWithin is the wall-clock time within which a device must report why a
// process ended.
const deathWithin = 10 * time.Second

// Reason waits until it is known why the process with the given pid has ended;
// it returns "" if that remains unknown.
func (d *Deaths) Reason(ctx context.Context, pid int) string {
	timeout := time.After(deathWithin)
	for {
		d.mu.Lock()
		reason, known := d.reasons[pid]
		if d.changed == nil {
			d.changed = make(chan struct{})
		}
		changed := d.changed
		d.mu.Unlock()
		if known {
			return reason
		}
		select {
		case <-changed:
		case <-timeout:
			return ""
		case <-ctx.Done():
			return ""
		}
	}
}
