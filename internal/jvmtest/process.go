package jvmtest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Process is a running program that waits for commands.
type Process struct {
	jdk *JDK
	// dir is the program's working directory, which contains its dumps.
	dir    string
	cmd    *exec.Cmd
	cancel context.CancelFunc
	stdin  io.WriteCloser
	lines  chan string
	stderr bytes.Buffer
	dumps  int
	ended  bool
}

// Start runs a program from a jar or a class path. The program is stopped when
// the test ends, unless it was stopped earlier.
func (j *JDK) Start(tb testing.TB, jar, main string, args ...string) *Process {
	tb.Helper()
	return j.StartWith(tb, nil, jar, main, args...)
}

// StartWith is like Start, with additional options for the JVM.
func (j *JDK) StartWith(tb testing.TB, options []string, jar, main string, args ...string) *Process {
	tb.Helper()
	p, err := j.start(tb.Context(), tb.TempDir(), options, jar, main, args)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Stop(tb) })
	return p
}

// start runs a program with additional options for its JVM. The caller must
// call close.
func (j *JDK) start(ctx context.Context, dir string, options []string, jar, main string, args []string) (*Process,
	error) {
	ctx, cancel := context.WithCancel(ctx)
	all := append([]string{"-Xmx64m"}, small...)
	// The JVM listens for jcmd from the start. Otherwise jcmd would create a
	// file and send a signal to the JVM. The signal terminates a JVM that has
	// not installed its signal handlers yet.
	all = append(append(all, "-XX:+StartAttachListener"), options...)
	all = append(append(all, "-cp", jar, main), args...)
	p := &Process{jdk: j, dir: dir, cancel: cancel, lines: make(chan string)}
	p.cmd = exec.CommandContext(ctx, j.java, all...)
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, environment(), &p.stderr
	// Programs exit when their input ends, which happens even if the tests are
	// killed. A program that does not exit within WaitDelay is killed.
	p.cmd.Cancel = func() error { return p.stdin.Close() }
	p.cmd.WaitDelay = 30 * time.Second
	stdout, err := p.launch()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", main, err)
	}
	go p.read(stdout)
	if err := p.await(ctx, "ready"); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", main, err), p.close())
	}
	return p, nil
}

func (p *Process) launch() (stdout io.Reader, err error) {
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	return stdout, p.cmd.Start()
}

func (p *Process) read(stdout io.Reader) {
	defer close(p.lines)
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		p.lines <- scanner.Text()
	}
}

// await waits for a line of output.
func (p *Process) await(ctx context.Context, want string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case line, ok := <-p.lines:
		if !ok {
			return fmt.Errorf("wait for %q: the program ended", want)
		}
		if line != want {
			return fmt.Errorf("wait for %q: got output %q", want, line)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %q: %w", want, ctx.Err())
	}
}

// Do runs n iterations, at least one, and waits until they have finished.
func (p *Process) Do(tb testing.TB, iterations int) {
	tb.Helper()
	if err := p.do(tb.Context(), iterations); err != nil {
		tb.Fatal(err)
	}
}

func (p *Process) do(ctx context.Context, iterations int) error {
	if _, err := fmt.Fprintln(p.stdin, iterations); err != nil {
		return fmt.Errorf("do %d iterations: %w", iterations, err)
	}
	if err := p.await(ctx, "done"); err != nil {
		return fmt.Errorf("do %d iterations: %w", iterations, err)
	}
	return nil
}

// Dump returns the path of a new dump of the live objects: the JVM collects
// garbage first. The file exists until the end of the test.
func (p *Process) Dump(tb testing.TB) string {
	tb.Helper()
	path, err := p.dump(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func (p *Process) dump(ctx context.Context) (string, error) {
	if p.ended {
		return "", errors.New("dump heap: the program ended")
	}
	p.dumps++
	// The file is written by the JVM, in its working directory.
	name := fmt.Sprintf("%d.hprof", p.dumps)
	var args []string
	for _, option := range small {
		args = append(args, "-J"+option)
	}
	args = append(args, strconv.Itoa(p.cmd.Process.Pid), "GC.heap_dump", "-all=false", name)
	out, err := run(ctx, p.dir, environment(), p.jdk.jcmd, args...)
	if err != nil {
		return "", fmt.Errorf("dump heap: %w", err)
	}
	// jcmd succeeds even if the JVM cannot write the file.
	if !strings.Contains(out, "Heap dump file created") {
		return "", fmt.Errorf("dump heap: %s", strings.TrimSpace(out))
	}
	return filepath.Join(p.dir, name), nil
}

// Stop ends the program. Its dumps are kept.
func (p *Process) Stop(tb testing.TB) {
	tb.Helper()
	if err := p.close(); err != nil {
		tb.Error(err)
	}
}

// close ends the program unless it has been called before.
func (p *Process) close() error {
	if p.ended {
		return nil
	}
	p.ended = true
	p.cancel()
	for range p.lines {
		// Discard output for which nobody waited.
	}
	err := p.cmd.Wait()
	// If a JVM is killed, jcmd's socket remains (HotSpot
	// attachListener_posix.cpp).
	os.Remove(fmt.Sprintf("/tmp/.java_pid%d", p.cmd.Process.Pid))
	if err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("end program: %w: %s", err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
