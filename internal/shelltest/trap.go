package shelltest

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// Shells returns the real POSIX shells of this machine, as command lines that
// read a script from standard input. Android has mksh, and toybox or busybox in
// recovery systems.
func Shells(t testing.TB) [][]string {
	t.Helper()
	var out [][]string
	for _, words := range [][]string{
		{"dash"}, {"sh"}, {"bash"}, {"bash", "--posix"}, {"mksh"}, {"busybox", "sh"}, {"zsh", "--emulate", "sh"},
	} {
		path, err := exec.LookPath(words[0])
		if err != nil {
			continue
		}
		// sh is often a link to one of the other shells.
		if real, err := filepath.EvalSymlinks(path); err == nil && words[0] == "sh" &&
			filepath.Base(real) != "busybox" {
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

// Inject is the command that hostile names try to run. It creates the file
// $CANARY, which is set in a real shell, and a file in a folder that exists on
// phones.
const Inject = `touch $CANARY /data/local/tmp/canary`

// HostileNames are names that an app or the author of a configuration may
// choose.
var HostileNames = []string{
	"com.x;" + Inject, "$(" + Inject + ")", "`" + Inject + "`", "com.x && " + Inject, "com.x || " + Inject,
	"com.x | " + Inject, "com.x & " + Inject,
	"com.x\n" + Inject + "\n", "com.x\r\n" + Inject, "'; " + Inject + "; '", `"; ` + Inject + `; "`,
	`\'; ` + Inject + `; \'`, `'\''; ` + Inject + `; '\''`,
	"${CANARY:+$(" + Inject + ")}", "$((`" + Inject + "`))", ") ; " + Inject + " ; (", "} ; " + Inject,
	"<(" + Inject + ")", "!!", "!:0",
	"* /etc/*", "~root", "com.x#y", "com.x\\", "com.x'", `com.x"`, "", " ", "-rf", "--user", "%s%n", "$HOME", "$CANARY",
	"com.x$y", "com.x:$(id)",
	"duration: 8h", "- com.x", "{a: b}", "!!str", "&a", "*a", "com.x: y", "\x1b[2Jcom.x", "\u202ecom.x", "com.\u200bx",
	"com.x\u2028y", "\xff\xfe", "\x01\x7f\x81",
	strings.Repeat("x", 300), "com.中文", "com.x:push", "com.x$Inner:p1/2@3",
}

// Trap is a real shell with a run-as that records its arguments, and a canary
// file that is created if a hostile name is run as a command.
type Trap struct {
	*Device
	canary, log string
}

// NewTrap returns a trap that uses one of the shells that Shells returns.
func NewTrap(t *testing.T, shell []string) *Trap {
	t.Helper()
	dir := t.TempDir()
	tr := &Trap{canary: filepath.Join(dir, "canary"), log: filepath.Join(dir, "log")}
	const runAs = "#!/bin/sh\nprintf '%s\\000' \"$@\" >>$LOG; shift; [ \"$1\" = --user ] && shift 2; exec \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, "run-as"), []byte(runAs), 0o700); err != nil {
		t.Fatal(err)
	}
	tr.Device = &Device{Run: func(ctx context.Context, command string, stdout, stderr io.Writer) (int, error) {
		cmd := exec.CommandContext(ctx, shell[0], append(slices.Clone(shell[1:]), "-c", command)...)
		cmd.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "CANARY=" + tr.canary, "LOG=" + tr.log}
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, stderr
		err := cmd.Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && ctx.Err() == nil {
			return exit.ExitCode(), nil
		}
		return 0, err
	}}
	return tr
}

// Triggered reports whether a hostile name was run as a command.
func (tr *Trap) Triggered() bool {
	_, err := os.Stat(tr.canary)
	return err == nil
}

// Reset removes the canary file.
func (tr *Trap) Reset() error { return os.Remove(tr.canary) }

// Words returns the arguments that run-as has received since the last call.
func (tr *Trap) Words(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(tr.log)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(tr.log); err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\x00")
}
