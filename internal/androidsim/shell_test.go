package androidsim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
)

// Package ksh tests the shell itself; this file tests the phone's programs.
func TestShell(t *testing.T) {
	p := New(Options{
		API: 34,
		Apps: []App{
			{
				Package: "com.shop", Debuggable: true,
				Processes: []ProcessSpec{{Name: "com.shop", Models: []Model{Typical()}}},
			},
		},
	})
	for _, c := range []struct{ command, out, err string }{
		{
			`curl http://x; base64 x`, "",
			"/system/bin/sh: curl: inaccessible or not found\n/system/bin/sh: base64: inaccessible or not found\n",
		},
		{
			`for d in /proc/[0-9]*; do read n <$d/comm; case $n in com.shop) echo found ${d%%[0-9]*};; esac; done`,
			"found /proc/\n", "",
		},
		{`cd /proc && ls -d 15[0-9]3; echo /sys*m /nothing*`, "1523\n/system /nothing*\n", ""},
		{
			`grep -s x /proc/99/stat; echo $?; grep x /proc/1; echo $?; grep -l -s -F -e zygote -e nosuch /proc/[0-9]*/cmdline`, "2\n2\n/proc/780/cmdline\n/proc/781/cmdline\n", "grep: /proc/1: Is a directory\n",
		},
		{
			`grep -c zygote /proc/780/comm /proc/1/comm; grep -H zygote /proc/780/comm; grep -h z /proc/78?/comm; grep zygote64 /proc/780/comm`, "/proc/780/comm:1\n/proc/1/comm:0\n/proc/780/comm:zygote64\nzygote64\nzygote\nzygote64\n", "",
		},
		{`id -u; getprop ro.build.version.sdk; getprop nosuch; getprop nosuch default`, "2000\n34\n\ndefault\n", ""},
		{
			`pidof nosuch; echo $?; pidof zygote64; ps -A -o PID,NAME | grep 'zygote$'; ps -o PID | grep PID; ps -o X`,
			"1\n780\n  781 zygote\n  PID\n", "ps: bad -o X\n",
		},
		{
			`mkdir /data/local/tmp/a /data/local/tmp/a/b; echo x >/data/local/tmp/a/b/c; ls /data/local/tmp/a; rm -r /data/local/tmp/a; ls /data/local/tmp`, "b\n", "",
		},
		{
			`echo abc >/data/local/tmp/f; echo de >>/data/local/tmp/f; stat -c '%s %n' /data/local/tmp/f; cat /data/local/tmp/f; rm /data/local/tmp/f; touch /system/x; stat x`, "7 /data/local/tmp/f\nabc\nde\n", "touch: '/system/x': Read-only file system\nstat: 'x': No such file or directory\n",
		},
		{
			`printf 'echo script $1 $0\nexit 3\n' >/data/local/tmp/s; sh /data/local/tmp/s arg; echo $?; /data/local/tmp/s`, "script arg /data/local/tmp/s\n3\n", "/system/bin/sh: /data/local/tmp/s: can't execute: Permission denied\n",
		},
		{
			`/system/bin/cat /proc/780/comm; command -v cat nosuch; /system/bin/su`, "zygote64\n/system/bin/cat\n",
			"/system/bin/sh: /system/bin/su: inaccessible or not found\n",
		},
		{
			`ls /data; cat /data/data/com.shop/x; run-as com.shop pwd; run-as com.shop ls; run-as com.shop sh -c 'echo hi >files/f; cat files/f; id -un'; run-as com.shop rm files/f`, "/data/data/com.shop\ncache\ncode_cache\nfiles\nhi\nu0_a123\n", "ls: /data: Permission denied\ncat: /data/data/com.shop/x: Permission denied\n",
		},
		{`dumpsys -l | grep -c .; dumpsys nosuch; echo $?`, "9\n0\n", "Can't find service: nosuch\n"},
		{
			`dumpsys meminfo com.none; dumpsys meminfo 99999; dumpsys meminfo -x`,
			"No process found for: com.none\nNo process found for: 99999\nUnknown argument: -x; use -h for help\n", "",
		},
		{
			`pm list packages; echo; pm list packages -3; echo; pm list packages --user 0 -s phone; echo; pm list packages -s -3; pm list packages -3 android; pm list packages -d`,
			"package:com.shop\npackage:com.android.systemui\npackage:com.android.phone\n\n" +
				"package:com.shop\n\npackage:com.android.phone\n\n", ""},
		{
			`am nosuch; echo $?; pm list packages shop; am get-current-user; am help | grep -c dumpheap`,
			"255\npackage:com.shop\n0\n1\n", "Unknown command: nosuch\n",
		},
		{
			`echo $PPID >/dev/null; [ $$ -gt 20000 ] && [ -d /proc/$$ ] && cat /proc/$$/comm; (echo $$) | grep -c $$`,
			"sh\n1\n", "",
		},
	} {
		if a := sh1(t, p, c.command); a.out != c.out || a.err != c.err {
			t.Errorf("%s\nprints %q\nwant   %q\nerrors %q\nwant   %q", c.command, a.out, c.out, a.err, c.err)
		}
	}
}

