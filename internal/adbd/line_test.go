package adbd

//unit:listen the server of sockets is what is tested

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// wired returns the two ends of a TCP connection; the near end is attached to
// the line.
func wired(t testing.TB, l *Line) (near, far net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err = net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err = listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near = l.Wire(near)
	far.SetDeadline(time.Now().Add(30 * time.Second))
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// drain returns all data that arrives on a connection.
func drain(t testing.TB, conn net.Conn) string {
	t.Helper()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Errorf("after %d bytes: %v", len(got), err)
	}
	return string(got)
}

func TestLineInterruptAfter(t *testing.T) {
	for _, n := range []int64{0, 1, 999, 1000, 1001, 2500} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			l := new(Line)
			near, far := wired(t, l)
			// Unread input at the near end must not destroy the data in flight
			// to the far end.
			io.WriteString(far, "unread")
			defer l.InterruptAfter(n)()
			text := randomText(1000)
			var sent int
			var err error
			for err == nil {
				var k int
				if k, err = io.WriteString(near, text); k > len(text) {
					t.Errorf("wrote %d of %d bytes", k, len(text))
				}
				sent += k
			}
			if int64(sent) != n || !errors.Is(err, net.ErrClosed) {
				t.Errorf("sent %d bytes, then got %v", sent, err)
			}
			if got, want := drain(t, far), strings.Repeat(text, 3)[:n]; got != want {
				t.Errorf("%d bytes arrived, want %d", len(got), len(want))
			}
			// The fault occurs only once.
			near, far = wired(t, l)
			io.WriteString(near, text+text+text)
			near.Close()
			if got := drain(t, far); len(got) != 3000 {
				t.Errorf("the next connection transmitted %d bytes, want 3000", len(got))
			}
		})
	}
}

func TestLineCutEvery(t *testing.T) {
	l := new(Line)
	end := l.InterruptEvery(100)
	for range 3 {
		near, far := wired(t, l)
		io.WriteString(near, randomText(70))
		io.WriteString(near, randomText(70))
		if got := drain(t, far); len(got) != 100 {
			t.Errorf("%d bytes arrived", len(got))
		}
	}
	end()
	end()
	near, far := wired(t, l)
	io.WriteString(near, randomText(1000))
	near.Close()
	if got := drain(t, far); len(got) != 1000 || l.faulty.Load() {
		t.Errorf("%d bytes arrived after the fault ended, want 1000", len(got))
	}
}

func TestLineGarble(t *testing.T) {
	for _, c := range []struct {
		every int64
		sizes []int
	}{
		{1, []int{5, 1, 0, 7}}, {7, []int{6, 1, 1, 20, 3}}, {100, []int{99, 1, 250}}, {1000, []int{999}},
	} {
		l := new(Line)
		near, far := wired(t, l)
		end := l.Garble(c.every, 42)
		var want []byte
		for _, n := range c.sizes {
			p := randomBytesOf(n)
			want = append(want, p...)
			before := bytes.Clone(p)
			if k, err := near.Write(p); k != n || err != nil || !bytes.Equal(p, before) {
				t.Errorf("wrote %d of %d, %v", k, n, err)
			}
		}
		end()
		// The connection outlives the fault only if no byte was replaced.
		_, err := near.Write([]byte("clean"))
		near.Close()
		got := drain(t, far)
		size, clean := len(want), int64(len(want)) < c.every
		if clean {
			size += len("clean")
		}
		if len(got) != size || (err == nil) != clean {
			t.Fatalf("every %d: received %d bytes, want %d, and then %v", c.every, len(got), size, err)
		}
		for i, b := range want {
			if differs, turn := got[i] != b, (int64(i)+1)%c.every == 0; differs != turn {
				t.Errorf("every %d: byte %d: garbled %v", c.every, i, differs)
			}
		}
	}
}

func randomBytesOf(n int) []byte { return []byte(randomText(n + 1)[:n]) }

