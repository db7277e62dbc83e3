//go:build e2e

package hostdevice_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
	"github.com/leakgate/leakgate/internal/hostdevice"
	"github.com/leakgate/leakgate/internal/hostdevice/hostdevicetest"
	"github.com/leakgate/leakgate/internal/hostdevice/proctable"
	"github.com/leakgate/leakgate/internal/hostdevice/state"
	"github.com/leakgate/leakgate/internal/recorded"
)

// TestShell uses the real adb program and server.
func TestShell(t *testing.T) {
	r := hostdevicetest.Start(t, hostdevice.Options{Scale: 20, Model: "Fast One", API: 33, Release: "13"})
	for _, c := range []struct {
		command   string
		out, errs string // regular expressions
		exit      int
	}{
		{"echo a; echo b >&2; exit 7", `^a\n$`, `^b\n$`, 7},
		{"kill -9 $$", `^$`, `^$`, 137},
		{"nosuchtool", `^$`, `not found`, 127},
		{"su 0 id", `^$`, `su: not found`, 127},
		{"adb devices", `^$`, `not found`, 127},
		{"getprop leakgate.time_scale", `^20\n$`, `^$`, 0},
		{
			"getprop ro.build.version.sdk; getprop ro.build.version.release; getprop ro.product.model; getprop " +
				"ro.build.type; getprop ro.debuggable", `^33\n13\nFast One\nuserdebug\n1\n$`, `^$`, 0,
		},
		{"getprop nothing", `^\n$`, `^$`, 0},
		{"cat /proc/uptime", `^\d+\.\d\d \d+\.\d\d\n$`, `^$`, 0},
		{"cat /proc/uptime /proc/self/comm", `^\d+\.\d\d \d+\.\d\d\ncat\n$`, `^$`, 0},
		{"cat /nosuchfile", `^$`, `No such file`, 1},
		{"cd /proc && exec grep -E '^(Rss|Pss):' self/smaps_rollup", `(?s)Rss:.*Pss:`, `^$`, 0},
		{"pidof com.example.absent", `^$`, `^$`, 1},
		{"dumpsys gpu", `^$`, `^Can't find service: gpu\n$`, 0},
		{"dumpsys -t 10 meminfo com.example.absent", `^No process found for: com.example.absent\n$`, `^$`, 0},
		{"dumpsys meminfo -h", `--local`, `^$`, 0},
		{"run-as com.example.absent id", `^$`, `^run-as: unknown package: com.example.absent\n$`, 1},
		{"run-as " + r.Package() + " --user 0 sh -c 'pwd; exit 3'", `/home\n$`, `^$`, 3},
		{"run-as " + r.Package() + " nosuchtool", `^$`, `exec failed for nosuchtool: no such file`, 1},
		{"echo in | run-as " + r.Package() + " cat", `^in\n$`, `^$`, 0},
		{"am help", `(?s)dumpheap .*-g: force GC`, `^$`, 0},
		{"am nosuchverb", `^$`, `Unknown command: nosuchverb`, 255},
		{"am start -n com.example.absent/.Java", `^Starting: Intent`, `does not exist`, 1},
		{"am start -n " + r.Package() + "/.Java --es mb_per_h lots", `^$`, `bad extra: mb_per_h=lots`, 255},
		{"am dumpheap com.example.absent /data/local/tmp/x", `^$`, `Unknown process: com.example.absent`, 255},
		{"pm list packages", `^package:` + r.Package() + `\n$`, `^$`, 0},
		{"pm path com.example.absent", `^$`, `^$`, 1},
		{
			"echo hi > /data/local/tmp/f && cat /data/local/tmp/f && rm /data/local/tmp/f; ls /data/local/tmp",
			`^hi\n$`, `^$`, 0,
		},
		{
			"monkey -p " + r.Package() + " -s 1 --throttle 10 -v 200",
			`(?s)^(  bash arg: \S+\n){8}:Monkey: seed=1 count=200.*Events injected: 200.*// Monkey finished\n$`, `^$`,
			0,
		},
	} {
		out, errs, exit := r.ADB(t, "shell", c.command)
		if !regexp.MustCompile(c.out).MatchString(out) || !regexp.MustCompile(c.errs).MatchString(errs) ||
			exit != c.exit {
			t.Errorf("%s\nexit %d, out %q, err %q\nwant %d, %s, %s", c.command, exit, out, errs, c.exit, c.out, c.errs)
		}
	}
}

