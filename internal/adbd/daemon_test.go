package adbd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// withLink runs test in a bubble with the host's end of a link to phone. The
// link must end with the test.
func withLink(t *testing.T, phone Phone, test func(t *testing.T, h host, conn net.Conn)) {
	t.Helper()
	expectNoGoroutines(t)
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			newLink(t.Context(), phone, theirs).serve()
		}()
		test(t, host{t, ours, skipChecksum}, ours)
		ours.Close()
		<-ended
	})
}

// dropped checks that the device has closed the connection.
func dropped(t testing.TB, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(time.Second))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("read %d bytes, %v; want the end of the connection", n, err)
	}
}

// silent checks that nothing arrives within a minute on the clock of the
// bubble.
func silent(t testing.TB, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(time.Minute))
	defer conn.SetReadDeadline(time.Time{})
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == io.EOF {
		t.Errorf("read %d bytes, %v; want a timeout", n, err)
	}
}

func TestHandshake(t *testing.T) {
	phone := newMemoryPhone("s")
	want := "device::ro.product.name=sdk_phone;ro.product.model=Pixel 4a " +
		"(5G);ro.product.device=bramble;features=shell_v2,stat_v2,ls_v2,fixed_push_mkdir"
	t.Run("new host", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			(host{t, conn, 0}).send(cmdConnect, skipChecksum, maxPayload, "host::")
			p := h.want(cmdConnect, skipChecksum, maxPayload, want)
			if p.checksum != sum(p.payload) {
				t.Errorf("banner has checksum %d, want %d: a host of unknown version checks it", p.checksum,
					sum(p.payload))
			}
			h.send(cmdOpen, 9, 0, "shell:true\x00")
			h.want(cmdOkay, -1, 9, "")
			h.want(cmdClose, -1, 9, "")
		})
	})
	t.Run("old host", func(t *testing.T) {
		phone := newMemoryPhone("s")
		phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, _ io.Writer) int {
			io.WriteString(stdout, "checked")
			return 0
		}
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			h.version = 0x01000000
			h.greet(4096)
			h.send(cmdOpen, 9, 0, "shell:x\x00")
			h.want(cmdOkay, -1, 9, "")
			if p := h.want(cmdWrite, -1, 9, "checked"); p.checksum != sum(p.payload) {
				t.Errorf("output for an old host has checksum %d, want %d", p.checksum, sum(p.payload))
			}
			h.want(cmdClose, -1, 9, "")
			h.version = skipChecksum
			h.send(cmdOpen, 10, 0, "shell:x\x00")
			dropped(t, conn)
		})
	})
	t.Run("tiny payload", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			(host{t, conn, 0}).send(cmdConnect, skipChecksum, minPayload-1, "host::")
			dropped(t, conn)
		})
	})
	t.Run("connected twice", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			h.greet(maxPayload)
			(host{t, conn, 0}).send(cmdConnect, skipChecksum, maxPayload, "host::")
			dropped(t, conn)
		})
	})
	t.Run("OPEN before CNXN", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			(host{t, conn, 0}).send(cmdOpen, 1, 0, "shell:true\x00")
			silent(t, conn)
			h.greet(maxPayload)
		})
	})
	t.Run("garbage", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n......")
			dropped(t, conn)
		})
	})
}

func TestHandshakeStates(t *testing.T) {
	t.Run("unauthorized", func(t *testing.T) {
		phone := newMemoryPhone("s")
		phone.become(StateUnauthorized)
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			(host{t, conn, 0}).send(cmdConnect, skipChecksum, maxPayload, "host::")
			last := ""
			for range 5 {
				p := h.want(cmdAuth, authToken, 0, "")
				if len(p.payload) != authTokenSize || string(p.payload) == last {
					t.Errorf("token %x after %x", p.payload, last)
				}
				last = string(p.payload)
				h.send(cmdAuth, authSignature, 0, strings.Repeat("s", 256))
			}
			h.want(cmdAuth, authToken, 0, "")
			h.send(cmdAuth, 3, 0, "the public key")
			h.send(cmdOpen, 1, 0, "shell:true\x00")
			silent(t, conn)
			phone.become(StateDevice)
			h.want(cmdConnect, skipChecksum, maxPayload, "")
			phone.become(StateUnauthorized)
			dropped(t, conn)
		})
	})
	t.Run("offline", func(t *testing.T) {
		phone := newMemoryPhone("s")
		phone.become(StateOffline)
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			(host{t, conn, 0}).send(cmdConnect, skipChecksum, maxPayload, "host::")
			silent(t, conn)
			phone.become(StateUnauthorized)
			h.want(cmdAuth, authToken, 0, "")
			phone.become("recovery")
			if p := h.want(cmdConnect, skipChecksum, maxPayload, ""); !strings.HasPrefix(string(p.payload),
				"recovery::") {
				t.Errorf("banner = %q", p.payload)
			}
			h.send(cmdOpen, 1, 0, "shell:true\x00")
			h.want(cmdOkay, -1, 1, "")
			h.want(cmdClose, -1, 1, "")
		})
	})
}

