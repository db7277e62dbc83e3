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

// Workload exercises the app while it is watched.
type Workload interface {
	// Describe returns the workload's description, without Exit and Error.
	Describe() record.Workload
	// Run runs the workload until it ends or ctx is done, and stops everything
	// that it can stop. It returns a description of what was done. It returns
	// an error if the workload failed, but not if ctx stopped it.
	Run(ctx context.Context, env Env) (record.Workload, error)
}

// Env is what a run passes to a workload: the devices, and the functions and
// channels for communicating with the run.
type Env struct {
	Devices []capture.Device
	// Dir is the run directory.
	Dir string
	// Output receives the workload's output.
	Output io.WriteCloser
	// log is the name of Output's file in Dir, or "" if there is no file.
	log string
	// Mark sets a mark on one device, or on all devices if device is "".
	Mark func(device, text string)
	// Record records an event on one device, or on all devices if device is "".
	Record func(device string, e record.Event)
	// DeviceLost returns a channel that is closed when the device is lost. It
	// may be nil.
	DeviceLost func(device string) <-chan struct{}
	// ForceStop is closed when a workload that is ending must stop immediately.
	// It may be nil.
	ForceStop <-chan struct{}
	// workloadEnded records the end of the workload on a device, or on all
	// devices if the device is "". It may be nil.
	workloadEnded func(device string)
	// skipMark reports whether a mark on a device exceeds the rate limit, and
	// counts it. It may be nil.
	skipMark func(device string) bool
	// Live is the run that the workload belongs to, or nil if there is none.
	Live *LiveRun
}

// logHint returns the end of an error message that names the log of the
// workload, or "" if there is no log.
func (st Env) logHint() string {
	if st.log == "" {
		return ""
	}
	return "; its output is in " + st.log
}

// maxLogs bounds the logs in one run directory.
const maxLogs = 1000

// newLog creates workload.log. If that file exists, it creates workload-2.log
// and so on, because each workload has its own log.
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

// logFile keeps the first part of a log and drops the rest, so a verbose
// workload neither fails nor fills the disk.
type logFile struct {
	mu   sync.Mutex
	f    *os.File
	left int
	// failed is called with a write error. Such an error counts as an error of
	// the run and not of the workload.
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
		text = append(bytes.Clone(text), "\n[the rest is omitted]\n"...)
	}
	if _, err := l.f.Write(text); err != nil {
		l.left = 0
		l.failed(fmt.Errorf("write workload log: %w", err))
	}
	return len(p), nil
}

func (l *logFile) Close() error { return l.f.Close() }

// markPrefix is the beginning of an output line with which a workload sets a
// mark.
const markPrefix = "leakgate:mark "

// lineReader passes output on and splits it into lines.
type lineReader struct {
	out io.Writer
	// onLine is called with each line, onMark with the text of each mark. If
	// onMark is nil, marks are not recognized. Marks for which skips returns
	// true are dropped.
	onLine, onMark func(line string)
	skips          func() bool
	line           []byte
}

// maxLine bounds how much of a line is examined.
const maxLine = 4096

// newLineReader returns a line reader for the output of the workload on a
// device, or on the host if the device is "". Lines that are not marks are
// passed to tests.
func (st Env) newLineReader(device string, tests *foundTests) *lineReader {
	l := &lineReader{out: st.Output, onMark: func(text string) { st.Mark(device, cleanMark(text)) }}
	if st.skipMark != nil {
		l.skips = func() bool { return st.skipMark(device) }
	}
	if tests != nil {
		l.onLine = tests.addLine
	}
	return l
}

func (l *lineReader) Write(p []byte) (int, error) {
	rest := p
	for len(rest) > 0 {
		part, more, ended := bytes.Cut(rest, []byte("\n"))
		if keep := min(len(part), maxLine-len(l.line)); keep > 0 {
			l.line = append(l.line, part[:keep]...)
		}
		rest = more
		if ended {
			l.end()
		}
	}
	return l.out.Write(p)
}

