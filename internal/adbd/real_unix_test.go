//go:build unix && e2e

package adbd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd/adbtest"
)

// A bench is one phone that the adb program reaches through one of the two
// front ends.
type bench struct {
	phone   *shellPhone
	serial  string
	command func(ctx context.Context, args ...string) *exec.Cmd
	// addr is the address of the adb server.
	addr string
	// unplug interrupts the phone's connections.
	unplug func()
}

// fronts lists both front ends: the real server with a Daemon, and the
// in-memory Server. The real adb program connects to both.
var fronts = map[string]func(t *testing.T, features []string) bench{
	"daemon": func(t *testing.T, features []string) bench {
		server := adbtest.StartServer(t)
		phone := newShellPhone(t, "unused")
		phone.id.Features = features
		d := startDaemon(t, phone)
		serial := server.Connect(t, d.Addr())
		return bench{phone, serial, server.Command, server.Addr, d.Drop}
	},
	"server": func(t *testing.T, features []string) bench {
		program, env := adbtest.Program(t), adbtest.Environment(t)
		phone := newShellPhone(t, "0A1B2C3D")
		phone.id.Features = features
		s := startServer(t, phone)
		return bench{phone, "0A1B2C3D", func(ctx context.Context, args ...string) *exec.Cmd {
			return adbtest.Client(ctx, program, env, s.Addr(), args...)
		}, s.Addr(), func() { s.Remove(phone) }}
	},
}

