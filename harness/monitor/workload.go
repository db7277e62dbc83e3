package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/reporters/record"
)

// Workload stresses the app while it is watched.
type Workload interface {
	// Describe says what is going to be done; Exit and Error are left out.
	Describe() record.Workload
	// Run stresses until it is done or ctx ends, and leaves nothing running that it can end. The
	// record says what was done; the error is a workload that failed, not one
	// that was ended by ctx.
	Run(ctx context.Context, stage Stage) (record.Workload, error)
}

// Stage is where a workload plays.
type Stage struct {
	Devices []capture.Device
	// Dir is the run directory.
	Dir string
	// Output keeps what the workload prints.
	Output io.WriteCloser
	// log is the name of the file of Output in Dir, "" for none.
	log string
	// Mark puts a mark on the time axis of one device, or of all for "".
	Mark func(device, text string)
	// Note records an event of one device, or of all for "".
	Note func(device string, e record.Event)
	// Gone gives what is closed when a device's part of the run has ended early; it
	// may be nil.
	Gone func(device string) <-chan struct{}
	// Hurry is closed when a workload that was asked to end gets no more time; it
	// may be nil.
	Hurry <-chan struct{}
	// over records that the workload has ended on a device, or with "" on all; it may be nil.
	over func(device string)
	// skips reports, and counts, a mark for which there is no room on a device; it may be nil.
	skips func(device string) bool
	// Live is the run in which the workload plays; nil where there is none.
	Live *LiveRun
}

// seeLog returns the end of an error that names the log of the workload.
func (st Stage) seeLog() string {
	if st.log == "" {
		return ""
	}
	return "; its output is in " + st.log
}

// maxLogs bounds the logs of one run directory.
const maxLogs = 1000

// newLog creates workload.log, or where there is one workload-2.log and so on: each workload
// has its own.
func newLog(dir string) (f *os.File, err error) {
	name := "workload.log"
	for n := 2; n <= maxLogs; n++ {
		f, err = os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		name = fmt.Sprintf("workload-%d.log", n)
	}
	return f, err
}

// logFile keeps the first part of a log and drops the rest, so that a talkative
// workload neither fails nor fills the disk.
type logFile struct {
	mu   sync.Mutex
	f    *os.File
	left int
	// failed is told of a disk that does not take it: the run's fault, not the
	// workload's.
	failed func(error)
}

func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(p), l.left)
	if n == 0 {
		return len(p), nil
	}
	l.left -= n
	text := p[:n]
	if l.left == 0 {
		text = append(bytes.Clone(text), "\n[the rest is left out]\n"...)
	}
	if _, err := l.f.Write(text); err != nil {
		l.left = 0
		l.failed(fmt.Errorf("write workload log: %w", err))
	}
	return len(p), nil
}

func (l *logFile) Close() error { return l.f.Close() }

// markPrefix begins a line of a workload that is a mark.
const markPrefix = "leakgate:mark "

// listener passes output on and reads the lines in it.
type listener struct {
	out io.Writer
	// heard gets the lines, and mark the texts of those that are marks; without mark there are
	// none. Marks of which skips is true are dropped.
	heard, mark func(line string)
	skips       func() bool
	line        []byte
}

// maxHeard bounds the part of a line that is looked at.
const maxHeard = 4096

// marking returns a listener for the output of the workload on a device, or for "" on the host:
// lines that are no marks go to tests.
func (st Stage) marking(device string, tests *foundTests) *listener {
	l := &listener{out: st.Output, mark: func(text string) { st.Mark(device, cleanMark(text)) }}
	if st.skips != nil {
		l.skips = func() bool { return st.skips(device) }
	}
	if tests != nil {
		l.heard = tests.heard
	}
	return l
}

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