func TestOpen(t *testing.T) {
	phone := newMemoryPhone("s")
	phone.shell = func(_ context.Context, command string, _ io.Reader, stdout, _ io.Writer) int {
		fmt.Fprint(stdout, command)
		return 0
	}
	withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
		h.greet(maxPayload)
		for i, c := range []struct{ service, want string }{
			{"shell:ls\x00", "ls"},
			{"shell:no end", "no end"},
			{"shell:ls\x00after the end", "ls"},
			{"exec:a:b,c", "a:b,c"},
			{"shell,raw:a", "a"},
			{"shell,TERM=x,v2,raw:a", "\x01\x01\x00\x00\x00a\x03\x01\x00\x00\x00\x00"},
		} {
			remote := uint32(100 + i)
			h.send(cmdOpen, remote, 0, c.service)
			local := h.want(cmdOkay, -1, int(remote), "").arg0
			var got []byte
			for p := h.read(); p.command == cmdWrite; p = h.read() {
				got = append(got, p.payload...)
				h.send(cmdOkay, remote, local, "")
			}
			if string(got) != c.want {
				t.Errorf("%q returns %q, want %q", c.service, got, c.want)
			}
		}
		for _, service := range []string{"", "shell", "nonsense:", "sync:x", "exec,raw:x", "jdwp:1", "\x00shell:ls"} {
			h.send(cmdOpen, 7, 0, service+"\x00")
			h.want(cmdClose, 0, 7, "")
		}
		// Packets are ignored if their stream does not exist, they lack a
		// remote id, or their command is unknown.
		h.send(cmdOpen, 0, 0, "shell:ls\x00")
		h.send(cmdWrite, 7, 99, "x")
		h.send(cmdOkay, 7, 99, "")
		h.send(cmdClose, 7, 99, "")
		h.send(0x534c5453, skipChecksum, 0, "") // STLS
		silent(t, conn)
	})
}

func TestOldPhoneRefusesTheShellProtocol(t *testing.T) {
	phone := newMemoryPhone("s")
	phone.id.Features = nil
	phone.shell = func(_ context.Context, _ string, _ io.Reader, stdout, stderr io.Writer) int {
		io.WriteString(stdout, "a\r\n")
		io.WriteString(stderr, "b\n")
		return 3
	}
	withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
		h.greet(maxPayload)
		h.send(cmdOpen, 7, 0, "shell,v2,raw:x\x00")
		h.want(cmdClose, 0, 7, "")
		h.send(cmdOpen, 8, 0, "shell:x\x00")
		local := h.want(cmdOkay, -1, 8, "").arg0
		h.want(cmdWrite, int(local), 8, "a\r\r\n")
		h.send(cmdOkay, 8, local, "")
		h.want(cmdWrite, int(local), 8, "b\r\n")
		h.want(cmdClose, int(local), 8, "")
	})
}

