//go:build unix

package main

//unit:program pipes, signals and rights are those of a process
//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// job is a program that works on a dump, with its own temporary directory.
type job struct {
	*exec.Cmd
	out, errOut bytes.Buffer
	temp        string
}

func startJob(t *testing.T, in io.Reader, args ...string) *job {
	t.Helper()
	j := &job{temp: t.TempDir()}
	ctx := minute(t)
	j.Cmd = program(t, ctx, []string{"TMPDIR=" + j.temp}, args...)
	j.Stdin, j.Stdout, j.Stderr = in, &j.out, &j.errOut
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	return j
}

// end waits for the job, checks that it removed its temporary files, and
// returns its exit code.
func (j *job) end(t *testing.T) int {
	t.Helper()
	_ = j.Wait() // the exit code reports the error
	if left, err := os.ReadDir(j.temp); err != nil || len(left) > 0 {
		t.Errorf("temporary files remain: %v, %v", left, err)
	}
	return j.ProcessState.ExitCode()
}

func (j *job) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := j.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

// pipe returns a pipe with a file at each end, as a shell creates it.
func pipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		w.Close()
	})
	return r, w
}

// The program ends immediately on Ctrl-C and SIGTERM, both while the writer of
// standard input pauses and while a FIFO has no writer.
func TestAnalyzeInterruptedWhileReading(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run("stdin/"+s.String(), func(t *testing.T) {
			t.Parallel()
			r, w := pipe(t)
			j := startJob(t, r, "analyze", "-", "--json")
			// The data exceeds the capacity of a pipe: once it is written, the
			// program is reading.
			if _, err := w.Write(append([]byte("JAVA PROFILE 1.0.3\x00"), make([]byte, 1<<20)...)); err != nil {
				t.Fatal(err)
			}
			j.interrupted(t, s)
		})
		t.Run("fifo/"+s.String(), func(t *testing.T) {
			t.Parallel()
			j := startJob(t, nil, "objects", fifo(t), "0x1")
			time.Sleep(time.Second)
			j.interrupted(t, s)
		})
	}
}

func (j *job) interrupted(t *testing.T, s os.Signal) {
	t.Helper()
	began := time.Now()
	j.signal(t, s)
	if code, took := j.end(t), time.Since(began); code != 130 || took > 5*time.Second || j.out.Len() > 0 ||
		!strings.Contains(j.errOut.String(), "interrupted") {
		t.Errorf("exit %d after %v, %q, %q", code, took, j.out.String(), j.errOut.String())
	}
}

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// An analysis that takes seconds may be interrupted or killed at any time:
// nothing incomplete is printed, and no temporary file remains.
func TestAnalyzeInterruptedAtAnyTime(t *testing.T) {
	path := chainFile(t, 3_000_000)
	r := rand.New(rand.NewPCG(1, 2))
	interrupted := 0
	for i := range 9 {
		s := []os.Signal{syscall.SIGINT, syscall.SIGTERM, os.Kill}[i%3]
		after := time.Duration(r.Int64N(int64(400 * time.Millisecond)))
		args := []string{"analyze", path, "--json"}
		var in io.Reader
		if i > 5 {
			// The content of a pipe is copied to a temporary file.
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			in, args[1] = struct{ io.Reader }{f}, "-"
		}
		j := startJob(t, in, args...)
		time.Sleep(after)
		began := time.Now()
		j.signal(t, s)
		code, took := j.end(t), time.Since(began)
		whole := strings.HasSuffix(j.out.String(), "\n}\n")
		switch {
		case code == 0 && whole, s == os.Kill && code == -1, code == -1 && j.errOut.Len() == 0:
			// The program had finished, was killed, or did not handle signals
			// yet.
		case code == 130 && took < 5*time.Second && j.out.Len() == 0:
			interrupted++
		default:
			t.Errorf("%v after %v: exit %d after %v, %d bytes, %s", s, after, code, took, j.out.Len(),
				j.errOut.String())
		}
	}
	if interrupted == 0 {
		t.Error("no program was interrupted while it worked")
	}
}

