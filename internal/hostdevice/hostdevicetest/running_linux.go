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

// Running is a host device that the adb server of the test is connected to.
type Running struct {
	*hostdevice.Device
	// Serial is the device's name at the server, 127.0.0.1:PORT.
	Serial string
	// ADBPort is the server's port on 127.0.0.1; 0 in a nest, whose server listens on
	// a path.
	ADBPort int
	// Server is the real adb server; Daemon is what it is connected to, nil in a nest.
	Server *adbtest.Server
	Daemon *adbd.Daemon
	// Nested is the nest, nil outside of one.
	Nested *hostdevice.Nest
}

// devices counts those of this process, for the names of their apps.
var devices atomic.Int64

// Start builds the program, starts a real adb server and a device, and connects
// them. Cleanups of the test end everything. Without a package in o the app gets
// a name that no other device on this machine has; see Running.Package.
// Options.Program is set here. Without adb the test is skipped, see
// recorded.Missing; a test that starts the app calls RequireJava first.
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

// StartRooted is Start of a rooted phone where root runs the test: shell and app are root's where o
// has no users. As long as the test runs, every user of this machine who finds the port is root.
func StartRooted(t testing.TB, o hostdevice.Options) *Running {
	t.Helper()
	o.Root = rooted(o)
	return Start(t, o)
}

// rooted reports whether a device without users gets those of a rooted phone. Beside a shell of its
// own, the app must not be root: by the socket of run-as every user of this machine reaches it.
func rooted(o hostdevice.Options) bool { return os.Getuid() == 0 && o.ShellUID == 0 }

// StartNested is Start with Android's own adbd and an adb server in a nest: nothing
// listens outside, and the rules of the kernel are those of a phone, where o has the
// users of one. Where the machine has no adbd, or cannot make a nest, the test is
// skipped, see recorded.Missing.
func StartNested(t testing.TB, o hostdevice.Options) *Running {
	t.Helper()
	if err := hostdevice.CheckNest(); err != nil {
		recorded.Missing(t, "a nest is needed: %v", err)
	}
	daemon, adb := adbdOfDebian(t), adbtest.Program(t)
	o.Root = rooted(o) // nobody outside of the nest reaches its shell
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
			t.Logf("the nest says:\n%s", nested.Log())
		}
	})
	return r
}

// nestWithin bounds how long server and adbd may take to be there; the server makes
// a key first.
const nestWithin = 30 * time.Second

// await waits until the server answers and adbd does.
func (r *Running) await(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(nestWithin); ; time.Sleep(10 * time.Millisecond) {
		answer, err := r.Server.Ask("host:connect:" + r.Nested.Target)
		if err == nil && !strings.Contains(answer, "failed") {
			return
		}
		select {
		case <-r.Nested.Ended():
			t.Fatalf("the nest has ended:\n%s", r.Nested.Log())
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nest does not answer: %q, %v\n%s", answer, err, r.Nested.Log())
		}
	}
}

// adbdOfDebian finds what the Makefile has fetched.
func adbdOfDebian(t testing.TB) aosp.Daemon {
	t.Helper()
	dir, err := aosp.Folder()
	if err != nil {
		t.Fatal(err)
	}
	daemon, err := aosp.Have(dir)
	if err != nil {
		recorded.Missing(t, "Android's adbd is needed (make adbd): %v", err)
	}
	return daemon
}

// Environment leads an adb client, or a program that has one, to the server.
func (r *Running) Environment() []string {
	if r.Nested != nil {
		return []string{"ADB_SERVER_SOCKET=" + r.Server.Addr}
	}
	return []string{fmt.Sprintf("ANDROID_ADB_SERVER_PORT=%d", r.ADBPort)}
}

// Cut breaks the connections to the device off in the middle, like a cable that is
// pulled. Outside of a nest the server connects again by itself, in one Plug does it.
func (r *Running) Cut() {
	if r.Daemon != nil {
		r.Daemon.Drop()
		return
	}
	// One that was cut before has nothing more to lose.
	_, _ = r.Server.Ask("host:disconnect:" + r.Serial)
}

// Plug waits until the device is there again.
func (r *Running) Plug(t testing.TB) {
	t.Helper()
	r.Server.Connect(t, r.Serial)
}

// New makes the device alone. As root its shell is one of root, because only the test reaches it;
// that of Start, which every user of this machine reaches while the test runs, is not.
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

// RequireJava ends a test that cannot start the app on this machine.
func RequireJava(t testing.TB) {
	t.Helper()
	if err := hostdevice.CheckJava(); err != nil {
		recorded.Missing(t, "%v", err)
	}
}

// program is built once for all tests of a process and kept in memory: a file
// would have to be removed by the last of them.
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

// Program gives the path of the hostdevice program, which lives as long as the test.
func Program(t testing.TB) string {
	t.Helper()
	binary, err := program()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hostdevice")
	// A child that had inherited the open file would keep it from being started.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// commandWithin bounds one command of ADB.
const commandWithin = time.Minute

// ADB runs the real adb program for this device to its end, for example
// r.ADB(t, "shell", "getprop").
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

// Must is ADB for a command that is expected to succeed; it gives its output.
func (r *Running) Must(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, exit := r.ADB(t, args...)
	if exit != 0 {
		t.Fatalf("adb %q: exit %d\n%s%s", args, exit, out, errs)
	}
	return out
}
