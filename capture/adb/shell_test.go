package adb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// good returns a complete conversation of each service, as the device sends it.
func good(service string, tr string) string {
	switch {
	case strings.HasPrefix(service, serviceV2):
		return string(packetOf(idStderr, tr+" 4242\n")) + string(packetOf(idStdout, "hello\n")) +
			string(packetOf(idStderr, "oh\n")) + string(packetOf(idStdout, "world\n")) +
			string(packetOf(idExit, "\x05"))
	case strings.HasPrefix(service, serviceV1):
		return tr + " 4242\r\nhello\r\noh\r\nworld\r\n" + tr + ":5\r\n"
	}
	return tr + " 4242\nhello\noh\nworld\n" + tr + ":5\n"
}

func tokenOf(service string) string {
	_, rest, _ := strings.Cut(service, "echo ")
	token, _, _ := strings.Cut(rest, " ")
	return token
}

// TestTruncatedStreams truncates a valid conversation of every service at every
// byte. Each truncation must cause an error, the data before it must be output,
// and the whole conversation must succeed.
func TestTruncatedStreams(t *testing.T) {
	var budget atomic.Int64
	var kills atomic.Int32
	c := scripted(t, func(p *peer) {
		left := int(budget.Load())
		p.budget = &left
		if r := p.request(); r != "host:transport:X" {
			t.Errorf("first request %q", r)
		}
		if !p.send("OKAY") {
			return
		}
		service := p.request()
		if strings.Contains(service, "kill -9") {
			kills.Add(1)
			return
		}
		if p.send("OKAY") {
			p.send(good(service, tokenOf(service)))
		}
	})
	run := map[string]func() (out, errOut string, exit int, err error){
		"v2": func() (string, string, int, error) {
			var o, e strings.Builder
			exit, err := phone(c, "shell_v2").Shell(soon(t), "cmd", &o, &e)
			return o.String(), e.String(), exit, err
		},
		"v1": func() (string, string, int, error) {
			var o strings.Builder
			exit, err := phone(c).Shell(soon(t), "cmd", &o, nil)
			return o.String(), "", exit, err
		},
	}
	for name, call := range run {
		budget.Store(1 << 20)
		out, errOut, exit, err := call()
		want, wantErr := "hello\noh\nworld\n", ""
		if name == "v2" {
			want, wantErr = "hello\nworld\n", "oh\n"
		}
		if err != nil || exit != 5 || out != want || errOut != wantErr {
			t.Fatalf("%s: %q %q %d %v", name, out, errOut, exit, err)
		}
		service := map[string]string{"v2": serviceV2, "v1": serviceV1}[name]
		whole := len("OKAYOKAY") + len(good(service, string(newTrace())))
		for n := range whole {
			budget.Store(int64(n))
			out, _, exit, err := call()
			if err == nil || exit != -1 {
				t.Fatalf("%s: the first %d of %d bytes were accepted: %q, exit %d", name, n, whole, out, exit)
			}
			checkSentence(t, err, truncatedKind(n), "the connection")
			if out = stripPartial(out); !strings.HasPrefix(want, out) {
				t.Errorf("%s: %d of %d bytes yield %q", name, n, whole, out)
			}
		}
	}
	if n := kills.Load(); n != 0 {
		t.Errorf("%d commands were killed after their connection had ended", n)
	}
}

// truncatedKind returns the expected kind of error if the stream ends after n
// bytes: before OKAY, the server is the peer that must respond.
func truncatedKind(n int) error {
	if n < len("OKAY") {
		return ErrNoServer
	}
	return ErrDeviceGone
}

// stripPartial removes a line of the client that is incomplete: if the stream
// is truncated inside such a line, the client cannot distinguish it from
// output.
func stripPartial(out string) string {
	if at := strings.Index(out, "lg"); at >= 0 {
		return out[:at]
	}
	return strings.TrimSuffix(strings.TrimSuffix(out, "l"), "\r")
}

// device2 returns a client of a scripted device for one command: stream writes
// what the device sends, and killed receives the script of the second
// connection.
func device2(t *testing.T, killed chan<- string, stream func(p *peer, token string)) *Client {
	return scripted(t, oneCommand(killed, stream))
}

func oneCommand(killed chan<- string, stream func(p *peer, token string)) func(p *peer) {
	return func(p *peer) {
		p.request()
		p.send("OKAY")
		service := p.request()
		p.send("OKAY")
		if strings.Contains(service, "kill -9") {
			killed <- service
			return
		}
		stream(p, tokenOf(service))
	}
}

// drainInput reads and drops the input; wait waits until the input ends.
func (p *peer) drainInput() (wait func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, p)
	}()
	return func() { <-ended }
}