// If Ctrl-C is pressed while nobody reads the output, the output is incomplete,
// and the message says so.
func TestAnalyzeInterruptedWhilePrinting(t *testing.T) {
	out, w := pipe(t)
	j := &job{temp: t.TempDir()}
	j.Cmd = program(t, t.Context(), []string{"TMPDIR=" + j.temp}, "analyze",
		recorded.Path(t, "hprof", "leak_service_binder.hprof"), "--json", "--top", "100000")
	j.Stdout, j.Stderr = w, &j.errOut
	if err := j.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	// The output exceeds the capacity of a pipe; once its first bytes have
	// arrived, the program is printing.
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	j.signal(t, syscall.SIGINT)
	if code := j.end(t); code != 130 || !strings.Contains(j.errOut.String(), "the output is incomplete") {
		t.Errorf("exit %d, %q", code, j.errOut.String())
	}
}

// seriesVerbs returns the commands that read several dumps, and one that reads
// a single dump.
func seriesVerbs(first, second string) map[string][]string {
	return map[string][]string{
		"diff":   {"diff", first, second, "--json"},
		"growth": {"growth", first, second, "--json"},
		"paths":  {"paths", second, "com.shop.Node", "--json"},
	}
}

// If Ctrl-C is pressed while a dump arrives (the first or second of several, or
// the only one), nothing is printed, no file remains, and the program exits
// within a second.
func TestSeriesInterruptedWhileReading(t *testing.T) {
	for _, order := range []string{"first", "second"} {
		first, second := "-", chainFile(t, 10)
		if order == "second" {
			first, second = second, first
		}
		for verb, args := range seriesVerbs(first, second) {
			if verb == "paths" && order == "first" {
				continue
			}
			t.Run(verb+"/"+order, func(t *testing.T) {
				r, w := pipe(t)
				j := startJob(t, r, args...)
				// The data exceeds the capacity of a pipe: once it is written,
				// the program is reading.
				if _, err := w.Write(append([]byte("JAVA PROFILE 1.0.3\x00"), make([]byte, 1<<20)...)); err != nil {
					t.Fatal(err)
				}
				j.interruptedSoon(t)
			})
		}
	}
}

// interruptedSoon expects the program to exit within a second.
func (j *job) interruptedSoon(t *testing.T) {
	t.Helper()
	began := time.Now()
	j.interrupted(t, syscall.SIGINT)
	if took := time.Since(began); took > time.Second {
		t.Errorf("the program took %v to exit, want at most 1s", took)
	}
}

// The program is interrupted at various times while it reads two large dumps.
func TestSeriesInterruptedAtAnyTime(t *testing.T) {
	const objects = 800_000
	parts := 2
	if recorded.Long() {
		parts = 5
	}
	first, second := chainFile(t, objects), chainFile(t, objects+5)
	for verb, args := range seriesVerbs(first, second) {
		t.Run(verb, func(t *testing.T) {
			whole := startJob(t, nil, args...)
			began := time.Now()
			if code := whole.end(t); code != exitOK || whole.out.Len() == 0 {
				t.Fatalf("exit %d, %s", code, whole.errOut.String())
			}
			took, interrupted := time.Since(began), 0
			for part := range parts {
				j := startJob(t, nil, args...)
				time.Sleep(took * time.Duration(2*part+1) / time.Duration(2*parts))
				began := time.Now()
				j.signal(t, syscall.SIGINT)
				code, after := j.end(t), time.Since(began)
				switch {
				case code == exitOK && bytes.Equal(j.out.Bytes(), whole.out.Bytes()), code == -1 && j.errOut.Len() == 0:
					// The program had finished, or did not handle signals yet.
				case code == 130 && after < time.Second && j.out.Len() == 0 &&
					strings.Contains(j.errOut.String(), "interrupted"):
					interrupted++
				default:
					t.Errorf("exit %d after %v, %d bytes, %s", code, after, j.out.Len(), j.errOut.String())
				}
			}
			if interrupted == 0 {
				t.Error("no program was interrupted while it worked")
			}
		})
	}
}

