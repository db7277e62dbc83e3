package androidsim

//unit:program a real shell is the second implementation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/recorded"
)

// posixScripts mean the same to every POSIX shell.
var posixScripts = []string{
	`echo a  b "c  d" 'e  f' g\ \ h`, `printf '%s|%d|%x|%5s|%-5s|%%|%03d\n' a 10 255 b c 7`, `printf '%s\n' a b c`, `echo -n x; echo y`,
	`x=5; echo $x ${x} "$x" '$x' \$x`, `echo ${u:-def} ${u-def} ${u:=set} $u ${u:+alt} ${v:+alt}end`, `x=; echo "[${x:-a}][${x-a}][${x:+b}][${x+b}]"`,
	`x=/proc/123/cmdline; echo ${x#/proc/} ${x##*/} ${x%/*} ${x%%/*}end ${#x}`, `x=a.b.c; echo ${x#*.} ${x##*.} ${x%.*} ${x%%.*}`,
	`x='a*b'; echo "${x#a\*}" "${x%'*b'}"`, `x="a b  c"; for i in $x; do echo "<$i>"; done; for i in "$x"; do echo "<$i>"; done`,
	`IFS=:; x=a:b::c; for i in $x; do echo "<$i>"; done`, `IFS=' :'; x='a : b'; for i in $x; do echo "<$i>"; done`, `set -- a "b c" d; echo $# $1 "$2" $3; for i in "$@"; do echo "<$i>"; done; for i in $@; do echo "<$i>"; done; echo "$*"`,
	`set -- a b c; shift; echo $1 $#; shift 2; echo $#`, `set --; for i in "$@"; do echo no; done; echo "x$@y" "$*"`, `set -- 1 2; echo "a $@ b"; for i in "x$@y"; do echo "<$i>"; done`,
	`echo $((1+2*3)) $(((1+2)*3)) $((7/2)) $((7%3)) $((-7/2)) $((1<<4)) $((255&15)) $((1||0)) $((2>1?5:6)) $((0x10)) $((010))`,
	`i=3; echo $((i+1)) $((i*2)) $((-i))`, `if true; then echo t; else echo f; fi; if false; then echo t; elif true; then echo e; fi; if false; then echo x; fi; echo $?`,
	`i=0; while [ $i -lt 5 ]; do i=$((i+1)); [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done; echo end $i`, `until false; do echo once; break; done`,
	`for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; echo $i$j; done; done`, `for i in 1 2; do for j in a b; do [ $j = b ] && break 2; echo $i$j; done; done`,
	`case abc in x) echo x;; a*) echo a;; *) echo other;; esac; case "a*" in a\*) echo lit;; esac; case b in [abc]) echo set;; esac; case x in a|x) echo alt;; esac; case q in z) ;; esac; echo $?`,
	`f() { echo "f:$1:$#"; return 3; }; f a b; echo $?; f; echo $1`, `f() { x=2; }; x=1; f; echo $x`, `(x=2; echo $x); echo ${x-unset}; { y=3; }; echo $y`, `(exit 7); echo $?; false; echo $?; true; echo $?; ! true; echo $?; ! false; echo $?`,
	`true && echo a; false && echo b; true || echo c; false || echo d; false && x || echo e; true && false || echo f`, `echo $(echo a; echo b) "$(printf 'x\n\n\n')" $(echo '  s  p  ')`, `echo "$(echo "$(echo nested)")" ` + "`echo back`",
	`x=$(false); echo $?; x=$(exit 5); echo $?; x=1; echo $?`, `echo a b c | while read x y; do echo "$y-$x"; done`, `printf 'l1\nl2\nl3\n' | while read l; do echo "[$l]"; done`, `printf 'a\\b\n' | { read x; echo "$x"; }; printf 'a\\b\n' | { read -r x; printf '%s\n' "$x"; }`,
	`echo one | cat; echo two | cat | cat; printf 'b\na\nc\n' | grep . | head -n 2`, `cat <<E
a $((1+1)) \$x "q" \
joined
E
cat <<'E'
a $((1+1)) \$x
E
cat <<-E
	tabbed
	E`, `echo err >&2 2>/dev/null; { echo e >&2; echo o; } 2>/dev/null`, `exec 3>&1; echo three >&3; exec 3>&-`, `x=1 eval 'echo $x'; eval "y=2; echo \$y"; eval; echo $?`, `a=b; b=c; eval "echo \$$a"`,
	`set -e; false || true; if false; then :; fi; ! true; echo here; false; echo no`, `set -u; echo ${x-ok}; (echo $x) 2>/dev/null && echo no; echo after`, `set -f; echo /*; set +f`, `test -z "" && echo z; test -n a && echo n; [ a = a ] && echo eq; [ a != b ] && echo ne; [ 1 -lt 2 -a 3 -gt 2 ] && echo and; [ 1 = 2 -o 1 = 1 ] && echo or; [ ! a = b ] && echo not; [ ]; echo $?`,
	`[ ! = x ]; echo $?; [ "" ]; echo $?; [ "(" = "(" ]; echo $?; [ -n ]; echo $?`, `[ -d / ] && echo d; [ -e /nonexistent ] || echo ne; [ -f / ] || echo nf`,
	`cd /; pwd; cd /dev; pwd; cd ..; pwd; cd /nonexistent 2>/dev/null; echo $?; cd -`, `unset x; x=1; unset x; echo ${x-gone}; f() { :; }; unset -f f; f 2>/dev/null; echo $?`, `readonly r=1; echo $r; (r=2) 2>/dev/null || echo failed; IFS=' :'; x=' : a : b :: c '; for i in $x; do echo "<$i>"; done`, `export E=1; echo $E; sh -c 'echo $E $0 $1' zero one`, `nosuchcommand 2>/dev/null; echo $?`, `x="a\"b\\c\$d"; echo "$x"; echo "a\b"; echo 'it'"'"'s'`, `echo ~ | grep -c .; echo "~" '~' a~b`, `echo [a] "*" '?' \*`, `: ${x:=1}; echo $x; echo ${x:?msg}; (echo ${nope:?msg}; echo no) 2>/dev/null || echo failed`, `x=abc; y=x; echo ${#x} ${#} $# "${#y}"`, `echo a; exit 4; echo b`, `command echo c; command -v nosuch || echo none`, `sleep 0; echo slept; sleep 0 & wait; echo waited`, `f() { if [ $1 -gt 0 ]; then echo $1; f $(($1-1)); fi; }; f 5`, `{ echo a; echo b; } | { read x; read y; echo $y$x; }`, `x=$(cat <<E
in here
E
); echo "$x"`, `seq 3; seq 5 | tail -n 2; seq 9 | wc -l | tr -d ' ' 2>/dev/null`, `echo "abc" | grep -q b && echo found; echo abc | grep -c z; printf 'foo1\nbar2\nfoo3\n' | grep foo; printf 'a.b\naxb\n' | grep -F a.b; printf 'a.b\naxb\n' | grep -v 'a\.b'; printf 'aab\nab\nb\n' | grep -E '^a+b$'; printf 'x1y22\n' | grep -o '[0-9]*'; printf 'a|b\nab\n' | grep 'a|b'; printf 'A\nb\n' | grep -in a; printf 'ab\ncd\n' | grep -e a -e d`, `timeout 5 echo in time; head -c 3 </dev/null; echo abcdef | head -c 3; echo`,
}