func TestBadPackets(t *testing.T) {
	for name, bad := range map[string]string{
		"unknown id": string(packetOf(9, "x")), "stdin": string(packetOf(0, "x")),
		"unknown id, empty":   string(packetOf(255, "")),
		"exit without status": string(packetOf(idExit, "")), "long exit": string(packetOf(idExit, "\x00\x00\x00\x00")),
		"exit of 4 GiB": "\x03\xff\xff\xff\xff\x00",
	} {
		t.Run(name, func(t *testing.T) {
			killed := make(chan string, 1)
			c := device2(t, killed, func(p *peer, token string) {
				p.send(string(packetOf(idStderr, token+" 4242\n")) + bad)
				_, _ = io.Copy(io.Discard, p)
			})
			exit, err := phone(c, "shell_v2").Shell(soon(t), "cmd", nil, nil)
			checkSentence(t, err, ErrProtocol, "reconnect")
			if got := <-killed; exit != -1 || !strings.Contains(got, "kill -9 -4242 ") {
				t.Errorf("exit %d, ended with %q", exit, got)
			}
		})
	}
}

// TestEndless uses a device that sends endlessly, in packets that claim 4 GiB
// and in a stream: the limit is exact to the byte, memory does not grow, and
// the command is killed.
func TestEndless(t *testing.T) {
	const most = 1_000_003
	block := strings.Repeat("x", 1<<16)
	for _, service := range []string{"v2", "v1", "stderr"} {
		t.Run(service, func(t *testing.T) {
			killed := make(chan string, 1)
			c := device2(t, killed, func(p *peer, token string) {
				switch service {
				case "v2":
					p.send(string(packetOf(idStderr, token+" 4242\n")) + "\x01\xff\xff\xff\xff")
				case "stderr":
					p.send(string(packetOf(idStderr, token+" 4242\n")) + "\x02\xff\xff\xff\xff")
				default:
					p.send(token + " 4242\n")
				}
				for p.send(block) {
				}
			})
			c.opt.MaxStream = most
			var got counter
			d := phone(c, "shell_v2")
			var err error
			switch service {
			case "v2", "stderr":
				_, err = d.Shell(soon(t), "cmd", &got, &got)
			default:
				_, err = phone(c).Shell(soon(t), "cmd", &got, &got)
			}
			checkSentence(t, err, ErrTooMuch, "printed more than 976.6 kB and was killed")
			if got != most {
				t.Errorf("%d bytes received, want %d", got, most)
			}
			if s := <-killed; !strings.Contains(s, "kill -9 -4242 ") {
				t.Errorf("ended with %q", s)
			}
		})
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// TestLongLine transfers 100 MB without a newline, byte by byte.
func TestLongLine(t *testing.T) {
	const blocks, size = 1600, 1 << 16
	block := strings.Repeat("y", size)
	c := device2(t, nil, func(p *peer, token string) {
		p.send(string(packetOf(idStderr, token+" 4242\n")) + "\x01\x00\x00\x40\x06") // 1600 * 65536 = 0x06400000
		for range blocks {
			p.send(block)
		}
		p.send(string(packetOf(idExit, "\x00")))
	})
	c.opt.MaxStream = blocks * size
	var got counter
	if exit, err := phone(c, "shell_v2").Shell(soon(t), "cmd", &got, nil); exit != 0 || err != nil ||
		got != blocks*size {
		t.Errorf("%d bytes, exit %d, %v", got, exit, err)
	}
}

func TestFailingWriter(t *testing.T) {
	own := errors.New("disk full")
	for _, features := range [][]string{{"shell_v2"}, nil} {
		killed := make(chan string, 1)
		c := device2(t, killed, func(p *peer, token string) {
			p.send(good(map[bool]string{true: serviceV2, false: serviceV1}[features != nil], token)[:55])
			_, _ = io.Copy(io.Discard, p)
		})
		_, err := phone(c, features...).Shell(soon(t), "cmd", failingWriter{own}, nil)
		if !errors.Is(err, own) {
			t.Errorf("%v: %v", features, err)
		}
		if s := <-killed; !strings.Contains(s, "kill -9 -4242 ") {
			t.Errorf("%v: ended with %q", features, s)
		}
	}
}

// TestCancel cancels a command at each stage and checks what the device then
// receives.
func TestCancel(t *testing.T) {
	tests := map[string]struct {
		first string // sent before the cancellation; T is the token
		later string // in flight at the cancellation
		want  string
	}{
		"known": {
			first: string(packetOf(idStderr, "T 4242\n")),
			want:  "kill -9 -4242 2>/dev/null || { pkill -9 -P 4242; kill -9 4242; } 2>/dev/null",
		},
		"in flight":    {first: "\x02", later: string(packetOf(idStderr, "T 4242\n"))[1:], want: "kill -9 -4242 "},
		"unknown":      {want: "for p in $(grep -l -s T["},
		"forged pid 1": {first: string(packetOf(idStderr, "T 1\n")), want: "for p in $(grep -l -s T["},
		"ended": {
			first: "\x02", later: string(packetOf(idStderr, "x\n"))[1:] + string(packetOf(idExit, "\x00")),
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				killed := make(chan string, 1)
				ctx, cancel := context.WithCancel(soon(t))
				var tr trace
				c := bubbled(t, oneCommand(killed, func(p *peer, token string) {
					wait := p.drainInput()
					tr = trace(token)
					if tt.first != "" {
						p.send(retoken(tt.first, token))
					}
					time.Sleep(30 * time.Millisecond)
					cancel()
					time.Sleep(30 * time.Millisecond)
					if tt.later != "" {
						p.send(retoken("\x02"+tt.later, token)[1:])
					}
					wait()
				}))
				_, err := phone(c, "shell_v2").Shell(ctx, "cmd", nil, nil)
				if !errors.Is(err, context.Canceled) {
					t.Errorf("error %v", err)
				}
				if tt.want == "" {
					if len(killed) > 0 {
						t.Errorf("a command that had exited was killed with %q", <-killed)
					}
					return
				}
				got := <-killed
				want := strings.ReplaceAll(tt.want, "T[", string(tr[:len(tr)-1])+"[")
				if !strings.HasPrefix(got, serviceV2+want) {
					t.Errorf("killed with %q, want %q", got, want)
				}
			})
		})
	}
}