// end handles a complete line. A workload may print millions of lines, so lines
// that are not used allocate no memory.
func (l *lineReader) end() {
	line := bytes.TrimRight(l.line, "\r")
	l.line = l.line[:0]
	if l.onMark != nil {
		// Some tools trim the space after the prefix of a mark without text.
		if text, ok := bytes.CutPrefix(line, []byte(strings.TrimSpace(markPrefix))); ok &&
			(len(text) == 0 || text[0] == ' ') {
			if l.skips == nil || !l.skips() {
				l.onMark(string(text))
			}
			return
		}
	}
	if l.onLine != nil && len(line) > 0 {
		l.onLine(string(line))
	}
}

// DeviceCommand is a workload that runs one command line on every device. The
// command may have any effect, so it is not restarted after a disconnect. The
// disconnect is recorded as an interruption. A run with a duration continues.
type DeviceCommand struct {
	Command string
	// Windows finds tests in the output. It may be nil.
	Windows *WindowRule
}

// Describe implements Workload.
func (c DeviceCommand) Describe() record.Workload {
	return record.Workload{
		Kind:   "device_command",
		Digest: digestOf("device_command", append([]string{c.Command}, c.Windows.digestWords()...)...),
	}
}

// Run implements Workload.
func (c DeviceCommand) Run(ctx context.Context, st Env) (record.Workload, error) {
	exit, err := st.onEach(ctx, c.runOn)
	rec := c.Describe()
	rec.Exit = exit
	return rec, err
}

// runOn returns the exit code, or nil if it is unknown.
func (c DeviceCommand) runOn(ctx context.Context, dev capture.Device, st Env) (*int, error) {
	tests := c.Windows.watch(ctx, st, dev.Serial())
	out, errOut := st.newLineReader(dev.Serial(), tests), st.newLineReader(dev.Serial(), tests)
	exit, err := dev.Shell(ctx, c.Command, out, errOut)
	out.end()
	errOut.end()
	tests.finish()
	if err == nil || ctx.Err() != nil {
		return st.resultOf(dev, exit, err)
	}
	st.Record(dev.Serial(),
		record.Event{
			Event: "dropped",
			Text: fmt.Sprintf("device dropped the connection to the workload's command; it is not restarted: %v",
				err),
		})
	// Only now is it known whether the device is lost.
	waitForDevice(ctx, dev)
	return nil, fmt.Errorf("run workload on %s: %w: %w", dev.Serial(), errDropped, err)
}

// errDropped is returned if it is not known how a command ended.
var errDropped = errors.New("device disconnected")

func (st Env) resultOf(dev capture.Device, exit int, err error) (*int, error) {
	switch {
	case err != nil:
		return nil, fmt.Errorf("run workload on %s: %w", dev.Serial(), err)
	case exit != 0:
		return &exit, fmt.Errorf("run workload on %s: exit %d%s", dev.Serial(), exit, st.logHint())
	}
	return &exit, nil
}

// onEach calls work for all devices concurrently and ends each call when the
// device's part of the run ends. It returns the first exit code that is not 0,
// or 0 if all known exit codes are 0. It returns nil if no exit code is known.
func (st Env) onEach(ctx context.Context, work func(context.Context, capture.Device, Env) (*int, error)) (*int, error) {
	errs := make([]error, len(st.Devices))
	exits := make([]*int, len(st.Devices))
	var wg sync.WaitGroup
	for i, dev := range st.Devices {
		wg.Go(func() {
			within, stop := context.WithCancel(ctx)
			defer stop()
			wg.Go(func() {
				select {
				case <-st.deviceLost(dev):
					stop()
				case <-within.Done():
				}
			})
			exits[i], errs[i] = work(within, dev, st)
			// An interrupted command may still be running on the device.
			if within.Err() == nil && !errors.Is(errs[i], errDropped) && st.workloadEnded != nil {
				st.workloadEnded(dev.Serial())
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

func (st Env) deviceLost(dev capture.Device) <-chan struct{} {
	if st.DeviceLost == nil {
		return nil
	}
	return st.DeviceLost(dev.Serial())
}

// deviceLost returns a channel that is closed when the device is lost. The
// channel is nil for a device that is not part of the run.
func (m *run) deviceLost(device string) <-chan struct{} {
	for _, s := range m.sessions {
		if s.dev.Serial() == device {
			return s.gone
		}
	}
	return nil
}
