package hostdevicetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/adbd/adbtest"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/aosp"
	"github.com/leakgate/leakgate/internal/recorded"
)

// Running is a host device that is connected to the adb server of the test.
type Running struct {
	*hostdevice.Device
	// Serial is the serial under which the server lists the device,
	// 127.0.0.1:PORT.
	Serial string
	// ADBPort is the server's port on 127.0.0.1; it is 0 in a nest, whose
	// server listens on a path.
	ADBPort int
	// Server is the real adb server; Daemon connects it to the device and is
	// nil in a nest.
	Server *adbtest.Server
	Daemon *adbd.Daemon
	// Nested is the nest, or nil.
	Nested *hostdevice.Nest
}

// devices counts the devices of this process; each app's name contains the
// number of its device.
var devices atomic.Int64

// Start builds the program, starts a real adb server and a device, and connects
// them. The server and the device end with the test. If o names no package, the
// app gets a name that no other device on this machine uses; see
// Running.Package. Start sets Options.Program. If adb is missing, the test is
// skipped (see recorded.Missing). A test that starts the app must call
// RequireJava first.
func Start(t testing.TB, o hostdevice.Options) *Running {
	t.Helper()
	server := adbtest.StartServer(t)
	device := newDevice(t, o)
	daemon := adbd.NewDaemon(device)
	if err := daemon.Listen("127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { daemon.Close() })
	serial := server.Connect(t, daemon.Addr())
	return &Running{Device: device, Serial: serial, ADBPort: server.Port, Server: server, Daemon: daemon}
}

// StartRooted is like Start but returns a rooted phone if root runs the test:
// shell and app are root unless o specifies UIDs. While the test runs, every
// user of this machine who can connect to the port has root access.
func StartRooted(t testing.TB, o hostdevice.Options) *Running {
	t.Helper()
	o.Root = rooted(o)
	return Start(t, o)
}

// rooted reports whether a device gets the UIDs of a rooted phone if its
// options specify no UIDs. If the shell has its own UID, the app must not be
// root, because every user of this machine can act as the app through the
// run-as socket.
func rooted(o hostdevice.Options) bool { return os.Getuid() == 0 && o.ShellUID == 0 }

// StartNested is like Start, with Android's own adbd and an adb server in a
// nest: nothing listens outside the nest, and if o specifies the UIDs of a
// phone, the kernel applies a phone's rules. If this machine has no adbd or
// cannot create a nest, the test is skipped (see recorded.Missing).
func StartNested(t testing.TB, o hostdevice.Options) *Running {
	t.Helper()
	if err := hostdevice.CheckNest(); err != nil {
		recorded.Missing(t, "a nest is needed: %v", err)
	}
	daemon, adb := adbdOfDebian(t), adbtest.Program(t)
	o.Root = rooted(o) // the shell cannot be reached from outside the nest
	device := newDevice(t, o)
	nested, err := device.Nest(daemon, adb)
	if err != nil {
		t.Fatal(err)
	}
	r := &Running{Device: device, Server: adbtest.At(t, "localfilesystem:"+nested.Socket), Nested: nested}
	r.await(t)
	r.Serial = r.Server.Connect(t, nested.Target)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("output of the nest:\n%s", nested.Log())
		}
	})
	return r
}

// nestWithin is the timeout for starting the server and adbd; the server
// generates a key first.
const nestWithin = 30 * time.Second

// await waits until the server and adbd respond.
func (r *Running) await(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(nestWithin); ; time.Sleep(10 * time.Millisecond) {
		answer, err := r.Server.Ask("host:connect:" + r.Nested.Target)
		if err == nil && !strings.Contains(answer, "failed") {
			return
		}
		select {
		case <-r.Nested.Ended():
			t.Fatalf("the nest ended:\n%s", r.Nested.Log())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nest does not respond: %q, %v\n%s", answer, err, r.Nested.Log())
		}
	}
}

// adbdOfDebian returns the daemon that `make adbd` fetched.
func adbdOfDebian(t testing.TB) aosp.Daemon {
	t.Helper()
	dir, err := aosp.Folder()
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := aosp.Unpacked(dir)
	if err != nil {
		recorded.Missing(t, "Android's adbd is needed (make adbd): %v", err)
	}
	return daemon
}

// Environment returns the variables that make an adb client, or a program that
// runs one, use the server.
func (r *Running) Environment() []string {
	if r.Nested != nil {
		return []string{"ADB_SERVER_SOCKET=" + r.Server.Addr}
	}
	return []string{fmt.Sprintf("ANDROID_ADB_SERVER_PORT=%d", r.ADBPort)}
}

// Disconnect drops the connections to the device, as if the cable were
// unplugged. Outside a nest, the server reconnects automatically; in a nest,
// call Plug to reconnect.
func (r *Running) Disconnect() {
	if r.Daemon != nil {
		r.Daemon.Drop()
		return
	}
	// The request fails if the connection is already closed.
	_, _ = r.Server.Ask("host:disconnect:" + r.Serial)
}

// WaitConnected waits until the device is connected again.
func (r *Running) WaitConnected(t testing.TB) {
	t.Helper()
	r.Server.Connect(t, r.Serial)
}

// New creates a device without an adb server. If root runs the test, the
// device's shell is root, because only the test can use it. The shell of Start
// is not root, because every user of this machine can connect to it while the
// test runs.
func New(t testing.TB, o hostdevice.Options) *hostdevice.Device {
	t.Helper()
	o.Root = rooted(o)
	return newDevice(t, o)
}

func newDevice(t testing.TB, o hostdevice.Options) *hostdevice.Device {
	t.Helper()
	o.Program = Program(t)
	if o.Package == "" {
		o.Package = fmt.Sprintf("com.example.leaky.t%dn%d", os.Getpid(), devices.Add(1))
	}
	device, err := hostdevice.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	})
	return device
}

// RequireJava skips the test if the app cannot run on this machine.
func RequireJava(t testing.TB) {
	t.Helper()
	if err := hostdevice.CheckJava(); err != nil {
		recorded.Missing(t, "%v", err)
	}
}

// program is built once for all tests of a process. It is kept in memory,
// because a file would have to be removed by the last test.
var program = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "hostdevice-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hostdevice")
	cmd := exec.Command("go", "build", "-o", path, "github.com/leakgate/leakgate/internal/hostdevice/cmd/hostdevice")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build hostdevice: %w: %s", err, out)
	}
	return os.ReadFile(path)
})

// Program returns the path of the hostdevice program, which is removed when the
// test ends.
func Program(t testing.TB) string {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hostdevice")
	// Without the lock, a child process could inherit the file while it is open
	// for writing, and the program could not be started.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// commandWithin is the timeout of one adb command.
const commandWithin = time.Minute

// ADB runs the real adb program on this device and returns its result, for
// example r.ADB(t, "shell", "getprop").
func (r *Running) ADB(t testing.TB, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandWithin)
	defer cancel()
	cmd := r.Server.Command(ctx, append([]string{"-s", r.Serial}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatalf("run adb %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Must runs ADB with a command that must succeed, and returns its output.
func (r *Running) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, exit := r.ADB(t, args...)
	if exit != 0 {
		t.Fatalf("adb %q: exit %d\n%s%s", args, exit, out, errs)
	}
	return out
}
