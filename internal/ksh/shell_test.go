package ksh

//unit:program a real shell is the second implementation

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/stall"
)

// posixScripts lists scripts that produce the same output in every POSIX shell.
var posixScripts = []string{
	`echo a  b "c  d" 'e  f' g\ \ h`, `printf '%s|%d|%x|%5s|%-5s|%%|%03d\n' a 10 255 b c 7`, `printf '%s\n' a b c`,
	`echo -n x; echo y`,
	`x=5; echo $x ${x} "$x" '$x' \$x`, `echo ${u:-def} ${u-def} ${u:=set} $u ${u:+alt} ${v:+alt}end`,
	`x=; echo "[${x:-a}][${x-a}][${x:+b}][${x+b}]"`, `x=a\ b\\c; echo "$x"; x="a\ b"; echo "$x"`,
	`x=/proc/123/cmdline; echo ${x#/proc/} ${x##*/} ${x%/*} ${x%%/*}end ${#x}`,
	`x=a.b.c; echo ${x#*.} ${x##*.} ${x%.*} ${x%%.*}`,
	`x='a*b'; echo "${x#a\*}" "${x%'*b'}" "${x%"*b"}" ${x##[!b]}`,
	`x="a b  c"; for i in $x; do echo "<$i>"; done; for i in "$x"; do echo "<$i>"; done`,
	`set -- a "b c" d; echo $# $1 "$2" $3; for i in "$@"; do echo "<$i>"; done; for i in $@; do echo "<$i>"; done; echo "$*"`,
	`set --; for i in "$@"; do echo no; done; echo "x$@y" "$*"`,
	`set -- 1 2; echo "a $@ b"`,
	`echo $((1+2*3)) $(((1+2)*3)) $((7/2)) $((7%3)) $((-7/2)) $((1<<4)) $((255&15)) $((1||0)) $((2>1?5:6)) $((0x10)) $((010))`,
	`i=3; echo $((i+1)) $((i*2)) $((-i)) $((i=7)) $i`,
	`if true; then echo t; else echo f; fi; if false; then echo t; elif true; then echo e; fi; if false; then echo x; fi; echo $?`,
	`i=0; while [ $i -lt 5 ]; do i=$((i+1)); [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done; echo end $i`,
	`until false; do echo once; break; done; i=3; until [ $i = 0 ]; do i=$((i-1)); done; echo $? $i`,
	`for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; echo $i$j; done; done`,
	`for i in 1 2; do for j in a b; do [ $j = b ] && break 2; echo $i$j; done; done`,
	`case abc in x) echo x;; a*) echo a;; *) echo other;; esac; case "a*" in a\*) echo lit;; esac; case b in [abc]) echo set;; esac`,
	`case x in a|x) echo alt;; esac; case q in z) ;; esac; echo $?; x='a*'; case 'a*' in "$x") echo quoted;; esac; case ab in "$x") echo no;; esac`,
	`(x=2; echo $x); echo ${x-unset}; { y=3; }; echo $y`,
	`(exit 7); echo $?; false; echo $?; true; echo $?; ! true; echo $?; ! false; echo $?`,
	`true && echo a; false && echo b; true || echo c; false || echo d; false && x || echo e; true && false || echo f`,
	`echo $(echo a; echo b) "$(printf 'x\n\n\n')" $(echo '  s  p  ')`, `echo "$(echo "$(echo nested)")" ` +
		"`echo back`",
	`x=$(false); echo $?; x=$(exit 5); echo $?; x=1; echo $?`, `echo a b c | while read x y; do echo "$y-$x"; done`,
	`printf 'l1\nl2\nl3\n' | while read l; do echo "[$l]"; done`,
	`printf ' a  b c \nd\n' | { IFS= read -r x; read y z; echo "[$x][$y][$z]"; }`,
	`printf 'a\\b\n' | { read x; echo "$x"; }; printf 'a\\b\n' | { read -r x; printf '%s\n' "$x"; }; printf 'a\\\nb\n' | { read x; echo $x; }`,
	`echo one | cat; echo two | cat | cat; printf 'b\na\nc\n' | grep .`,
	`echo err >&2 2>/dev/null; { echo e >&2; echo o; } 2>/dev/null`,
	`exec 3>&1; echo three >&3; exec 3>&-`, `x=1 eval 'echo $x'; eval "y=2; echo \$y"; eval; echo $?`,
	`a=b; b=c; eval "echo \$$a"`, `x=a; x=b true; echo $x`,
	`(echo ${x?}) 2>/dev/null && echo no; (echo ${x?text}; echo no) 2>/dev/null || echo after`,
	`test -z "" && echo z; test -n a && echo n; [ a = a ] && echo eq; [ a != b ] && echo ne; [ 1 -lt 2 ] && [ 3 -gt 2 ] && echo and`,
	`[ 1 = 2 ] || [ 1 = 1 ] && echo or; [ ! a = b ] && echo not; [ ! -n "" ] && echo not; [ ! "" ] && echo not; [ ! ] && echo not; [ ! ! a ] && echo yes; [ ]; echo $?; [ ! = x ]; echo $?; [ "" ]; echo $?; [ "(" = "(" ]; echo $?; [ -n ]; echo $?`,
	`[ -d / ] && echo d; [ -e /nonexistent ] || echo ne; [ -f / ] || echo nf`,
	`cd /; pwd; cd /dev; pwd; cd ..; pwd; cd /nonexistent 2>/dev/null || echo failed`,
	`E=1 sh -c 'echo $E $0 $1' zero one`, `nosuchcommand 2>/dev/null; echo $?`,
	`x="a\"b\\c\$d"; echo "$x"; echo "a\b"; echo 'it'"'"'s'`,
	`echo ~ | grep -c .; echo "~" '~' a~b`, `echo [a] "*" '?' \*`,
	`: ${x:=1}; echo $x; echo ${x:?msg}; (echo ${nope:?msg}; echo no) 2>/dev/null || echo failed`,
	`x=abc; y=x; echo ${#x} ${#} $# "${#y}"`, `echo a; exit 4; echo b`, `command -v nosuch || echo none`,
	`sleep 0; echo slept; sleep 0 & wait; echo waited`, `{ echo a; echo b; } | { read x; read y; echo $y$x; }`,
	`echo "abc" | grep -q b && echo found; echo abc | grep -c z; printf 'foo1\nbar2\nfoo3\n' | grep foo; printf 'a.b\naxb\n' | grep -F a.b`,
	`printf 'a.b\naxb\n' | grep -v 'a\.b'; printf 'aab\nab\nb\n' | grep -E '^a+b$'; printf 'x1y22\n' | grep -o '[0-9]*'; printf 'a|b\nab\n' | grep 'a|b'`,
	`printf 'ab\ncd\n' | grep -e a -e d; cd /dev; echo nul[l] nul\[l\] "nul[l]" nul?x; for i in nu*l; do echo $i; done`,
}