func startDaemon(t testing.TB, phone Phone) *Daemon {
	t.Helper()
	d := NewDaemon(phone)
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func onBothFronts(t *testing.T, features []string, test func(t *testing.T, b bench)) {
	for name, front := range fronts {
		t.Run(name, func(t *testing.T) {
			expectNoGoroutines(t)
			test(t, front(t, features))
		})
	}
}

// adb runs the real program and waits until it exits.
func (b bench) adb(t testing.TB, stdin string, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := b.command(ctx, append([]string{"-s", b.serial}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var code *exec.ExitError
	if err != nil && !errors.As(err, &code) {
		t.Fatalf("adb %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestRealShell(t *testing.T) {
	onBothFronts(t, ModernFeatures(), func(t *testing.T, b bench) {
		big := strings.Repeat("a line of forty characters, more or less\n", 50_000)
		for _, c := range []struct {
			name, stdin string
			args        []string
			out, errs   string
			exit        int
		}{
			{"exit code", "", []string{"shell", "exit 42"}, "", "", 42},
			{"largest exit code", "", []string{"shell", "exit 255"}, "", "", 255},
			{"both outputs", "", []string{"shell", "echo out; echo err >&2; exit 3"}, "out\n", "err\n", 3},
			{"no carriage return", "", []string{"shell", `printf 'a\nb\r\n'`}, "a\nb\r\n", "", 0},
			{"stdin", "some input\n", []string{"shell", "cat; echo end"}, "some input\nend\n", "", 0},
			{"unread stdin", big, []string{"shell", "echo done"}, "done\n", "", 0},
			{"large stdin", big, []string{"shell", "cat"}, big, "", 0},
			{"no stdin", "", []string{"shell", "-n", "echo hi"}, "hi\n", "", 0},
			{"interactive", "echo one\necho two >&2\nexit 5\n", []string{"shell", "-T"}, "one\n", "two\n", 5},
			{"terminal", "", []string{"shell", "-tt", "echo a; echo b >&2; exit 7"}, "a\r\nb\r\n", "", 7},
			{"without the protocol", "", []string{"shell", "-x", "echo a; echo b >&2; exit 7"}, "a\nb\n", "", 0},
			{"exec-out", "", []string{"exec-out", `printf 'a\n\000\377'; echo err >&2`}, "a\n\x00\xfferr\n", "", 0},
			{"empty output", "", []string{"exec-out", "true"}, "", "", 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				out, errs, exit := b.adb(t, c.stdin, c.args...)
				if out != c.out || errs != c.errs || exit != c.exit {
					t.Errorf("adb %q = %d, %.200q, stderr %.200q; want %d, %.200q, %.200q", c.args, exit, out, errs,
						c.exit, c.out, c.errs)
				}
			})
		}
	})
}

func TestRealOldPhone(t *testing.T) {
	onBothFronts(t, nil, func(t *testing.T, b bench) {
		// Without the shell protocol, the terminal merges stdout and stderr,
		// and the exit code is lost.
		out, errs, exit := b.adb(t, "", "shell", "echo out; echo err >&2; exit 3")
		if out != "out\r\nerr\r\n" || errs != "" || exit != 0 {
			t.Errorf("shell = %d, %q, stderr %q", exit, out, errs)
		}
		data := randomBytes(300_000)
		roundTrip(t, b, "old phone", data)
		if out, _, _ := b.adb(t, "", "exec-out", "printf 'a\\nb'"); out != "a\nb" {
			t.Errorf("exec-out = %q", out)
		}
	})
}

func TestRealFiles(t *testing.T) {
	onBothFronts(t, ModernFeatures(), func(t *testing.T, b bench) {
		for _, size := range []int{0, 1, maxSyncData - 1, maxSyncData, maxSyncData + 1, 5_000_000} {
			roundTrip(t, b, fmt.Sprintf("%d bytes", size), randomBytes(size))
		}
		t.Run("directory", func(t *testing.T) { pullTree(t, b) })
		t.Run("list", func(t *testing.T) {
			os.MkdirAll(filepath.Join(b.phone.root, "listed/sub"), 0o755)
			os.WriteFile(filepath.Join(b.phone.root, "listed/a file"), []byte("12345"), 0o640)
			out, _, exit := b.adb(t, "", "ls", "/listed")
			if exit != 0 || !strings.Contains(out, "000081a0 00000005") || !strings.Contains(out, " a file\n") ||
				!strings.Contains(out, " sub\n") {
				t.Errorf("adb ls = %d, %q", exit, out)
			}
		})
		t.Run("missing", func(t *testing.T) {
			// The program prints this to stdout when stdout is not a terminal.
			errs, _, exit := b.adb(t, "", "pull", "/no/such", t.TempDir())
			if want := "adb: error: failed to stat remote object '/no/such': No such file or directory"; exit != 1 ||
				strings.TrimSpace(errs) != want {
				t.Errorf("pull = %d, %q; want %q", exit, errs, want)
			}
		})
		t.Run("refused", func(t *testing.T) {
			local := filepath.Join(t.TempDir(), "x")
			os.WriteFile(local, randomBytes(3_000_000), 0o600)
			errs, _, exit := b.adb(t, "", "push", local, "/system/below")
			if exit != 1 || !strings.Contains(errs, "remote couldn't create file: Read-only file system") {
				t.Errorf("push = %d, %q", exit, errs)
			}
		})
	})
}

func roundTrip(t *testing.T, b bench, name string, data []byte) {
	t.Run(name, func(t *testing.T) {
		dir := t.TempDir()
		local, back := filepath.Join(dir, "local"), filepath.Join(dir, "back")
		if err := os.WriteFile(local, data, 0o640); err != nil {
			t.Fatal(err)
		}
		const remote = "/data/local/tmp/a file, with a comma"
		if out, errs, exit := b.adb(t, "", "push", local, remote); exit != 0 {
			t.Fatalf("push = %d, %q, %q", exit, out, errs)
		}
		if got, err := os.ReadFile(b.phone.path(remote)); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("the phone has %d bytes, %v; want %d", len(got), err, len(data))
		}
		if out, errs, exit := b.adb(t, "", "pull", remote, back); exit != 0 {
			t.Fatalf("pull = %d, %q, %q", exit, out, errs)
		}
		if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("pulled %d bytes, %v; want %d", len(got), err, len(data))
		}
	})
}

func pullTree(t *testing.T, b bench) {
	want := map[string][]byte{"a": randomBytes(10), "sub/b": randomBytes(100_000), "sub/deep/c": nil}
	for name, data := range want {
		p := filepath.Join(b.phone.root, "tree", name)
		os.MkdirAll(filepath.Dir(p), 0o755)
		os.WriteFile(p, data, 0o644)
	}
	dir := t.TempDir()
	if out, errs, exit := b.adb(t, "", "pull", "/tree", dir); exit != 0 {
		t.Fatalf("pull = %d, %q, %q", exit, out, errs)
	}
	for name, data := range want {
		if got, err := os.ReadFile(filepath.Join(dir, "tree", name)); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(data))
		}
	}
}

