package adbd

//unit:listen the server of sockets is what is tested
//unit:sleep polls for what comes at once; its deadline is a hang

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// dial connects to a server and sends requests, each after the OKAY of the
// previous one. If the last request is empty, it is not sent; dial then returns
// when all OKAYs have been read.
func dial(t testing.TB, addr string, requests ...string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	for i, request := range requests {
		if request != "" {
			io.WriteString(conn, withLength(request))
		}
		if i < len(requests)-1 && mustRead(t, conn, 4) != "OKAY" {
			t.Fatalf("%s was refused", request)
		}
	}
	return conn
}

// answer returns everything that the server sends until it closes the
// connection.
func answer(t testing.TB, addr string, requests ...string) string {
	t.Helper()
	got, err := io.ReadAll(dial(t, addr, requests...))
	if err != nil {
		t.Errorf("%q: %v", requests, err)
	}
	return string(got)
}

func mustRead(t testing.TB, r io.Reader, n int) string {
	t.Helper()
	buf := make([]byte, n)
	if _, err := io.ReadFull(r, buf); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	return string(buf)
}

func readList(t testing.TB, r io.Reader) string {
	t.Helper()
	n, err := strconv.ParseUint(mustRead(t, r, 4), 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return mustRead(t, r, int(n))
}

func startServer(t testing.TB, phones ...Phone) *Server {
	t.Helper()
	s, err := Listen(phones...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestServerAnswers(t *testing.T) {
	expectNoGoroutines(t)
	usb, tcp, off, locked := newMemoryPhone("0A1B"), newMemoryPhone("192.168.1.5:5555"),
		newMemoryPhone("emulator-5554"), newMemoryPhone("locked")
	off.become(StateOffline)
	locked.become(StateUnauthorized)
	s := startServer(t, usb, tcp, off, locked)
	okay := func(text string) string { return "OKAY" + withLength(text) }
	fail := func(text string) string { return "FAIL" + withLength(text) }
	features := strings.Join(ModernFeatures(), ",")
	for _, c := range []struct{ request, want string }{
		{"host:version", "OKAY00040029"},
		{
			"host:devices",
			okay("0A1B\tdevice\n192.168.1.5:5555\tdevice\nemulator-5554\toffline\nlocked\tunauthorized\n"),
		},
		{"host:devices-l", okay(
			"0A1B                   device product:sdk_phone model:Pixel_4a__5G_ device:bramble transport_id:1\n" +
				"192.168.1.5:5555       device product:sdk_phone model:Pixel_4a__5G_ device:bramble transport_id:2\n" +
				"emulator-5554          offline product:sdk_phone model:Pixel_4a__5G_ device:bramble transport_id:3\n" +
				"locked                 unauthorized transport_id:4\n")},
		{"host:host-features", okay(features)},
		{"host-serial:0A1B:features", okay(features)},
		{"host-serial:192.168.1.5:5555:get-state", okay("device")},
		{"host-serial:192.168.1.5:5555:get-serialno", okay("192.168.1.5:5555")},
		{"host-serial:0A1B:get-devpath", okay("unknown")},
		{"host-transport-id:2:get-serialno", okay("192.168.1.5:5555")},
		{"host-transport-id:9:get-serialno", fail("no device with transport id '9'")},
		{"host-serial:emulator-5554:get-state", fail("device offline")},
		{"host-serial:locked:get-state", fail(unauthorizedText)},
		{"host-serial:10.0.0.1:5555:get-state", fail("device '10.0.0.1:5555' not found")},
		{"host-serial:[::1]:5555:get-state", fail("device '[::1]:5555' not found")},
		{"host:get-state", fail("more than one device/emulator")},
		{"host-usb:get-state", fail("more than one device")},
		{"host-local:get-state", fail("more than one emulator")},
		{"host:transport:emulator-5554", fail("device offline")},
		{"host:wait-for-any-device", "OKAY" + fail("more than one device/emulator")},
		{"host-serial:0A1B:wait-for-any-device", "OKAYOKAY"},
		{"host-serial:emulator-5554:wait-for-any-any", "OKAYOKAY"},
		{"host-serial:gone:wait-for-any-disconnect", "OKAYOKAY"},
		{"host:forward:tcp:1;tcp:2", fail("unknown host service")},
		{"shell:ls", fail("device offline (no transport)")},
	} {
		if got := answer(t, s.Addr(), c.request); got != c.want {
			t.Errorf("%s = %q, want %q", c.request, got, c.want)
		}
	}
	if got := answer(t, s.Addr(), "host:transport:0A1B", "nonsense:"); got != fail("closed") {
		t.Errorf("response for an unknown service = %q", got)
	}
	conn := dial(t, s.Addr(), "host:tport:serial:192.168.1.5:5555")
	if got := mustRead(t, conn, 12); got != "OKAY"+u64(2) {
		t.Errorf("tport = %q", got)
	}
	tcp.become(StateOffline)
	io.WriteString(conn, withLength("shell:ls"))
	if got, _ := io.ReadAll(conn); string(got) != fail("device offline (transport offline)") {
		t.Errorf("response for a service of an offline phone = %q", got)
	}
}

func TestServerTracks(t *testing.T) {
	expectNoGoroutines(t)
	a, b := newMemoryPhone("a"), newMemoryPhone("b")
	s := startServer(t, a)
	conn := dial(t, s.Addr(), "host:track-devices", "")
	long := dial(t, s.Addr(), "host:track-devices-l", "")
	want := func(list string) {
		t.Helper()
		if got := readList(t, conn); got != list {
			t.Errorf("device list = %q, want %q", got, list)
		}
		if got := readList(t, long); strings.Count(got, "transport_id:") != strings.Count(list, "\n") {
			t.Errorf("long device list = %q, but the short one is %q", got, list)
		}
	}
	want("a\tdevice\n")
	s.Add(b)
	want("a\tdevice\nb\tdevice\n")
	a.become(StateOffline)
	want("a\toffline\nb\tdevice\n")
	s.Remove(a)
	want("b\tdevice\n")
	s.Remove(b)
	want("")
}

func TestServerWaits(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("late")
	phone.become(StateOffline)
	s := startServer(t)
	device := dial(t, s.Addr(), "host-serial:late:wait-for-any-device", "")
	some := dial(t, s.Addr(), "host:wait-for-usb-any", "")
	s.Add(phone)
	if got := mustRead(t, some, 4); got != "OKAY" {
		t.Errorf("wait for any state: got %s", got)
	}
	phone.become("")
	if got := mustRead(t, device, 4); got != "OKAY" {
		t.Errorf("wait for a device: got %s", got)
	}
	gone := dial(t, s.Addr(), "host:wait-for-any-disconnect", "")
	s.Remove(phone)
	if got := mustRead(t, gone, 4); got != "OKAY" {
		t.Errorf("wait for disconnection: got %s", got)
	}
	// When a client disconnects, no goroutine remains; see expectNoGoroutines.
	dial(t, s.Addr(), "host:wait-for-any-device", "").Close()
}

// blockedPhone runs commands that end when their context is canceled.
func blockedPhone(serial string) (*memoryPhone, *sync.WaitGroup) {
	phone, running := newMemoryPhone(serial), new(sync.WaitGroup)
	running.Add(1)
	phone.shell = func(ctx context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
		defer running.Done()
		io.WriteString(stdout, "started")
		<-ctx.Done()
		return 0
	}
	return phone, running
}

func TestServerInterruptsServices(t *testing.T) {
	for name, end := range map[string]func(s *Server, phone Phone, conn net.Conn){
		"remove":  func(s *Server, phone Phone, _ net.Conn) { s.Remove(phone) },
		"replace": func(s *Server, phone Phone, _ net.Conn) { s.Add(newMemoryPhone("x")) },
		"close":   func(s *Server, _ Phone, _ net.Conn) { s.Close() },
		"client":  func(_ *Server, _ Phone, conn net.Conn) { conn.Close() },
		"half":    func(_ *Server, _ Phone, conn net.Conn) { conn.(*net.TCPConn).CloseWrite() },
		"kill":    func(s *Server, _ Phone, _ net.Conn) { io.Copy(io.Discard, dial(t, s.Addr(), "host:kill")) },
	} {
		t.Run(name, func(t *testing.T) {
			expectNoGoroutines(t)
			phone, running := blockedPhone("x")
			s := startServer(t, phone)
			conn := dial(t, s.Addr(), "host:transport:x", "shell,v2,raw:x", "")
			mustRead(t, conn, shellHeader+len("started"))
			end(s, phone, conn)
			running.Wait()
			if name == "client" {
				return
			}
			if rest, _ := io.ReadAll(conn); len(rest) != 0 {
				t.Errorf("received %q after the service ended", rest)
			}
		})
	}
}

// TestServerInterruptsIdle checks that a file session waiting for a request is
// interrupted too.
func TestServerInterruptsIdle(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("x")
	s := startServer(t, phone)
	conn := dial(t, s.Addr(), "host:transport:x", "sync:", "")
	io.WriteString(conn, ask("STAT", "/none"))
	mustRead(t, conn, 16)
	s.Remove(phone)
	if rest, err := io.ReadAll(conn); len(rest) != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("received %q, %v after the device was unplugged", rest, err)
	}
}

func TestServerLifetime(t *testing.T) {
	expectNoGoroutines(t)
	s := NewServer()
	if s.Addr() != "" {
		t.Errorf("Addr before Serve = %q", s.Addr())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- s.Serve(l) }()
	waitFor(t, "the server address", func() bool { return s.Addr() == l.Addr().String() })
	if got := answer(t, s.Addr(), "host:kill"); got != "OKAY" {
		t.Errorf("kill = %q", got)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve returned %v", err)
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("the server is still listening after host:kill")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	again, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(again); err == nil {
		t.Error("Serve succeeded after Close")
	}
}

// TestServerLastBytes checks that an exit status arrives although the client
// has sent input that nobody reads. With such input, a plain close would
// destroy data in flight.
func TestServerLastBytes(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("x")
	text := randomText(300_000)
	phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
		io.WriteString(stdout, text)
		return 5
	}
	s := startServer(t, phone)
	for range 20 {
		conn := dial(t, s.Addr(), "host:transport:x", "shell,v2,raw:x", "")
		io.WriteString(conn, "\x00"+u32(100_000)+randomText(100_000)+"\x04"+u32(0))
		got, err := io.ReadAll(conn)
		if err != nil || !bytes.HasSuffix(got, []byte("\x03"+u32(1)+"\x05")) || unpack(t, string(got)) != text {
			t.Fatalf("received %d bytes, then %v", len(got), err)
		}
		conn.Close()
	}
}

func TestServerWire(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("x")
	phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
		io.WriteString(stdout, "hello")
		return 5
	}
	s := NewServer(phone)
	// This connection has no CloseWrite and converts the data to upper case.
	s.Wire = func(c net.Conn) net.Conn { return shouting{c} }
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	if got := answer(t, l.Addr().String(), "host:transport:x", "exec:x"); got != "OKAYHELLO" {
		t.Errorf("received %q through the wrapped connection, want OKAYHELLO", got)
	}
}

type shouting struct{ net.Conn }

func (c shouting) Write(p []byte) (int, error) { return c.Conn.Write(bytes.ToUpper(p)) }

func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func TestParseHost(t *testing.T) {
	known := func(serial string) bool { return serial == "a:b" || serial == "1.2.3.4:5" }
	for _, c := range []struct {
		request string
		want    target
		service string
		ok      bool
	}{
		{"host:version", target{}, "version", true},
		{"host-usb:get-state", target{kind: transportUSB}, "get-state", true},
		{"host-serial:a:b:get-state", target{serial: "a:b"}, "get-state", true},
		{"host-serial:a:c:get-state", target{serial: "a"}, "c:get-state", true},
		{"host-serial:1.2.3.4:5:x", target{serial: "1.2.3.4:5"}, "x", true},
		{"host-serial:1.2.3.4:55:x", target{serial: "1.2.3.4:55"}, "x", true},
		{"host-serial:[::1]:55:x", target{serial: "[::1]:55"}, "x", true},
		{"host-serial:1.2.3.4:5", target{serial: "1.2.3.4"}, "5", true},
		{"host-serial:", target{}, "", false},
		{"host-transport-id:7:x:y", target{id: 7}, "x:y", true},
		{"host-transport-id:0:x", target{}, "x", false},
		{"host-transport-id:seven:x", target{}, "x", false},
		{"hostile:x", target{}, "", false},
		{"host", target{}, "", false},
	} {
		got, service, ok := parseHost(c.request, known)
		if got != c.want || service != c.service || ok != c.ok {
			t.Errorf("parseHost(%q) = %+v, %q, %v; want %+v, %q, %v", c.request, got, service, ok, c.want, c.service,
				c.ok)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte("000chost:version"))
	f.Add([]byte("000Chost:version"))
	f.Add([]byte("0000"))
	f.Add([]byte("-001x"))
	f.Add([]byte("ffff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		text, err := readRequest(r)
		if err != nil {
			if text != "" {
				t.Errorf("readRequest returned an error and %q", text)
			}
			return
		}
		used := data[:len(data)-r.Len()]
		if want := withLength(text); len(text) == 0 || strings.ToLower(string(used[:4])) != want[:4] ||
			string(used[4:]) != want[4:] {
			t.Errorf("%q was read as %q", used, text)
		}
	})
}

// FuzzServer simulates a hostile client: each response begins with OKAY or
// FAIL, and the connection ends when the client disconnects.
func FuzzServer(f *testing.F) {
	for _, requests := range [][]string{
		{"host:version"}, {"host:devices-l"}, {"host-serial:x:features"}, {"host:transport:x", "shell,v2,raw:x"},
		{"host:tport:any", "sync:"}, {"host:track-devices"}, {"host:wait-for-any-bootloader"},
		{"host:transport-any", "host:transport-id:1", "exec:x"},
	} {
		var b strings.Builder
		for _, request := range requests {
			b.WriteString(withLength(request))
		}
		f.Add([]byte(b.String()))
	}
	phone := newMemoryPhone("x")
	f.Fuzz(func(t *testing.T, data []byte) {
		s := NewServer(phone)
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			defer theirs.Close()
			s.handle(s.end.ctx, theirs)
		}()
		go func() {
			ours.Write(data)
			time.Sleep(time.Millisecond)
			ours.Close()
		}()
		got, _ := io.ReadAll(ours)
		ours.Close()
		<-ended
		s.Close()
		if len(got) >= 4 && !bytes.HasPrefix(got, []byte("OKAY")) && !bytes.HasPrefix(got, []byte("FAIL")) {
			t.Errorf("response to %q = %q", data, got)
		}
	})
}
