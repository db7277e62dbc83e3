package monitor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/recorded"
)

// scripted is a device whose shell is a Go function.
type scripted struct {
	serial string
	shell  func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error)
}

func (s scripted) Serial() string { return s.serial }
func (s scripted) Shell(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
	return s.shell(ctx, command, stdout, stderr)
}
func (s scripted) Pull(context.Context, string, io.Writer) (int64, error) {
	return 0, errors.ErrUnsupported
}
func (s scripted) Push(context.Context, io.Reader, string, fs.FileMode) error {
	return errors.ErrUnsupported
}

// testEnv is an Env that records marks and output.
type testEnv struct {
	mu    sync.Mutex
	marks []string
	log   bytes.Buffer
}

func (th *testEnv) stage(dir string, devices ...capture.Device) Env {
	return Env{Devices: devices, Dir: dir, Output: th, Mark: func(device, text string) {
		th.mu.Lock()
		defer th.mu.Unlock()
		th.marks = append(th.marks, device+"|"+text)
	}}
}

func (th *testEnv) Write(p []byte) (int, error) {
	th.mu.Lock()
	defer th.mu.Unlock()
	return th.log.Write(p)
}

func (th *testEnv) Close() error { return nil }

func needShell(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/bin/sh"); err != nil {
		recorded.Missing(t, "no /bin/sh on this system")
	}
}

func TestHostCommandMarksAndEnvironment(t *testing.T) {
	needShell(t)
	var th testEnv
	dir := t.TempDir()
	script := `printf 'leakgate:mark loop 1\nnoise leakgate:mark not a mark\nleakgate:mark split'; echo " line"; ` +
		`echo "$ANDROID_SERIAL|$LEAKGATE_DEVICES|$LEAKGATE_RUN" >&2; printf 'leakgate:mark last'`
	rec, err := HostCommand{
		Args: []string{"/bin/sh", "-c", script},
	}.Run(t.Context(), th.stage(dir, scripted{serial: "S1"}))
	if err != nil || rec.Exit == nil || *rec.Exit != 0 {
		t.Fatalf("%+v, %v", rec, err)
	}
	if got := strings.Join(th.marks, ";"); got != "|loop 1;|split line;|last" {
		t.Errorf("marks %q", got)
	}
	if want := "S1|S1|" + dir; !strings.Contains(th.log.String(), want) {
		t.Errorf("no %q in %q", want, th.log.String())
	}
}

func TestHostCommandFails(t *testing.T) {
	needShell(t)
	var th testEnv
	rec, err := HostCommand{Args: []string{"/bin/sh", "-c", "exit 7"}}.Run(t.Context(), th.stage(t.TempDir()))
	if err == nil || rec.Exit == nil || *rec.Exit != 7 {
		t.Errorf("%+v, %v", rec, err)
	}
	if _, err := (HostCommand{Args: []string{"/no/such/program"}}).Run(t.Context(), th.stage(t.TempDir())); err == nil {
		t.Error("running a missing program returns no error")
	}
}

// When a command is stopped, its child processes are stopped as well, including
// those that ignore the first signal.
func TestHostCommandLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	alive := filepath.Join(dir, "alive")
	script := `(trap '' TERM; while :; do touch ` + alive + `; sleep 0.05; done) & wait`
	ctx, cancel := context.WithCancel(t.Context())
	var th testEnv
	done := make(chan error, 1)
	go func() {
		_, err := HostCommand{Args: []string{"/bin/sh", "-c", script}}.Run(ctx, th.stage(dir))
		done <- err
	}()
	for {
		if _, err := os.Stat(alive); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("stopped workload: got error %v, want none", err)
	}
	time.Sleep(150 * time.Millisecond)
	if err := os.Remove(alive); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	if _, err := os.Stat(alive); err == nil {
		t.Error("a child process is still running")
	}
}

func TestMonkeyCommandLine(t *testing.T) {
	var got string
	dev := scripted{"S1", func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		got = command
		_, err := io.WriteString(stdout, "Events injected: 500\n// Monkey finished\n")
		return 0, err
	}}
	var th testEnv
	rec, err := Monkey{
		Package: "com.x", Seed: 42, Throttle: 300 * time.Millisecond, Events: 500,
	}.Run(t.Context(), th.stage(t.TempDir(), dev))
	if err != nil || rec.Kind != "monkey" || *rec.Seed != 42 || rec.Events != 500 || *rec.Exit != 0 {
		t.Errorf("%+v, %v", rec, err)
	}
	want := "exec monkey -p 'com.x' -s 42 --throttle 300 --ignore-crashes --ignore-timeouts " +
		"--ignore-security-exceptions -v 500"
	if got != want {
		t.Errorf("command %q", got)
	}
}

func TestDeviceCommandOnEveryDevice(t *testing.T) {
	var th testEnv
	answer := func(exit int) func(context.Context, string, io.Writer, io.Writer) (int, error) {
		return func(_ context.Context, _ string, stdout, _ io.Writer) (int, error) {
			_, err := io.WriteString(stdout, "leakgate:mark hello\n")
			return exit, err
		}
	}
	rec, err := DeviceCommand{
		Command: "x",
	}.Run(t.Context(), th.stage(t.TempDir(), scripted{"S1", answer(0)}, scripted{"S2", answer(3)}))
	if err == nil || !strings.Contains(err.Error(), "S2: exit 3") || rec.Exit == nil || *rec.Exit != 3 {
		t.Errorf("%+v, %v", rec, err)
	}
	if len(th.marks) != 2 {
		t.Errorf("marks %q", th.marks)
	}
}

func TestLogFileKeepsTheFirstPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	l := &logFile{f: f, left: 10}
	for range 5 {
		if n, err := l.Write([]byte("1234")); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "1234123412\n[the rest is omitted]\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestInboxTakesMarks(t *testing.T) {
	dir := t.TempDir()
	box, err := openInbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	got := make(chan string, 10)
	wg.Go(func() { box.watch(ctx, func(text string, _ func(markDumps) error) { got <- text }) })
	if _, err := SendMark(t.Context(), dir, "loop\x1b[31m 3", false); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "loop?[31m 3" {
		t.Errorf("mark %q", text)
	}
	cancel()
	wg.Wait()
	if err := box.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := SendMark(t.Context(), dir, "x", false); !errors.Is(err, errNoRun) {
		t.Errorf("SendMark after the end of the run: got error %v, want %v", err, errNoRun)
	}
}

func TestSendMarkToAKilledRun(t *testing.T) {
	dir := t.TempDir()
	box, err := openInbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer box.close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := SendMark(ctx, dir, "x", false); !errors.Is(err, errNoRun) {
			t.Errorf("%v", err)
		}
	})
	left, err := filepath.Glob(filepath.Join(box.dir, "*.mark"))
	if err != nil || len(left) > 0 {
		t.Errorf("files remain in the inbox: %v, %v", left, err)
	}
}
