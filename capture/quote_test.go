package capture

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// shells are the real POSIX shells of this machine, as command lines that take a
// script on their input. Android has mksh, and toybox or busybox in recoveries.
func shells(t testing.TB) [][]string {
	t.Helper()
	var out [][]string
	for _, words := range [][]string{{"dash"}, {"sh"}, {"bash"}, {"bash", "--posix"}, {"mksh"}, {"busybox", "sh"}, {"zsh", "--emulate", "sh"}} {
		path, err := exec.LookPath(words[0])
		if err != nil {
			continue
		}
		// sh is often one of the others.
		if real, err := filepath.EvalSymlinks(path); err == nil && words[0] == "sh" && filepath.Base(real) != "busybox" {
			path = real
		}
		shell := append([]string{path}, words[1:]...)
		if !slices.ContainsFunc(out, func(have []string) bool { return slices.Equal(have, shell) }) {
			out = append(out, shell)
		}
	}
	if len(out) == 0 {
		recorded.Missing(t, "a POSIX shell is needed")
	}
	return out
}

// Every text without NUL is one word with the same bytes, in every shell. A NUL in
// the input parts it into words, so that one shell reads many.
func FuzzQuote(f *testing.F) {
	for _, name := range hostileNames {
		f.Add([]byte(name))
	}
	f.Add([]byte(strings.Join(hostileNames, "\x00")))
	f.Add([]byte("\x81\x82\x83\x84\x85\x86\x87\x88\x00\xff\xfe\xc0\x80\x00\\\x00'\x00''\x00'\\''\x00\r\x00\n\x00\t\x00 \x00"))
	all := make([]byte, 255)
	for i := range all {
		all[i] = byte(i + 1)
	}
	f.Add(all)
	f.Add(bytes.Join(bytes.Split(all, nil), []byte{0}))
	available := shells(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		words := strings.Split(string(text), "\x00")
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = Quote(w)
		}
		for _, shell := range available {
			cmd := exec.Command(shell[0], shell[1:]...)
			cmd.Stdin = strings.NewReader("printf '%s\\000' " + strings.Join(quoted, " ") + "\n")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %v: %q", shell, err, out)
			}
			if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, words) {
				t.Errorf("%v reads %q of %q", shell, got, words)
			}
		}
	})
}

// inject is what a name tries to run: it leaves a file in the folder of the canary
// on a real shell, and one in a folder that phones have.
const inject = `touch $CANARY /data/local/tmp/canary`

// hostileNames are names that an app, or whoever writes a configuration, may have.
var hostileNames = []string{
	"com.x;" + inject, "$(" + inject + ")", "`" + inject + "`", "com.x && " + inject, "com.x || " + inject, "com.x | " + inject, "com.x & " + inject,
	"com.x\n" + inject + "\n", "com.x\r\n" + inject, "'; " + inject + "; '", `"; ` + inject + `; "`, `\'; ` + inject + `; \'`, `'\''; ` + inject + `; '\''`,
	"${CANARY:+$(" + inject + ")}", "$((`" + inject + "`))", ") ; " + inject + " ; (", "} ; " + inject, "<(" + inject + ")", "!!", "!:0",
	"* /etc/*", "~root", "com.x#y", "com.x\\", "com.x'", `com.x"`, "", " ", "-rf", "--user", "%s%n", "$HOME", "$CANARY", "com.x$y", "com.x:$(id)",
	"duration: 8h", "- com.x", "{a: b}", "!!str", "&a", "*a", "com.x: y", "\x1b[2Jcom.x", "\u202ecom.x", "com.\u200bx", "com.x\u2028y", "\xff\xfe", "\x01\x7f\x81",
	strings.Repeat("x", 300), "com.中文", "com.x:push", "com.x$Inner:p1/2@3",
}