// retoken substitutes the token for T in a packet of stderr.
func retoken(packet, token string) string {
	if !strings.Contains(packet, "T ") {
		return packet
	}
	return string(packetOf(packet[0], strings.Replace(packet[packetHead:], "T", token, 1)))
}

// TestCancelUnreachable checks that if the device cannot be reached, the call
// still ends after a known time, and reports that the command may still be
// running.
func TestCancelUnreachable(t *testing.T) {
	for name, tt := range map[string]struct {
		first string // sent before the cancellation; T is the token
		took  time.Duration
	}{
		"known":   {string(packetOf(idStderr, "T 4242\n")), killTimeout},
		"unknown": {string(packetOf(idStdout, "no token of the shell\n")), pidTimeout + killTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				var start time.Time
				ctx, cancel := context.WithCancel(soon(t))
				c := bubbled(t, func(p *peer) {
					if calls.Add(1) > 1 {
						p.drainInput()()
						return
					}
					p.request()
					p.send("OKAY")
					token := tokenOf(p.request())
					p.send("OKAY")
					wait := p.drainInput()
					p.send(retoken(tt.first, token))
					time.Sleep(10 * time.Millisecond)
					start = time.Now()
					cancel()
					wait()
				})
				_, err := phone(c, "shell_v2").Shell(ctx, "cmd", nil, nil)
				if took := time.Since(start); took != tt.took {
					t.Errorf("took %v, want %v", took, tt.took)
				}
				if !errors.Is(err, context.Canceled) ||
					!strings.Contains(fmt.Sprint(err), "may still be running on the device") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// TestCancelledBefore checks that nothing is sent if the context is already
// canceled.
func TestCancelledBefore(t *testing.T) {
	c := scripted(t, func(p *peer) { t.Errorf("the client connected and requested %q", p.request()) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := phone(c, "shell_v2")
	for _, err := range []error{
		ignoreValue(d.Shell(ctx, "x", nil, nil)), ignoreValue(d.Pull(ctx, "/x", io.Discard)),
		d.Push(ctx, bytes.NewReader(nil), "/x", 0o644), ignoreValue(d.Stat(ctx, "/x")), ignoreValue(c.Version(ctx)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
}

// TestCompleteAnswerWins checks that a complete response counts even if the
// context is canceled.
func TestCompleteAnswerWins(t *testing.T) {
	ctx, cancel := context.WithCancel(soon(t))
	// A response that is partly in flight when the context is canceled is
	// dropped, and the command is killed.
	c := device2(t, make(chan string, 1), func(p *peer, token string) { p.send(good(serviceV2, token)) })
	exit, err := phone(c, "shell_v2").Shell(ctx, "cmd", writerFunc(func(p []byte) { cancel() }), nil)
	if err == nil && exit != 5 || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("exit %d, %v", exit, err)
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }
