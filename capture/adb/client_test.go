package adb

//unit:listen addresses and sockets are what is tested

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestVersionAndDevices(t *testing.T) {
	c := scripted(t, func(p *peer) {
		switch p.request() {
		case "host:version":
			p.send("OKAY" + lengthened("0029"))
		case "host:devices-l":
			p.send("OKAY" + lengthened("A device transport_id:1\nB offline transport_id:2\n"))
		}
	})
	if v, err := c.Version(soon(t)); v != 41 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	if list, err := c.Devices(soon(t)); len(list) != 2 || err != nil || list[1].State != "offline" {
		t.Errorf("devices %v, %v", list, err)
	}
	d, err := c.Select(soon(t), "")
	if err != nil || d.Serial() != "A" || d.info.TransportID != 1 {
		t.Errorf("select: %v, %v", d, err)
	}
	c.opt.Getenv = env("ANDROID_SERIAL", "B")
	_, err = c.Select(soon(t), "")
	checkSentence(t, err, ErrOffline, `"B"`)
	c.opt.Getenv = env("ANDROID_SERIAL", "Q")
	_, err = c.Select(soon(t), "")
	checkSentence(t, err, ErrNoDevice, "from ANDROID_SERIAL")
	if d, err = c.Select(soon(t), "A"); err != nil || d.Serial() != "A" {
		t.Errorf("ANDROID_SERIAL takes precedence over a named device: %v, %v", d, err)
	}
}

// TestTruncatedAnswers truncates a valid response at every byte.
func TestTruncatedAnswers(t *testing.T) {
	answer := "OKAY" + lengthened("A device transport_id:1\n")
	var n int
	var sent atomic.Int64
	c := scripted(t, func(p *peer) {
		budget := int(sent.Load())
		p.budget = &budget
		if p.request() != "" {
			p.send(answer)
		}
	})
	for n = range answer {
		sent.Store(int64(n))
		if list, err := c.Devices(soon(t)); err == nil {
			t.Errorf("the first %d of %d bytes were accepted as %v", n, len(answer), list)
		} else {
			checkSentence(t, err, ErrNoServer, "closed the connection without an answer")
		}
		if errors.Is(ignoreValue(c.Version(soon(t))), io.EOF) {
			t.Errorf("the error wraps io.EOF")
		}
	}
	sent.Store(int64(len(answer)))
	if list, err := c.Devices(soon(t)); len(list) != 1 || err != nil {
		t.Errorf("whole response: %v, %v", list, err)
	}
}

func ignoreValue[T any](_ T, err error) error { return err }

func TestNoAdbServer(t *testing.T) {
	for name, answer := range map[string]string{
		"http": "HTTP/1.1 400 Bad Request\r\n\r\n", "binary": "\x00\x00\x00\x00\x00\x00\x00\x00", "length": "OKAYzzzz",
		"version": "OKAY0004wxyz",
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, func(p *peer) { p.request(); p.send(answer) })
			_, err := c.Version(soon(t))
			checkSentence(t, err, ErrProtocol, "adb server")
		})
	}
	t.Run("nobody", func(t *testing.T) {
		// Port 1 is used because a port that was just free may have been taken
		// since.
		_, err := testClient(t, Options{Addr: "127.0.0.1:1"}).Version(soon(t))
		checkSentence(t, err, ErrNoServer, "run `adb start-server`")
	})
	t.Run("socket", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("unix sockets")
		}
		dir, err := os.MkdirTemp("", "adb")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "s")
		c := testClient(t, Options{Getenv: env("ADB_SERVER_SOCKET", "localfilesystem:"+path)})
		_, err = c.Version(soon(t))
		checkSentence(t, err, ErrNoServer, "ADB_SERVER_SOCKET")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			p := &peer{Conn: nc, t: t}
			p.request()
			p.send("OKAY00040029")
			_ = nc.Close()
		}()
		if v, err := c.Version(soon(t)); v != 41 || err != nil {
			t.Errorf("over a unix socket: %d, %v", v, err)
		}
	})
}

