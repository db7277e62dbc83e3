//go:build e2e

package hostdevice_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/recorded"
)

// The UIDs on a phone: those of the shell and of one app.
const (
	shellUID = 2000
	appUID   = 10123
)

// asked is a command and the output expected from a phone.
type asked struct {
	command   string
	out, errs string // regular expressions
	exit      int
}

func (a asked) check(t *testing.T, r *hostdevicetest.Running) {
	t.Helper()
	out, errs, exit := r.ADB(t, "shell", a.command)
	if !regexp.MustCompile(a.out).MatchString(out) || !regexp.MustCompile(a.errs).MatchString(errs) || exit != a.exit {
		t.Errorf("%s\nexit %d, out %q, err %q\nwant %d, %s, %s", a.command, exit, out, errs, a.exit, a.out, a.errs)
	}
}

// startMode starts an activity and returns its process.
func startMode(t *testing.T, r *hostdevicetest.Running, class, mode string) (name, pid string) {
	t.Helper()
	r.Must(t, "shell", "am start -n "+r.Package()+"/."+class+" --es mb_per_h 300")
	name = r.Package() + ":" + mode
	return name, strings.TrimSpace(r.Must(t, "shell", "pidof "+name))
}

const denied = `Permission denied`

// TestUserBuild checks which data of a non-debuggable app the shell of a user
// build can read, and which requests the system denies.
func TestUserBuild(t *testing.T) {
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t,
		hostdevice.Options{ShellUID: shellUID, AppUID: appUID, BuildType: "user", Released: true, Scale: 20})
	name, pid := startMode(t, r, "Java", "java")
	for _, a := range []asked{
		{"id", `^uid=2000\(shell\) gid=2000\(shell\) groups=.*3009\(readproc\)`, `^$`, 0},
		{"echo $0 $PATH; pwd; ls -d /system/bin/getprop", `^/bin/sh /system/bin\n/\n/system/bin/getprop\n$`, `^$`, 0},
		{"getprop leakgate.time_scale; getprop ro.build.type; getprop ro.debuggable", `^20\nuser\n0\n$`, `^$`, 0},
		{"cat /proc/" + pid + "/smaps_rollup", `^$`, denied, 1},
		{"cat /proc/" + pid + "/smaps", `^$`, denied, 1},
		{"cat /proc/" + pid + "/maps", `^$`, denied, 1},
		{"ls /proc/" + pid + "/fd", `^$`, denied, 2},
		{"showmap -v " + pid, `^$`, `^Failed to parse file /proc/` + pid + `/smaps\n$`, 1},
		{"kill -10 " + pid, `^$`, `Operation not permitted`, 1},
		{
			"grep -E '^(RssAnon|VmSwap|Threads):' /proc/" + pid + "/status",
			`RssAnon:\s+\d+ kB\n(?s:.*)Threads:\s+\d+\n`, `^$`, 0,
		},
		{
			"cat /proc/" + pid + "/stat /proc/" + pid + "/statm /proc/" + pid + "/oom_score_adj", `^` + pid + ` \(`,
			`^$`, 0,
		},
		{"cat /proc/" + pid + "/task/*/comm", `(?m)^java$`, `^$`, 0},
		{"cat /proc/" + pid + "/limits", `Max open files`, `^$`, 0},
		{
			"run-as " + r.Package() + " cat /proc/" + pid + "/smaps_rollup", `^$`, `^run-as: package not debuggable: ` +
				r.Package(), 1,
		},
		{
			"am dumpheap -g " + name + " /data/local/tmp/x.hprof", `^$`,
			`^Security exception: Process not debuggable: ProcessRecord\{\w+ ` + pid, 255,
		},
		{"ls /data/local/tmp", `^$`, `^$`, 0},
		{
			"df -k /data | tail -n 1; df -k /data/local/tmp | tail -n 1",
			`(?m)^\S+ +\d+ +\d+ +\d{5,} .*\n\S+ +\d+ +\d+ +\d{5,} `, `^$`, 0,
		},
		{"dumpsys meminfo -s " + pid, `(?s)MEMINFO in pid ` + pid + `.*TOTAL PSS:`, `^$`, 0},
		{"echo x >/system/x || echo x >/data/x", `^$`, `(?s)(Read-only|` + denied + `).*(Read-only|` + denied + `)`, 2},
		{"ps -A -o USER,NAME | grep " + name, `^u0_a123 `, `^$`, 0},
	} {
		a.check(t, r)
	}
}