// A FIFO is read like standard input.
func TestAnalyzeFIFO(t *testing.T) {
	dump := recorded.Read(t, "hprof", "hprof-32.bin")
	for _, verb := range [][]string{{"analyze", "--json"}, {"objects", "0x5000002d"}} {
		path := fifo(t)
		args := append([]string{verb[0], path}, verb[1:]...)
		j := startJob(t, nil, args...)
		w, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(dump); err != nil {
			t.Error(err)
		}
		w.Close()
		args[1] = dumpFile(t, dump)
		_, want, _ := typed(t, nil, args...)
		if code := j.end(t); code != exitOK || j.out.String() != want || want == "" || j.errOut.Len() > 0 {
			t.Errorf("exit %d, %s\n%.300s", code, j.errOut.String(), j.out.String())
		}
	}
}

// In one case the file has no read permission; in the other case the temporary
// directory is missing.
func TestAnalyzeNotPermitted(t *testing.T) {
	exe, err := build()
	if err != nil {
		t.Fatal(err)
	}
	// Root may read every file, so another user runs the program in that case.
	// This user must be able to reach the program.
	dir, err := os.MkdirTemp("", "leakgate-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	secret, own := filepath.Join(dir, "secret.hprof"), filepath.Join(dir, "leakgate")
	program, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []error{
		os.Chmod(dir, 0o755), os.WriteFile(own, program, 0o755), os.Chmod(own, 0o755),
		os.WriteFile(secret, recorded.Read(t, "hprof", "hprof-32.bin"), 0), //nolint:gosec // a program
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, own, "analyze", secret)
	cmd.Dir = dir
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	out, _ := cmd.CombinedOutput() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != exitUsage ||
		!strings.Contains(string(out), "open "+secret+": permission denied") {
		t.Errorf("exit %d, %s", code, out)
	}
	cmd = exec.CommandContext(ctx, exe, "analyze", "-")
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(dir, "none"))
	cmd.Stdin = bytes.NewReader(recorded.Read(t, "hprof", "hprof-32.bin"))
	out, _ = cmd.CombinedOutput() // the exit code reports the error
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), "TMPDIR") {
		t.Errorf("exit %d, %s", code, out)
	}
}

// If the reader of the output has exited, the program ends without a message,
// and no file remains.
func TestAnalyzeIntoAClosedPipe(t *testing.T) {
	path, other := recorded.Path(t, "hprof", "mat-openjdk_jdk11_04_x64.hprof.gz"),
		recorded.Path(t, "hprof", "hprof-64.bin")
	for _, args := range [][]string{
		{"analyze", path}, {"paths", path, "java.lang.String", "--json"}, {"diff", other, path, "--json"},
		{"growth", other, path, "--json"}, {"objects", path, "0xe0c2aaa8"},
	} {
		t.Run(args[0], func(t *testing.T) {
			r, w := pipe(t)
			r.Close()
			j := &job{temp: t.TempDir()}
			ctx := minute(t)
			j.Cmd = program(t, ctx, []string{"TMPDIR=" + j.temp}, args...)
			j.Stdout, j.Stderr = w, &j.errOut
			if err := j.Start(); err != nil {
				t.Fatal(err)
			}
			if code := j.end(t); code == exitOK || j.errOut.Len() > 0 {
				t.Errorf("exit %d, %s", code, j.errOut.String())
			}
		})
	}
}

// A full disk is not reported as an error of the dump.
func TestAnalyzeOntoAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here") // only Linux has /dev/full
	}
	defer full.Close()
	other := recorded.Path(t, "hprof", "hprof-64.bin")
	for _, verb := range [][]string{
		{"analyze"}, {"analyze", "--json"}, {"objects", "0x5000002d"}, {"paths", "java.lang.String"},
		{"paths", "java.lang.String", "--json"},
		{"diff", other}, {"diff", other, "--json"}, {"growth", other}, {"growth", other, "--json"},
	} {
		ctx := minute(t)
		path := recorded.Path(t, "hprof", "hprof-32.bin")
		cmd := program(t, ctx, nil, append([]string{verb[0], path}, verb[1:]...)...)
		var errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errOut
		_ = cmd.Run() // the exit code reports the error
		if code, text := cmd.ProcessState.ExitCode(), errOut.String(); code != exitUnread ||
			!strings.Contains(text, "no space left") || strings.Contains(text, path) || strings.Count(text, "\n") != 1 {
			t.Errorf("%q: exit %d, %s", verb, code, text)
		}
	}
}
