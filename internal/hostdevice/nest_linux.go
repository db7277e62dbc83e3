package hostdevice

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/leakgate/leakgate/internal/hostdevice/aosp"
	"github.com/leakgate/leakgate/internal/hostdevice/nest"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
)

// Nest is a real adb server with a real adbd that serves the device's shell,
// both in separate namespaces.
type Nest struct {
	// Socket is the server's socket. Any root process on this machine that can
	// access the device's directory can connect to it.
	Socket string
	// Target is the address of adbd for `adb connect`.
	Target string

	log   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// adbdPort is the port of adbd in the nest's own network, where no other
// program uses it.
const adbdPort = "5555"

// nestFlags are the clone flags of the namespaces of a nest. There is no pid
// namespace because the app runs outside the nest.
const nestFlags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS

// CheckNest returns an error if this machine cannot run a nest. A nest requires
// root and a kernel that permits namespaces.
func CheckNest() error {
	if os.Getuid() != 0 {
		return errors.New("namespaces and separate UIDs need root")
	}
	path, err := exec.LookPath("true")
	if err != nil {
		return fmt.Errorf("test namespaces: %w", err)
	}
	cmd := &exec.Cmd{Path: path, SysProcAttr: &syscall.SysProcAttr{Cloneflags: nestFlags}}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("test namespaces: %w", err)
	}
	return nil
}

// Nest serves the device's shell with adbd and an adb server until Close is
// called. adb is the path of the adb program. To use the device, connect the
// server to Target. A device has at most one nest; a Daemon of package adbd may
// serve the device at the same time.
func (d *Device) Nest(daemon aosp.Daemon, adb string) (*Nest, error) {
	if !d.enter() {
		return nil, fmt.Errorf("make nest: %w", errClosed)
	}
	defer d.running.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nest != nil {
		return nil, errors.New("make nest: the device already has one")
	}
	n, err := d.startNest(daemon, adb)
	if err != nil {
		return nil, fmt.Errorf("make nest: %w", err)
	}
	d.nest = n
	return n, nil
}

func (d *Device) startNest(daemon aosp.Daemon, adb string) (*Nest, error) {
	plan, err := d.planNest(daemon, adb)
	if err != nil {
		return nil, err
	}
	arg, err := plan.Arg()
	if err != nil {
		return nil, err
	}
	n := &Nest{
		Socket: d.nestSocket(), Target: "127.0.0.1:" + adbdPort,
		log: filepath.Join(d.dir.Nest(), "log.txt"), ended: make(chan struct{}),
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n.cmd = exec.Command(d.program(), "nest", arg)
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = "/", log, log
	n.cmd.Env = []string{state.Variable + "=" + string(d.dir)}
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: nestFlags}
	if err := d.starter.startWith(n.cmd, attr); err != nil {
		return nil, err
	}
	go func() {
		defer close(n.ended)
		n.cmd.Wait()
	}()
	return n, nil
}

// These are the mount points of the phone's tools and of adbd in the nest. On a
// phone, adbd is in the same apex.
const (
	phoneBin  = "/system/bin"
	phoneApex = "/apex/com.android.adbd"
)

