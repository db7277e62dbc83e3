package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

func TestAsyncWriterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan []byte)
		a := newAsyncWriter(writerFunc(func(p []byte) (int, error) { read <- p; return len(p), nil }))
		began := time.Now()
		for range 5 * maxWaiting {
			if n, err := a.Write([]byte("text")); n != 4 || err != nil {
				t.Fatal(n, err)
			}
		}
		a.close()
		if took := time.Since(began); took > lastWrites {
			t.Errorf("took %v", took)
		}
		for range a.drained(read) {
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// drained reads what is left in the queue, so that the goroutine of the writer
// ends.
func (a *asyncWriter) drained(read chan []byte) <-chan []byte {
	out := make(chan []byte)
	go func() {
		defer close(out)
		for {
			select {
			case p := <-read:
				out <- p
			case <-a.done:
				return
			}
		}
	}()
	return out
}

// A pipe that nobody reads delays neither the samples nor Ctrl-C, and a run
// continues when the reader of its output exits.
func TestUnreadStderrBlocksNothing(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"a full pipe": false, "a broken pipe": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			fillPipe(t, reader, writer)
			if gone {
				reader.Close()
			}
			out := filepath.Join(t.TempDir(), "run")
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := program(t, ctx, nil, "demo", "--out", out)
			cmd.Stdout, cmd.Stderr = writer, writer
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			writer.Close()
			time.Sleep(3 * time.Second)
			for range 2 {
				if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			began := time.Now()
			_ = cmd.Wait() // the reader may have exited, so any exit code is accepted
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the program took %v to exit after Ctrl-C, want at most 5s", took)
			}
			run, err := record.ReadRun(out)
			if err != nil || len(run.Processes) != 2 || run.Processes[0].Samples < 5 {
				t.Errorf("%+v, %v", run, err)
			}
		})
	}
}

// fillPipe leaves space for the first line of a run and little more.
func fillPipe(t *testing.T, r, w *os.File) {
	t.Helper()
	if err := w.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Write(make([]byte, page)); err != nil {
			break
		}
	}
	if _, err := io.ReadFull(r, make([]byte, page)); err != nil {
		t.Fatal(err)
	}
	if err := w.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, page-300)); err != nil {
		t.Fatal(err)
	}
}

// page is the unit of a pipe's capacity on Linux.
const page = 4096
