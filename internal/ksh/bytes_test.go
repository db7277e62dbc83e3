package ksh

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// odd lists bytes that a UTF-8 parser would reject or change: invalid
// sequences, CR, and the code points by which the shell replaces these bytes
// internally.
var odd = []string{
	"\xff", "\x80", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\r", "\r\n", "\r\r\n", "a\r\nb", "\n\r",
	"\xc3\r", "\xff\xfe\r\n", "\ufffd",
	"\U0010fefe", "\U0010ff00", "\U0010ff0d", "\U0010ff41\xf4\x8f", "\U0010ffff", "\u00e9\U0001f600",
	"\xf4\x8f\xbd\xff", "'\xff'", "$\xff", "\\\xff", "\\\r\n", "`\xff`", "{\xff,\r}", "\x01\x7f",
}

// oddScripts lists scripts that contain X, which is replaced with each string
// in odd that contains no quotes.
var oddScripts = []string{
	"printf '%s' 'X' | cat", `x="X"; printf '%s' "$x"; echo "${x}" '' "$x"`,
	`printf '%s|' "aX" "Xb" "$(printf '%s' 'X')" "${n:-X}"`,
	"case 'X' in 'X') echo same;; *) echo differs;; esac; case 'X' in Q*) echo q;; *) echo none;; esac",
	`x='aXb'; echo "${x#a}" "${x%b}" "${x#a'X'}" "${x%'X'b}" "${x##*'X'}"`,
	"[ 'X' = 'X' ] && echo same; [ 'X' = 'Y' ] || echo differs",
	"eval 'printf %s \"X\"'; sh -c 'printf \"%s|\" \"$1\"' X 'X'", "set -- 'X'; printf '%s' \"$1\"; # X\necho end",
	"echo 'X' | { read -r x; printf '%s' \"$x\"; }",
	"trap '' HUP; echo $((1+1)) 'X'; if true; then printf X; " +
		"fi; while [ -z \"$i\" ]; do i='X'; done; printf '%s' \"$i\"",
	"for j in 'X' a; do printf '%s|' \"$j\"; done; (printf '%s' 'X'); { printf '%s' 'X'; }",
}

// dash is the reference for scripts with arbitrary bytes, because it accepts
// all bytes except NUL.
func TestAnyBytes(t *testing.T) {
	scripts := []string{
		"echo a\r\necho b", "printf '[%s]' a\r b \r c", "echo \xff; echo a\xffb\xfec", "echo \\\xff \\\r\\\xc3\\\xa9",
		"x=\xff\r; echo $x", "printf '%s|' \xff{a \xff} \r{",
		"case \xff in \xfe) echo wrong;; \xff) echo right;; esac", "case a\r in a) echo wrong;; a?) echo right;; esac",
		"case \xff in [\x80-\xff]) echo in;; esac",
		"x=a\xffb\xfec; echo ${x#*\xff} ${x%\xfe*} ${x##*[\xfe\xff]} ${#x}", "echo 'one \\\r\ntwo' \"one \\\r\ntwo\"",
		"IFS=\r; x=a\rb; for i in $x; do echo \"<$i>\"; done",
		"true\r", "nosuch\xff", "\xff=1; echo $?", "echo a # \xff\r\necho b", "set -- \xff \r; echo $# $1$2",
		"printf '\\377\\r\\n' | { read x; printf '%s' \"$x\"; }",
	}
	for _, script := range oddScripts {
		for _, text := range odd {
			if !strings.ContainsAny(text, "'`$\\\"{") { // dash does not support {a,b}
				scripts = append(scripts, strings.ReplaceAll(script, "X", text))
			}
		}
	}
	for _, script := range posixScripts {
		scripts = append(scripts, ": \xff\r\n"+script)
	}
	for _, script := range scripts {
		checkDash(t, script)
	}
}

// Errors contain the original bytes.
func TestErrorsShowBytes(t *testing.T) {
	for command, want := range map[string]string{
		"\xffx\r":         "/system/bin/sh: \xffx\r: not found\n",
		"cat '\xff\r\n'":  "cat: \xff\r\n: No such file or directory\n",
		"echo x >/\xff/y": "/system/bin/sh: can't create /\xff/y: No such file or directory\n",
	} {
		if a := newMachine().ask(t, command); a.err != want {
			t.Errorf("%q: %q, want %q", command, a.err, want)
		}
	}
	if a := newMachine().ask(t, "echo ${\xff}"); a.exit == 0 || strings.Contains(a.err, "\U0010ffff") {
		t.Errorf("a syntax error: %+v", a)
	}
}

// File names may contain any bytes, and globs find them.
func TestNamesOfAnyBytes(t *testing.T) {
	a := newMachine().ask(t,
		"cd /tmp && echo 1 >'\xff' && echo 2 >'\xfe\r\n' && echo 3 >\u00e9 && echo * && cat \xff ? *\r* && rm [\xff] "+
			"*\r* && ls")
	if want := "\u00e9 \xfe\r\n \xff\n1\n3\n1\n2\n\u00e9\n"; a.out != want {
		t.Errorf("%+v, want %q", a, want)
	}
	// A multi-byte character counts as one, as in Android's mksh
	// (MKSH_ASSUME_UTF8).
	if a := newMachine().ask(t, "x=\u00e9\xff\u00e8; echo ${x#?} ${x%?} ${#x}"); a.out != "\xff\u00e8 \u00e9\xff 3\n" {
		t.Errorf("%+v", a)
	}
}

// A quoted word must be preserved byte for byte, whatever it contains and
// wherever it is used, and must be equal to itself.
func FuzzQuotedBytes(f *testing.F) {
	for _, text := range odd {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 || strings.Contains(text, "\x00") {
			return
		}
		quote := func(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
		word := quote(text)
		script := "x=" + word + "; printf '%s' " + word + "; printf '%s' \"$x\"; eval " + quote("printf '%s' "+word) +
			"; printf '%s' \"${x}${none-$x}${x#" + word + "}\"; case $x in " + word +
			") printf same;; esac; case a$x in " + word +
			") printf wrong;; esac; [ \"$x\" = " + word + " ] && printf same; set -- " + word + "; printf $#"
		a := newMachine().ask(t, script)
		if want := strings.Repeat(text, 5) + "samesame1"; a.out != want || a.err != "" {
			t.Errorf("%q: %+v, want %q", text, a, want)
		}
	})
}

// opaque must convert every string to valid UTF-8, and plain must reverse the
// conversion.
func FuzzOpaque(f *testing.F) {
	for _, text := range odd {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		hidden := opaque(text)
		if !utf8.ValidString(hidden) || plain(hidden) != text {
			t.Errorf("%q was encoded as %q and decoded as %q", text, hidden, plain(hidden))
		}
		private := func(r rune) bool { return r >= opaqueBase || r == '\r' }
		if utf8.ValidString(text) && !strings.ContainsFunc(text, private) && hidden != text {
			t.Errorf("%q was encoded as %q: a valid string must stay unchanged", text, hidden)
		}
	})
}