// shell runs a command without adb.
func shell(t testing.TB, d *hostdevice.Device, command string) (out string, exit int) {
	t.Helper()
	var b bytes.Buffer
	exit = d.Shell(t.Context(), command, nil, &b, &b)
	return b.String(), exit
}

func uptime(t testing.TB, d *hostdevice.Device) time.Duration {
	t.Helper()
	out, exit := shell(t, d, "cat /proc/uptime")
	up, err := procfs.ParseUptime([]byte(out))
	if err != nil || exit != 0 {
		t.Fatalf("%q: %v, exit %d", out, err, exit)
	}
	return up
}

// TestClock checks that the clock starts at this machine's uptime and runs at
// the device's scale.
func TestClock(t *testing.T) {
	for _, scale := range []float64{1, 20} {
		host, err := state.HostUptime()
		if err != nil {
			t.Fatal(err)
		}
		d := hostdevicetest.New(t, hostdevice.Options{Scale: scale})
		realBefore := time.Now()
		a := uptime(t, d)
		realInner := time.Now()
		time.Sleep(300 * time.Millisecond)
		inner := time.Since(realInner)
		b := uptime(t, d)
		outer := time.Since(realBefore)
		const grain = 10 * time.Millisecond
		if passed := b - a; passed < time.Duration(float64(inner)*scale)-grain ||
			passed > time.Duration(float64(outer)*scale)+grain {
			t.Errorf("scale %g: %v passed, want %v to %v", scale, passed, inner, outer)
		}
		if a < host-grain || a > host+time.Duration(float64(time.Minute)*scale) {
			t.Errorf("scale %g: the clock started at %v; this machine's uptime is %v", scale, a, host)
		}
		link, err := os.Readlink(filepath.Join(d.Dir(), "bin", "cat"))
		if own := link == "hostdevice"; err != nil || own != (scale != 1) {
			t.Errorf("scale %g: cat links to %q, want hostdevice unless the scale is 1: %v", scale, link, err)
		}
	}
}