// TestPortTaken checks the errors if another program listens on the port. An
// HTTP server waits for the rest of what looks like a request; a listener that
// never accepts sends nothing.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Hour}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, addr := range []string{l.Addr().String(), silent.Addr().String()} {
		c := testClient(t, Options{Addr: addr})
		k, err := c.dial(soon(t), true)
		if err != nil {
			t.Fatal(err)
		}
		if k.wait != serverTimeout {
			t.Errorf("server timeout is %v, want %v", k.wait, serverTimeout)
		}
		k.close()
		c.opt.AnswerTimeout = 100 * time.Millisecond
		for _, err := range []error{
			ignoreValue(c.Select(soon(t), "")), ignoreValue(c.Version(soon(t))),
			ignoreValue(phone(c).Shell(soon(t), "true", nil, nil)),
		} {
			checkSentence(t, err, ErrNoServer, "something at "+addr+
				" accepts connections but did not respond for 100ms: restart the adb server with `adb kill-server`, "+
				"or set ANDROID_ADB_SERVER_PORT")
		}
	}
}

// A call to a silent server ends after AnswerTimeout or serverTimeout,
// whichever is shorter.
func TestWaitForASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for answer, want := range map[time.Duration]time.Duration{
			100 * time.Millisecond: 100 * time.Millisecond, time.Minute: serverTimeout,
		} {
			c := bubbled(t, func(p *peer) { p.drainInput()() })
			c.opt.AnswerTimeout = answer
			for name, call := range map[string]func() error{
				"select":  func() error { return ignoreValue(c.Select(t.Context(), "")) },
				"version": func() error { return ignoreValue(c.Version(t.Context())) },
				"shell":   func() error { return ignoreValue(phone(c).Shell(t.Context(), "true", nil, nil)) },
			} {
				begin := time.Now()
				checkSentence(t, call(), ErrNoServer, fmt.Sprintf("did not respond for %v", want))
				if took := time.Since(begin); took != want {
					t.Errorf("%s: took %v, want %v", name, took, want)
				}
			}
		}
	})
}

// TestUnreachable checks that the error contains the cause and what to do.
func TestUnreachable(t *testing.T) {
	for spec, want := range map[string]string{
		"tcp:no-such-host.invalid:5037": "no adb server at no-such-host.invalid:5037 (lookup no-such-host.invalid",
		"localfilesystem:/no/such/sock": "(connect: no such file or directory): start it there, or correct " +
			"ADB_SERVER_SOCKET",
	} {
		c := testClient(t, Options{Getenv: env("ADB_SERVER_SOCKET", spec)})
		_, err := c.Select(soon(t), "")
		checkSentence(t, err, ErrNoServer, want)
		checkSentence(t, err, ErrNoServer, "or correct ADB_SERVER_SOCKET")
	}
}

func TestSilentServer(t *testing.T) {
	c := scripted(t, func(p *peer) { _, _ = io.Copy(io.Discard, p) })
	c.opt.AnswerTimeout = 30 * time.Millisecond
	_, err := c.Version(soon(t))
	checkSentence(t, err, ErrNoServer, "did not respond for 30ms")
	c.opt.AnswerTimeout = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := c.Version(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	why := errors.New("the run is over")
	ctx, stop := context.WithCancelCause(context.Background())
	stop(why)
	if _, err := c.Version(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("got error %v, want the cause of the cancellation", err)
	}
}

func TestSilentDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := bubbled(t, func(p *peer) {
			p.request()
			p.send("OKAY")
			p.drainInput()()
		})
		c.opt.AnswerTimeout = 30 * time.Millisecond
		for _, call := range []struct {
			run  func() error
			says string
		}{
			{
				func() error { return ignoreValue(phone(c, "shell_v2").Shell(soon(t), "true", nil, nil)) },
				`device "X" did not respond for 30ms`,
			},
			{func() error { return ignoreValue(phone(c).Pull(soon(t), "/x", io.Discard)) }, "reconnect it"},
		} {
			begin := time.Now()
			checkSentence(t, call.run(), ErrOffline, call.says)
			if took := time.Since(begin); took != c.opt.AnswerTimeout {
				t.Errorf("took %v", took)
			}
		}
	})
}

