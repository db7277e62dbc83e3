//go:build realtime

package adb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
)

// hostPhone presents this machine as a phone whose adbd treats commands like
// AOSP's (adb/daemon/shell_service.cpp): each runs in its own session. When the
// connection ends, SIGHUP is sent only to the shell, or no signal is sent at
// all.
type hostPhone struct {
	id   adbd.Identity
	root string
	// session makes the shell the leader of a session, as adbd does.
	session bool
	// signal is sent to the shell when its connection ends; 0 means no signal.
	signal syscall.Signal
	left   sync.WaitGroup
}

func newHostPhone(t testing.TB, serial string, features ...string) *hostPhone {
	p := &hostPhone{root: t.TempDir(), session: true, signal: syscall.SIGHUP}
	if signal.Ignored(syscall.SIGHUP) { // as under nohup; children inherit this
		p.signal = syscall.SIGTERM
	}
	p.id = adbd.Identity{Serial: serial, Product: "prod", Model: "Host_Phone", Device: "host", Features: features}
	t.Cleanup(p.left.Wait)
	return p
}

func (p *hostPhone) Identity() adbd.Identity { return p.id }

func (p *hostPhone) Shell(ctx context.Context, command string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := exec.Command("/bin/sh", "-c", command)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: p.session}
	var copies sync.WaitGroup
	var pipes []io.Closer
	pipe := func(w io.Writer) *os.File {
		r, f, err := os.Pipe()
		if err != nil {
			return nil
		}
		pipes = append(pipes, r)
		copies.Go(func() { _, _ = io.Copy(w, r) })
		return f
	}
	outs := []*os.File{pipe(stdout)}
	if stdout != stderr {
		outs = append(outs, pipe(stderr))
	}
	cmd.Stdout, cmd.Stderr = outs[0], outs[len(outs)-1]
	in, _ := cmd.StdinPipe()
	err := cmd.Start()
	for _, f := range outs {
		_ = f.Close()
	}
	go func() {
		_, _ = io.Copy(in, stdin)
		_ = in.Close()
	}()
	if err != nil {
		copies.Wait()
		return 126
	}
	ended := make(chan int, 1)
	p.left.Go(func() {
		copies.Wait()
		_ = cmd.Wait()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			ended <- 128 + int(ws.Signal())
			return
		}
		ended <- cmd.ProcessState.ExitCode()
	})
	select {
	case exit := <-ended:
		return exit
	case <-ctx.Done():
	}
	if p.signal != 0 {
		_ = cmd.Process.Signal(p.signal)
	}
	for _, c := range pipes {
		_ = c.Close()
	}
	copies.Wait()
	return 0
}

func (p *hostPhone) path(name string) string { return filepath.Join(p.root, name) }