// left returns the pids of the processes that belong to a device.
func left(t testing.TB, dir string) []int {
	t.Helper()
	pids, err := proctable.WithVariable(state.Variable, dir)
	if err != nil {
		t.Fatal(err)
	}
	return pids
}

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// TestCancel checks that when its context is canceled, everything that a
// command started ends, including processes that left its process group, while
// other commands continue.
func TestCancel(t *testing.T) {
	d := hostdevicetest.New(t, hostdevice.Options{})
	other, endOther := context.WithCancel(t.Context())
	defer endOther()
	otherEnded := make(chan int, 1)
	go func() { otherEnded <- d.Shell(other, "exec sleep 105", nil, io.Discard, io.Discard) }()
	eventually(t, "the other command to start", func() bool { return len(left(t, d.Dir())) == 1 })
	for _, command := range []string{
		"sleep 100; echo",
		"sleep 101 & sleep 102 & wait",
		"setsid sh -c 'sleep 103; echo' & sleep 104",
		"run-as " + d.Package() + " sh -c 'sleep 105; echo'",
		"monkey --throttle 1000 -v 1000000",
		"trap '' TERM INT HUP; while :; do sleep 1; done",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		in, hold := io.Pipe()
		go func() { ended <- d.Shell(ctx, command, in, io.Discard, io.Discard) }()
		eventually(t, "the start of "+command, func() bool { return len(left(t, d.Dir())) > 1 })
		time.Sleep(30 * time.Millisecond)
		cancel()
		select {
		case exit := <-ended:
			if exit != 137 {
				t.Errorf("%s: exit %d", command, exit)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: did not end", command)
		}
		hold.Close()
		eventually(t, "all processes to end: "+command, func() bool { return len(left(t, d.Dir())) == 1 })
	}
	select {
	case <-otherEnded:
		t.Error("a different command was ended")
	default:
	}
}

// TestAdbDisconnect checks that killing the adb program ends its command.
func TestAdbDisconnect(t *testing.T) {
	r := hostdevicetest.Start(t, hostdevice.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cmd := r.Server.Command(ctx, "-s", r.Serial, "shell", "sleep 100; echo")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the process to start", func() bool { return len(left(t, r.Dir())) == 2 })
	cancel()
	cmd.Wait()
	eventually(t, "the process to end", func() bool { return len(left(t, r.Dir())) == 0 })
}

// TestBackground checks that a background process outlives its command and ends
// with the device.
func TestBackground(t *testing.T) {
	d := hostdevicetest.New(t, hostdevice.Options{})
	if out, exit := shell(t, d, "nohup setsid sleep 100 >/dev/null 2>&1 &"); exit != 0 || out != "" {
		t.Fatalf("%q, exit %d", out, exit)
	}
	eventually(t, "the process to start", func() bool { return len(left(t, d.Dir())) == 1 })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if pids := left(t, d.Dir()); len(pids) > 0 {
		t.Errorf("processes %v are still running after the device was closed", pids)
	}
	if _, err := os.Stat(d.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory still exists: %v", err)
	}
	if _, exit := shell(t, d, "true"); exit != 137 {
		t.Errorf("a closed device still runs commands: exit %d", exit)
	}
}

// TestFiles uses push and pull with the real adb.
func TestFiles(t *testing.T) {
	r := hostdevicetest.StartRooted(t, hostdevice.Options{})
	dir := t.TempDir()
	local, back := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	if err := os.WriteFile(local, content, 0o640); err != nil {
		t.Fatal(err)
	}
	r.Must(t, "push", local, "/data/local/tmp/sub/dir/file")
	if out := r.Must(t, "shell", "stat -c '%s %a' /data/local/tmp/sub/dir/file"); !strings.HasPrefix(out, "1000000 6") {
		t.Errorf("stat: %q", out)
	}
	r.Must(t, "pull", "/data/local/tmp/sub/dir/file", back)
	if got, err := os.ReadFile(back); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes back, %v", len(got), err)
	}
	r.Must(t, "pull", "/proc/self/status", back)
	r.Must(t, "shell", "ln -s /etc /data/local/tmp/out; ln -s file /data/local/tmp/sub/dir/link")
	r.Must(t, "pull", "/data/local/tmp/sub/dir/link", back)
	for _, args := range [][]string{
		{"pull", "/etc/passwd", back},
		{"pull", "/data/local/tmp/out/passwd", back},
		{"pull", "/data/local/tmp/../../../etc/passwd", back},
		{"pull", "/proc/../etc/passwd", back},
		{"pull", "/data/local/tmp/absent", back},
		{"push", local, "/etc/leakgate-test"},
		{"push", local, "/data/local/tmp/out/leakgate-test"},
	} {
		if out, errs, exit := r.ADB(t, args...); exit == 0 {
			t.Errorf("adb %q: %q %q", args, out, errs)
		}
	}
}

// TestUpload checks that an aborted upload does not leave a file behind.
func TestUpload(t *testing.T) {
	d := hostdevicetest.New(t, hostdevice.Options{})
	w, err := d.Create("/data/local/tmp/x", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "half")
	if err := w.(interface{ Abort() error }).Abort(); err != nil {
		t.Error(err)
	}
	if _, err := d.Stat("/data/local/tmp/x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the aborted file exists: %v", err)
	}
	if list, err := d.ReadDir("/data/local/tmp"); err != nil || len(list) != 0 {
		t.Errorf("listed %v, %v", list, err)
	}
	if _, err := d.Open("/data/local/tmp"); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory was opened: %v", err)
	}
	if _, err := d.Create("/sdcard/x", 0o600); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got error %v for a file outside the directory, want %v", err, syscall.EROFS)
	}
}

