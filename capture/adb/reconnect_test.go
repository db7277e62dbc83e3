package adb

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestNetworkSerial(t *testing.T) {
	for serial, want := range map[string]bool{
		"192.168.1.5:5555": true, "phone-7.lab.example:40123": true, "localhost:5555": true, "[fe80::1]:5555": true,
		"": false, "R58M123": false, "emulator-5554": false, "adb-8EE2 (2)._adb-tls-connect._tcp": false,
		"adb-8EE2._adb-tls-connect._tcp:5555": false,
		"usb:1-1":                             false, "vsock:3:5555": false, "host:": false, ":5555": false,
		"host:0": false, "host:05555": false, "host:+5": false, "host:65536": false,
		"-oProxy:22": false, "a b:5555": false, "a\nb:5555": false, "h\xff:1": false, strings.Repeat("x", 300) +
			":1": false,
	} {
		if got := networkSerial(serial); got != want {
			t.Errorf("networkSerial(%.40q) = %v", serial, got)
		}
	}
}

// switchboard is a scripted server with one network device.
type switchboard struct {
	mu sync.Mutex
	// line is the device line that the server lists, or "" if it lists nothing;
	// after is the device line after a connect request.
	line, after string
	// answer is the response to a connect request.
	answer string
	// connects lists the connect requests received.
	connects []string
	// If silent is set, the server never responds to a connect request.
	silent bool
}

func (s *switchboard) handle(p *peer) {
	switch r := p.request(); {
	case strings.HasPrefix(r, "host:connect:"):
		s.mu.Lock()
		s.connects = append(s.connects, strings.TrimPrefix(r, "host:connect:"))
		s.line = s.after
		silent, answer := s.silent, s.answer
		s.mu.Unlock()
		if silent {
			_, _ = io.Copy(io.Discard, p)
			return
		}
		p.send("OKAY" + lengthened(answer))
	case r == "host:devices-l":
		p.send("OKAY" + lengthened(s.list()))
	case strings.HasPrefix(r, "host:transport:"), strings.HasPrefix(r, "host-serial:"):
		s.device(p, r)
	}
}

func (s *switchboard) list() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.line
}

func (s *switchboard) device(p *peer, r string) {
	switch _, state, _ := strings.Cut(strings.TrimSpace(s.list()), " "); {
	case state == "":
		p.send("FAIL" + lengthened("device '10.0.0.1:5555' not found"))
	case strings.Contains(state, "offline"):
		p.send("FAIL" + lengthened("device offline"))
	case strings.Contains(state, "unauthorized"):
		p.send("FAIL" + lengthened("device unauthorized."))
	case strings.HasSuffix(r, ":features"):
		p.send("OKAY" + lengthened("cmd"))
	default:
		p.send("OKAY")
		service := p.request()
		p.send("OKAY" + good(service, tokenOf(service)))
	}
}

func (s *switchboard) want(t *testing.T, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.connects) != n || n > 0 && s.connects[n-1] != "10.0.0.1:5555" {
		t.Errorf("the server received connect requests for %q, want %d", s.connects, n)
	}
}

const networked = "10.0.0.1:5555"