// TestFlowControl checks that each direction has at most one WRTE in flight, no
// larger than negotiated, and that OKAY is sent only for what the service has
// read.
func TestFlowControl(t *testing.T) {
	phone := newMemoryPhone("s")
	sent := randomText(3*minPayload + 5)
	var read chan int
	phone.shell = func(ctx context.Context, command string, stdin io.Reader, stdout, _ io.Writer) int {
		if command == "write" {
			io.WriteString(stdout, sent)
			return 0
		}
		for n := range read {
			io.CopyN(io.Discard, stdin, int64(n))
		}
		return 0
	}
	t.Run("device to host", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			h.greet(minPayload)
			h.send(cmdOpen, 7, 0, "exec:write\x00")
			local := h.want(cmdOkay, -1, 7, "").arg0
			var got []byte
			for len(got) < len(sent) {
				p := h.want(cmdWrite, int(local), 7, "")
				if len(p.payload) > minPayload {
					t.Fatalf("payload has %d bytes, but the host accepts %d", len(p.payload), minPayload)
				}
				if got = append(got, p.payload...); len(got) < len(sent) {
					silent(t, conn)
					h.send(cmdOkay, 7, local, "")
				}
			}
			h.want(cmdClose, int(local), 7, "")
			if string(got) != sent {
				t.Errorf("received %d bytes that differ from the %d sent", len(got), len(sent))
			}
		})
	})
	t.Run("host to device", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			read = make(chan int)
			h.greet(maxPayload)
			h.send(cmdOpen, 7, 0, "exec:read\x00")
			local := h.want(cmdOkay, -1, 7, "").arg0
			// The first WRTE fits into the stream's buffer, the second does
			// not.
			h.send(cmdWrite, 7, local, strings.Repeat("x", inletSize))
			h.want(cmdOkay, int(local), 7, "")
			h.send(cmdWrite, 7, local, "y")
			h.want(cmdOkay, int(local), 7, "")
			h.send(cmdWrite, 7, local, "z")
			silent(t, conn)
			// The pending stream does not block others.
			h.send(cmdOpen, 8, 0, "exec:write\x00")
			h.want(cmdOkay, -1, 8, "")
			h.want(cmdWrite, -1, 8, sent)
			h.want(cmdClose, -1, 8, "")
			read <- 2
			h.want(cmdOkay, int(local), 7, "")
			close(read)
			h.want(cmdClose, int(local), 7, "")
		})
	})
	t.Run("too many packets", func(t *testing.T) {
		withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
			read = make(chan int)
			h.greet(maxPayload)
			h.send(cmdOpen, 7, 0, "exec:read\x00")
			local := h.want(cmdOkay, -1, 7, "").arg0
			h.send(cmdWrite, 7, local, strings.Repeat("x", inletSize))
			h.want(cmdOkay, int(local), 7, "")
			h.send(cmdWrite, 7, local, "this waits for the command")
			h.want(cmdOkay, int(local), 7, "")
			h.send(cmdWrite, 7, local, "this waits for the stream")
			silent(t, conn)
			for range maxAhead {
				h.send(cmdWrite, 7, local, "this must not be sent")
			}
			// The pipe has accepted the last packet, but the link may not have
			// counted it yet.
			synctest.Wait()
			close(read)
			dropped(t, conn)
		})
	})
}

func randomText(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + i*i%23)
	}
	return string(b)
}

func TestCloseCancels(t *testing.T) {
	phone := newMemoryPhone("s")
	var ended atomic.Bool
	phone.shell = func(ctx context.Context, _ string, stdin io.Reader, stdout, _ io.Writer) int {
		defer ended.Store(true)
		<-ctx.Done()
		if _, err := stdout.Write(make([]byte, 2*maxPayload)); err == nil {
			t.Error("write succeeded after the end of the command")
		}
		return 0
	}
	for name, hangUp := range map[string]func(h host, conn net.Conn, local uint32){
		"stream":     func(h host, _ net.Conn, local uint32) { h.send(cmdClose, 7, local, "") },
		"connection": func(_ host, conn net.Conn, _ uint32) { conn.Close() },
	} {
		for _, service := range []string{"shell,v2,raw:x\x00", "shell:x\x00", "exec:x\x00"} {
			t.Run(name, func(t *testing.T) {
				ended.Store(false)
				withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
					h.greet(maxPayload)
					h.send(cmdOpen, 7, 0, service)
					local := h.want(cmdOkay, -1, 7, "").arg0
					hangUp(h, conn, local)
					go io.Copy(io.Discard, conn)
					synctest.Wait()
					if !ended.Load() {
						t.Error("the command is still running")
					}
				})
			})
		}
	}
}

// TestCloseCancelsDeafCommand checks that CLSE is detected even if there is
// unread input.
func TestCloseCancelsDeafCommand(t *testing.T) {
	phone := newMemoryPhone("s")
	var ended atomic.Bool
	phone.shell = func(ctx context.Context, _ string, _ io.Reader, _, _ io.Writer) int {
		<-ctx.Done()
		ended.Store(true)
		return 0
	}
	withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
		h.greet(maxPayload)
		h.send(cmdOpen, 7, 0, "exec:x\x00")
		local := h.want(cmdOkay, -1, 7, "").arg0
		h.send(cmdWrite, 7, local, strings.Repeat("x", 2*inletSize))
		silent(t, conn)
		h.send(cmdClose, 7, local, "")
		go io.Copy(io.Discard, conn)
		synctest.Wait()
		if !ended.Load() {
			t.Error("the command is still running")
		}
	})
}