// TestUploadOwner checks that pushed files belong to the shell's UID, under
// which adbd also runs on a phone.
func TestUploadOwner(t *testing.T) {
	if os.Getuid() != 0 {
		recorded.Missing(t, "only root can give the shell a different UID")
	}
	const uid = 2000
	d := hostdevicetest.New(t, hostdevice.Options{ShellUID: uid})
	if out, exit := shell(t, d, "mkdir /data/local/tmp/own"); exit != 0 {
		t.Fatal(out)
	}
	for _, name := range []string{"x", "a/b/c/x", "a/b/y", "own/sub/x"} {
		w, err := d.Create("/data/local/tmp/"+name, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for rel := name; rel != "."; rel = filepath.Dir(rel) {
			info, err := d.Lstat("/data/local/tmp/" + rel)
			if err != nil {
				t.Fatal(err)
			}
			if owner := info.Sys().(*syscall.Stat_t).Uid; owner != uid {
				t.Errorf("%s belongs to UID %d, want %d", rel, owner, uid)
			}
		}
	}
	if out, exit := shell(t, d, "cd /data/local/tmp && touch a/b/c/own && rm -r x a own && ls -A"); exit != 0 ||
		out != "" {
		t.Errorf("the shell cannot remove the pushed files: exit %d, %q", exit, out)
	}
	if _, err := d.Create("/data/local/tmp/file/x", 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create("/data/local/tmp/file/x/below", 0o600); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("push below a file: %v", err)
	}
}

// TestServe terminates the program with each of three signals and checks that
// it leaves neither processes nor the directory behind.
func TestServe(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(end.String(), func(t *testing.T) {
			cmd := exec.Command(hostdevicetest.Program(t), "serve", "--listen", "127.0.0.1:0", "--scale", "20", "--dir",
				t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = os.Stderr
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer cmd.Wait()
			defer cmd.Process.Kill()
			var addr, dir string
			if _, err := fmt.Fscanf(out, "listening on %s as %s\n", &addr, &dir); err != nil {
				t.Fatal(err)
			}
			sleeper := exec.Command("/bin/sh", "-c", "setsid sleep 100 & exec sleep 100")
			sleeper.Env = []string{"PATH=/usr/bin:/bin", state.Variable + "=" + dir}
			if err := sleeper.Start(); err != nil {
				t.Fatal(err)
			}
			go sleeper.Wait()
			eventually(t, "the processes to start", func() bool { return len(left(t, dir)) == 2 })
			cmd.Process.Signal(end)
			err = cmd.Wait()
			if end != syscall.SIGKILL && err != nil {
				t.Errorf("hostdevice ended with %v", err)
			}
			eventually(t, "the processes to end", func() bool { return len(left(t, dir)) == 0 })
			eventually(t, "the removal of the directory", func() bool {
				_, err := os.Stat(dir)
				return errors.Is(err, fs.ErrNotExist)
			})
		})
	}
	for _, args := range [][]string{{}, {"nosuchverb"}, {"serve", "--nosuchflag"}, {"serve", "extra"}} {
		if err := exec.Command(hostdevicetest.Program(t), args...).Run(); err == nil ||
			err.(*exec.ExitError).ExitCode() != 2 {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// number returns the number that the first group of a pattern matches in a
// string.
func number(t testing.TB, text, pattern string) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("%s is not in:\n%s", pattern, text)
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
