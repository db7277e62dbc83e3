//go:build unix

package adb

//unit:listen a path and its full queue are what is tested

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// place is an address at which a server is present at certain times, on the
// clock of a bubble.
type place struct {
	mu    sync.Mutex
	up    bool
	dials []time.Duration // times of the failed dials
	begin time.Time
	// starts lists the times at which the client started the server; boot is
	// called at each start.
	starts []time.Duration
	boot   func(ctx context.Context) error
	busy   atomic.Int32
}

// places makes every address unique: the state stored for an address lasts as
// long as the process, and a ctxMutex used by a test outside a bubble would
// stop the clock of every bubble. No other test uses the ports from firstPlace
// to 1024.
var places atomic.Int32

const firstPlace = 100

func newPlace(t *testing.T, opt Options) (*place, *Client) {
	p := &place{begin: time.Now()}
	p.boot = func(context.Context) error { p.set(true); return nil }
	opt.Addr, opt.ADBPath, opt.Getenv = fmt.Sprintf("127.0.0.1:%d", firstPlace+places.Add(1)), "/bin/sh", env()
	c, err := NewClient(opt)
	if err != nil {
		t.Fatal(err)
	}
	c.dialTo, c.launch = p.dial, p.launch
	return p, c
}

func (p *place) set(up bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up = up
}

func (p *place) dial(context.Context) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.up {
		p.dials = append(p.dials, time.Since(p.begin))
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		var request [len("000chost:version")]byte
		if _, err := io.ReadFull(theirs, request[:]); err == nil {
			_, _ = io.WriteString(theirs, "OKAY00040029")
		}
	}()
	return ours, nil
}

func (p *place) launch(ctx context.Context, _, _ string) error {
	if p.busy.Add(1) != 1 {
		panic("two concurrent starts")
	}
	defer p.busy.Add(-1)
	p.mu.Lock()
	p.starts = append(p.starts, time.Since(p.begin))
	p.mu.Unlock()
	return p.boot(ctx)
}

func (p *place) wantStarts(t *testing.T, want ...time.Duration) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if fmt.Sprint(p.starts) != fmt.Sprint(want) {
		t.Errorf("server started at %v, want %v", p.starts, want)
	}
}

func wantVersion(t *testing.T, c *Client) {
	t.Helper()
	if v, err := c.Version(t.Context()); v != 41 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
}