// TestDebuggableApp checks access through run-as and the heap dump of a
// debuggable app.
func TestDebuggableApp(t *testing.T) {
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t, hostdevice.Options{ShellUID: shellUID, AppUID: appUID, BuildType: "user"})
	name, pid := startMode(t, r, "Java", "java")
	as := "run-as " + r.Package() + " "
	for _, a := range []asked{
		{as + "cat /proc/" + pid + "/smaps_rollup", `(?m)^Pss: +\d+ kB$`, `^$`, 0},
		{as + "showmap " + pid, `TOTAL\n$`, `^$`, 0},
		{as + "id -u", `^10123\n$`, `^$`, 0},
		{as + "kill -10 " + pid, `^$`, `^$`, 0},
		{"kill -10 " + pid, `^$`, `Operation not permitted`, 1},
		{
			"am dumpheap -g " + name + " /data/local/tmp/x.hprof",
			`^File: /data/local/tmp/x.hprof\nWaiting for dump to finish...\n$`, `^$`, 0,
		},
		{"ls -l /data/local/tmp/x.hprof", `u0_a123`, `^$`, 0},
	} {
		a.check(t, r)
	}
	local := filepath.Join(t.TempDir(), "x.hprof")
	r.Must(t, "pull", "/data/local/tmp/x.hprof", local)
	r.Must(t, "shell", "rm /data/local/tmp/x.hprof")
	if data, err := os.ReadFile(local); err != nil || !bytes.HasPrefix(data, []byte("JAVA PROFILE 1.0.2\x00")) {
		t.Errorf("the dump is missing: %v", err)
	}
	asked{"ls /data/local/tmp", `^$`, `^$`, 0}.check(t, r)

	_, pid = startMode(t, r, "Mapped", "mapped")
	eventually(t, "the mapped file to become resident", func() bool {
		out, _, _ := r.ADB(t, "shell", as+"showmap "+pid+" | grep leak.bin")
		f := strings.Fields(out)
		return len(f) == 17 && f[2] != "0"
	})
	_, pid = startMode(t, r, "Threads", "thread")
	eventually(t, "the thread names", func() bool {
		return strings.Contains(r.Must(t, "shell", "cat /proc/"+pid+"/task/*/comm"), "pool-3-thread-1\n")
	})
}

// TestRootBuild checks that everything can be read after adb root.
func TestRootBuild(t *testing.T) {
	hostdevicetest.RequireJava(t)
	r := hostdevicetest.StartNested(t, hostdevice.Options{AppUID: appUID})
	name, pid := startMode(t, r, "Control", "control")
	for _, a := range []asked{
		{"id -u", `^0\n$`, `^$`, 0},
		{"cat /proc/" + pid + "/smaps_rollup", `(?m)^Pss: +\d+ kB$`, `^$`, 0},
		{"kill -10 " + pid + " && kill -0 " + pid, `^$`, `^$`, 0},
		{"am dumpheap " + name + " /data/local/tmp/x.hprof && rm /data/local/tmp/x.hprof", `^File`, `^$`, 0},
		{"echo x >/system/x", `^$`, `Read-only`, 2},
	} {
		a.check(t, r)
	}
}