// Another shell, where there is one, is the oracle.
func TestShellMeansWhatOthersMean(t *testing.T) {
	dash, err := exec.LookPath("dash")
	if err != nil {
		recorded.Missing(t, "no dash to compare with: %v", err)
	}
	p := New(Options{API: 34})
	for _, script := range posixScripts {
		cmd := exec.Command(dash, "-c", script)
		cmd.Dir = t.TempDir()
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/"}
		want, err := cmd.Output()
		exit := 0
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			exit = failed.ExitCode()
		}
		if strings.Contains(script, "tr -d") {
			continue // wc differs in blanks, and this phone has no tr
		}
		if a := sh1(t, p, script); a.out != string(want) || (a.exit == 0) != (exit == 0) {
			t.Errorf("%s\nprints %q (exit %d), dash %q (exit %d)", script, a.out, a.exit, want, exit)
		}
	}
}

func TestShell(t *testing.T) {
	p := New(Options{API: 34, Apps: []App{{Package: "com.shop", Debuggable: true, Processes: []ProcessSpec{{Name: "com.shop", Models: []Model{Typical()}}}}}})
	for _, c := range []struct{ command, out, err string }{
		{`echo a{b,c}f {1..3} {x}`, "a{b,c}f {1..3} {x}\n", ""},
		{`[[ a == a* ]] || echo no`, "no\n", "/system/bin/sh: this kind of command: not supported by this shell\n"},
		{`x=hello; echo ${x:1:3}`, "", "/system/bin/sh: bad substitution\n"},
		{`x=hello; echo ${x/l/L}`, "", "/system/bin/sh: bad substitution\n"},
		{`f() { local v=in; echo $v; }; v=out; f`, "out\n", "/system/bin/sh: local: not supported by this shell\n"},
		{`i=1; echo $((i++))`, "", "/system/bin/sh: bad arithmetic operator\n"},
		{`cat <<<here; echo $'a\tb\x41'`, "here\na\tbA\n", ""},
		{`echo a &>/data/local/tmp/o; cat /data/local/tmp/o; rm /data/local/tmp/o; cat /data/local/tmp/o`, "a\n", "cat: /data/local/tmp/o: No such file or directory\n"},
		{`curl http://x`, "", "/system/bin/sh: curl: inaccessible or not found\n"},
		{`for d in /proc/[0-9]*; do read n <$d/comm; case $n in com.shop) echo found ${d%%[0-9]*};; esac; done`, "found /proc/\n", ""},
		{`cd /proc && ls -d 15[0-9]3; echo /sys*m /nothing*`, "1523\n/system /nothing*\n", ""},
		{`grep -s x /proc/99/stat; echo $?; grep x /proc/1; echo $?; grep -l -s -F -e zygote -e nosuch /proc/[0-9]*/cmdline`, "2\n2\n/proc/780/cmdline\n/proc/781/cmdline\n", "grep: /proc/1: Is a directory\n"},
		{`grep -c zygote /proc/780/comm /proc/1/comm; grep -H zygote /proc/780/comm; grep -h z /proc/78?/comm; grep zygote64 /proc/780/comm`, "/proc/780/comm:1\n/proc/1/comm:0\n/proc/780/comm:zygote64\nzygote64\nzygote\nzygote64\n", ""},
		{`id -u; whoami; getprop ro.build.version.sdk; getprop nosuch; getprop nosuch default`, "2000\nshell\n34\n\ndefault\n", ""},
		{`pidof nosuch; echo $?; pidof zygote64; ps -A -o PID,NAME | grep -w zygote; ps -o NAME -p 780`, "1\n780\n  781 zygote\nNAME\nzygote64\n", ""},
		{`mkdir -p /data/local/tmp/a/b; echo x >/data/local/tmp/a/b/c; ls /data/local/tmp/a; rm -r /data/local/tmp/a; ls /data/local/tmp`, "b\n", ""},
		{`echo abc >/data/local/tmp/f; echo de >>/data/local/tmp/f; stat -c '%s %n' /data/local/tmp/f; wc -l </data/local/tmp/f; cp /data/local/tmp/f /sdcard/g; mv /sdcard/g /sdcard/h; cat /sdcard/h; rm /sdcard/h /data/local/tmp/f; touch /system/x`, "7 /data/local/tmp/f\n2\nabc\nde\n", "touch: '/system/x': Read-only file system\n"},
		{`printf 'echo script $1 $0\nexit 3\n' >/data/local/tmp/s; sh /data/local/tmp/s arg; echo $?; /data/local/tmp/s; . /data/local/tmp/s`, "script arg /data/local/tmp/s\n3\nscript /system/bin/sh\n", "/system/bin/sh: /data/local/tmp/s: can't execute: Permission denied\n"},
		{`/system/bin/cat /proc/780/comm; which cat nosuch; type cat; settings get global window_animation_scale`, "zygote64\n/system/bin/cat\ncat is /system/bin/cat\n1.0\n", ""},
		{`ls /data; cat /data/data/com.shop/x; run-as com.shop pwd; run-as com.shop ls; run-as com.shop sh -c 'echo hi >files/f; cat files/f; whoami'; run-as com.shop rm files/f`, "/data/data/com.shop\ncache\ncode_cache\nfiles\nhi\nu0_a123\n", "ls: /data: Permission denied\ncat: /data/data/com.shop/x: Permission denied\n"},
		{`timeout -s KILL 0.001 sleep 5; echo $?; timeout 0.001 sleep 5; echo $?; timeout 5 sh -c 'exit 9'; echo $?; timeout x true`, "137\n124\n9\n", "timeout: not a number 'x'\n"},
		{`base64 | head -n 1`, "", "/system/bin/sh: base64: inaccessible or not found\n"},
		{`while :; do echo y; done | head -n 2; echo $?`, "y\ny\n0\n", ""},
		{`echo 'unterminated`, "", "/system/bin/sh: 1:6: reached EOF without closing quote `'`\n"},
		{`cat <(echo x); echo no`, "", "/system/bin/sh: 1:5: `<` must be followed by a word\n"},
		{`echo $(($(echo 2)*3)) $((1/0)); echo next`, "next\n", "/system/bin/sh: divide by zero\n"},
		{`dumpsys -l | head -n 2; dumpsys nosuch; echo $?`, "Currently running services:\n  SurfaceFlinger\n0\n", "Can't find service: nosuch\n"},
		{`dumpsys meminfo com.none; dumpsys meminfo 99999; dumpsys meminfo -x`, "No process found for: com.none\nNo process found for: 99999\nUnknown argument: -x; use -h for help\n", ""},
		{`pm list packages; echo; pm list packages -3; echo; pm list packages --user 0 -s phone; echo; pm list packages -s -3; pm list packages -3 android; pm list packages -d`,
			"package:com.shop\npackage:com.android.systemui\npackage:com.android.phone\n\npackage:com.shop\n\npackage:com.android.phone\n\n", ""},
		{`am nosuch; echo $?; pm list packages shop; am get-current-user; am help | grep -c dumpheap`, "255\npackage:com.shop\n0\n1\n", "Unknown command: nosuch\n"},
		{`x=1; readonly x; x=2; echo $x`, "1\n", "/system/bin/sh: x: is read only\n"},
		{`exec echo replaced; echo no`, "replaced\n", ""},
		{`echo $PPID >/dev/null; [ $$ -gt 20000 ] && [ -d /proc/$$ ] && cat /proc/$$/comm; (echo $$) | grep -c $$`, "sh\n1\n", ""},
	} {
		if a := sh1(t, p, c.command); a.out != c.out || a.err != c.err {
			t.Errorf("%s\nprints %q\nwant   %q\nerrors %q\nwant   %q", c.command, a.out, c.out, a.err, c.err)
		}
	}
}