func (p *hostPhone) Stat(name string) (fs.FileInfo, error)      { return os.Stat(p.path(name)) }
func (p *hostPhone) Open(name string) (io.ReadCloser, error)    { return os.Open(p.path(name)) }
func (p *hostPhone) ReadDir(name string) ([]fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (p *hostPhone) Create(name string, mode fs.FileMode) (io.WriteCloser, error) {
	f, err := os.OpenFile(p.path(name), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	return abortingFile{f}, err
}

// abortingFile deletes a file whose transfer is interrupted, as adbd does.
type abortingFile struct{ *os.File }

func (f abortingFile) Abort() error { return errors.Join(f.Close(), os.Remove(f.Name())) }

// front returns a client and a device for a phone; unplug breaks its
// connections.
type front func(t *testing.T, phone *hostPhone) (c *Client, d *Device, unplug func())

// fronts contains an in-memory server, and the real adb server with a daemon
// behind it.
var fronts = map[string]front{
	"memory": func(t *testing.T, phone *hostPhone) (*Client, *Device, func()) {
		s, err := adbd.Listen(phone)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(); checkLeaks(t) })
		c := testClient(t, Options{Addr: s.Addr()})
		return c, selected(t, c, phone.id.Serial), func() { s.Remove(phone) }
	},
	"real": func(t *testing.T, phone *hostPhone) (*Client, *Device, func()) {
		s := adbtest.StartServer(t)
		d := adbd.NewDaemon(phone)
		if err := d.Listen("127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close(); checkLeaks(t) })
		c := testClient(t, Options{Addr: s.Addr})
		return c, selected(t, c, s.Connect(t, d.Addr())), d.Drop
	},
}

func onFronts(t *testing.T, features []string,
	test func(t *testing.T, p *hostPhone, c *Client, d *Device, unplug func())) {
	for name, front := range fronts {
		t.Run(name, func(t *testing.T) {
			p := newHostPhone(t, "HOST1", features...)
			c, d, unplug := front(t, p)
			test(t, p, c, d, unplug)
		})
	}
}

var modern = adbd.ModernFeatures()

// TestCommands runs commands over every service and compares the results with
// those of /bin/sh.
func TestCommands(t *testing.T) {
	for _, features := range [][]string{modern, nil} {
		onFronts(t, features, func(t *testing.T, p *hostPhone, c *Client, d *Device, _ func()) {
			for _, command := range tricky {
				if strings.Contains(command, "kill -9 $$") || command == "" {
					continue
				}
				out, errOut, exit := runShell(t, "/bin/sh", command)
				var o, e bytes.Buffer
				got, err := d.Shell(soon(t), command, &o, &e)
				if features == nil {
					if err != nil || got != exit || !sameLines(o.String(), out+errOut) || e.Len() > 0 {
						t.Errorf("old shell %q: %q %q %d %v, want %q %q %d", command, o.String(), e.String(), got, err,
							out, errOut, exit)
					}
				} else if err != nil || got != exit || o.String() != out ||
					strings.TrimPrefix(e.String(),
						"sh: ") != strings.TrimPrefix(strings.ReplaceAll(errOut, "/bin/sh: ", "sh: "), "sh: ") &&
						e.String() != errOut {
					t.Errorf("shell %q: %q %q %d %v, want %q %q %d", command, o.String(), e.String(), got, err, out,
						errOut, exit)
				}
			}
		})
	}
}

// sameLines reports whether two outputs, in each of which stdout and stderr
// were mixed, contain the same lines in any order. The comparison allows for
// eval, which changes the beginning of the shell's own messages.
func sameLines(got, want string) bool {
	split := func(s string) []string {
		lines := strings.Split(s, "\n")
		for i, l := range lines {
			if strings.Contains(l, "not found") {
				lines[i] = "not found"
			}
		}
		slices.Sort(lines)
		return lines
	}
	return slices.Equal(split(got), split(want))
}

// TestShellIsRaw sends every byte value through the shell, in a large output.
func TestShellIsRaw(t *testing.T) {
	onFronts(t, modern, func(t *testing.T, p *hostPhone, c *Client, d *Device, _ func()) {
		blob := make([]byte, 3<<20)
		for i := range blob {
			blob[i] = byte(rand.Uint32())
		}
		if err := os.WriteFile(p.path("blob"), blob, 0o600); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if exit, err := d.Shell(soon(t), "cat "+p.path("blob"), &got, nil); exit != 0 || err != nil ||
			!bytes.Equal(got.Bytes(), blob) {
			t.Errorf("shell: %d bytes, exit %d, %v", got.Len(), exit, err)
		}
	})
}

// runningWith returns the processes of this machine whose command line contains
// the word.
func runningWith(word string) []int { return onMachine.with(word) }

// processScanner scans all processes of this machine for all concurrent
// callers. If each test scanned by itself, a machine with few cores would have
// no time left for the work that the tests are waiting for.
type processScanner struct {
	mu sync.Mutex
	// next is the scan that has not yet started.
	next *scan
	// turn is held by the running scan.
	turn sync.Mutex
}

type scan struct {
	once  sync.Once
	lines map[int][]byte
}

var onMachine = &processScanner{next: new(scan)}

// with returns the PIDs of the processes whose command line contains word, from
// a scan that started after the call.
func (c *processScanner) with(word string) []int {
	c.mu.Lock()
	mine := c.next
	c.mu.Unlock()
	mine.once.Do(func() {
		c.turn.Lock()
		defer c.turn.Unlock()
		c.mu.Lock()
		c.next = new(scan)
		c.mu.Unlock()
		mine.lines = commandLines()
		time.Sleep(betweenScans)
	})
	var pids []int
	for pid, line := range mine.lines {
		if bytes.Contains(line, []byte(word)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// betweenScans is a pause that leaves most of one core for other work.
const betweenScans = 20 * time.Millisecond

func commandLines() map[int][]byte {
	lines := map[int][]byte{}
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range dirs {
		line, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		lines[pid] = line
	}
	return lines
}

var lastNap atomic.Int64

// uniqueSleep returns a sleep command that differs from all others.
func uniqueSleep() string {
	return fmt.Sprintf("%d.%d%06d", 300+lastNap.Add(1), 1+rand.IntN(9), os.Getpid()%1_000_000)
}

// TestCancelEndsCommand cancels many forms of commands, on phones that send the
// shell SIGHUP or nothing, and checks that no process remains.
func TestCancelEndsCommand(t *testing.T) {
	type shape struct {
		command string
		alone   bool // works even if the shell does not lead a group
	}
	shapes := map[string]shape{
		"compound":   {"sleep N; echo", true},
		"exec":       {"echo go; exec sleep N", true},
		"background": {"(sleep N; :) & sleep N; echo", false},
		"pipe":       {"sleep N | cat; echo", true},
		"deaf":       {"trap '' HUP TERM INT; sleep N; echo", true},
		"nested":     {"sh -c 'sh -c \"sleep N; :\"; :'; :", false},
		"chatty":     {"while :; do echo N; sleep 0.05; done", false},
	}
	for _, session := range []bool{true, false} {
		for _, signal := range []syscall.Signal{syscall.SIGHUP, 0} {
			t.Run(fmt.Sprintf("session %v, signal %d", session, signal), func(t *testing.T) {
				onFronts(t, modern, func(t *testing.T, p *hostPhone, c *Client, d *Device, _ func()) {
					p.session, p.signal = session, signal
					old := &Device{client: c, info: d.info, known: true}
					services := map[string]func(ctx context.Context, command string) error{
						"v2": func(ctx context.Context, cmd string) error {
							return ignoreValue(d.Shell(ctx, cmd, nil, nil))
						},
						"v1": func(ctx context.Context, cmd string) error {
							return ignoreValue(old.Shell(ctx, cmd, nil, nil))
						},
					}
					var wg sync.WaitGroup
					for service, run := range services {
						for name, s := range shapes {
							// In shell v1, all processes below the subshell are
							// grandchildren of the shell.
							if !session && (!s.alone || service != "v2") {
								continue
							}
							wg.Go(func() { cancelOne(t, service+" "+name, s.command, run) })
						}
					}
					wg.Wait()
				})
			})
		}
	}
}

// cancelOne cancels a command. On a busy machine the kill may be late. The call
// then reports that the command may still be running, and the test proves
// nothing. In that case cancelOne repeats the test with another command.
func cancelOne(t *testing.T, name, command string, run func(context.Context, string) error) {
	for range 10 {
		if cancelOnce(t, name, command, run) {
			return
		}
	}
	t.Errorf("%s: each attempt reported that the command may still be running", name)
}

func cancelOnce(t *testing.T, name, command string, run func(context.Context, string) error) (sure bool) {
	n := uniqueSleep()
	command = strings.ReplaceAll(command, "N", n)
	ctx, cancel := context.WithCancel(soon(t))
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, command) }()
	waitFor(t, name+" runs", func() bool { return len(runningWith(n)) > 0 })
	time.Sleep(30 * time.Millisecond)
	start := time.Now()
	cancel()
	err := <-ended
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%s: %v", name, err)
		return true
	}
	if !strings.Contains(err.Error(), "may still be running") {
		waitFor(t, name+" is gone", func() bool { return len(runningWith(n)) == 0 })
		return true
	}
	if took := time.Since(start); took < killTimeout {
		t.Errorf("%s: after %v: %v", name, took, err)
	}
	for _, pid := range runningWith(n) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return false
}

// TestCapEndsCommand checks, over both servers, that a command that prints
// endlessly is killed on the device at the byte limit.
func TestCapEndsCommand(t *testing.T) {
	onFronts(t, modern, func(t *testing.T, p *hostPhone, c *Client, d *Device, _ func()) {
		p.signal = 0
		c.opt.MaxStream = 1 << 20
		n := uniqueSleep()
		var got counter
		_, err := d.Shell(soon(t),
			"while :; do echo "+
				"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done; sleep "+
				n, &got, nil)
		checkSentence(t, err, ErrTooMuch, "reduce its output")
		if got != 1<<20 {
			t.Errorf("received %d bytes, want %d", got, 1<<20)
		}
		waitFor(t, "the endless command is gone", func() bool { return len(runningWith(n)) == 0 })
	})
}

// TestUnplugged checks calls during which the device disappears: a command and
// a transfer.
func TestUnplugged(t *testing.T) {
	onFronts(t, modern, func(t *testing.T, p *hostPhone, c *Client, d *Device, unplug func()) {
		n := uniqueSleep()
		defer func() {
			for _, pid := range runningWith(n) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}()
		var once sync.Once
		exit, err := d.Shell(soon(t), "echo started; sleep "+n+"; echo", writerFunc(func([]byte) { once.Do(unplug) }),
			nil)
		checkSentence(t, err, ErrDeviceGone, "the device or the adb server disappeared")
		if exit != -1 {
			t.Errorf("exit %d", exit)
		}
	})
	t.Run("transfer", func(t *testing.T) {
		p := newHostPhone(t, "HOST1", modern...)
		_, d, unplug := fronts["memory"](t, p)
		if err := os.WriteFile(p.path("f"), make([]byte, 64<<20), 0o600); err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		_, err := d.Pull(soon(t), "/f", writerFunc(func([]byte) { once.Do(unplug) }))
		if !errors.Is(err, ErrDeviceGone) {
			t.Errorf("pull: %v", err)
		}
		_, err = d.Shell(soon(t), "true", nil, nil)
		checkSentence(t, err, ErrDeviceGone, "no longer connected")
	})
}

// TestServerKilled checks that if the adb server disappears during a command,
// and another one appears at its address shortly afterwards, the next call with
// the same Device succeeds.
func TestServerKilled(t *testing.T) {
	p := newHostPhone(t, "HOST1", modern...)
	l, err := net.Listen("tcp", freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	first := adbd.NewServer(p)
	served := make(chan error, 2)
	go func() { served <- first.Serve(l) }()
	c := testClient(t, Options{Addr: l.Addr().String()})
	d := selected(t, c, "")
	var once sync.Once
	_, err = d.Shell(soon(t), "echo started; exec sleep 30",
		writerFunc(func([]byte) { once.Do(func() { go first.Close() }) }), nil)
	checkSentence(t, err, ErrDeviceGone, "the adb server disappeared")
	first.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := d.Shell(ctx, "true", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait for a server did not end when its context was canceled: %v", err)
	}
	holdGrace(c.Addr())
	second := adbd.NewServer(p)
	time.AfterFunc(200*time.Millisecond, func() {
		l, err := net.Listen("tcp", c.Addr())
		if err != nil {
			served <- err
			return
		}
		served <- second.Serve(l)
	})
	if exit, err := d.Shell(soon(t), "exit 3", nil, nil); exit != 3 || err != nil {
		t.Errorf("after the server came back: got exit code %d, error %v", exit, err)
	}
	second.Close()
	for range 2 {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	checkLeaks(t)
}

// TestParallel runs 64 commands concurrently; each must return its own output.
func TestParallel(t *testing.T) {
	onFronts(t, modern, func(t *testing.T, p *hostPhone, c *Client, d *Device, _ func()) {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				var out strings.Builder
				want := strings.Repeat(fmt.Sprint(i, " "), 500)
				exit, err := d.Shell(soon(t), "printf '"+want+"'; exit "+fmt.Sprint(i), &out, nil)
				if exit != i || err != nil || out.String() != want {
					t.Errorf("%d: exit %d, %v, %d bytes", i, exit, err, out.Len())
				}
			})
		}
		wg.Wait()
	})
}

