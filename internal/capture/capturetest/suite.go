// Package capturetest is the conformance suite of capture.Device. Package
// capture works with every implementation that passes the suite with a real
// device behind it.
//
// The suite uses only the interface and needs a POSIX shell with the tools that
// every Android version has. It tests neither speed nor anything that only a
// root shell can do.
package capturetest

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/text"
)

// Options describe the device behind an implementation. The zero value is a
// phone of Android 7 or later.
type Options struct {
	// Old means that the device lacks the shell protocol (before Android 7):
	// stderr is mixed into stdout in the order of printing, a command line must
	// be shorter than 4 kB, and a command cannot be distinguished from the
	// shell that runs it.
	Old bool
	// Dir is a directory of the device that does not exist yet. The suite may
	// create it with mkdir and write files to it. If it is empty, a directory
	// in /data/local/tmp is used.
	Dir string
	// ReadOnly is the path of a file that nobody may create. If it is empty, a
	// path in /system is used.
	ReadOnly string
	// Unreadable is the path of an existing file that Pull may not read. If it
	// is empty, that test is skipped.
	Unreadable string
	// Large is the size of the large file, in bytes; 0 means 8 MiB.
	Large int
	// Cut interrupts the connections to the device, as unplugging the cable
	// does. If it is nil, that test is skipped. The test runs last.
	Cut func()
}

// callTimeout is the maximum time of one call of the suite; calls normally take
// much less.
const callTimeout = 30 * time.Second

// suite is the state of one run of the tests on one device.
type suite struct {
	Options
	dev capture.Device
}

// Run tests that the device returned by open satisfies capture.Device. Whatever
// open starts must be stopped when the test of that device ends. The suite
// leaves only an empty directory on the device.
func Run(t *testing.T, open func(t *testing.T) capture.Device, o Options) {
	o.Dir = cmp.Or(o.Dir, "/data/local/tmp/leakgate-conformance")
	o.ReadOnly = cmp.Or(o.ReadOnly, "/system/leakgate-conformance")
	o.Large = cmp.Or(o.Large, 8<<20)
	s := suite{Options: o, dev: open(t)}
	s.must(t, "mkdir "+text.ShellQuote(o.Dir))
	base := runtime.NumGoroutine()
	for _, part := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"serial", s.serial}, {"exit codes", s.exits}, {"streams", s.streams}, {"binary output", s.binary},
		{"no output", s.silence},
		{"standard input", s.stdin}, {"quoting", s.quoting}, {"large command", s.largeCommand},
		{"failing writer", s.failingWriter},
		{"cancel", s.cancel}, {"deadline", s.deadline}, {"canceled in advance", s.cancelledBefore},
		{"concurrent commands", s.together},
		{"round trips", s.roundTrips}, {"large file", s.largeFile}, {"pull refused", s.pullRefused},
		{"push refused", s.pushRefused},
		{"interrupted push", s.interruptedPush}, {"mode", s.mode}, {"no files left", s.nothingLeft},
		{"goroutines", func(t *testing.T) { goroutines(t, base) }}, {"cut", s.cut},
	} {
		t.Run(part.name, part.test)
	}
}

// result contains the output and the exit status of one command.
type result struct {
	out, err string
	exit     int
}

// shell runs one command that must complete.
func (s *suite) shell(t *testing.T, command string) result {
	t.Helper()
	var out, errOut strings.Builder
	exit, err := s.dev.Shell(within(t), command, &out, &errOut)
	if err != nil {
		t.Errorf("%s: %v", brief(command), err)
	}
	return result{out.String(), errOut.String(), exit}
}

// must is like shell, but requires that the command succeeds; it returns the
// command's output.
func (s *suite) must(t *testing.T, command string) string {
	t.Helper()
	r := s.shell(t, command)
	if r.exit != 0 {
		t.Fatalf("%s: exit %d, %q", brief(command), r.exit, r.out+r.err)
	}
	return r.out
}

func (s *suite) file(name string) string { return s.Dir + "/" + name }

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	t.Cleanup(cancel)
	return ctx
}

func brief(text string) string {
	if len(text) > 200 {
		text = text[:200] + "..."
	}
	return strconv.Quote(text)
}

// failed checks that an error has the given kind and names the device.
func (s *suite) failed(t *testing.T, what string, err, kind error) {
	t.Helper()
	switch {
	case err == nil:
		t.Errorf("%s: no error", what)
	case kind != nil && !errors.Is(err, kind):
		t.Errorf("%s: error %q is not %v", what, err, kind)
	case !strings.Contains(err.Error(), s.dev.Serial()):
		t.Errorf("%s: error %q does not name device %s", what, err, s.dev.Serial())
	}
}

// eventually waits for a condition that becomes true shortly after a call has
// returned.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("timed out waiting for: %s", what)
			return
		}
	}
}

// goroutines checks that no more goroutines run than before. Goroutines of this
// process that serve the device may end a little later.
func goroutines(t *testing.T, base int) {
	// One of the goroutines is the subtest.
	eventually(t, "no additional goroutines", func() bool { return runtime.NumGoroutine() <= base+1 })
	if t.Failed() {
		buf := make([]byte, 1<<20)
		t.Logf("%d before, %d now:\n%s", base, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
	}
}

func (s *suite) serial(t *testing.T) {
	if name := s.dev.Serial(); name == "" || name != s.dev.Serial() {
		t.Errorf("serial %q", name)
	}
}

// lines collects output. Every call of Write passes the words of all complete
// lines so far to seen.
type lines struct {
	mu   sync.Mutex
	all  strings.Builder
	seen func(lines []string) error
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	whole := l.all.String()
	whole = whole[:strings.LastIndex(whole, "\n")+1]
	if err := l.seen(strings.Fields(whole)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// alive reports whether the device runs a process. A zombie does not count.
func (s *suite) alive(t *testing.T, pid string) bool {
	t.Helper()
	if n, err := strconv.Atoi(pid); err != nil || n < 2 {
		t.Errorf("invalid process id %q", pid)
		return false
	}
	return s.shell(t, "kill -0 "+pid+" 2>/dev/null && ! grep -q ') Z ' /proc/"+pid+"/stat").exit == 0
}

// gone waits until the device has no process with any of these ids.
func (s *suite) gone(t *testing.T, pids []string) {
	t.Helper()
	if len(pids) != 2 {
		t.Errorf("got PIDs %q, want two", pids)
	}
	for _, pid := range pids {
		eventually(t, "end of device process "+pid, func() bool { return !s.alive(t, pid) })
	}
}