// Old versions have fewer tools and other words.
func TestOldPhone(t *testing.T) {
	p := shop(Options{API: 18})
	for command, want := range map[string]answer{
		"pidof com.shop": {err: "/system/bin/sh: pidof: not found\n", exit: 127}, "head x": {err: "/system/bin/sh: head: not found\n", exit: 127},
		"run-as com.none id": {err: "run-as: Package 'com.none' is unknown\n", exit: 1},
	} {
		if a := sh1(t, p, command); a != want {
			t.Errorf("%s: %+v", command, a)
		}
	}
	if out := ask(t, p, "ps com.shop"); !strings.HasPrefix(out, "USER ") || strings.Count(out, "\n") != 2 || !strings.Contains(out, " S com.shop\n") {
		t.Errorf("ps: %q", out)
	}
	if id := p.Identity(); id.Features != nil {
		t.Errorf("Android 4.3 offers %v", id.Features)
	}
	if id := New(Options{API: 24}).Identity(); !slices.Contains(id.Features, adbd.FeatureShell) {
		t.Errorf("Android 7 offers %v", id.Features)
	}
}

func TestInteractive(t *testing.T) {
	p := New(Options{})
	var out, errs bytes.Buffer
	exit := p.Shell(t.Context(), "", strings.NewReader("echo one\nfor i in a b; do\necho $i\ndone\nif\n)\nx=3\necho $x\nexit 5\necho no\n"), &out, &errs)
	if out.String() != "one\na\nb\n3\n" || exit != 5 || !strings.Contains(errs.String(), "androidsim:/ $ ") {
		t.Errorf("exit %d, %q, %q", exit, out.String(), errs.String())
	}
}