func randomBytes(n int) []byte {
	var seed [32]byte
	seed[0] = byte(n)
	data := make([]byte, n)
	rand.NewChaCha8(seed).Read(data)
	return data
}

func TestRealParallelShells(t *testing.T) {
	onBothFronts(t, ModernFeatures(), func(t *testing.T, b bench) {
		const shells = 40
		var wg sync.WaitGroup
		for i := range shells {
			wg.Go(func() {
				text := strings.Repeat(fmt.Sprintf("shell %d\n", i), 3000)
				out, errs, exit := b.adb(t, text, "shell", fmt.Sprintf("cat; exit %d", i))
				if out != text || errs != "" || exit != i {
					t.Errorf("shell %d = %d with %d bytes of %d, stderr %q", i, exit, len(out), len(text), errs)
				}
			})
		}
		wg.Wait()
	})
}

// openShell opens a service on the adb server at addr as a raw client.
func openShell(t testing.TB, b bench, service string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	for _, request := range []string{"host:transport:" + b.serial, service} {
		io.WriteString(conn, withLength(request))
		if got := mustRead(t, conn, 4); got != "OKAY" {
			t.Fatalf("%s: %s", request, got)
		}
	}
	return conn
}

func TestRealSlowConsumer(t *testing.T) {
	onBothFronts(t, ModernFeatures(), func(t *testing.T, b bench) {
		// One stream is never read, and another never reads its input: both
		// stall, but the phone stays usable.
		endless := openShell(t, b, "exec:cat /dev/zero")
		mustRead(t, endless, 1)
		deaf := openShell(t, b, "exec:sleep 1000")
		go deaf.Write(make([]byte, 32<<20))
		time.Sleep(200 * time.Millisecond)
		for range 3 {
			if out, _, exit := b.adb(t, "", "shell", "echo alive; exit 9"); out != "alive\n" || exit != 9 {
				t.Fatalf("shell while another is blocked = %d, %q", exit, out)
			}
		}
		roundTrip(t, b, "file", randomBytes(1_000_000))
	})
}

func TestRealCancel(t *testing.T) {
	for name, service := range map[string]string{"v2": "shell,v2,raw:", "v1": "shell:", "exec": "exec:"} {
		t.Run(name, func(t *testing.T) {
			onBothFronts(t, ModernFeatures(), func(t *testing.T, b bench) {
				// The compound command has a child process, which must also
				// end.
				conn := openShell(t, b, service+"echo started; sleep 1000; echo not reached")
				mustRead(t, conn, len("started\n"))
				if n := b.phone.canceled.Load(); n != 0 {
					t.Fatalf("%d commands were canceled too early", n)
				}
				conn.Close()
				waitFor(t, "the command to end",
					func() bool { return b.phone.canceled.Load() == 1 && b.phone.running.Load() == 0 })
			})
		})
	}
}

func TestRealUnplug(t *testing.T) {
	onBothFronts(t, ModernFeatures(), func(t *testing.T, b bench) {
		conn := openShell(t, b, "shell,v2,raw:echo started; sleep 1000")
		mustRead(t, conn, shellHeader+len("started\n"))
		b.unplug()
		rest, _ := io.ReadAll(conn)
		if len(rest) != 0 {
			t.Errorf("received %q after the device was unplugged", rest)
		}
		waitFor(t, "the command to end",
			func() bool { return b.phone.canceled.Load() == 1 && b.phone.running.Load() == 0 })
	})
}