// TestRestartRules tests when a server is started, on the clock of a bubble.
func TestRestartRules(t *testing.T) {
	tests := map[string]func(t *testing.T){
		"first start at once, second after the grace period": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			wantVersion(t, c)
			p.wantStarts(t, 0)
			time.Sleep(time.Minute)
			p.set(false)
			wantVersion(t, c)
			p.wantStarts(t, 0, time.Minute+grace)
		},
		"the client waits for a server that disappeared": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.set(true)
			wantVersion(t, c)
			p.set(false)
			time.AfterFunc(400*time.Millisecond, func() { p.set(true) })
			wantVersion(t, c)
			p.wantStarts(t)
			if took := time.Since(p.begin); took < 400*time.Millisecond || took > 400*time.Millisecond+pollEvery {
				t.Errorf("the call took %v", took)
			}
		},
		"the grace period continues across aborted calls": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.set(true)
			wantVersion(t, c)
			p.set(false)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				if _, err := c.Version(ctx); len(p.starts) == 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				cancel()
			}
			p.wantStarts(t, grace)
		},
		"an old connection attempt does not count": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.set(true)
			wantVersion(t, c)
			p.set(false)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = c.Version(ctx)
			time.Sleep(time.Hour - time.Second)
			wantVersion(t, c)
			p.wantStarts(t, time.Hour+grace)
		},
		"no second start within ten seconds": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			wantVersion(t, c)
			time.Sleep(time.Second)
			p.set(false)
			_, err := c.Version(t.Context())
			checkSentence(t, err, ErrNoServer, "the one started 4s ago is gone: see what `adb nodaemon server` prints")
			begin := time.Now()
			_, err = c.Version(t.Context())
			checkSentence(t, err, ErrNoServer, "is gone")
			if time.Since(begin) != 0 {
				t.Errorf("the client waited another %v for an address known to be unused", time.Since(begin))
			}
			for time.Since(p.begin) < 9900*time.Millisecond {
				time.Sleep(100 * time.Millisecond)
				if _, err := c.Version(t.Context()); err == nil {
					break
				}
			}
			time.Sleep(startEvery - time.Since(p.begin))
			wantVersion(t, c)
			p.wantStarts(t, 0, startEvery)
		},
		"a start that fails is retried later": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			own := faultf(ErrNoServer, "cannot bind: try later")
			p.boot = func(context.Context) error { return own }
			for range 3 {
				if _, err := c.Version(t.Context()); !errors.Is(err, own) {
					t.Errorf("error %v", err)
				}
			}
			p.wantStarts(t, 0)
			time.Sleep(time.Minute)
			p.boot = func(context.Context) error { p.set(true); return nil }
			wantVersion(t, c)
			p.wantStarts(t, 0, time.Minute+grace)
		},
		"no retry after a start without effect": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.boot = func(context.Context) error { return nil }
			_, err := c.Version(t.Context())
			checkSentence(t, err, ErrNoServer, "no adb server at")
			if took := time.Since(p.begin); took != 0 {
				t.Errorf("took %v", took)
			}
		},
		"an aborted start does not count": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.boot = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if _, err := c.Version(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error %v", err)
				}
				cancel()
			}
			p.wantStarts(t, 0, time.Second)
		},
		"one start for many calls": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.boot = func(context.Context) error { time.Sleep(2 * time.Second); p.set(true); return nil }
			other := &Client{opt: c.opt, at: c.at, dialTo: c.dialTo, launch: c.launch}
			var wg sync.WaitGroup
			for i := range 64 {
				wg.Go(func() { wantVersion(t, []*Client{c, other}[i%2]) })
			}
			wg.Wait()
			p.wantStarts(t, 0)
			p.set(false)
			time.Sleep(startEvery)
			looked := len(p.dials)
			for i := range 64 {
				wg.Go(func() { wantVersion(t, []*Client{c, other}[i%2]) })
			}
			wg.Wait()
			p.wantStarts(t, 0, 2*time.Second+startEvery+grace)
			if n, most := len(p.dials)-looked, 64+int(grace/pollEvery)+2; n > most {
				t.Errorf("the unused address was dialed %d times, want at most %d: one call polls for all", n, most)
			}
		},
		"no start without permission": func(t *testing.T) {
			p, c := newPlace(t, Options{NoStart: true})
			_, err := c.Version(t.Context())
			checkSentence(t, err, ErrNoServer, "run `adb start-server`")
			if took := time.Since(p.begin); took != 0 {
				t.Errorf("the client waited %v for a server that never ran", took)
			}
			p.set(true)
			wantVersion(t, c)
			p.set(false)
			for range 3 {
				_, err = c.Version(t.Context())
				checkSentence(t, err, ErrNoServer, "run `adb start-server`")
			}
			if took := time.Since(p.begin); took != grace {
				t.Errorf("took %v, want one grace period", took)
			}
			p.wantStarts(t)
		},
		"a waiting call can be canceled": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			p.boot = func(context.Context) error { time.Sleep(20 * time.Second); return nil }
			go func() { _, _ = c.Version(t.Context()) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := c.Version(ctx); !errors.Is(err, context.DeadlineExceeded) ||
				time.Since(p.begin) != time.Second {
				t.Errorf("after %v: %v", time.Since(p.begin), err)
			}
			time.Sleep(time.Minute)
		},
		"no program": func(t *testing.T) {
			p, c := newPlace(t, Options{})
			c.opt.ADBPath = "/no/such/adb"
			_, err := c.Version(t.Context())
			checkSentence(t, err, ErrNoServer, "install Android platform-tools")
			p.set(true)
			wantVersion(t, c)
			p.set(false)
			time.AfterFunc(time.Second, func() { p.set(true) })
			wantVersion(t, c)
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

// TestOtherVersions checks that a server of any version is used unchanged; it
// is neither killed nor replaced, and the adb program is not run.
func TestOtherVersions(t *testing.T) {
	path, started := fakeADB(t, "")
	for _, version := range []int{0x20, 0x29, 0x2a} {
		var bad atomic.Value
		c := scripted(t, func(p *peer) {
			switch r := p.request(); {
			case r == "host:version":
				p.send("OKAY" + lengthened(fmt.Sprintf("%04x", version)))
			case r == "host:devices-l":
				p.send("OKAY" + lengthened("X device transport_id:1\n"))
			case strings.HasSuffix(r, ":features"):
				p.send("OKAY" + lengthened("cmd"))
			case r == "host:transport:X":
				p.send("OKAY")
				service := p.request()
				p.send("OKAY" + good(service, tokenOf(service)))
			default:
				bad.Store(r)
			}
		})
		c.opt.NoStart, c.opt.ADBPath = false, path
		if v, err := c.Version(soon(t)); v != version || err != nil {
			t.Errorf("version %d, %v", v, err)
		}
		d := selected(t, c, "")
		for range 3 {
			if exit, err := d.Shell(soon(t), "cmd", nil, nil); exit != 5 || err != nil {
				t.Errorf("server %#x: exit %d, %v", version, exit, err)
			}
		}
		if r := bad.Load(); r != nil {
			t.Errorf("server %#x received %q", version, r)
		}
	}
	if got := started(); len(got) != 1 || got[0] != "" {
		t.Errorf("adb was started as %q", got)
	}
}

// TestDialDuringExit checks that a dial does not fail because the server exits
// at that moment: the dial either succeeds or finds that nothing listens.
func TestDialDuringExit(t *testing.T) {
	for range 50 {
		l, err := net.Listen("tcp", freeAddr(t))
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewClient(Options{Addr: l.Addr().String(), NoStart: true, Getenv: env()})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				nc, err := c.dialReal(soon(t))
				if err == nil {
					_ = nc.Close()
				} else if !isRefused(err) {
					t.Errorf("got %v, want a refused connection", err)
				}
			})
		}
		runtime.Gosched()
		_ = l.Close()
		wg.Wait()
	}
}