func TestStdin(t *testing.T) {
	p := New(Options{})
	for command, want := range map[string]string{
		"cat": "a\nb\n", "read x; echo [$x]; cat": "[a]\nb\n", "cat | cat | grep b": "b\n", "grep -c .": "2\n", "true; echo none": "none\n",
		"cat >/data/local/tmp/in; cat /data/local/tmp/in": "a\nb\n", "cat & wait": "", "sh": "",
	} {
		var out bytes.Buffer
		if p.Shell(t.Context(), command, strings.NewReader("a\nb\n"), &out, nil); out.String() != want {
			t.Errorf("%s: %q, want %q", command, out.String(), want)
		}
	}
}

// A failing writer ends the command, as a connection that is gone does.
func TestLostOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Options{})
		r, w := io.Pipe()
		r.Close()
		began := time.Now()
		if exit := p.Shell(t.Context(), "while true; do echo x; sleep 1; done", nil, w, nil); exit != 128+sigPipe || time.Since(began) > time.Second {
			t.Errorf("exit %d after %v", exit, time.Since(began))
		}
	})
}

func TestFiles(t *testing.T) {
	p := New(Options{})
	w, err := p.Create("/data/local/tmp/new/dir/file", 0o640)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, "con")
	if _, err := p.Stat("/data/local/tmp/new/dir/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it stands before Close: %v", err)
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
		"/data/x": fs.ErrPermission, "/proc/x": fs.ErrPermission, "/system/x": syscall.EROFS, "/data/local/tmp": syscall.EISDIR, "/nosuch/x": fs.ErrPermission,
		"/data/local/tmp/new/dir/file/below": syscall.ENOTDIR, "/data/local/tmp/" + strings.Repeat("x", 5000): syscall.ENAMETOOLONG,
	} {
		if _, err := p.Create(name, 0o644); !errors.Is(err, want) {
			t.Errorf("create %.40s: %v, want %v", name, err, want)
		}
	}
	for name, want := range map[string]error{"/proc/1523/smaps": fs.ErrPermission, "/nosuch": fs.ErrNotExist, "/proc": syscall.EISDIR, "/proc/99999/stat": fs.ErrNotExist} {
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

// A push that breaks off leaves no file: neither the torn one nor the one before,
// which adbd unlinks first.
func TestTornPush(t *testing.T) {
	p := New(Options{})
	for _, before := range []string{"", "the file before"} {
		if before != "" {
			ask(t, p, "echo "+before+" >/data/local/tmp/torn")
		}
		w, err := p.Create("/data/local/tmp/torn", 0o600)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "half of")
		a, ok := w.(adbd.Aborter)
		if !ok {
			t.Fatalf("%T is no adbd.Aborter", w)
		}
		if err := a.Abort(); err != nil {
			t.Errorf("after %q: %v", before, err)
		}
		if i, err := p.Stat("/data/local/tmp/torn"); !errors.Is(err, fs.ErrNotExist) || p.files.used != 0 {
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
		t.Errorf("the device is gone: %v", err)
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
	// Two that fit alone do not fit together; the one that failed counts no more.
	for range 3 {
		if err := push("b", 700<<10); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("too much was taken: %v", err)
		}
	}
	if a := sh1(t, p, "cat /data/local/tmp/a >>/data/local/tmp/c"); a.exit == 0 || p.files.used > p.files.room {
		t.Errorf("%+v, %d bytes", a, p.files.used)
	}
	ask(t, p, "rm /data/local/tmp/c")
	if err := push("a", 900<<10); err != nil || p.files.used != 900<<10 {
		t.Errorf("in the place of the old: %v, %d bytes", err, p.files.used)
	}
	ask(t, p, "rm /data/local/tmp/*")
	if p.files.used != 0 {
		t.Errorf("%d bytes counted for no file", p.files.used)
	}
	for i := 0; i < maxNodes+10; i++ {
		if err := push(strconv.Itoa(i), 0); errors.Is(err, syscall.ENOSPC) && i > maxNodes/2 {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
	t.Error("any number of files fits")
}

// host is a directory of the host with a secret in it.
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
				return errors.New("the host has a file " + e.Name() + ": " + string(text))
			}
		}
		if len(entries) != 2 {
			return errors.New("the host lost a file")
		}
		return nil
	}
}