func TestReconnect(t *testing.T) {
	const up = networked + " device transport_id:7\n"
	run := func(t *testing.T, s *switchboard, info DeviceInfo) (*Client, *Device) {
		c := scripted(t, s.handle)
		return c, &Device{client: c, info: info}
	}
	info := DeviceInfo{Serial: networked, State: StateDevice}
	t.Run("one request for many calls", func(t *testing.T) {
		s := &switchboard{after: up, answer: "connected to " + networked}
		_, d := run(t, s, info)
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				if exit, err := d.Shell(soon(t), "cmd", nil, nil); exit != 5 || err != nil {
					t.Errorf("exit %d, %v", exit, err)
				}
			})
		}
		wg.Wait()
		s.want(t, 1)
	})
	t.Run("at most one request every five seconds", func(t *testing.T) {
		s := &switchboard{answer: "failed to connect to '10.0.0.1:5555': \x1b[31mNo route to host"}
		c, d := run(t, s, info)
		for range 3 {
			_, err := d.Shell(soon(t), "cmd", nil, nil)
			checkSentence(t, err, ErrDeviceGone,
				`device "10.0.0.1:5555" is not connected, and the adb server could not connect to it ("failed to connect to '10.0.0.1:5555': \x1b[31mNo route to host"): check that it is switched on`)
			s.want(t, 1)
		}
		c.linkTo(networked).asked = time.Now().Add(-reconnectEvery)
		_, _ = d.Pull(soon(t), "/x", io.Discard)
		s.want(t, 2)
		other := DeviceInfo{Serial: "10.0.0.2:5555", State: StateDevice}
		if _, err := (&Device{client: c, info: other}).Shell(soon(t), "cmd", nil, nil); err == nil {
			t.Error("no error")
		}
		if len(s.connects) != 3 || s.connects[2] != other.Serial {
			t.Errorf("a reconnect of one device delayed that of another: %q", s.connects)
		}
	})
	t.Run("not connected", func(t *testing.T) {
		for name, tt := range map[string]struct {
			line string
			info DeviceInfo
			kind error
		}{
			"offline":       {networked + " offline transport_id:7\n", info, ErrOffline},
			"unauthorized":  {networked + " unauthorized transport_id:7\n", info, ErrUnauthorized},
			"no address":    {"", DeviceInfo{Serial: "R58M123"}, ErrDeviceGone},
			"mDNS name":     {"", DeviceInfo{Serial: "adb-8EE2._adb-tls-connect._tcp"}, ErrDeviceGone},
			"on a USB port": {"", DeviceInfo{Serial: networked, USB: "1-1"}, ErrDeviceGone},
		} {
			s := &switchboard{line: tt.line, after: up}
			_, d := run(t, s, tt.info)
			_, err := d.Shell(soon(t), "cmd", nil, nil)
			checkSentence(t, err, tt.kind, ": ")
			if s.want(t, 0); t.Failed() {
				t.Log(name)
			}
		}
	})
	t.Run("connected, but not authorized", func(t *testing.T) {
		s := &switchboard{
			after: networked + " unauthorized transport_id:7\n", answer: "failed to authenticate to " + networked,
		}
		_, d := run(t, s, info)
		_, err := d.Shell(soon(t), "cmd", nil, nil)
		checkSentence(t, err, ErrUnauthorized, "accept the USB debugging dialog")
	})
	t.Run("silent", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &switchboard{silent: true}
			c := bubbled(t, s.handle)
			c.opt.AnswerTimeout = 100 * time.Millisecond
			begin := time.Now()
			_, err := (&Device{client: c, info: info}).Shell(soon(t), "cmd", nil, nil)
			checkSentence(t, err, ErrDeviceGone, "did not respond for 100ms")
			s.want(t, 1)
			if took := time.Since(begin); took != c.opt.AnswerTimeout {
				t.Errorf("took %v", took)
			}
		})
	})
	t.Run("canceled", func(t *testing.T) {
		s := &switchboard{silent: true}
		_, d := run(t, s, info)
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if _, err := d.Shell(ctx, "cmd", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("select", func(t *testing.T) {
		s := &switchboard{after: up, answer: "connected to " + networked}
		c, _ := run(t, s, info)
		if d, err := c.Select(soon(t), networked); err != nil || d.info.TransportID != 7 {
			t.Errorf("select: %v, %v", d, err)
		}
		s.want(t, 1)
		s = &switchboard{answer: "failed to resolve host"}
		c, _ = run(t, s, info)
		c.opt.Getenv = env("ANDROID_SERIAL", networked)
		_, err := c.Select(soon(t), "")
		checkSentence(t, err, ErrNoDevice,
			`device "10.0.0.1:5555" (from ANDROID_SERIAL) is not connected, and the adb server could not connect to it ("failed to resolve host")`)
		s = &switchboard{}
		c, _ = run(t, s, info)
		_, err = c.Select(soon(t), "")
		checkSentence(t, err, ErrNoDevice, "no device is connected")
		s.want(t, 0)
		_, err = c.Select(soon(t), "R58M123")
		checkSentence(t, err, ErrNoDevice, "no other device is")
		s.want(t, 0)
	})
}
