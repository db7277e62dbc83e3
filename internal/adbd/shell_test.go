package adbd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func TestLookup(t *testing.T) {
	modern := Identity{Features: ModernFeatures()}
	for _, c := range []struct {
		id   Identity
		name string
		want service
	}{
		{modern, "shell:ls", shellService{command: "ls"}},
		{modern, "shell:", shellService{terminal: true}},
		{modern, "shell,v2:ls", shellService{command: "ls", packets: true}},
		{modern, "shell,v2:", shellService{packets: true, terminal: true}},
		{modern, "shell,v2,raw:", shellService{packets: true}},
		{modern, "shell,v2,TERM=xterm-256color,pty:a:b", shellService{command: "a:b", packets: true, terminal: true}},
		{modern, "shell,v2,unheard-of:ls", shellService{command: "ls", packets: true}},
		{modern, "exec:ls", shellService{command: "ls"}},
		{modern, "sync:", syncService{stat64: true, list64: true}},
		{Identity{Features: []string{FeatureStat}}, "sync:", syncService{stat64: true}},
		{Identity{}, "shell:ls", shellService{command: "ls", terminal: true}},
		{Identity{}, "exec:ls", shellService{command: "ls"}},
		{Identity{}, "sync:", syncService{}},
		{Identity{}, "shell,v2:ls", nil},
		{modern, "shell", nil},
		{modern, "", nil},
		{modern, "tcp:5000", nil},
	} {
		got, ok := lookup(c.id, c.name)
		if got != c.want || ok != (c.want != nil) {
			t.Errorf("lookup(%q) = %+v, %v; want %+v", c.name, got, ok, c.want)
		}
	}
}

// playShell runs a service for a peer that sends in as input and then waits; it
// returns the service's output.
func playShell(t *testing.T, svc shellService, in string,
	shell func(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int) string {
	t.Helper()
	phone := newMemoryPhone("s")
	phone.shell = shell
	r, w := io.Pipe()
	go io.WriteString(w, in)
	s := &waitingTape{tape: tape{in: r}, end: func() { w.Close() }}
	svc.run(t.Context(), phone, s)
	return s.out.String()
}

// waitingTape is a tape whose peer closes once the service has closed.
type waitingTape struct {
	tape
	end func()
}

func (s *waitingTape) Close() error { s.end(); return nil }

func TestShellOutputs(t *testing.T) {
	expectNoGoroutines(t)
	both := func(_ context.Context, _ string, _ io.Reader, stdout, stderr io.Writer) int {
		io.WriteString(stdout, "o\n")
		io.WriteString(stderr, "e\n")
		io.WriteString(stdout, "")
		return 256 + 7
	}
	for _, c := range []struct {
		svc  shellService
		want string
	}{
		{shellService{packets: true}, "\x01" + u32(2) + "o\n" + "\x02" + u32(2) + "e\n" + "\x03" + u32(1) + "\x07"},
		{
			shellService{packets: true, terminal: true}, "\x01" + u32(3) + "o\r\n" + "\x01" + u32(3) + "e\r\n" +
				"\x03" + u32(1) + "\x07",
		},
		{shellService{}, "o\ne\n"},
		{shellService{terminal: true}, "o\r\ne\r\n"},
	} {
		if got := playShell(t, c.svc, "", both); got != c.want {
			t.Errorf("%+v: %q, want %q", c.svc, got, c.want)
		}
	}
	big := randomText(3*shellChunk + 1)
	got := playShell(t, shellService{packets: true}, "",
		func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
			if n, err := io.WriteString(stdout, big); n != len(big) || err != nil {
				t.Errorf("write = %d, %v", n, err)
			}
			return 0
		})
	if out := unpack(t, got); out != big {
		t.Errorf("%d bytes of output were received as %d", len(big), len(out))
	}
}

// unpack returns the contents of a service's stdout packets, and checks that
// the exit packet comes last.
func unpack(t *testing.T, s string) string {
	var out strings.Builder
	for len(s) >= shellHeader {
		n := int(binary.LittleEndian.Uint32([]byte(s[1:])))
		body := s[shellHeader : shellHeader+n]
		switch s = s[shellHeader+n:]; {
		case len(body) > shellChunk:
			t.Errorf("packet of %d bytes is too large", len(body))
		case s == "":
			return out.String()
		}
		out.WriteString(body)
	}
	t.Errorf("output ends with %q instead of an exit packet", s)
	return ""
}

