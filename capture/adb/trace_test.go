package adb

//unit:program recorded bytes of the adb program

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

func TestHeader(t *testing.T) {
	tr := newTrace()
	long := strings.Repeat("w", maxHeader)
	tests := []struct {
		in, out string
		pid     int
		crlf    bool
	}{
		{string(tr) + " 123\nout\n", "out\n", 123, false},
		{string(tr) + " 123\r\nout\r\n", "out\r\n", 123, true},
		{"WARNING: linker: x\n" + string(tr) + " 7\n\x00\x01", "WARNING: linker: x\n\x00\x01", 7, false},
		{string(tr) + " 123", string(tr) + " 123", 0, false},
		{"no token", "no token", 0, false},
		{"", "", 0, false},
		{string(tr) + " 1\nx", "x", 0, false},
		{string(tr) + " -1\nx", string(tr) + " -1\nx", 0, false},
		{string(tr) + " 0\nx", "x", 0, false},
		{string(tr) + " 99999999999999999999\nx", string(tr) + " 99999999999999999999\nx", 0, false},
		{string(tr) + " 4194305\nx", "x", 0, false},
		{string(tr) + " 5;reboot\nx", string(tr) + " 5;reboot\nx", 0, false},
		{"sh: `" + tr.prefixed("fi") + "'\n", "sh: `fi'\n", 0, false},
		{"sh: `" + tr.prefixed("fi") + "'\n" + string(tr) + " 8\nx", "sh: `" + tr.prefixed("fi") + "'\nx", 8, false},
		{string(tr) + " 12\n" + string(tr) + " 13\n", string(tr) + " 13\n", 12, false},
		{long + "ww" + string(tr) + " 12\n", long + "ww" + string(tr) + " 12\n", 0, false},
	}
	for _, tt := range tests {
		for _, step := range []int{1, 2, 7, 1 << 20} {
			if step < len(tt.in) && len(tt.in) > maxHeader {
				// Output longer than the header is tested only in small pieces:
				// in one piece, the token would be found.
			} else if len(tt.in) > maxHeader {
				continue
			}
			h := header{trace: tr}
			var out []byte
			for p := []byte(tt.in); len(p) > 0; p = p[min(step, len(p)):] {
				out = append(out, h.strip(append([]byte(nil), p[:min(step, len(p))]...))...)
			}
			if !h.done {
				out = append(out, h.rest()...)
			}
			if string(out) != tt.out || h.pid != tt.pid || h.crlf != tt.crlf {
				t.Errorf("%.60q in steps of %d: %.60q pid %d crlf %v, want %.60q %d %v", tt.in, step, out, h.pid,
					h.crlf, tt.out, tt.pid, tt.crlf)
			}
		}
	}
}