// Old versions have fewer programs and different messages.
func TestOldPhone(t *testing.T) {
	p := shop(Options{API: 18})
	for command, want := range map[string]answer{
		"pidof com.shop":     {err: "/system/bin/sh: pidof: not found\n", exit: 127},
		"md5sum x":           {err: "/system/bin/sh: md5sum: not found\n", exit: 127},
		"run-as com.none id": {err: "run-as: Package 'com.none' is unknown\n", exit: 1},
	} {
		if a := sh1(t, p, command); a != want {
			t.Errorf("%s: %+v", command, a)
		}
	}
	if out := ask(t, p, "ps com.shop"); !strings.HasPrefix(out, "USER ") || strings.Count(out, "\n") != 2 ||
		!strings.Contains(out, " S com.shop\n") {
		t.Errorf("ps: %q", out)
	}
	if id := p.Identity(); id.Features != nil {
		t.Errorf("Android 4.3 offers %v", id.Features)
	}
	if id := New(Options{API: 24}).Identity(); !slices.Contains(id.Features, adbd.FeatureShell) {
		t.Errorf("Android 7 offers %v", id.Features)
	}
}

func TestFiles(t *testing.T) {
	p := New(Options{})
	w, err := p.Create("/data/local/tmp/new/dir/file", 0o640)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "con")
	if _, err := p.Stat("/data/local/tmp/new/dir/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file exists before Close: %v", err)
	}
	io.WriteString(w, "tent")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	i, err := p.Stat("/data/local/tmp/new/dir/file")
	if err != nil || i.Size() != 7 || i.Mode() != 0o640 || i.Name() != "file" || time.Since(i.ModTime()) > time.Minute {
		t.Errorf("%v, %v", i, err)
	}
	r, err := p.Open("/data/local/tmp/new/dir/file")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := io.ReadAll(r); string(text) != "content" {
		t.Errorf("%q", text)
	}
	for name, want := range map[string]error{
		"/data/x": fs.ErrPermission, "/proc/x": fs.ErrPermission, "/system/x": syscall.EROFS,
		"/data/local/tmp": syscall.EISDIR, "/nosuch/x": fs.ErrPermission,
		"/data/local/tmp/new/dir/file/below": syscall.ENOTDIR, "/data/local/tmp/" +
			strings.Repeat("x", 5000): syscall.ENAMETOOLONG,
	} {
		if _, err := p.Create(name, 0o644); !errors.Is(err, want) {
			t.Errorf("create %.40s: %v, want %v", name, err, want)
		}
	}
	for name, want := range map[string]error{
		"/proc/1523/smaps": fs.ErrPermission, "/nosuch": fs.ErrNotExist, "/proc": syscall.EISDIR,
		"/proc/99999/stat": fs.ErrNotExist,
	} {
		if _, err := p.Open(name); !errors.Is(err, want) {
			t.Errorf("open %s: %v, want %v", name, err, want)
		}
	}
	entries, err := p.ReadDir("/data/local/tmp/new/dir")
	if err != nil || len(entries) != 1 || entries[0].Size() != 7 {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := p.ReadDir("/data"); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("the shell lists /data: %v", err)
	}
}

// An aborted push leaves no file: neither the incomplete one nor the previous
// one, which adbd unlinks first.
func TestTornPush(t *testing.T) {
	p := New(Options{})
	for _, before := range []string{"", "the file before"} {
		if before != "" {
			ask(t, p, "echo "+before+" >/data/local/tmp/partial")
		}
		w, err := p.Create("/data/local/tmp/partial", 0o600)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "half of")
		a, ok := w.(adbd.Aborter)
		if !ok {
			t.Fatalf("%T does not implement adbd.Aborter", w)
		}
		if err := a.Abort(); err != nil {
			t.Errorf("after %q: %v", before, err)
		}
		if i, err := p.Stat("/data/local/tmp/partial"); !errors.Is(err, fs.ErrNotExist) || p.files.used != 0 {
			t.Errorf("after %q: %v, %v, %d bytes counted", before, i, err, p.files.used)
		}
	}
	w, err := p.Create("/dev/null", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.(adbd.Aborter).Abort(); err != nil {
		t.Errorf("to a device: %v", err)
	}
	if _, err := p.Stat("/dev/null"); err != nil {
		t.Errorf("/dev/null is gone: %v", err)
	}
}