func TestTrack(t *testing.T) {
	tests := map[string]struct {
		long bool
		want []string
	}{"long": {true, []string{"A", "A+B", ""}}, "short": {false, []string{"A", "A+B", ""}}}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, func(p *peer) {
				switch r := p.request(); {
				case r == "host:track-devices-l" && tt.long:
					p.send("OKAY" + lengthened("A device transport_id:1\n") +
						lengthened("A device transport_id:1\nB device transport_id:2\n") + lengthened(""))
				case r == "host:track-devices" && !tt.long:
					p.send("OKAY" + lengthened("A\tdevice\n") + lengthened("A\tdevice\nB\tdevice\n") + lengthened(""))
				default:
					p.send("FAIL" + lengthened("unknown host service"))
				}
			})
			var got []string
			err := c.track(soon(t), func(list []DeviceInfo) error {
				var names []string
				for _, d := range list {
					names = append(names, d.Serial)
				}
				got = append(got, strings.Join(names, "+"))
				return nil
			})
			checkSentence(t, err, ErrNoServer, "closed the connection")
			if strings.Join(got, ",") != strings.Join(tt.want, ",") {
				t.Errorf("saw %q, want %q", got, tt.want)
			}
			own := errors.New("enough")
			if err := c.track(soon(t), func([]DeviceInfo) error { return own }); err != own {
				t.Errorf("the callback's error was returned as %v", err)
			}
		})
	}
	t.Run("cancel", func(t *testing.T) {
		c := scripted(t, func(p *peer) {
			p.request()
			p.send("OKAY" + lengthened(""))
			_, _ = io.Copy(io.Discard, p)
		})
		ctx, cancel := context.WithCancel(context.Background())
		err := c.track(ctx, func([]DeviceInfo) error { cancel(); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("track ended with %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		c := scripted(t, func(p *peer) { p.request(); p.send("FAIL" + lengthened("unknown host service")) })
		if err := c.track(soon(t), nil); err == nil || !strings.Contains(err.Error(), "newer adb server") {
			t.Errorf("track returned %v", err)
		}
	})
}

func TestFeatures(t *testing.T) {
	answers := make(chan string, 3)
	answers <- "FAIL" + lengthened("device offline")
	answers <- "OKAY" + lengthened("shell_v2,cmd,stat_v2")
	answers <- "FAIL" + lengthened("device offline")
	c := scripted(t, func(p *peer) {
		if r := p.request(); r != "host-serial:127.0.0.1:5555:features" {
			t.Errorf("asked %q", r)
		}
		p.send(<-answers)
	})
	d := &Device{client: c, info: DeviceInfo{Serial: "127.0.0.1:5555"}}
	_, err := d.Features(soon(t))
	checkSentence(t, err, ErrOffline, "offline")
	for range 2 {
		if f, err := d.Features(soon(t)); strings.Join(f, " ") != "shell_v2 cmd stat_v2" || err != nil {
			t.Errorf("features %q, %v", f, err)
		}
	}
	if len(answers) != 1 {
		t.Errorf("%d responses left, want 1: a valid response must be cached", len(answers))
	}
	old := scripted(t, func(p *peer) { p.request(); p.send("FAIL" + lengthened("unknown host service")) })
	if f, err := (&Device{client: old}).Features(soon(t)); len(f) != 0 || err != nil {
		t.Errorf("got features %q, %v from an old server, want none", f, err)
	}
}

func TestTooLongRequests(t *testing.T) {
	c := scripted(t, func(p *peer) { p.request(); p.send("OKAY"); p.request() })
	if _, err := phone(c, "shell_v2").Shell(soon(t), strings.Repeat("x", maxRequest), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "move the command into a file") {
		t.Errorf("64 KiB command: %v", err)
	}
	if _, err := phone(c).Shell(soon(t), strings.Repeat("x", maxOldService), nil, nil); err == nil ||
		!strings.Contains(err.Error(), "allows 4095") {
		t.Errorf("4 KiB command on an old device: %v", err)
	}
}