// Nothing of the host can be seen, changed or run.
func TestTheHostStaysOutside(t *testing.T) {
	dir, untouched := host(t)
	p := Demo(100, 1)
	dir = filepath.ToSlash(dir)
	for _, command := range []string{
		"cat HOST/marker", "cat marker", "cat ./marker ~/marker", "ls HOST", "ls", "echo HOST/*", "echo *", "HOST/run", "./run", "sh HOST/run", ". HOST/run", ". ./run",
		"source run", "exec HOST/run", "command HOST/run", "env HOST/run", "timeout 5 HOST/run", "nohup HOST/run", "toybox HOST/run", "echo HOST/run | xargs sh",
		"echo x >HOST/x", "echo x >>HOST/marker", "echo x >marker", ": <>HOST/x", "touch HOST/x", "mkdir HOST/x", "rm HOST/marker", "rm -rf HOST", "rm -rf /tmp /home",
		"mv HOST/marker HOST/x", "cp HOST/marker /data/local/tmp/x; cat /data/local/tmp/x", "cd HOST && ls", "cd HOST; pwd -P", "type HOST/run", "which run", "command -v HOST/run; command -v go",
		"test -e HOST/marker && echo HOSTSECRET", "[ -d HOST ] && echo HOSTSECRET", "[[ -f HOST/run ]] && echo HOSTSECRET", "read x <HOST/marker; echo $x", "x=$(<HOST/marker); echo $x", "cat <(cat HOST/marker)",
		"echo $HOSTSECRET $HOME $TMPDIR", "env", "printenv", "export", "set", "eval 'cat <(cat HOST/marker)'", "trap 'cat HOST/marker' EXIT", "tee HOST/x </dev/null", "am dumpheap com.shop HOST/x", "echo x >/tmp/sh-interp-1",
		"stat HOST/marker", "grep -r . HOST", "head HOST/marker", "sort HOST/marker", "wc HOST/marker", "cat /etc/passwd /etc/hostname /proc/self/environ /proc/version /proc/cpuinfo", "ls /etc /home /root /usr /tmp", "ls ~root", "cat /proc/self/status",
		"/bin/sh -c 'echo HOSTSECRET' | grep nothing; /usr/bin/env", "perl -e 1; python3 -c 1; bash -c 1; nc -l 1; ssh x; wget x; curl x", "cat 'C:\\\\Windows\\\\win.ini' C:/Windows/win.ini", "kill -9 1; kill -9 -1", "monkey -f HOST/run 1",
	} {
		a := sh1(t, p, strings.ReplaceAll(command, "HOST/", dir+"/"))
		if strings.Contains(a.out, "HOSTSECRET") || strings.Contains(a.out, dir) && !strings.Contains(command, "echo HOST") || strings.Contains(a.out, "root:x:0") {
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

// bombs are command lines that want all the time or all the memory there is.
var bombs = []string{
	"while true; do :; done", "until false; do :; done", "while :; do x=$x$x.; done", "x=a; while :; do x=${x//a/aaaaaaaa}; done", "f() { f; }; f", "f() { f | f & }; f", "f() { f; f; }; f; while :; do f; done",
	"f() { (f) & (f) & }; f; wait", "f() { $(f); }; f", "x='eval $x'; eval $x; while :; do :; done", "while :; do echo 0123456789; done | cat >/data/local/tmp/fill; while :; do :; done", "while :; do echo x; done", "while :; do echo x; done | sort",
	"printf %999999999d; printf %.999999999s x; while :; do :; done", "seq 1 1000000000", "seq 1 1000000000 | tail -n 5; while :; do :; done", "x=$(seq 1 1000000000); while :; do :; done", "echo {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}; sleep 1d",
	"sleep 1e300", "sleep 1e9 & sleep 1e9 | sleep 1e9", "dumpsys -t 999999 meminfo; dumpsys -t 99 gfxinfo; while :; do dumpsys gpu; done", "monkey -v 99999999999", "cat", "read x; read x", "trap 'while :; do :; done' EXIT; while :; do :; done", "while :; do (:); done",
	"while :; do : & done", "while :; do f$RANDOM() { :; }; i=$((i+1)); eval \"v$i=$i; g$i() { :; }\"; done", "while :; do touch /data/local/tmp/$((i+=1)); done", "set -- /proc/*/task/*/*; while :; do set -- \"$@\" \"$@\"; done", "while :; do grep -r . /proc >/dev/null; done",
	"until :& do :; done; while :; do sh -c 'sh -c \"sh -c :\"'; done", "printf 'while :; do . /data/local/tmp/s; done' >/data/local/tmp/s; . /data/local/tmp/s; sh /data/local/tmp/s; while :; do :; done", "xargs xargs xargs xargs xargs", "while :; do xargs -n 1 echo </proc/1523/smaps; done", "case $(seq 99999) in *1*2*3*4*5*6*7*8*9*) while :; do :; done;; esac",
	"echo ${x:=$(seq 20000)}; y=$x; while :; do z=${y##*1*2*3*4}; z=${y%%9*8*7}; done", "timeout 1e300 sleep 1e300", "while :; do timeout 0.000001 sleep 1; done", "i=0; while :; do i=$((i*i+1<<62/7%3**2)); done; while :; do :; done", "exec >/data/local/tmp/big; while :; do cat /proc/1523/smaps; done",
}

// Whatever a command line wants, it ends with its context, and the host keeps its
// memory.
func TestBombs(t *testing.T) {
	_, untouched := host(t)
	before := heapInUse()
	for _, bomb := range bombs {
		checkBounded(t, bomb, 40*time.Millisecond)
	}
	if grown := heapInUse() - before; grown > 64<<20 {
		t.Errorf("%d MB of the heap stay in use", grown>>20)
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

// checkBounded runs a command on a phone of its own for a time.
func checkBounded(t *testing.T, command string, limit time.Duration) {
	t.Helper()
	p := New(Options{Scale: 1000, Apps: []App{{Package: "a.b", Debuggable: true, Processes: []ProcessSpec{{Name: "a.b", Models: []Model{Typical()}}}}}, Instrumentations: []Instrumentation{
		{Package: "a.b.test", Target: "a.b", Tests: []Test{{Name: "a#b", Leaks: []LeakedActivities{{"a.b.A", 2}}}, {Name: "a#c", Outcome: TestCrashes}}},
	}})
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stdin, hold := io.Pipe()
	defer hold.Close()
	began := time.Now()
	exit := p.Shell(ctx, command, stdin, io.Discard, io.Discard)
	// Generous: the machine may be busy.
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

// Texts with more levels than any parser's stack has room for.
func TestDeepText(t *testing.T) {
	for _, opener := range []string{"(", "{ ", "$(", "`", "if ", "while ", "! ", "f() ", "$((", "$((-", "$((1?", "${a:-", "((1?", "[[ ( ", "case a in a) ", "\"$(", "a|", "a&&", "for a in a; do ", "time ", "a[", "x=$((x[", "{a,", "@(", "<<a "} {
		for _, n := range []int{100, maxOpeners, maxCommand / len(opener), 2 * maxCommand} {
			checkBounded(t, strings.Repeat(opener, n), 50*time.Millisecond)
		}
	}
	closed := strings.Repeat("(", 200) + "echo deep" + strings.Repeat(")", 200)
	if a := sh1(t, New(Options{}), closed); a.exit == 0 || a.out != "" {
		t.Errorf("200 subshells in each other: %+v", a)
	}
}

func FuzzShell(f *testing.F) {
	for _, s := range posixScripts {
		f.Add(s)
	}
	for _, s := range bombs {
		f.Add(s)
	}
	for _, s := range []string{"grep -E '(a|b){2,3}' /proc/*/stat", "am dumpheap -n a.b /data/local/tmp/x; ls -l /data/local/tmp", "mapfile | cat", "dumpsys meminfo -a a.b", "monkey -p a.b 10", "run-as a.b sh -c 'kill -10 $$'",
		"logcat -d -b all -v epoch,usec -T 5.5 --pid=3018 -e 'GC|died' art:W *:S", "log -t a b; logcat -c; logcat -t 1", "find /proc/self -maxdepth 2 -type l -name '[0-9]*' -delete",
		"dumpsys activity exit-info a.b; dumpsys package a.b", "showmap -a -v -t 1", "am instrument -w -r -e class a#b a.b.test; input swipe 1 2 3 4 99; pm list instrumentation", "readlink /proc/self/fd/0; ls -l /proc/self/fd"} {
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

func FuzzGrepPattern(f *testing.F) {
	for _, p := range []string{`^(Pss|SwapPss):`, `a\(b\)`, `[]a]`, `[^]a]`, `[[:alpha:]]`, `\<x\>`, `*a`, `a\{2\}`, `[a\]`, `[`, "\xca\\\x84"} {
		f.Add(p, "a line of Pss: 1 kB", true)
	}
	f.Fuzz(func(t *testing.T, p, line string, extended bool) {
		re, err := grepPattern([]string{p}, extended, false, false, false, false)
		if err != nil {
			return
		}
		for _, span := range re.FindAllStringIndex(line, -1) {
			if span[0] < 0 || span[1] > len(line) {
				t.Fatalf("%q in %q at %v", p, line, span)
			}
		}
		// A fixed pattern finds itself.
		if fixed, err := grepPattern([]string{p}, false, true, false, false, false); err != nil || !strings.Contains(p, "\n") && !fixed.MatchString("x"+p+"y") {
			t.Fatalf("%q as text: %v", p, err)
		}
	})
}