func TestFilesAreBounded(t *testing.T) {
	p := New(Options{})
	p.files.room = 1 << 20
	push := func(name string, size int) error {
		w, err := p.Create("/data/local/tmp/"+name, 0o644)
		if err != nil {
			return err
		}
		if _, err := w.Write(make([]byte, size)); err != nil {
			return err
		}
		return w.Close()
	}
	if err := push("a", 700<<10); err != nil {
		t.Fatal(err)
	}
	// Two files that fit individually do not fit together; a refused file does
	// not use up space.
	for range 3 {
		if err := push("b", 700<<10); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a file larger than the free space was accepted: %v", err)
		}
	}
	if a := sh1(t, p, "cat /data/local/tmp/a >>/data/local/tmp/c"); a.exit == 0 || p.files.used > p.files.room {
		t.Errorf("%+v, %d bytes", a, p.files.used)
	}
	ask(t, p, "rm /data/local/tmp/c")
	if err := push("a", 900<<10); err != nil || p.files.used != 900<<10 {
		t.Errorf("replacing the old file: %v, %d bytes", err, p.files.used)
	}
	ask(t, p, "rm /data/local/tmp/*")
	if p.files.used != 0 {
		t.Errorf("%d bytes counted although no file exists", p.files.used)
	}
	for i := 0; i < maxNodes+10; i++ {
		if err := push(strconv.Itoa(i), 0); errors.Is(err, syscall.ENOSPC) && i > maxNodes/2 {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("the number of files is unlimited")
}

// host returns a directory on the host that contains a secret. untouched
// returns an error if the directory has changed.
func host(t testing.TB) (dir string, untouched func() error) {
	dir = t.TempDir()
	for name, text := range map[string]string{"marker": "HOSTSECRET\n", "run": "#!/bin/sh\necho HOSTSECRET\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", dir)
	t.Setenv("TMPDIR", dir)
	t.Setenv("HOSTSECRET", "HOSTSECRET")
	t.Chdir(dir)
	return dir, func() error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if e.Name() != "marker" && e.Name() != "run" || !bytes.Contains(text, []byte("HOSTSECRET")) {
				return errors.New("unexpected host file " + e.Name() + ": " + string(text))
			}
		}
		if len(entries) != 2 {
			return errors.New("a host file disappeared")
		}
		return nil
	}
}

// Commands on the phone cannot read, change or run anything on the host.
func TestTheHostStaysOutside(t *testing.T) {
	dir, untouched := host(t)
	p := Demo(100, 1)
	dir = filepath.ToSlash(dir)
	for _, command := range []string{
		"cat HOST/marker", "cat marker", "cat ./marker ~/marker", "ls HOST", "ls", "echo HOST/*", "echo *", "HOST/run",
		"./run", "sh HOST/run", "exec HOST/run", "command HOST/run",
		"nice HOST/run", "echo x >HOST/x", "echo x >>HOST/marker", "echo x >marker", "touch HOST/x", "mkdir HOST/x",
		"rm HOST/marker", "rm -rf HOST", "rm -rf /tmp /home",
		"cd HOST && ls", "cd HOST; pwd -P", "command -v HOST/run; command -v go",
		"test -e HOST/marker && echo HOSTSECRET", "[ -d HOST ] && echo HOSTSECRET",
		"read x <HOST/marker; echo $x", "x=$(cat <HOST/marker); echo $x", "cat <(cat HOST/marker)",
		"echo $HOSTSECRET $HOME $TMPDIR", "eval 'cat HOST/marker'",
		"am dumpheap com.shop HOST/x", "echo x >/tmp/sh-interp-1", "stat HOST/marker", "grep . HOST/marker HOST/*",
		"md5sum HOST/marker",
		"cat /etc/passwd /etc/hostname /proc/self/environ /proc/version /proc/cpuinfo", "ls /etc /home /root /usr /tmp",
		"ls ~root; echo ~root ~nobody ~daemon/x", "cat /proc/self/status",
		"/bin/sh -c 'echo HOSTSECRET' | grep nothing; /usr/bin/env",
		"perl -e 1; python3 -c 1; bash -c 1; nc -l 1; ssh x; wget x; curl x",
		"cat 'C:\\\\Windows\\\\win.ini' C:/Windows/win.ini",
		"kill -9 1; kill -9 -1", "monkey -f HOST/run 1",
	} {
		a := sh1(t, p, strings.ReplaceAll(command, "HOST/", dir+"/"))
		if strings.Contains(a.out, "HOSTSECRET") || strings.Contains(a.out, dir) &&
			!strings.Contains(command, "echo HOST") || strings.Contains(a.out, "root:x:0") {
			t.Errorf("%s: %+v", command, a)
		}
		if err := untouched(); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	if a := sh1(t, p, "ls /etc"); a.out != "hosts\n" {
		t.Errorf("the phone's /etc holds %q", a.out)
	}
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		if a := sh1(t, p, "uname -a; cat /proc/version"); strings.Contains(a.out, name) {
			t.Errorf("the host's name is in %q", a.out)
		}
	}
}

