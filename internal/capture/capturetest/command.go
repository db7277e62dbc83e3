package capturetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

func (s *suite) exits(t *testing.T) {
	codes := map[string]int{
		"true": 0, "false": 1, "exit 3": 3, "exit 255": 255, "(exit 7)": 7, "sh -c 'exit 9'": 9, "false || exit 4": 4,
		"echo x; exit 5": 5, "/no/such/command 2>/dev/null": 127, "exit 6 # comment": 6, "true\nexit 8\n": 8,
	}
	if !s.Old {
		// Without the shell protocol, the exit status of a shell that is killed
		// is lost.
		codes["kill -9 $$"] = 137
	}
	for command, want := range codes {
		if r := s.shell(t, command); r.exit != want {
			t.Errorf("%q: exit %d, want %d", command, r.exit, want)
		}
	}
}

func (s *suite) streams(t *testing.T) {
	const command = "echo one; echo two >&2; echo three; echo four >&2; exit 2"
	r := s.shell(t, command)
	want := result{"one\nthree\n", "two\nfour\n", 2}
	if s.Old {
		want = result{"one\ntwo\nthree\nfour\n", "", 2}
	}
	if r != want {
		t.Errorf("%q gave %+v, want %+v", command, r, want)
	}
	for _, w := range [][2]io.Writer{{nil, nil}, {io.Discard, nil}, {nil, io.Discard}} {
		if exit, err := s.dev.Shell(within(t), command, w[0], w[1]); exit != 2 || err != nil {
			t.Errorf("without writers: exit %d, %v", exit, err)
		}
	}
}

func (s *suite) binary(t *testing.T) {
	var want, escapes strings.Builder
	for i := range 256 {
		want.WriteByte(byte(i))
		fmt.Fprintf(&escapes, `\%03o`, i)
	}
	for _, more := range []string{"\r\n", "\r\r\n", "\n\r", "\n\n", "\r"} {
		want.WriteString(more)
		escapes.WriteString(strings.NewReplacer("\r", `\r`, "\n", `\n`).Replace(more))
	}
	if r := s.shell(t, "printf '"+escapes.String()+"'"); r.out != want.String() || r.exit != 0 {
		t.Errorf("printf of all byte values: got output %q, exit %d; want the same bytes, exit 0", r.out, r.exit)
	}
}

func (s *suite) silence(t *testing.T) {
	for _, command := range []string{"true", ":", "# nothing", "printf ''", "sleep 0"} {
		if r := s.shell(t, command); r != (result{}) {
			t.Errorf("%q gave %+v", command, r)
		}
	}
}

// stdin checks that a command that reads its standard input gets end of file
// instead of the input of this process.
func (s *suite) stdin(t *testing.T) {
	for command, want := range map[string]string{
		"cat; echo end": "end\n", "read line; echo $?": "1\n", "cat | cat; echo end": "end\n",
		"while read x; do echo $x; done; echo end": "end\n",
	} {
		if r := s.shell(t, command); r.out != want {
			t.Errorf("%q gave %+v, want %q", command, r, want)
		}
	}
}

// hostile lists arguments that a shell must not interpret.
var hostile = []string{
	"", " ", "a b", "'", "''", "'\\''", `"`, "`", "`id`", "$(id)", "$((1+1))", "$HOME", "${IFS}", "\\", "\\\\n", "a\nb",
	"\n", "trailing\n\n", "\r\n", "\t", "*", "?", "[a-z]*", "~", "~root",
	"!", "#", "; reboot", "&& reboot", "| reboot", "> /x", "< /x", "&", "-n", "--", "-e \\x41", "%s%n%d", "%", "{a,b}",
	"=", "a=b", "\x01\x02\x1b[31m\x7f", "\x1b]0;title\a",
	"\xff\xfe\x80", "ab\xc3", "\xed\xa0\x80", "\u202eevil\u202c", "\u200b\ufeff", "\u00e9\U0001f600", "EOF\nEOF\n",
	"'; echo pwned; '", "'$(echo pwned)'", "$'\\x41'",
}

func (s *suite) quoting(t *testing.T) {
	args := hostile
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		arg := make([]byte, r.IntN(200))
		for i := range arg {
			arg[i] = byte(1 + r.IntN(255)) // an argument cannot contain NUL
		}
		args = append(args[:len(args):len(args)], string(arg))
	}
	for _, arg := range args {
		if s.quoted(t, arg); t.Failed() {
			return // the other arguments would fail in the same way
		}
	}
}

func (s *suite) quoted(t *testing.T, arg string) {
	t.Helper()
	word := text.ShellQuote(arg)
	if r := s.shell(t, "printf '%s' "+word); r != (result{out: arg}) {
		t.Errorf("printing %s returned %+v", brief(arg), r)
	}
	if r := s.shell(t, "set -- "+word+" end; echo $# $2"); r != (result{out: "2 end\n"}) {
		t.Errorf("%s was split into several words: %+v", brief(arg), r)
	}
}