func (d *Device) planNest(daemon aosp.Daemon, adb string) (nest.Plan, error) {
	dir := d.dir.Nest()
	root, home := filepath.Join(dir, "root"), filepath.Dir(d.nestSocket())
	if err := os.Mkdir(dir, 0o711); err != nil {
		return nest.Plan{}, err
	}
	data := filepath.Join(dir, "data")
	if err := errors.Join(os.Mkdir(root, 0o755), os.Mkdir(home, 0o700), os.Mkdir(data, 0o771),
		os.Chmod(data, 0o771)); err != nil {
		return nest.Plan{}, err
	}
	binds := []nest.Bind{
		{From: daemon.Root, To: phoneApex}, {From: d.dir.Bin(), To: phoneBin},
		// With this mount, df reports the space of the device's directory for
		// all of /data.
		{From: data, To: "/data"}, {From: d.dir.Shared(), To: state.SharedDir},
	}
	for _, table := range []string{"passwd", "group"} {
		from := filepath.Join(dir, table)
		if err := d.writeUsers(from, table); err != nil {
			return nest.Plan{}, err
		}
		binds = append(binds, nest.Bind{From: from, To: "/etc/" + table})
	}
	env := slices.DeleteFunc(slices.Clone(d.env), func(kv string) bool {
		return strings.HasPrefix(kv, "PATH=") || strings.HasPrefix(kv, "SHELL=") || strings.HasPrefix(kv, "TMPDIR=")
	})
	env = append(env, "PATH="+phoneBin, "SHELL="+phoneBin+"/sh", "TMPDIR="+state.SharedDir, "ADBD_PORT="+adbdPort)
	return nest.Plan{
		Root: root, Binds: binds,
		Server: nest.Command{
			Args: []string{adb, "-L", "localfilesystem:" + d.nestSocket(), "server", "nodaemon"},
			Env: []string{
				"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANDROID_SDK_HOME=" + home, "TMPDIR=" + home,
				state.Variable + "=" + string(d.dir),
				// Without these variables, the server would find adbd a second
				// time, as an emulator.
				"ADB_LOCAL_TRANSPORT_MAX_PORT=5553", "ADB_EMU=0",
			},
		},
		Daemon: nest.Command{
			Args: daemon.Command(phoneApex), Env: env, UID: d.options.ShellUID, Groups: shellGroups(d.options.ShellUID),
		},
	}, nil
}

func (d *Device) nestSocket() string { return filepath.Join(d.dir.Nest(), "adb", "socket") }

// androidGroups lists the groups of the shell that adbd starts
// (adb/daemon/main.cpp, drop_privileges), with their names from
// android_filesystem_config.h.
var androidGroups = []struct {
	id   uint32
	name string
}{
	{1004, "input"}, {1007, "log"}, {1011, "adb"}, {1015, "sdcard_rw"}, {1028, "sdcard_r"}, {1078, "ext_data_rw"},
	{1079, "ext_obb_rw"},
	{3001, "net_bt_admin"}, {3002, "net_bt"}, {3003, "inet"}, {3006, "net_bw_stats"}, {3009, "readproc"},
	{3011, "uhid"}, {3012, "readtracefs"},
}

// shellUID is the uid of a phone's shell if the shell is not root.
const shellUID = 2000

func shellGroups(uid int) []uint32 {
	if uid != shellUID {
		return []uint32{uint32(uid)}
	}
	var ids []uint32
	for _, g := range androidGroups {
		ids = append(ids, g.id)
	}
	return ids
}

// writeUsers writes the phone's users and groups, followed by those of this
// machine.
func (d *Device) writeUsers(to, table string) error {
	own, err := os.ReadFile("/etc/" + table)
	if err != nil {
		return err
	}
	var b strings.Builder
	line := func(id int, name string) {
		if table == "passwd" {
			fmt.Fprintf(&b, "%s:x:%d:%[2]d::/:%s/sh\n", name, id, phoneBin)
			return
		}
		fmt.Fprintf(&b, "%s:x:%d:\n", name, id)
	}
	line(0, "root")
	line(shellUID, "shell")
	if uid := d.options.AppUID; uid >= firstApp {
		line(uid, fmt.Sprintf("u0_a%d", uid-firstApp))
	}
	if table == "group" {
		for _, g := range androidGroups {
			line(int(g.id), g.name)
		}
	}
	b.Write(own)
	return os.WriteFile(to, []byte(b.String()), 0o644)
}

// firstApp is the first uid of an app (android_filesystem_config.h,
// AID_APP_START).
const firstApp = 10000

// Ended returns a channel that is closed when the server or adbd has exited,
// which ends the nest.
func (n *Nest) Ended() <-chan struct{} { return n.ended }

// maxNestLog is the maximum length of the text that Log returns, in bytes.
const maxNestLog = 64 << 10

// Log returns the beginning of the output of the server and adbd.
func (n *Nest) Log() string {
	f, err := os.Open(n.log)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNestLog))
	if err != nil {
		return ""
	}
	return string(text)
}

// close kills the server and adbd; the keeper kills the processes that they
// started.
func (n *Nest) close() {
	syscall.Kill(-n.cmd.Process.Pid, syscall.SIGKILL)
	<-n.ended
}