// bombs lists command lines that use unlimited time or memory through the
// programs of the phone; package ksh has the bombs for the shell itself.
var bombs = []string{
	"while :; do echo 0123456789; done | cat >/data/local/tmp/fill; while :; do :; done", "while :; do echo x; done",
	"sleep 1e300", "sleep 1e9 & sleep 1e9 | sleep 1e9",
	"dumpsys -t 999999 meminfo; dumpsys -t 99 gfxinfo; while :; do dumpsys gpu; done", "monkey -v 99999999999", "cat",
	"read x; read x", "while :; do touch /data/local/tmp/$((i+=1)); done",
	"set -- /proc/*/task/*/*; while :; do set -- \"$@\" \"$@\"; done",
	"while :; do grep . /proc/*/task/*/* >/dev/null; done", "cat /dev/zero", "grep x /dev/zero",
	"x=$(cat /dev/zero)", "sh /dev/zero", "md5sum /dev/zero",
	"exec >/data/local/tmp/big; while :; do cat /proc/1523/smaps; done",
	"cat /dev/zero >/data/local/tmp/big; while :; do :; done",
}

// Every command ends when its context is canceled, and does not exhaust the
// host's memory.
func TestBombs(t *testing.T) {
	_, untouched := host(t)
	before := heapInUse()
	for _, bomb := range bombs {
		checkBounded(t, bomb, 40*time.Millisecond)
	}
	if grown := heapInUse() - before; grown > 64<<20 {
		t.Errorf("the heap in use grew by %d MB, want at most 64", grown>>20)
	}
	if err := untouched(); err != nil {
		t.Error(err)
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// checkBounded runs a command on its own phone for a limited time, and checks
// that it ends in time with a valid exit status, leaves no task running, and
// does not store too much.
func checkBounded(t *testing.T, command string, limit time.Duration) {
	t.Helper()
	p := New(Options{
		Scale: 1000,
		Apps: []App{
			{Package: "a.b", Debuggable: true, Processes: []ProcessSpec{{Name: "a.b", Models: []Model{Typical()}}}},
		}, Instrumentations: []Instrumentation{
			{
				Package: "a.b.test", Target: "a.b",
				Tests: []Test{
					{Name: "a#b", Leaks: []LeakedActivities{{"a.b.A", 2}}}, {Name: "a#c", Outcome: TestCrashes},
				},
			},
		}})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stdin, hold := io.Pipe()
	defer hold.Close()
	began := time.Now()
	exit := p.Shell(ctx, command, stdin, io.Discard, io.Discard)
	// The limit is generous, because the host may be busy.
	if took := time.Since(began); took > limit+5*time.Second {
		t.Errorf("%.200q took %v", command, took)
	}
	if exit < 0 || exit > 255 {
		t.Errorf("%.200q: exit %d", command, exit)
	}
	if len(p.tasks) != 0 {
		t.Errorf("%.200q left %d tasks", command, len(p.tasks))
	}
	if p.files.used < 0 || p.files.used > maxFiles {
		t.Errorf("%.200q: files of %d bytes", command, p.files.used)
	}
}

func FuzzShell(f *testing.F) {
	for _, s := range bombs {
		f.Add(s)
	}
	for _, s := range []string{
		"grep -E '(a|b){2,3}' /proc/*/stat", "am dumpheap -n a.b /data/local/tmp/x; ls -l /data/local/tmp",
		"mapfile | cat", "dumpsys meminfo -a a.b", "monkey -p a.b 10", "run-as a.b sh -c 'kill -10 $$'",
		"logcat -d -b all -v epoch,usec -T 5.5 --pid=3018 -e 'GC|died' art:W *:S", "log -t a b; logcat -c; logcat -t 1",
		"dumpsys activity exit-info a.b; dumpsys package a.b", "showmap -a -v -t 1",
		"am instrument -w -r -e class a#b a.b.test; input swipe 1 2 3 4 99; pm list instrumentation",
		"ls -l /proc/self/fd"} {
		f.Add(s)
	}
	_, untouched := host(f)
	f.Fuzz(func(t *testing.T, command string) {
		checkBounded(t, command, 25*time.Millisecond)
		if err := untouched(); err != nil {
			t.Fatal(err)
		}
	})
}