// FuzzEnclosed feeds the stream of an enclosed command in two pieces and in
// single bytes, and checks that output and status are unchanged.
func FuzzEnclosed(f *testing.F) {
	f.Add([]byte("hello\n"), byte(7), 3, false)
	f.Add([]byte("a\r\nb\r\r\n\r"), byte(0), 3, true)
	f.Add([]byte("lg0123"), byte(255), 0, true)
	f.Fuzz(func(t *testing.T, out []byte, status byte, cut int, crlf bool) {
		tr := newTrace()
		// Output that looks like the last line, or like its beginning, remains
		// output.
		out = bytes.ReplaceAll(out, []byte("@"), []byte(tr[:len(tr)/2]))
		out = bytes.ReplaceAll(out, []byte("#"), []byte(tr+":9\n"))
		text := fmt.Sprintf("%s 77\n%s%s:%d\n", tr, out, tr, status)
		if crlf {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		at := int(uint(cut) % uint(len(text)))
		for _, r := range [][]string{{text}, {text[:at], text[at:]}, strings.Split(text, "")} {
			got, exit, ok := feed(tr, r)
			if !ok || exit != int(status) || !bytes.Equal(got, out) {
				t.Fatalf("%q: %q, %d, %v; want %q, %d", r, got, exit, ok, out, status)
			}
		}
		if got, _, ok := feed(tr, []string{text[:at]}); ok && !bytes.HasPrefix(out, append(got, tr...)) {
			t.Fatalf("%q was accepted as complete", text[:at])
		}
	})
}

func feed(tr trace, pieces []string) (out []byte, exit int, ok bool) {
	c := &command{trace: tr, head: header{trace: tr}, left: 1 << 40}
	tail := trailer{trace: tr}
	var lines newlines
	for _, p := range pieces {
		b := c.head.strip([]byte(p))
		if c.head.crlf {
			b = lines.strip(b)
		}
		out = append(out, tail.strip(b)...)
	}
	exit, ok = tail.status()
	return out, exit, ok
}

func shells(t *testing.T) []string {
	var found []string
	for _, name := range []string{"sh", "dash", "bash", "mksh", "busybox"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		recorded.Missing(t, "no POSIX shell on this machine")
	}
	return found
}

var tricky = []string{
	"", "true", "false", "exit 7", "echo out; echo err >&2; exit 3", "echo a # comment",
	"echo 'it''s' \"$HOME\" `echo b`",
	"cat <<E\nx $((1+1))\nE", "cat <<'E'\n$x\nE\n", "exec false", "exec sh -c 'exit 9'",
	"cat /dev/null; exec echo last",
	"if true; then echo y; fi", "for i in 1 2; do\necho $i\ndone", "f() { return 4; }; f", "printf 'no newline'",
	"printf 'a\\r\\nb'",
	"set -e; false; echo not", "trap 'echo bye' EXIT; echo hi", "(exit 5)", "echo $?", "kill -9 $$", "echo x |\ncat",
	"{ echo g; }", "\n\necho lines", "echo \\\\ \\' ;",
	"cat", "read x; echo got $?", "echo a & wait", "nosuchcommand", "# nothing", ": ; :", "echo $#$1",
	"LC_ALL=C; echo $LC_ALL", "case x in x) echo c;; esac",
}

// TestWrapping runs commands in real shells, plain and wrapped: their output
// and status must be the same.
func TestWrapping(t *testing.T) {
	for _, sh := range shells(t) {
		for _, command := range append(tricky, "if (", "echo )", "'open", "fi") {
			out, errOut, exit := runShell(t, sh, command)
			tr := newTrace()

			pOut, pErr, pExit := runShell(t, sh, tr.prefixed(command))
			h := header{trace: tr}
			stripped := h.strip([]byte(pErr))
			stripped = append(stripped, h.rest()...)
			if pOut != out || string(stripped) != errOut || pExit != exit {
				t.Errorf("%s: prefixed %q: %q %q %d, want %q %q %d", sh, command, pOut, stripped, pExit, out, errOut,
					exit)
			}

			eOut, _, _ := runShell(t, sh, tr.enclosed(command))
			got, status, ok := feed(tr, []string{eOut})
			if strings.Contains(command, "kill -9 $$") {
				if ok {
					t.Errorf("%s: enclosed %q was accepted as complete", sh, command)
				}
				continue
			}
			// A shell that cannot parse the command may return a different
			// status under eval.
			sameExit := status == exit || exit != 0 && status != 0 && out == "" &&
				strings.Contains("if (echo )'openfi", command)
			if !ok || string(got) != out || !sameExit {
				t.Errorf("%s: enclosed %q: %q %d %v, want %q %d", sh, command, got, status, ok, out, exit)
			}
		}
	}
}

func runShell(t *testing.T, sh, command string) (out, errOut string, exit int) {
	t.Helper()
	args := []string{"-c", command}
	if strings.HasSuffix(sh, "busybox") {
		args = append([]string{"sh"}, args...)
	}
	var o, e strings.Builder
	cmd := exec.Command(sh, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// TestNoExtraProcess checks that a command that ends with exec keeps the
// shell's process id, so the prefix costs no fork.
func TestNoExtraProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	for _, sh := range shells(t) {
		tr := newTrace()
		out, errOut, exit := runShell(t, sh, tr.prefixed("exec cat /proc/self/stat"))
		h := header{trace: tr}
		h.strip([]byte(errOut))
		pid, _, _ := strings.Cut(out, " ")
		if n, err := strconv.Atoi(pid); err != nil || n != h.pid || exit != 0 {
			t.Errorf("%s: cat has pid %q, the shell %d, exit %d", sh, pid, h.pid, exit)
		}
	}
}

var _ io.Writer = failingWriter{}

// failingWriter returns its error on each write.
type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