// end reads one whole line. A workload may print millions of them: what nobody wants costs no
// memory.
func (l *listener) end() {
	line := bytes.TrimRight(l.line, "\r")
	l.line = l.line[:0]
	if l.mark != nil {
		// Some tools trim the blank of a mark without a text.
		if text, ok := bytes.CutPrefix(line, []byte(strings.TrimSpace(markPrefix))); ok && (len(text) == 0 || text[0] == ' ') {
			if l.skips == nil || !l.skips() {
				l.mark(string(text))
			}
			return
		}
	}
	if l.heard != nil && len(line) > 0 {
		l.heard(string(line))
	}
}

// DeviceCommand is a workload that runs one command line on every device. What it
// does is its own, so that one that a device has dropped is not begun again: that is
// told as an interruption, and a run with a duration goes on.
type DeviceCommand struct {
	Command string
	// Windows finds tests in the output; nil for none.
	Windows *WindowRule
}

// Describe implements Workload.
func (c DeviceCommand) Describe() record.Workload {
	return record.Workload{Kind: "device_command", Digest: digestOf("device_command", append([]string{c.Command}, c.Windows.words()...)...)}
}

// Run implements Workload.
func (c DeviceCommand) Run(ctx context.Context, st Stage) (record.Workload, error) {
	exit, err := st.onEach(ctx, c.runOn)
	rec := c.Describe()
	rec.Exit = exit
	return rec, err
}

// runOn gives the exit code, nil if it did not arrive.
func (c DeviceCommand) runOn(ctx context.Context, dev capture.Device, st Stage) (*int, error) {
	tests := c.Windows.watch(ctx, st, dev.Serial())
	out, errOut := st.marking(dev.Serial(), tests), st.marking(dev.Serial(), tests)
	exit, err := dev.Shell(ctx, c.Command, out, errOut)
	out.end()
	errOut.end()
	tests.finish()
	if err == nil || ctx.Err() != nil {
		return st.ended(dev, exit, err)
	}
	st.Note(dev.Serial(), record.Event{Event: "dropped", Text: fmt.Sprintf("the device has dropped the command of the workload, which is not begun again: %v", err)})
	// Whether the device is lost shows only now.
	returned(ctx, dev)
	return nil, fmt.Errorf("run workload on %s: %w: %w", dev.Serial(), errDropped, err)
}

// errDropped is a command whose end nobody has seen.
var errDropped = errors.New("the device has dropped it")

func (st Stage) ended(dev capture.Device, exit int, err error) (*int, error) {
	switch {
	case err != nil:
		return nil, fmt.Errorf("run workload on %s: %w", dev.Serial(), err)
	case exit != 0:
		return &exit, fmt.Errorf("run workload on %s: exit %d%s", dev.Serial(), exit, st.seeLog())
	}
	return &exit, nil
}

// onEach does a work on every device at the same time, on each until its part of
// the run ends. It gives the first exit code that is not 0, nil if none arrived.
func (st Stage) onEach(ctx context.Context, work func(context.Context, capture.Device, Stage) (*int, error)) (*int, error) {
	errs := make([]error, len(st.Devices))
	exits := make([]*int, len(st.Devices))
	var wg sync.WaitGroup
	for i, dev := range st.Devices {
		wg.Go(func() {
			within, stop := context.WithCancel(ctx)
			defer stop()
			wg.Go(func() {
				select {
				case <-st.gone(dev):
					stop()
				case <-within.Done():
				}
			})
			exits[i], errs[i] = work(within, dev, st)
			// What a device has dropped may go on there.
			if within.Err() == nil && !errors.Is(errs[i], errDropped) && st.over != nil {
				st.over(dev.Serial())
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, nil
	}
	var exit *int
	for _, e := range exits {
		if e != nil && (exit == nil || *exit == 0) {
			exit = e
		}
	}
	return exit, errors.Join(errs...)
}

func (st Stage) gone(dev capture.Device) <-chan struct{} {
	if st.Gone == nil {
		return nil
	}
	return st.Gone(dev.Serial())
}

// gone gives what is closed when the device is lost; nil, which never is, for a
// device that is not of the run.
func (m *run) gone(device string) <-chan struct{} {
	for _, s := range m.sessions {
		if s.dev.Serial() == device {
			return s.gone
		}
	}
	return nil
}