// TestFiles transfers files through both servers and both versions of stat.
func TestFiles(t *testing.T) {
	for _, features := range [][]string{modern, nil} {
		onFronts(t, features, func(t *testing.T, p *hostPhone, c *Client, d *Device, _ func()) {
			blob := bytes.Repeat([]byte("0123456789abcdef!"), 4<<20/17)
			for _, content := range [][]byte{nil, []byte("x"), blob[:65536], blob[:65537], blob} {
				if err := d.Push(soon(t), bytes.NewReader(content), "/it's a,file", 0o640); err != nil {
					t.Fatal(err)
				}
				var got bytes.Buffer
				n, err := d.Pull(soon(t), "/it's a,file", &got)
				if err != nil || n != int64(len(content)) || !bytes.Equal(got.Bytes(), content) {
					t.Errorf("pushed %d bytes, pulled %d, %v", len(content), n, err)
				}
				info, err := d.Stat(soon(t), "/it's a,file")
				if err != nil || info.Size != int64(len(content)) || info.Mode != 0o640 ||
					info.Wraps != (features == nil) || time.Since(info.ModTime) > time.Hour {
					t.Errorf("stat: %+v, %v", info, err)
				}
			}
			if _, err := d.Pull(soon(t), "/no/such", io.Discard); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("pull a missing file: %v", err)
			}
			if _, err := d.Stat(soon(t), "/no/such"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("stat a missing file: %v", err)
			}
			if err := d.Push(soon(t), strings.NewReader("x"), "/no/such", 0o600); err == nil {
				t.Error("push into a missing directory succeeded")
			}
			ctx, cancel := context.WithCancel(soon(t))
			r := io.MultiReader(bytes.NewReader(blob),
				readerFunc(func([]byte) (int, error) { cancel(); return 0, io.EOF }), zeros{})
			if err := d.Push(ctx, r, "/partial", 0o600); !errors.Is(err, context.Canceled) {
				t.Errorf("canceled push: %v", err)
			}
			waitFor(t, "the incomplete file is gone",
				func() bool { _, err := os.Stat(p.path("partial")); return errors.Is(err, fs.ErrNotExist) })
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestRealStates checks what the real server reports about unusable devices.
func TestRealStates(t *testing.T) {
	s := adbtest.StartServer(t)
	c := testClient(t, Options{Addr: s.Addr})
	_, err := c.Select(soon(t), "")
	checkSentence(t, err, ErrNoDevice, "connect one")
	_, err = (&Device{client: c, info: DeviceInfo{Serial: "ghost"}}).Shell(soon(t), "true", nil, nil)
	checkSentence(t, err, ErrDeviceGone, `device "ghost" is no longer connected`)
	p := newHostPhone(t, "HOST1", modern...)
	p.id.State = "unauthorized"
	daemon := adbd.NewDaemon(p)
	if err := daemon.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Close() })
	wantUnusable(t, c, s.ConnectState(t, daemon.Addr(), "unauthorized"), ErrUnauthorized)
}

// TestOffline uses the in-memory server: the real one takes 10 s to report a
// device as offline.
func TestOffline(t *testing.T) {
	for state, kind := range map[string]error{"unauthorized": ErrUnauthorized, "offline": ErrOffline} {
		p := newHostPhone(t, "HOST1", modern...)
		p.id.State = state
		s, err := adbd.Listen(p)
		if err != nil {
			t.Fatal(err)
		}
		wantUnusable(t, testClient(t, Options{Addr: s.Addr()}), "HOST1", kind)
		s.Close()
	}
}

func wantUnusable(t *testing.T, c *Client, serial string, kind error) {
	t.Helper()
	_, err := c.Select(soon(t), serial)
	checkSentence(t, err, kind, serial)
	_, err = (&Device{client: c, info: DeviceInfo{Serial: serial}}).Shell(soon(t), "true", nil, nil)
	checkSentence(t, err, kind, serial)
}

// TestRealTrack checks that the real server, including a release without the
// long list, reports a device that appears and disappears.
func TestRealTrack(t *testing.T) {
	s := adbtest.StartServer(t)
	c := testClient(t, Options{Addr: s.Addr})
	p := newHostPhone(t, "HOST1", modern...)
	daemon := adbd.NewDaemon(p)
	if err := daemon.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	var asked atomic.Bool
	done := errors.New("all states seen")
	came := false
	err := c.track(soon(t), func(list []DeviceInfo) error {
		if asked.CompareAndSwap(false, true) {
			go s.Ask("host:connect:" + daemon.Addr())
			return nil
		}
		usable := len(list) == 1 && list[0].Serial == daemon.Addr() && list[0].State == StateDevice
		if usable && !came {
			came = true
			go s.Ask("host:disconnect:" + daemon.Addr())
		}
		if came && len(list) == 0 {
			return done
		}
		return nil
	})
	if err != done {
		t.Errorf("track returned %v; the device appeared: %v", err, came)
	}
	if v, err := c.Version(soon(t)); v != 41 || err != nil {
		t.Errorf("version %d, %v", v, err)
	}
	d := selected(t, c, s.Connect(t, daemon.Addr()))
	if info := d.info; info.Product != "prod" || info.Model != "Host_Phone" || info.Device != "host" ||
		info.TransportID == 0 {
		t.Errorf("info %+v", info)
	}
	f, err := d.Features(soon(t))
	slices.Sort(f)
	if want := slices.Sorted(slices.Values(modern)); !slices.Equal(f, want) || err != nil {
		t.Errorf("features %q, %v", f, err)
	}
}

// BenchmarkShell runs one short command that starts no process.
func BenchmarkShell(b *testing.B) {
	s, err := adbd.Listen(&echoPhone{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	c := testClient(b, Options{Addr: s.Addr()})
	d, err := c.Select(soon(b), "")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if exit, err := d.Shell(context.Background(), "cat /proc/uptime", io.Discard, io.Discard); exit != 0 ||
			err != nil {
			b.Fatal(exit, err)
		}
	}
}

// echoPhone responds to every command immediately with the line that the prefix
// prints and a fixed line of output.
type echoPhone struct{ hostPhone }

func (*echoPhone) Identity() adbd.Identity { return adbd.Identity{Serial: "E", Features: modern} }

func (*echoPhone) Shell(_ context.Context, command string, _ io.Reader, stdout, stderr io.Writer) int {
	_, _ = fmt.Fprintf(stderr, "%s 4242\n", tokenOf(command))
	_, _ = io.WriteString(stdout, "12345.67 23456.78\n")
	return 0
}