func TestShellMixedOutputsAreOne(t *testing.T) {
	expectNoGoroutines(t)
	for _, svc := range []shellService{{}, {terminal: true}, {packets: true, terminal: true}} {
		playShell(t, svc, "", func(_ context.Context, _ string, _ io.Reader, stdout, stderr io.Writer) int {
			if stdout != stderr {
				t.Errorf("%+v: stdout and stderr are different writers, so a process would write them from two "+
					"goroutines", svc)
			}
			return 0
		})
	}
}

func TestShellStdin(t *testing.T) {
	expectNoGoroutines(t)
	echo := func(_ context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) int {
		io.Copy(stdout, stdin)
		return 0
	}
	in := "\x00" + u32(3) + "abc" + "\x05" + u32(7) + "24x80,0" + "\x00" + u32(0) + "\x09" + u32(1) + "?" + "\x00" +
		u32(2) + "de" + "\x04" + u32(0) + "\x00" + u32(4) + "late"
	if out := unpack(t, playShell(t, shellService{packets: true}, in, echo)); out != "abcde" {
		t.Errorf("stdin = %q, want abcde", out)
	}
	got := playShell(t, shellService{}, "raw input",
		func(_ context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) int {
			io.CopyN(stdout, stdin, 9)
			return 0
		})
	if got != "raw input" {
		t.Errorf("raw stdin = %q", got)
	}
}

// TestShellEnds checks that processes that a command leaves running are
// released and can write nothing after the exit status.
func TestShellEnds(t *testing.T) {
	expectNoGoroutines(t)
	var left sync.WaitGroup
	var late error
	go1 := make(chan struct{})
	got := playShell(t, shellService{packets: true}, "",
		func(_ context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) int {
			left.Go(func() {
				_, err := stdin.Read(make([]byte, 1))
				if !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("the blocked read returned %v", err)
				}
			})
			left.Go(func() {
				<-go1
				_, late = io.WriteString(stdout, "late")
			})
			return 4
		})
	close(go1)
	left.Wait()
	if want := "\x03" + u32(1) + "\x04"; got != want || late == nil {
		t.Errorf("output %q, late write %v; want %q and an error", got, late, want)
	}
}

func TestCancelledShellHasNoExit(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("s")
	phone.shell = func(ctx context.Context, _ string, _ io.Reader, _, _ io.Writer) int { <-ctx.Done(); return 0 }
	s := &tape{in: strings.NewReader("")}
	shellService{packets: true}.run(t.Context(), phone, s)
	if s.out.Len() != 0 {
		t.Errorf("command printed %q after its peer disconnected", s.out.String())
	}
}

func TestInletIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInlet()
		text := randomText(2*inletSize + 11)
		wrote := false
		go func() {
			io.WriteString(in, text)
			wrote = true
			in.finish()
		}()
		synctest.Wait()
		if len(in.buf) != inletSize || wrote {
			t.Errorf("%d bytes pending, write finished: %v", len(in.buf), wrote)
		}
		if got, err := io.ReadAll(in); string(got) != text || err != nil {
			t.Errorf("read %d bytes, %v; want %d", len(got), err, len(text))
		}
		if n, err := in.Write(make([]byte, 2*inletSize)); n != 2*inletSize || err != nil || len(in.buf) != 0 {
			t.Errorf("write after the end = %d, %v and buffers %d bytes", n, err, len(in.buf))
		}
	})
}

func FuzzShellPackets(f *testing.F) {
	f.Add([]byte("\x00\x03\x00\x00\x00abc\x04\x00\x00\x00\x00"))
	f.Add([]byte("\x05\x07\x00\x00\x0024x80,0\x00\x01\x00\x00\x00a"))
	f.Add([]byte("\x00\xff\xff\xff\xffabc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := newInlet()
		go func() {
			readShellPackets(bytes.NewReader(data), in)
			in.finish()
		}()
		got, err := io.ReadAll(in)
		if want := stdinOf(data); err != nil || !bytes.Equal(got, want) {
			t.Errorf("stdin for %x = %x, %v; want %x", data, got, err, want)
		}
	})
}

// stdinOf parses complete input in the same way as readShellPackets.
func stdinOf(data []byte) []byte {
	var out []byte
	for len(data) >= shellHeader && data[0] != shellCloseStdin {
		body := data[shellHeader:]
		n := min(int64(binary.LittleEndian.Uint32(data[1:])), int64(len(body)))
		if data[0] == shellStdin {
			out = append(out, body[:n]...)
		}
		data = body[n:]
	}
	return out
}