// TestPOSIX compares the shell with dash, if dash is installed.
func TestPOSIX(t *testing.T) {
	for _, script := range posixScripts {
		checkDash(t, script)
	}
}

func checkDash(t *testing.T, script string) {
	t.Helper()
	dash, err := exec.LookPath("dash")
	if err != nil {
		recorded.Missing(t, "dash is not installed: %v", err)
	}
	cmd := exec.Command(dash, "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/"}
	want, err := cmd.Output()
	if a := newMachine().ask(t, script); a.out != string(want) || (a.exit == 0) != (err == nil) {
		t.Errorf("%q\nprints %q (exit %d, %q), dash %q (%v)", script, a.out, a.exit, a.err, want, err)
	}
}

// TestMKSH tests the behavior of mksh that POSIX does not specify, and what is
// rejected.
func TestMKSH(t *testing.T) {
	const refused = ": not supported by this shell\n"
	for script, want := range map[string]answer{
		`echo a{b,c}f {x}; echo $'a\tb\x41'`: {out: "abf acf {x}\na\tbA\n"},
		`i=1; echo $((i++)) $i`:              {out: "1 2\n"},
		`curl http://x`:                      {err: "/system/bin/sh: curl: not found\n", exit: 127},
		`echo >/tmp/x; /tmp/x`: {
			err: "/system/bin/sh: /tmp/x: can't execute: Permission denied\n", exit: 126,
		},
		`for d in /proc/[0-9]*/comm; do read n <$d; case $n in init) echo found ${d%%[0-9]*};; esac; done`: {
			out: "found /proc/\n",
		},
		`cd /proc && echo [0-9] /t*p /nothing*`: {out: "1 /tmp /nothing*\n"},
		`x='*'; cd /dev; echo $x`:               {out: "*\n"},
		`grep -s x /nosuch; echo $?; grep x /proc`: {
			out: "2\n", err: "grep: /proc: Is a directory\n", exit: 2,
		},
		`printf 'echo script $1 $0\nexit 3\n' >/tmp/s; sh /tmp/s arg; echo $?`: {out: "script arg /tmp/s\n3\n"},
		`echo 'unterminated`: {
			err: "/system/bin/sh: 1:6: reached EOF without closing quote `'`\n", exit: 1,
		},
		`echo $((1/0)); echo next`: {
			out: "next\n", err: "/system/bin/sh: division by zero\n",
		},
		`exec echo replaced; echo no`: {out: "replaced\n"},
		`set -e; echo on`: {
			out: "on\n", err: "/system/bin/sh: set: options are not supported by this shell\n",
		},
		`trap '' HUP; trap 'echo no' EXIT; echo on`: {
			out: "on\n", err: "/system/bin/sh: trap: commands are not supported by this shell\n",
		},
		`while :; do echo y; done | { read x; echo $x; }; echo $?`: {out: "y\n0\n"},
		`echo ~nobody ~root/x`: {out: "~nobody ~root/x\n"},
		`kill -9 $$; echo no`:  {exit: 137},
		`sleep 9 & kill $!; wait; kill -0 $! || echo gone; kill -x 1; kill`: {
			out: "gone\n", exit: 1,
			err: "/system/bin/sh: kill: 102: No such process\n/system/bin/sh: kill: x: bad signal\n" +
				"/system/bin/sh: kill: usage: kill [-s signame | -signum | -signame] { job | pid | pgrp } ...\n"},
		`nice -n 19 kill x`: {err: "kill: x: arguments must be jobs or process IDs\n", exit: 1},
		`mkdir /tmp/a /tmp/a/b; echo x >/tmp/a/b/c; echo yy >>/tmp/a/b/c; ls /tmp/a; stat -c '%s %n' /tmp/a/b/c; rm /tmp/a; rm -r /tmp/a; ls -d /tmp/a`: {
			out: "b\n5 /tmp/a/b/c\n", err: "rm: /tmp/a: Is a directory\nls: /tmp/a: No such file or directory\n",
			exit: 1},
		`echo abc | md5sum; echo abc | sha256sum | grep -c edeaaff3f1774ad2`: {
			out: "0bee89b07a248e27c83fc3d5951213c1  -\n1\n",
		},
		`touch /tmp/t; ls -l /tmp`: {
			out: "total 4\n-rw-r--r--  1 user     user            0 2001-09-09 01:46 t\n",
		},
		`cat -x`:   {err: "cat: Unknown option 'x' (see \"cat --help\")\n", exit: 1},
		`sleep 1x`: {err: "sleep: not a number '1x'\n", exit: 1},
		`printf %99999d 1; printf %q x`: {
			err: "/system/bin/sh: printf: width too large\n/system/bin/sh: printf: invalid format char: q\n", exit: 1,
		},
		// If a script contains unsupported syntax, no part of it runs.
		`echo no; x=hello; echo ${x:1:3}`: {err: "/system/bin/sh: bad substitution" + refused, exit: 1},
		`echo no; x=hello; echo ${x/l/L}`: {err: "/system/bin/sh: bad substitution" + refused, exit: 1},
		`x=hello; y=h; echo ${x#"$y"}`:    {err: "/system/bin/sh: bad substitution" + refused, exit: 1},
		`echo no; [[ a == a* ]]`:          {err: "/system/bin/sh: this kind of command" + refused, exit: 1},
		`f() { echo no; }; f`:             {err: "/system/bin/sh: this kind of command" + refused, exit: 1},
		`export x=1`:                      {err: "/system/bin/sh: this kind of command" + refused, exit: 1},
		"cat <<E\nx\nE\n":                 {err: "/system/bin/sh: <<" + refused, exit: 1},
		`echo no &>/tmp/x`:                {err: "/system/bin/sh: &>" + refused, exit: 1},
		`x=(a b)`:                         {err: "/system/bin/sh: array" + refused, exit: 1},
		`echo no |& cat`:                  {err: "/system/bin/sh: coprocess" + refused, exit: 1},
		`select i in a; do echo no; done`: {err: "/system/bin/sh: this loop" + refused, exit: 1},
		`x=$(</proc/1/comm)`:              {err: "/system/bin/sh: this substitution" + refused, exit: 1},
		`eval 'x=(a b)'; echo on`:         {out: "on\n", err: "/system/bin/sh: array" + refused},
		`cat <(echo x); echo no`:          {err: "/system/bin/sh: 1:5: `<` must be followed by a word\n", exit: 1},
	} {
		if a := newMachine().ask(t, script); a != want {
			t.Errorf("%s\nprints %+v\nwant   %+v", script, a, want)
		}
	}
}

