package adb

//unit:listen a scripted server behind real sockets: how they end is what is tested
//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// peer is one connection as seen by a scripted server.
type peer struct {
	net.Conn
	t *testing.T
	// budget is the number of bytes that the server may still send before it
	// hangs up; nil means no limit.
	budget *int
}

// request reads one request; it returns "" if the client hung up.
func (p *peer) request() string {
	var digits [4]byte
	if _, err := io.ReadFull(p.Conn, digits[:]); err != nil {
		return ""
	}
	var n int
	if _, err := fmt.Sscanf(string(digits[:]), "%04x", &n); err != nil {
		p.t.Errorf("request starts with %q", digits)
		return ""
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(p.Conn, text); err != nil {
		p.t.Errorf("request ends early: %v", err)
	}
	return string(text)
}

// send returns false once the connection has ended.
func (p *peer) send(text string) bool {
	if p.budget != nil {
		if len(text) > *p.budget {
			text = text[:*p.budget]
			_, _ = io.WriteString(p.Conn, text)
			*p.budget = 0
			_ = p.Close()
			return false
		}
		*p.budget -= len(text)
	}
	_, err := io.WriteString(p.Conn, text)
	return err == nil
}

func lengthened(text string) string { return fmt.Sprintf("%04x%s", len(text), text) }

// scripted returns a client of a server that calls handle for every connection
// until the test ends.
func scripted(t *testing.T, handle func(p *peer)) *Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns := map[net.Conn]bool{}
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns[nc] = true
			mu.Unlock()
			wg.Go(func() {
				handle(&peer{Conn: nc, t: t})
				hangUp(nc)
				mu.Lock()
				delete(conns, nc)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for nc := range conns {
			_ = nc.Close()
		}
		mu.Unlock()
		wg.Wait()
		checkLeaks(t)
	})
	return testClient(t, Options{Addr: l.Addr().String()})
}

// hangUp closes the connection gracefully: closing it with unread input would
// reset it and destroy output in flight.
func hangUp(nc net.Conn) {
	if half, ok := nc.(*net.TCPConn); ok && half.CloseWrite() == nil {
		_ = nc.SetReadDeadline(time.Now().Add(2 * time.Second))
		_, _ = io.Copy(io.Discard, nc)
	}
	_ = nc.Close()
}

// bubbled is like scripted, for a synctest bubble: the connections are in
// memory, so the bubble's clock determines the order of events. A write blocks
// until the peer reads.
func bubbled(t *testing.T, handle func(p *peer)) *Client {
	t.Helper()
	// An address reserved for documentation (RFC 5737) is used, because the
	// state that is stored for a local server would outlive the bubble.
	c := testClient(t, Options{Addr: "192.0.2.1:5037"})
	var peers sync.WaitGroup
	t.Cleanup(peers.Wait)
	c.dialTo = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		peers.Go(func() {
			defer theirs.Close()
			handle(&peer{Conn: theirs, t: t})
		})
		return ours, nil
	}
	return c
}

func testClient(t testing.TB, opt Options) *Client {
	t.Helper()
	opt.NoStart = true
	if opt.Getenv == nil {
		opt.Getenv = env()
	}
	c, err := NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// phone returns a device of a scripted server with known features.
func phone(c *Client, features ...string) *Device {
	return &Device{client: c, info: DeviceInfo{Serial: "X", State: StateDevice}, features: features, known: true}
}

// selected returns the device with the given serial.
func selected(t *testing.T, c *Client, serial string) *Device {
	t.Helper()
	d, err := c.Select(soon(t), serial)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// answerTimeout is the time limit for what should happen immediately, even on a
// busy machine: if it is exceeded, something hangs.
const answerTimeout = time.Minute

// waitFor polls until a condition becomes true.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(answerTimeout); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("timed out waiting for: %s", what)
			return
		}
	}
}

// checkLeaks checks that no goroutine of this package remains.
func checkLeaks(t testing.TB) {
	t.Helper()
	var left []string
	for deadline := time.Now().Add(answerTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if left = ownGoroutines(); len(left) == 0 {
			return
		}
	}
	t.Errorf("leaked goroutines:\n%s", strings.Join(left, "\n\n"))
}

// ownGoroutines returns the goroutines that run code of this package, except
// those of tests.
func ownGoroutines() []string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var own []string
	for _, g := range bytes.Split(buf, []byte("\n\n")) {
		// The goroutines of scripted run the servers of the tests.
		if bytes.Contains(g, []byte("capture/adb.")) && !bytes.Contains(g, []byte("adb.scripted.")) &&
			!bytes.Contains(g, []byte("testing.tRunner")) && !bytes.Contains(g, []byte("testing.(*B)")) &&
			!bytes.Contains(g, []byte("testing.Main")) && !bytes.Contains(g, []byte("testing.(*M)")) {
			own = append(own, string(g))
		}
	}
	return own
}

// soon returns a context with a timeout, for one call in a test.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	t.Cleanup(cancel)
	return ctx
}