// TestTakeover checks a takeover: another adb program kills the server and
// starts a server of another version. Calls made in the meantime wait and
// continue with the new server; the client does not start a server itself.
func TestTakeover(t *testing.T) {
	path, started := fakeADB(t, "")
	l, err := net.Listen("tcp", freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClient(Options{Addr: l.Addr().String(), ADBPath: path, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	serve := func(l net.Listener, version string) (end func()) {
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				p := &peer{Conn: nc, t: t}
				if p.request() != "" {
					p.send("OKAY" + lengthened(version))
				}
				_ = nc.Close()
			}
		})
		return func() { _ = l.Close(); wg.Wait() }
	}
	end := serve(l, "0029")
	wantVersion(t, c)
	end()
	// An exiting server accepts no more connections, and the kernel resets
	// pending ones.
	if l, err = net.Listen("tcp", c.Addr()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 30 * time.Millisecond)
			if v, err := c.Version(soon(t)); v != 0x2a || err != nil {
				t.Errorf("version %#x, %v", v, err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	_ = l.Close()
	holdGrace(c.Addr())
	time.Sleep(300 * time.Millisecond)
	if l, err = net.Listen("tcp", c.Addr()); err != nil {
		t.Fatal(err)
	}
	end = serve(l, "002a")
	wg.Wait()
	end()
	if got := started(); len(got) != 1 || got[0] != "" {
		t.Errorf("adb was started as %q", got)
	}
}