func TestInteractive(t *testing.T) {
	var out, errs bytes.Buffer
	lines := "echo one\nfor i in a b; do\necho $i\ndone\nif\n)\nx=3\necho $x\nexit 5\necho no\n"
	exit := newMachine().run(t.Context(), "", strings.NewReader(lines), &out, &errs)
	if out.String() != "one\na\nb\n3\n" || exit != 5 || !strings.HasPrefix(errs.String(), "$ $ > > ") {
		t.Errorf("exit %d, %q, %q", exit, out.String(), errs.String())
	}
}

func TestStdin(t *testing.T) {
	for command, want := range map[string]string{
		"cat": "a\nb\n", "read x; echo [$x]; cat": "[a]\nb\n", "cat | cat | grep b": "b\n", "grep -c .": "2\n",
		"true; echo none":           "none\n",
		"cat >/tmp/in; cat /tmp/in": "a\nb\n", "cat & wait": "", "sh": "",
	} {
		var out bytes.Buffer
		if newMachine().run(t.Context(), command, strings.NewReader("a\nb\n"), &out, nil); out.String() != want {
			t.Errorf("%s: %q, want %q", command, out.String(), want)
		}
	}
}

// A write error must end the command, for example if the connection is lost.
func TestLostOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		r.Close()
		began := time.Now()
		if exit := newMachine().run(t.Context(), "while true; do echo x; sleep 1; done", nil, w, nil); exit != 128+
			SIGPIPE || time.Since(began) > time.Second {
			t.Errorf("exit %d after %v", exit, time.Since(began))
		}
	})
}