func TestLineInsert(t *testing.T) {
	l := new(Line)
	near, far := wired(t, l)
	withdrawn := l.Insert([]byte("never"))
	withdrawn()
	defer l.Insert([]byte("garbage"))()
	for range 2 {
		if n, err := io.WriteString(near, "text"); n != 4 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	near.Close()
	if got := drain(t, far); got != "garbagetexttext" {
		t.Errorf("%q arrived", got)
	}
}

func TestLineUnplug(t *testing.T) {
	l := new(Line)
	near, far := wired(t, l)
	end := l.Unplug()
	if _, err := near.Write([]byte("x")); err == nil {
		t.Error("the unplugged line is still transmitting")
	}
	drain(t, far)
	for range 2 {
		_, far = wired(t, l)
		drain(t, far)
	}
	end()
	near, far = wired(t, l)
	io.WriteString(near, "back")
	l.Interrupt()
	if len(l.conns) != 0 {
		t.Errorf("%d connections remain after Interrupt", len(l.conns))
	}
	drain(t, far)
}

func TestLineDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := new(Line)
		a, b := net.Pipe()
		near := l.Wire(a)
		arrived := make(chan time.Duration, 10)
		began := time.Now()
		go func() {
			buf := make([]byte, 1)
			for {
				if _, err := b.Read(buf); err != nil {
					close(arrived)
					return
				}
				arrived <- time.Since(began)
			}
		}()
		want := func(want time.Duration) {
			t.Helper()
			if got := <-arrived; got != want {
				t.Errorf("arrived after %v, want %v", got, want)
			}
		}
		first := l.Delay(3 * time.Second)
		near.Write([]byte("a"))
		want(3 * time.Second)
		second := l.Delay(4 * time.Second)
		near.Write([]byte("b"))
		want(10 * time.Second)
		first()
		near.Write([]byte("c"))
		want(14 * time.Second)
		second()
		near.Write([]byte("d"))
		want(14 * time.Second)

		// A hang ends when the fault ends or the connection is closed.
		hang := l.Delay(time.Hour)
		go func() {
			time.Sleep(time.Second)
			hang()
		}()
		near.Write([]byte("e"))
		want(15 * time.Second)
		defer l.Delay(time.Hour)()
		go func() {
			time.Sleep(time.Second)
			near.Close()
		}()
		if _, err := near.Write([]byte("f")); err == nil || time.Since(began) != 16*time.Second {
			t.Errorf("write on a closed line: %v after %v", err, time.Since(began))
		}
		b.Close()
		<-arrived
	})
}

// Faults start and end while connections are in use; the test is meant for the
// race detector. Without garbling, what arrives is a prefix of the sent data.
func TestLineConcurrency(t *testing.T) {
	l := new(Line)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			text := strings.Repeat(string(rune('a'+i)), 100)
			for {
				select {
				case <-stop:
					return
				default:
				}
				near, far := wired(t, l)
				read := make(chan []byte)
				go func() {
					got, _ := io.ReadAll(far)
					read <- got
				}()
				for range 20 {
					if _, err := io.WriteString(near, text); err != nil {
						break
					}
				}
				near.Close()
				if got := <-read; len(got) > 2000 || strings.Trim(string(got), text[:1]) != "" {
					t.Errorf("%d bytes arrived: %.40q", len(got), got)
				}
				far.Close()
			}
		})
	}
	for i := range 300 {
		end := []func() func(){
			func() func() { return l.InterruptAfter(int64(i)) }, func() func() { return l.InterruptEvery(150) },
			func() func() { return l.Delay(time.Millisecond) },
			func() func() { return l.InterruptAtOpen(1) }, l.Unplug,
		}[i%5]()
		l.opening()
		time.Sleep(time.Millisecond / 2)
		end()
	}
	close(stop)
	wg.Wait()
	if l.faulty.Load() || len(l.on) != 0 {
		t.Errorf("%d faults remain", len(l.on))
	}
}

// The line of an in-memory Server is interrupted in the middle of a response
// and when a service is opened.
func TestLineAtServer(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("x")
	text := randomText(100_000)
	phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
		io.WriteString(stdout, text)
		return 5
	}
	l, s := new(Line), NewServer(phone)
	s.Wire = l.Wire
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(listener)
	t.Cleanup(func() { s.Close() })
	addr := listener.Addr().String()
	run := func() string { return answer(t, addr, "host:transport:x", "exec:x") }
	if got := run(); got != "OKAY"+text {
		t.Fatalf("received %d bytes without a fault, want %d", len(got), len("OKAY"+text))
	}
	// The first four bytes are the OKAY of the transport request.
	defer l.InterruptAfter(4 + 4 + 50_000)()
	if got := run(); got != "OKAY"+text[:50_000] {
		t.Errorf("connection broke after %d bytes, want %d", len(got), len("OKAY")+50_000)
	}
	defer l.InterruptAtOpen(2)()
	if got := run(); got != "OKAY"+text {
		t.Errorf("received %d bytes from the first service, want %d", len(got), len("OKAY"+text))
	}
	if got := run(); got != "" {
		t.Errorf("received %d bytes from the second service, want none", len(got))
	}
	if got := run(); got != "OKAY"+text {
		t.Errorf("received %d bytes from the third service, want %d", len(got), len("OKAY"+text))
	}
}