// largeCommand checks that a command that is too long is rejected with an
// error, and that no part of it runs.
func (s *suite) largeCommand(t *testing.T) {
	arg := strings.Repeat("0123456789 $(x)\n", 64_000/16)
	command := "printf '%s' " + text.ShellQuote(arg)
	if !s.Old {
		if r := s.shell(t, command); r != (result{out: arg}) {
			t.Errorf("printing %d bytes: got %d bytes, exit %d, stderr %q; want the same bytes, exit 0", len(arg),
				len(r.out), r.exit, r.err)
		}
		command = "printf x; " + command + command
	}
	var out strings.Builder
	if exit, err := s.dev.Shell(within(t), command, &out, &out); err == nil || out.Len() > 0 {
		t.Errorf("a command of %d bytes: got exit %d, %d bytes of output, error %v; want an error and no output",
			len(command), exit, out.Len(), err)
	}
}

// busy is a command that prints its process ids and then runs endlessly, with a
// child that also keeps running.
const busy = "sleep 600 & echo $!; echo $$; while :; do sleep 1; done"

func (s *suite) failingWriter(t *testing.T) {
	own := errors.New("disk full")
	var pids []string
	w := &lines{seen: func(words []string) error {
		if len(words) < 2 {
			return nil
		}
		pids = words[:2]
		for _, pid := range pids {
			if !s.alive(t, pid) {
				t.Errorf("process %s is not visible while it runs", pid)
			}
		}
		return own
	}}
	_, err := s.dev.Shell(within(t), busy, w, w)
	s.failed(t, "a writer that fails", err, own)
	s.gone(t, pids)
	if s.Old {
		return
	}
	_, err = s.dev.Shell(within(t), "echo x >&2; sleep 600", nil, &lines{seen: func([]string) error { return own }})
	s.failed(t, "a writer of stderr that fails", err, own)
}

func (s *suite) cancel(t *testing.T) {
	for name, command := range map[string]string{
		"loop":   busy,
		"pipe":   "sleep 600 & echo $!; echo $$; sleep 600 | cat; :",
		"nested": "sh -c 'echo $$; sleep 600; :' & echo $$; wait; :",
		"deaf":   "trap '' HUP INT TERM; sleep 600 & echo $!; echo $$; sleep 600; sleep 600",
	} {
		ctx, cancel := context.WithCancel(within(t))
		w := &lines{}
		var pids []string
		w.seen = func(words []string) error {
			if len(words) == 2 {
				pids = words
				cancel()
			}
			return nil
		}
		_, err := s.dev.Shell(ctx, command, w, w)
		s.failed(t, name+", cancelled", err, context.Canceled)
		cancel()
		s.gone(t, pids)
	}
}

func (s *suite) deadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := s.dev.Shell(ctx, "sleep 600; :", nil, nil)
	s.failed(t, "a deadline", err, context.DeadlineExceeded)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the call took %v", took)
	}
}

func (s *suite) cancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, shell := s.dev.Shell(ctx, "echo never >"+text.ShellQuote(s.file("never")), nil, nil)
	_, pull := s.dev.Pull(ctx, s.file("never"), io.Discard)
	push := s.dev.Push(ctx, strings.NewReader("x"), s.file("never"), 0o600)
	for _, err := range []error{shell, pull, push} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	}
	if r := s.shell(t, "ls "+text.ShellQuote(s.file("never"))); r.exit == 0 {
		t.Error("a call that was canceled in advance had an effect")
	}
}

// together checks that commands and transfers that run concurrently each get
// their own complete result.
func (s *suite) together(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			want := strings.Repeat(fmt.Sprint("call ", i, "\n"), 300)
			r := s.shell(t, "i=0; while [ $i -lt 300 ]; do echo call "+fmt.Sprint(i)+"; i=$((i+1)); done; exit "+
				fmt.Sprint(i))
			if r.out != want || r.exit != i {
				t.Errorf("call %d: exit %d, %d bytes, %q", i, r.exit, len(r.out), r.err)
			}
		})
		if i%2 > 0 {
			continue
		}
		wg.Go(func() { s.roundTrip(t, fmt.Sprint("file ", i), []byte(strings.Repeat(fmt.Sprint(i), 100_000))) })
	}
	wg.Wait()
}

// cut checks that a command whose exit status is lost returns an error, even if
// its output is complete.
func (s *suite) cut(t *testing.T) {
	if s.Cut == nil {
		t.Skip("this device cannot be disconnected")
	}
	var once sync.Once
	w := &lines{seen: func([]string) error { once.Do(func() { go s.Cut() }); return nil }}
	_, err := s.dev.Shell(within(t), "echo begun; sleep 5", w, w)
	s.failed(t, "a connection that is interrupted", err, nil)
	if !strings.Contains(w.all.String(), "begun") {
		t.Errorf(`got output %q before the interruption, want "begun" in it`, w.all.String())
	}
}
