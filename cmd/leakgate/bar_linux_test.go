package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/leakgate/leakgate/internal/recorded"
)

// terminal records what is drawn on it.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.Write(p)
}

// drawn returns what was drawn since the last call.
func (t *terminal) drawn() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.text.Reset()
	return t.text.String()
}

func columnsOf(n int) func() int { return func() int { return n } }

func TestBar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out terminal
		b := barOn(&out, columnsOf(80))
		b.phase("read objects")
		b.progress(1, 4)
		time.Sleep(quick - time.Millisecond)
		if text := out.drawn(); text != "" {
			t.Errorf("got %q on the terminal in the first two seconds, want nothing", text)
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if text := out.drawn(); text != "\r\x1b[K[######..................]  25 %  read objects, 2 s" {
			t.Errorf("%q", text)
		}
		// The drawing continues without progress reports.
		b.phase("search")
		time.Sleep(3 * time.Second)
		if text := out.drawn(); !strings.Contains(text, "\r\x1b[Ksearch, 3 s\r") ||
			!strings.HasSuffix(text, "\r\x1b[Ksearch, 5 s") {
			t.Errorf("%q", text)
		}
		b.progress(3<<20, 0)
		time.Sleep(time.Second)
		if text := out.drawn(); !strings.HasSuffix(text, "search, 3.0 MB, 6 s") {
			t.Errorf("%q", text)
		}
		// Progress beyond the total is drawn as 100 %.
		b.progress(9, 4)
		time.Sleep(time.Second)
		if text := out.drawn(); !strings.HasSuffix(text, "[########################] 100 %  search, 7 s") {
			t.Errorf("%q", text)
		}
		b.close()
		b.progress(1, 2)
		time.Sleep(time.Minute)
		if text := out.drawn(); text != "\r\x1b[K" {
			t.Errorf("got %q on the terminal after the end, want only an empty line", text)
		}
	})
}

// Nothing is drawn for quick work, or without a terminal.
func TestBarHiddenForQuickWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, width := range []int{80, 0} {
			var out terminal
			b := barOn(&out, columnsOf(width))
			b.phase("read objects")
			if time.Sleep(time.Second); width == 0 {
				time.Sleep(time.Minute)
			}
			b.close()
			if text := out.drawn(); text != "" {
				t.Errorf("width %d: %q", width, text)
			}
		}
	})
}

// The line fits the terminal, because a wrapped line could not be removed.
func TestBarFitsNarrowTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out terminal
		b := barOn(&out, columnsOf(40))
		b.phase("read the input")
		b.progress(1<<20, 3<<20)
		time.Sleep(10 * time.Second)
		b.close()
		for line := range strings.SplitSeq(out.drawn(), "\r\x1b[K") {
			if len(line) >= 40 {
				t.Errorf("%d columns: %q", len(line), line)
			}
		}
	})
}

// A stopped terminal delays neither the work nor its end.
func TestBarOnStoppedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		read := make(chan []byte)
		b := barOn(writerFunc(func(p []byte) (int, error) { read <- p; return len(p), nil }), columnsOf(80))
		b.phase("search")
		time.Sleep(time.Minute)
		began := time.Now()
		for i := range int64(1000) {
			b.progress(i, 1000)
		}
		b.close()
		if took := time.Since(began); took > lastWrites {
			t.Errorf("took %v", took)
		}
		for range b.out.drained(read) {
		}
	})
}

// pseudoTerminal returns both ends of a new terminal (pty(7)).
func pseudoTerminal(t *testing.T) (screen, user *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		recorded.Missing(t, "cannot create a terminal: %v", err)
	}
	t.Cleanup(func() { screen.Close() })
	var number, unlocked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlocked} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request,
			uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	user, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		recorded.Missing(t, "cannot create a terminal: %v", err)
	}
	t.Cleanup(func() { user.Close() })
	return screen, user
}

// The program itself draws on a terminal: with a dump that arrives slowly, a
// line appears after two seconds and is gone at the end, and stdout contains
// only JSON. Without a terminal nothing is drawn.
func TestAnalyzeShowsProgress(t *testing.T) {
	dump := recorded.Read(t, "hprof", "hprof-32.bin")
	for name, onTerminal := range map[string]bool{"terminal": true, "pipe": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, feed, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			screen, user := pseudoTerminal(t)
			ctx := minute(t)
			cmd := program(t, ctx, nil, "analyze", "-", "--json", "--top", "1")
			var out, errOut bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errOut
			if onTerminal {
				cmd.Stderr = user
			}
			began := time.Now()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			user.Close()
			go func() {
				defer feed.Close()
				feed.Write(dump[:len(dump)/2])
				time.Sleep(quick + 2*time.Second)
				feed.Write(dump[len(dump)/2:])
			}()
			var first time.Duration
			var drawn []byte
			piece := make([]byte, 1024)
			for onTerminal {
				n, err := screen.Read(piece)
				if n > 0 && first == 0 {
					first = time.Since(began)
				}
				drawn = append(drawn, piece[:n]...)
				if err != nil {
					break // EIO: the program has closed the terminal
				}
			}
			if err := cmd.Wait(); err != nil || !json.Valid(out.Bytes()) || errOut.Len() > 0 {
				t.Errorf("%v, %s\n%.200s", err, errOut.String(), out.String())
			}
			if !onTerminal {
				return
			}
			text := string(drawn)
			if first < quick || !strings.HasPrefix(text, "\r\x1b[Kread the input, ") ||
				!strings.HasSuffix(text, "\r\x1b[K") || strings.Count(text, "read the input") < 3 {
				t.Errorf("first drawn after %v: %q", first, text)
			}
		})
	}
}