func TestLineAtDaemon(t *testing.T) {
	for name, c := range map[string]struct {
		start func(l *Line) func()
		// dies is set if the connection ends before any response arrives.
		dies bool
	}{
		"none":    {func(*Line) func() { return func() {} }, false},
		"open 1":  {func(l *Line) func() { return l.InterruptAtOpen(1) }, true},
		"open 2":  {func(l *Line) func() { return l.InterruptAtOpen(2) }, false},
		"header":  {func(l *Line) func() { return l.InterruptAfter(10) }, true},
		"between": {func(l *Line) func() { return l.InterruptAfter(packetHeader) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			expectNoGoroutines(t)
			l, phone := new(Line), newMemoryPhone("x")
			phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
				io.WriteString(stdout, "hello")
				return 0
			}
			d := NewDaemon(phone)
			d.Wire = l.Wire
			if err := d.Listen("127.0.0.1:0"); err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			conn, err := net.Dial("tcp", d.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(30 * time.Second))
			h := host{t, conn, skipChecksum}
			h.greet(maxPayload)
			defer c.start(l)()
			h.send(cmdOpen, 9, 0, "exec:x\x00")
			if c.dies {
				rest, err := io.ReadAll(conn)
				if len(rest) > packetHeader || err != nil {
					t.Errorf("%d bytes, %v", len(rest), err)
				}
				return
			}
			h.want(cmdOkay, -1, 9, "")
			h.want(cmdWrite, -1, 9, "hello")
			h.want(cmdClose, -1, 9, "")
		})
	}
}

// notifyingPhone is a phone that reports changes of its Identity.
type notifyingPhone struct {
	*memoryPhone
	changed chan struct{}
}

func (p *notifyingPhone) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *notifyingPhone) change(f func(*Identity)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.id)
	close(p.changed)
	p.changed = make(chan struct{})
}

// If a phone restarts or is removed, its connections are closed, immediately if
// the phone reports the change.
func TestSessionEnds(t *testing.T) {
	for name, change := range map[string]func(*Identity){
		"session":      func(id *Identity) { id.Session++ },
		"offline":      func(id *Identity) { id.State = StateOffline },
		"unauthorized": func(id *Identity) { id.State = StateUnauthorized },
	} {
		t.Run(name, func(t *testing.T) {
			expectNoGoroutines(t)
			blocked, running := blockedPhone("x")
			phone := &notifyingPhone{blocked, make(chan struct{})}
			s := startServer(t, phone)
			conn := dial(t, s.Addr(), "host:transport:x", "shell,v2,raw:x", "")
			mustRead(t, conn, shellHeader+len("started"))
			phone.change(change)
			running.Wait()
			if rest, _ := io.ReadAll(conn); len(rest) != 0 {
				t.Errorf("received %q after the change", rest)
			}

			synctest.Test(t, func(t *testing.T) {
				phone := &notifyingPhone{newMemoryPhone("x"), make(chan struct{})}
				ours, theirs := net.Pipe()
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					newLink(t.Context(), phone, theirs).serve()
				}()
				h := host{t, ours, skipChecksum}
				h.greet(maxPayload)
				synctest.Wait()
				began := time.Now()
				phone.change(change)
				dropped(t, ours)
				<-ended
				if time.Since(began) != 0 {
					t.Errorf("connection was dropped after %v, want immediately", time.Since(began))
				}
			})
		})
	}
	t.Run("on OPEN", func(t *testing.T) {
		phone := newMemoryPhone("s")
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			h.greet(maxPayload)
			phone.mu.Lock()
			phone.id.Session++
			phone.mu.Unlock()
			h.send(cmdOpen, 1, 0, "shell:true\x00")
			dropped(t, conn)
		})
	})
}

func TestNoExit(t *testing.T) {
	phone := newMemoryPhone("x")
	phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
		io.WriteString(stdout, "half")
		return NoExit
	}
	s := startServer(t, phone)
	if got := answer(t, s.Addr(), "host:transport:x", "shell,v2,raw:x"); got != "OKAY\x01\x04\x00\x00\x00half" {
		t.Errorf("%q", got)
	}
}

// BenchmarkLine measures a line without faults.
func BenchmarkLine(b *testing.B) {
	for name, wire := range map[string]func(net.Conn) net.Conn{
		"bare": func(c net.Conn) net.Conn { return c }, "line": new(Line).Wire,
	} {
		b.Run(name, func(b *testing.B) {
			conn := wire(sinkConn{})
			p := make([]byte, 100)
			for b.Loop() {
				conn.Write(p)
			}
		})
	}
}

type sinkConn struct{ net.Conn }

func (sinkConn) Write(p []byte) (int, error) { return len(p), nil }
