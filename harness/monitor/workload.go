package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters"
)

// Workload stresses the app while it is watched.
type Workload interface {
	// Run stresses until it is done or ctx ends, and leaves nothing running. The
	// record says what was done; the error is a workload that failed, not one
	// that was ended by ctx.
	Run(ctx context.Context, stage Stage) (reporters.Workload, error)
}

// Stage is where a workload plays.
type Stage struct {
	Devices []capture.Device
	// Dir is the run directory.
	Dir string
	// Output keeps what the workload prints.
	Output io.WriteCloser
	// Mark puts a mark on the time axis of one device, or of all for "".
	Mark func(device, text string)
	// Hurry is closed when a workload that was asked to end gets no more time; it
	// may be nil.
	Hurry <-chan struct{}
}

// maxWorkloadLog bounds workload.log, in bytes.
const maxWorkloadLog = 32 << 20

func (m *run) stage() (Stage, error) {
	f, err := os.OpenFile(filepath.Join(m.Dir, "workload.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return Stage{}, fmt.Errorf("create workload log: %w", err)
	}
	st := Stage{Dir: m.Dir, Output: &logFile{f: f, left: maxWorkloadLog}, Mark: m.mark, Hurry: m.Hurry}
	for _, d := range m.Devices {
		st.Devices = append(st.Devices, d.Device)
	}
	return st, nil
}

// logFile keeps the first part of a log and drops the rest, so that a talkative
// workload neither fails nor fills the disk.
type logFile struct {
	mu   sync.Mutex
	f    *os.File
	left int
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(p), l.left)
	if n == 0 {
		return len(p), nil
	}
	l.left -= n
	if _, err := l.f.Write(p[:n]); err != nil {
		return 0, fmt.Errorf("write workload log: %w", err)
	}
	if l.left == 0 {
		if _, err := l.f.WriteString("\n[the rest is left out]\n"); err != nil {
			return 0, fmt.Errorf("write workload log: %w", err)
		}
	}
	return len(p), nil
}

func (l *logFile) Close() error { return l.f.Close() }

// markPrefix begins a line of a workload that is a mark.
const markPrefix = "leakgate:mark "

// listener passes output on and hears the marks in it.
type listener struct {
	out  io.Writer
	mark func(text string)
	line []byte
}

// maxHeard bounds the part of a line that is looked at.
const maxHeard = 4096

func (l *listener) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		part, more, ended := bytes.Cut(rest, []byte("\n"))
		if keep := min(len(part), maxHeard-len(l.line)); keep > 0 {
			l.line = append(l.line, part[:keep]...)
		}
		rest = more
		if ended {
			l.end()
		}
	}
	return l.out.Write(p)
}

// end judges one whole line.
func (l *listener) end() {
	if text, ok := strings.CutPrefix(strings.TrimRight(string(l.line), "\r"), markPrefix); ok {
		l.mark(cleanMark(text))
	}
	l.line = l.line[:0]
}

// DeviceCommand is a workload that runs one command line on every device.
type DeviceCommand struct {
	Command string
	kind    string
}

// Run implements Workload.
func (c DeviceCommand) Run(ctx context.Context, st Stage) (reporters.Workload, error) {
	errs := make([]error, len(st.Devices))
	exits := make([]*int, len(st.Devices))
	var wg sync.WaitGroup
	for i, dev := range st.Devices {
		wg.Go(func() { exits[i], errs[i] = c.runOn(ctx, dev, st) })
	}
	wg.Wait()
	rec := reporters.Workload{Kind: c.kind}
	if rec.Kind == "" {
		rec.Kind = "device_command"
	}
	if ctx.Err() != nil {
		return rec, nil
	}
	for _, exit := range exits {
		if exit != nil && (rec.Exit == nil || *rec.Exit == 0) {
			rec.Exit = exit
		}
	}
	return rec, errors.Join(errs...)
}

// runOn gives the exit code, nil if it did not arrive.
func (c DeviceCommand) runOn(ctx context.Context, dev capture.Device, st Stage) (*int, error) {
	mark := func(text string) { st.Mark(dev.Serial(), text) }
	out := &listener{out: st.Output, mark: mark}
	exit, err := dev.Shell(ctx, c.Command, out, &listener{out: st.Output, mark: mark})
	out.end()
	switch {
	case err != nil:
		return nil, fmt.Errorf("run workload on %s: %w", dev.Serial(), err)
	case exit != 0:
		return &exit, fmt.Errorf("run workload on %s: exit %d; its output is in workload.log", dev.Serial(), exit)
	}
	return &exit, nil
}

// Monkey is a workload of random events by the device's own monkey.
type Monkey struct {
	Package  string
	Seed     int64
	Throttle time.Duration
	Events   int
}

// Run implements Workload. Crashes and ANRs of the app do not end it: a leak
// hunt lives longer than a crash.
func (m Monkey) Run(ctx context.Context, st Stage) (reporters.Workload, error) {
	command := strings.Join([]string{
		"monkey", "-p", capture.Quote(m.Package), "-s", strconv.FormatInt(m.Seed, 10),
		"--throttle", strconv.FormatInt(m.Throttle.Milliseconds(), 10),
		"--ignore-crashes", "--ignore-timeouts", "--ignore-security-exceptions", "-v", strconv.Itoa(m.Events),
	}, " ")
	rec, err := DeviceCommand{Command: "exec " + command, kind: "monkey"}.Run(ctx, st)
	rec.Seed, rec.Events = new(m.Seed), m.Events
	return rec, err
}
