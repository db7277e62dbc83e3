//go:build e2e

package adb

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/text"
)

// realADB returns the real adb program with its own home directory; it records
// every start.
func realADB(t *testing.T) (path string, started func() []string) {
	t.Helper()
	var sets strings.Builder
	for _, kv := range adbtest.Environment(t) {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME", "ANDROID_SDK_HOME", "TMPDIR", "ADB_LOCAL_TRANSPORT_MAX_PORT", "ADB_EMU":
			fmt.Fprintf(&sets, "export %s=%s\n", name, text.ShellQuote(value))
		}
	}
	return fakeADB(t,
		"unset ADB_SERVER_SOCKET ANDROID_ADB_SERVER_PORT ANDROID_ADB_SERVER_ADDRESS ANDROID_SERIAL ADB_VENDOR_KEYS\n"+
			sets.String()+"exec "+text.ShellQuote(adbtest.Program(t))+` "$@"`)
}

// listening makes a phone available to adb servers.
func listening(t *testing.T, phone adbd.Phone) *adbd.Daemon {
	t.Helper()
	d := adbd.NewDaemon(phone)
	if err := d.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// serverAt runs a real server at an address until stop is called, which sends
// it SIGKILL.
func serverAt(t *testing.T, program, addr string) (stop func()) {
	t.Helper()
	_, port, _ := net.SplitHostPort(addr)
	cmd := exec.Command(program, "-L", "tcp:localhost:"+port, "server", "nodaemon")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel sends the parent-death signal (Pdeathsig) when the thread
		// that started the process ends.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		<-ended
	})
	t.Cleanup(stop)
	return stop
}

// TestServerKilledReal kills a real server with SIGKILL and starts another on
// its port: calls made in between also succeed, and the network device is
// reconnected.
func TestServerKilledReal(t *testing.T) {
	t.Parallel()
	path, started := realADB(t)
	p := newHostPhone(t, "HOST1", modern...)
	if err := os.WriteFile(p.path("f"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	phone := listening(t, p)
	addr := freeAddr(t)
	stop := serverAt(t, path, addr)
	c, err := NewClient(Options{Addr: addr, ADBPath: path, LogDir: t.TempDir(), Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the server answers", func() bool { _, err := adbtest.Ask(addr, "host:version"); return err == nil })
	// The client connects the device because its serial is given.
	d := selected(t, c, phone.Addr())
	cut := make(chan error, 1)
	first := make(chan struct{})
	var once sync.Once
	go func() {
		_, err := d.Shell(soon(t), "echo started; exec sleep 30",
			writerFunc(func([]byte) { once.Do(func() { close(first) }) }), nil)
		cut <- err
	}()
	<-first
	stop()
	checkSentence(t, <-cut, ErrDeviceGone, "the adb server disappeared")
	c.linkTo(d.Serial()).asked = time.Time{}
	holdGrace(addr)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if exit, err := d.Shell(soon(t), fmt.Sprint("exit ", i), nil, nil); exit != i || err != nil {
				t.Errorf("exit %d, %v; want %d", exit, err, i)
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	serverAt(t, path, addr)
	wg.Wait()
	var got bytes.Buffer
	if n, err := d.Pull(soon(t), "/f", &got); n != 7 || got.String() != "content" || err != nil {
		t.Errorf("pull: %d %q %v", n, got.String(), err)
	}
	for _, line := range started() {
		if strings.Contains(line, "start-server") {
			t.Errorf("a server was started: %q", line)
		}
	}
}

// TestKillServer checks that if no other program starts a server after `adb
// kill-server`, the client starts one, once, and continues with the same
// device.
func TestKillServer(t *testing.T) {
	t.Parallel()
	path, started := realADB(t)
	s := adbtest.StartServer(t)
	phone := listening(t, newHostPhone(t, "HOST1", modern...))
	s.Connect(t, phone.Addr())
	logs := t.TempDir()
	c, err := NewClient(Options{Addr: s.Addr, ADBPath: path, LogDir: logs, Getenv: env()})
	if err != nil {
		t.Fatal(err)
	}
	d := selected(t, c, "")
	if out, err := s.Command(soon(t), "kill-server").CombinedOutput(); err != nil {
		t.Fatalf("adb kill-server: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		_, _ = adbtest.Ask(c.Addr(), "host:kill")
		ended(t, c.Addr())
	})
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if exit, err := d.Shell(soon(t), fmt.Sprint("exit ", i), nil, nil); exit != i || err != nil {
				t.Errorf("exit %d, %v; want %d", exit, err, i)
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	t.Logf("all commands succeeded after %v", took)
	if took < grace {
		t.Errorf("a server was started after %v, want at least %v", took, grace)
	}
	if got := started(); len(got) != 1 || !strings.Contains(got[0], "start-server") {
		t.Errorf("adb was run as %q", got)
	}
	if files, _ := filepath.Glob(filepath.Join(logs, "*")); len(files) > 0 {
		t.Errorf("left %q", files)
	}
}