// TestRealReconnect checks that after a drop the real server reconnects by
// itself, and that two servers can share a phone.
func TestRealReconnect(t *testing.T) {
	expectNoGoroutines(t)
	servers := []*adbtest.Server{adbtest.StartServer(t), adbtest.StartServer(t)}
	d := NewDaemon(newShellPhone(t, "unused"))
	var accepted atomic.Int32
	d.Wire = func(c net.Conn) net.Conn { accepted.Add(1); return c }
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	hello := func() {
		t.Helper()
		for i, server := range servers {
			waitFor(t, "the phone to appear", func() bool { s, _ := server.State(d.Addr()); return s == StateDevice })
			out, err := server.Command(t.Context(), "-s", d.Addr(), "shell", "echo hello").CombinedOutput()
			if string(out) != "hello\n" || err != nil {
				t.Fatalf("server %d: %q, %v", i, out, err)
			}
		}
	}
	for _, server := range servers {
		server.Connect(t, d.Addr())
	}
	hello()
	for range 2 {
		before := accepted.Load()
		d.Drop()
		// After a drop, the server first lists the device of the old connection
		// and then, for a quarter of a second, an offline device, which polling
		// can miss. A new transport id shows that both periods are over.
		waitFor(t, "both servers to reconnect", func() bool { return accepted.Load() >= before+2 })
		hello()
	}
}

// TestRealServerForgets checks that a device that a test has connected is
// removed when the test ends, and is not listed as offline together with the
// device of the next test.
func TestRealServerForgets(t *testing.T) {
	expectNoGoroutines(t)
	server := adbtest.StartServer(t)
	d := startDaemon(t, newShellPhone(t, "unused"))
	for range 40 {
		t.Run("connected", func(t *testing.T) { server.Connect(t, d.Addr()) })
		if list, err := server.Ask("host:devices"); list != "" || err != nil {
			t.Fatalf("listed %q, %v", list, err)
		}
	}
}

// TestRealStates compares the states that the real server reports with those of
// the daemon.
func TestRealStates(t *testing.T) {
	expectNoGoroutines(t)
	server := adbtest.StartServer(t)
	phone := newShellPhone(t, "unused")
	phone.become(StateUnauthorized)
	d := startDaemon(t, phone)
	serial := server.ConnectState(t, d.Addr(), StateUnauthorized)
	out, err := server.Command(t.Context(), "-s", serial, "shell", "echo hello").CombinedOutput()
	if want := "error: " + unauthorizedText + "\n"; err == nil || string(out) != want {
		t.Errorf("shell on an unauthorized phone = %q, %v; want %q", out, err, want)
	}
	phone.become(StateDevice)
	waitFor(t, "the approval of the key", func() bool { s, _ := server.State(serial); return s == StateDevice })
	if out, err := server.Command(t.Context(), "-s", serial, "shell", "echo hello").
		CombinedOutput(); string(out) != "hello\n" || err != nil {
		t.Errorf("shell after approval = %q, %v", out, err)
	}
	phone.become(StateOffline)
	waitFor(t, "the phone to go offline", func() bool { s, _ := server.State(serial); return s == StateOffline })
	phone.become(StateDevice)
	waitFor(t, "the phone to come back", func() bool { s, _ := server.State(serial); return s == StateDevice })
}