// bombs lists command lines that use unlimited time or memory.
var bombs = []string{
	"while true; do :; done", "until false; do :; done", "while :; do x=$x$x.; done",
	"while :; do x=$x$x$x$x; set -- $x $x; done",
	"x='eval $x'; eval $x; while :; do :; done",
	"while :; do echo 0123456789; done | cat >/tmp/fill; while :; do :; done", "while :; do echo x; done",
	"printf %999999999d; printf %.999999999s x; printf '%99d%99d%99d%99d%99d%99d%99d%99d'; while :; do :; done",
	"x=$(while :; do echo 0123456789; done)",
	"echo " + strings.Repeat("{a,b}", 22) + "; sleep 1d", "echo {1..99999999999}; sleep 1d",
	"echo " + strings.Repeat("{a,b}", 3000),
	"x=0123456789; x=$x$x$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x$x$x; while :; do echo " +
		strings.Repeat("$x", 9000) + "; done",
	"x=$(x=0123456789; while :; do echo $x; x=$x$x; done); while :; do y=\"" + strings.Repeat("${x%%9*8*7}", 5000) +
		"\"; done",
	"sleep 1e300", "sleep 1e9 & sleep 1e9 | sleep 1e9", "cat", "read x; read x",
	"trap 'while :; do :; done' EXIT; while :; do :; done", "while :; do (:); done",
	"while :; do : & done", "while :; do i=$((i+1)); eval \"v$i=$i\"; done", "while :; do touch /tmp/$((i+=1)); done",
	"set -- /proc/*/* a b c; while :; do set -- \"$@\" \"$@\"; done",
	"until :& do :; done; while :; do sh -c 'sh -c \"sh -c :\"'; done",
	"printf 'while :; do sh /tmp/s; done' >/tmp/s; sh /tmp/s; while :; do :; done",
	"i=0; while :; do i=$((i*i+1<<62/7%3**2)); done; while :; do :; done",
	"exec >/tmp/big; while :; do cat /proc/1/comm; done", "while :; do echo $((" + strings.Repeat("-", 3000) +
		"1)); done",
	"while :; do echo ${a:-" + strings.Repeat("${a:-x", 3000) + strings.Repeat("}", 3001) + "; done",
}