// TestOpenFiles checks that the shell cannot list the descriptors of another
// user's process. Newer kernels report the number of open files as the size of
// the directory (Linux 6.2, fs/proc/fd.c).
func TestOpenFiles(t *testing.T) {
	r := hostdevicetest.StartNested(t, hostdevice.Options{ShellUID: shellUID})
	var files []*os.File
	count := func() int {
		out := r.Must(t, "shell", "stat -c %s /proc/"+strconv.Itoa(os.Getpid())+"/fd")
		n, err := strconv.Atoi(strings.TrimSpace(out))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	if before == 0 {
		recorded.Missing(t, "Linux 6.2 or later is needed: this kernel does not report the number of open files")
	}
	for range 100 {
		f, err := os.Open("/dev/null")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	after := count()
	for _, f := range files {
		f.Close()
	}
	// Meanwhile adb itself opens and closes pipes.
	if grown := after - before; grown < 90 || grown > 110 {
		t.Errorf("%d descriptors, %d after 100 more", before, after)
	}
}

// TestNestIsClosed checks that nothing listens outside the nest, neither on a
// network nor for the hypervisor, that the app's directories do not hide other
// directories, and that nothing is left behind.
func TestNestIsClosed(t *testing.T) {
	r := hostdevicetest.StartNested(t, hostdevice.Options{ShellUID: shellUID})
	dir := r.Dir()
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		outside, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		// 15B3 is port 5555; 0A is the state LISTEN.
		listens := regexp.MustCompile(`:15B3 [0-9A-F]+:0000 0A`)
		if listens.Match(outside) {
			t.Errorf("%s of this machine lists the nest's adbd", table)
		}
		if inside := r.Must(t, "shell", "cat "+table); table == "/proc/net/tcp6" && !listens.MatchString(inside) {
			t.Errorf("%s of the nest does not list adbd: %q", table, inside)
		}
	}
	if links := r.Must(t, "shell", "cat /proc/net/dev"); strings.Count(links, ":") != 1 ||
		!strings.Contains(links, "lo:") {
		t.Errorf("the nest has more than a loopback interface: %s", links)
	}
	if err := bindVsock(5555); errors.Is(err, syscall.EADDRINUSE) {
		t.Error("adbd listens on a hypervisor socket")
	} else if err != nil {
		t.Logf("this machine has no hypervisor sockets: %v", err)
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("a mount of the nest is visible outside: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if pids := left(t, dir); len(pids) > 0 {
		t.Errorf("processes still run: %v", pids)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s was not removed", dir)
	}
}

// bindVsock briefly binds a port that is reachable from the hypervisor
// (vsock(7)).
func bindVsock(port uint32) error {
	const family, anyone = 40, 0xffffffff
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	address := struct {
		family, _ uint16
		port, cid uint32
		_         [4]byte
	}{family: family, port: port, cid: anyone}
	if _, _, errno := syscall.Syscall(syscall.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&address)),
		unsafe.Sizeof(address)); errno != 0 {
		return errno
	}
	return nil
}

// TestNestOfKilledTest checks that a nest ends with its process, however the
// process ends.
func TestNestOfKilledTest(t *testing.T) {
	if os.Getenv(nestVariable) != "" {
		r := hostdevicetest.StartNested(t, hostdevice.Options{ShellUID: shellUID})
		go func() { r.ADB(t, "shell", "sleep 600") }()
		fmt.Fprintln(os.Stdout, "nested in", r.Dir())
		time.Sleep(time.Minute)
		return
	}
	if err := hostdevice.CheckNest(); err != nil {
		recorded.Missing(t, "a nest is needed: %v", err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestNestOfKilledTest$", "-test.v")
	// A killed test does not remove its temporary directories.
	temp, err := os.MkdirTemp("", "nest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	cmd.Env = append(os.Environ(), nestVariable+"=1", "TMPDIR="+temp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	dir, said := "", new(bytes.Buffer)
	for buf := make([]byte, 4096); dir == ""; {
		n, err := out.Read(buf)
		said.Write(buf[:n])
		if m := regexp.MustCompile(`nested in (\S+)\n`).FindStringSubmatch(said.String()); m != nil {
			dir = m[1]
		}
		if err != nil && dir == "" {
			cmd.Wait()
			recorded.Missing(t, "the child did not make a nest: %s", said)
		}
	}
	eventually(t, "the command to start", func() bool { return len(left(t, dir)) >= 4 })
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "the end of all processes", func() bool {
		_, err := os.Stat(dir)
		return len(left(t, dir)) == 0 && err != nil
	})
}

const nestVariable = "LEAKGATE_TEST_NEST"