// TestRealServerAgrees sends the same requests to the real server and to the
// in-memory one: the responses must be identical, byte for byte.
func TestRealServerAgrees(t *testing.T) {
	expectNoGoroutines(t)
	real := adbtest.StartServer(t)
	memory := startServer(t)
	compare := func(t *testing.T, sequences ...[]string) {
		for _, requests := range sequences {
			want, got := converse(t, real.Addr, requests), converse(t, memory.Addr(), requests)
			if strings.HasSuffix(requests[len(requests)-1], "features") {
				// The features of the real server are in no particular order.
				want, got = sortedList(want), sortedList(got)
			}
			if got != want {
				t.Errorf("%q:\n memory %q\n real   %q", requests, got, want)
			}
		}
	}
	general := [][]string{
		{"host:version"}, {"host:devices"}, {"host:no-such-service"}, {"host:"}, {"host"},
		{"shell:echo no transport"}, {"host:transport:nobody"}, {"host:transport-id:99"}, {"host:transport-usb"},
		{"host:tport:serial:nobody"}, {"host:tport:usb"},
		{"host-serial:nobody:get-state"}, {"host-serial:127.0.0.1:1:features"}, {"host-usb:features"},
		{"host:wait-for-nonsense"}, {"host:wait-for-usb-nonsense"},
	}
	one := [][]string{
		{"host:devices-l"}, {"host:features"}, {"host:get-state"}, {"host:get-serialno"}, {"host-local:get-state"},
		{"host:transport-any", "exec:echo hi"}, {"host:transport-local", "shell,v2,raw:echo hi; exit 3"},
		{"host:transport-id:1", "shell:echo hi"}, {"host:tport:any", "no-such-service:"},
		{"host:transport-any", "no-such-service"}, {"host:wait-for-any-device"}, {"host:wait-for-local-any"},
		{"host:transport-any", "host:get-serialno"},
	}
	t.Run("no phone", func(t *testing.T) {
		compare(t, general...)
		compare(t, []string{"host:transport-any"}, []string{"host:transport-local"}, []string{"host:get-state"},
			[]string{"host:devices-l"})
	})
	join := func(t *testing.T, state string) (*shellPhone, string) {
		phone := newShellPhone(t, "")
		phone.become(state)
		d := startDaemon(t, phone)
		serial := real.ConnectState(t, d.Addr(), state)
		phone.rename(serial)
		memory.Add(phone)
		t.Cleanup(func() { memory.Remove(phone) })
		return phone, serial
	}
	t.Run("one phone", func(t *testing.T) {
		_, serial := join(t, StateDevice)
		compare(t, general...)
		compare(t, one...)
		host := "host-serial:" + serial + ":"
		compare(t, []string{host + "get-state"}, []string{host + "get-serialno"}, []string{host + "features"},
			[]string{host + "wait-for-any-device"}, []string{host + "no-such-service"},
			[]string{"host:transport:" + serial, "exec:printf abc"},
			[]string{"host:tport:serial:" + serial, "exec:printf abc"},
			[]string{"host-transport-id:1:get-state"})
		t.Run("two phones", func(t *testing.T) {
			_, other := join(t, StateDevice)
			compare(t, []string{"host:transport-any"}, []string{"host:transport-local"}, []string{"host:features"},
				[]string{"host:tport:any"},
				[]string{"host:wait-for-any-device"}, []string{host + "get-state"},
				[]string{"host-serial:" + other + ":get-serialno"})
		})
	})
	t.Run("unauthorized", func(t *testing.T) {
		_, serial := join(t, StateUnauthorized)
		compare(t, []string{"host:devices"}, []string{"host:transport-any"}, []string{"host:get-state"},
			[]string{"host:features"},
			[]string{"host:transport:" + serial}, []string{"host-serial:" + serial + ":get-serialno"})
	})
}

// sortedList sorts the features in a response of the form OKAYnnnna,b,c.
func sortedList(answer string) string {
	if !strings.HasPrefix(answer, "OKAY") || len(answer) < 8 {
		return answer
	}
	names := strings.Split(answer[8:], ",")
	slices.Sort(names)
	return answer[:8] + strings.Join(names, ",")
}

// converse sends requests over one connection, each after the OKAY of the
// previous one, and returns everything that arrives until the server closes the
// connection.
func converse(t testing.TB, addr string, requests []string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	var got strings.Builder
	for i, request := range requests {
		io.WriteString(conn, withLength(request))
		if i == len(requests)-1 {
			break
		}
		status := make([]byte, 4)
		if strings.HasPrefix(request, "host:tport:") {
			status = make([]byte, 12)
		}
		n, err := io.ReadFull(conn, status)
		got.Write(status[:n])
		if err != nil || string(status[:4]) != "OKAY" {
			break
		}
	}
	if _, err := io.Copy(&got, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q: the server at %s did not close the connection", requests, addr)
	}
	return got.String()
}