// Every command must end when its context is canceled, and must not exhaust the
// host's memory.
func TestBombs(t *testing.T) {
	before, stalls := heapInUse(), stall.Measure(t)
	for _, bomb := range bombs {
		checkBounded(t, stalls, bomb, 40*time.Millisecond)
	}
	if grown := heapInUse() - before; grown > 64<<20 {
		t.Errorf("%d MB of the heap remain in use, want at most 64", grown>>20)
	}
}

func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}

// checkBounded runs a command on a separate machine for a limited time, and
// checks that it ends in time with a valid exit status and leaves no process
// running.
func checkBounded(t *testing.T, stalls *stall.Meter, command string, limit time.Duration) {
	t.Helper()
	m := newMachine()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	stdin, hold := io.Pipe()
	defer hold.Close()
	began := time.Now()
	exit := m.run(ctx, command, stdin, io.Discard, io.Discard)
	const slack = 5 * time.Second
	if took := time.Since(began); took > limit+slack && took > limit+slack+stalls.Total() {
		t.Errorf("%.200q took %v, want at most %v", command, took, limit+slack)
	}
	if exit < 0 || exit > 255 {
		t.Errorf("%.200q: exit %d", command, exit)
	}
	if len(m.procs) != 0 {
		t.Errorf("%.200q left %d processes", command, len(m.procs))
	}
}

// The peak memory of a command is also bounded.
func TestMemoryOfExpansions(t *testing.T) {
	for _, bomb := range bombs {
		m := newMachine()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		done := make(chan int)
		go func() { done <- m.run(ctx, bomb, nil, io.Discard, io.Discard) }()
		for running := true; running; {
			select {
			case <-done:
				running = false
			case <-time.After(10 * time.Millisecond):
				if held := heapInUse(); held > 256<<20 {
					t.Errorf("%.100q holds %d MB", bomb, held>>20)
				}
			}
		}
		cancel()
	}
}

// TestDeepText runs scripts that nest more deeply than the stack of any parser
// allows.
func TestDeepText(t *testing.T) {
	stalls := stall.Measure(t)
	for _, opener := range []string{
		"(", "{ ", "$(", "`", "if ", "while ", "! ", "f() ", "$((", "$((-", "$((1?", "${a:-", "((1?", "[[ ( ",
		"case a in a) ", "\"$(", "a|", "a&&",
		"for a in a; do ", "time ", "a[", "x=$((x[", "{a,", "@(", "<<a ", "[ ! ",
	} {
		for _, n := range []int{100, maxOpeners, maxCommand / len(opener), 2 * maxCommand} {
			checkBounded(t, stalls, strings.Repeat(opener, n), 50*time.Millisecond)
		}
	}
	closed := strings.Repeat("(", 200) + "echo deep" + strings.Repeat(")", 200)
	if a := newMachine().ask(t, closed); a.exit == 0 || a.out != "" {
		t.Errorf("200 nested subshells: %+v", a)
	}
}

// FuzzShell checks that every command line ends and leaves no process running,
// and that parsing does not depend on the previous command line.
func FuzzShell(f *testing.F) {
	for _, s := range append(posixScripts, bombs...) {
		f.Add(s)
	}
	stalls := stall.Measure(f)
	f.Fuzz(func(t *testing.T, command string) {
		checkBounded(t, stalls, command, 25*time.Millisecond)
		_, first := parse(command)
		if _, second := parse(command); (first == nil) != (second == nil) {
			t.Errorf("%q: %v, then %v", command, first, second)
		}
	})
}

func FuzzGrepPattern(f *testing.F) {
	for _, p := range []string{
		`^(Pss|SwapPss):`, `a\(b\)`, `[]a]`, `[^]a]`, `[[:alpha:]]`, `\<x\>`, `*a`, `a\{2\}`, `[a\]`, `[`, "\xca\\\x84",
	} {
		f.Add(p, "a line of Pss: 1 kB", true)
	}
	f.Fuzz(func(t *testing.T, p, line string, extended bool) {
		re, err := grepPattern(grepKey{p, extended, false})
		if err != nil {
			return
		}
		for _, span := range re.FindAllStringIndex(line, -1) {
			if span[0] < 0 || span[1] > len(line) {
				t.Fatalf("%q in %q at %v", p, line, span)
			}
		}
		// A pattern without special characters matches itself.
		if fixed, err := grepPattern(grepKey{p, false, true}); err != nil || !strings.Contains(p, "\n") &&
			!fixed.MatchString("x"+p+"y") {
			t.Fatalf("fixed pattern %q: %v", p, err)
		}
	})
}