func TestStreamLimit(t *testing.T) {
	phone := newMemoryPhone("s")
	phone.shell = func(ctx context.Context, _ string, _ io.Reader, _, _ io.Writer) int { <-ctx.Done(); return 0 }
	withLink(t, phone, func(t *testing.T, h host, conn net.Conn) {
		h.greet(maxPayload)
		for i := range uint32(maxStreams) {
			h.send(cmdOpen, i+1, 0, "exec:x\x00")
			h.want(cmdOkay, -1, int(i+1), "")
		}
		h.send(cmdOpen, 5000, 0, "exec:x\x00")
		h.want(cmdClose, 0, 5000, "")
	})
}

func TestDaemonLifetime(t *testing.T) {
	expectNoGoroutines(t)
	phone := newMemoryPhone("s")
	var canceled sync.WaitGroup
	phone.shell = func(ctx context.Context, _ string, _ io.Reader, _, _ io.Writer) int {
		defer canceled.Done()
		<-ctx.Done()
		return 0
	}
	var wired int
	d := NewDaemon(phone)
	if d.Addr() != "" {
		t.Errorf("Addr before Listen = %q", d.Addr())
	}
	d.Wire = func(c net.Conn) net.Conn { wired++; return c }
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(){d.Drop, func() { d.Close() }} {
		conn, err := net.Dial("tcp", d.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		h := host{t, conn, skipChecksum}
		h.greet(maxPayload)
		canceled.Add(1)
		h.send(cmdOpen, 7, 0, "shell,v2,raw:x\x00")
		h.want(cmdOkay, -1, 7, "")
		end()
		canceled.Wait()
		if rest, _ := io.ReadAll(conn); len(rest) != 0 {
			t.Errorf("received %q after the connection ended", rest)
		}
	}
	if wired != 2 {
		t.Errorf("Wire was called for %d connections, want 2", wired)
	}
	if err := d.Listen("127.0.0.1:0"); err == nil {
		t.Error("Listen succeeded after Close")
	}
	if err := d.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// FuzzDaemon simulates a hostile host. For any input, the device writes only
// valid packets, which belong to opened streams, and ends the connection when
// the host disconnects.
func FuzzDaemon(f *testing.F) {
	stream := func(packets ...[]byte) []byte { return bytes.Join(packets, nil) }
	open := func(id uint32, service string) []byte { return appendPacket(nil, cmdOpen, id, 0, []byte(service), 0) }
	write := func(id, local uint32, data string) []byte {
		return appendPacket(nil, cmdWrite, id, local, []byte(data), 0)
	}
	f.Add(stream(open(7, "shell,v2:x\x00"), write(7, 1, "\x00\x02\x00\x00\x00hi\x04\x00\x00\x00\x00"),
		appendPacket(nil, cmdOkay, 7, 1, nil, 0)))
	f.Add(stream(open(7, "sync:\x00"), write(7, 1, "STAT\x02\x00\x00\x00/aQUIT\x00\x00\x00\x00"),
		appendPacket(nil, cmdClose, 7, 1, nil, 0)))
	f.Add(stream(open(7, "nonsense"), open(0, ""), open(8, "exec:x"), write(8, 1, "x"), write(8, 1, "x"),
		write(8, 1, "x")))
	f.Add([]byte("garbage that is longer than a header"))
	phone := newMemoryPhone("s")
	phone.shell = func(_ context.Context, _ string, stdin io.Reader, stdout, stderr io.Writer) int {
		io.CopyN(stdout, stdin, 4)
		return 1
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ours, theirs := net.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			newLink(context.Background(), phone, theirs).serve()
		}()
		go func() {
			ours.Write(appendPacket(nil, cmdConnect, skipChecksum, minPayload, nil, 0))
			ours.Write(data)
			time.Sleep(time.Millisecond)
			ours.Close()
		}()
		asked := opened(data)
		for {
			p, err := readPacket(ours)
			if err != nil {
				// The end of the connection may truncate a packet, but every
				// other packet must be valid.
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) &&
					!errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("the device wrote an invalid packet: %v", err)
				}
				break
			}
			if p.command != cmdConnect && !asked[p.arg1] {
				t.Errorf("received a packet for stream %d, which was never opened", p.arg1)
			}
			if len(p.payload) > minPayload {
				t.Errorf("payload has %d bytes, but the host accepts %d", len(p.payload), minPayload)
			}
		}
		ours.Close()
		<-ended
	})
}

// opened returns the ids of the OPENs in data, up to the first broken packet.
func opened(data []byte) map[uint32]bool {
	ids := make(map[uint32]bool)
	for r := bytes.NewReader(data); ; {
		p, err := readPacket(r)
		if err != nil {
			return ids
		}
		if p.command == cmdOpen {
			ids[p.arg0] = true
		}
	}
}
