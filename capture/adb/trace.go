package adb

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/leakgate/leakgate/internal/text"
)

// trace is how a command is found again on the device: a token, new for every
// command, that stands in its command line and before its first output.
type trace string

func newTrace() trace {
	var b [12]byte
	// crypto/rand.Read never fails since Go 1.24.
	_, _ = rand.Read(b[:])
	return trace("lg" + hex.EncodeToString(b[:]))
}

// prefixed is the command for shell v2. The prefix stands on the command's first
// line, so that the numbers in messages of the shell stay true, and nothing stands
// behind the command, so that its quotes, comments, here-documents and exit status
// stay its own.
func (t trace) prefixed(command string) string {
	return t.prefix() + command
}

func (t trace) prefix() string { return "echo " + string(t) + " $$ >&2; " }

// enclosed is the command for services without an exit status. The subshell takes
// exec and exit of the command, eval takes its syntax errors, and neither keeps the
// last line from being printed. Standard input is empty: the service never ends it.
func (t trace) enclosed(command string) string {
	return "echo " + string(t) + " $$; exec </dev/null; (eval " + text.ShellQuote(command) + "); echo " + string(t) + ":$?"
}

// killScript ends a command on the device. Where its process id is known that is
// the process group (adbd makes the shell the leader of one), else the children
// and the process; `kill -9 -PID` without -- is what every shell takes. Where the
// id is not known the token in the command line finds it; the brackets keep the
// pattern from finding itself.
func (t trace) killScript(pid int) string {
	if pid != 0 {
		return endOne(strconv.Itoa(pid))
	}
	last := len(t) - 1
	pattern := string(t[:last]) + "[" + string(t[last:]) + "]"
	return "for p in $(grep -l -s " + pattern + " /proc/[0-9]*/cmdline); do p=${p#/proc/}; p=${p%/cmdline}; " + endOne("$p") + "; done"
}

func endOne(pid string) string {
	return fmt.Sprintf("kill -9 -%[1]s 2>/dev/null || { pkill -9 -P %[1]s; kill -9 %[1]s; } 2>/dev/null", pid)
}

// maxPID is the kernel's PID_MAX_LIMIT.
const maxPID = 1 << 22

// maxHeader is how many bytes may come before the line with the process id, such
// as warnings of the device's linker.
const maxHeader = 4 << 10

// header takes the line "TOKEN PID" out of the beginning of a stream.
type header struct {
	trace trace
	// pid is the shell's process id once it was seen, else 0.
	pid int
	// crlf says that the line ended with \r\n: a terminal that rewrites line ends.
	crlf bool
	// done says that the line came, or will not.
	done bool
	held []byte
}

// strip gives the part of p, and of what was held back before, that is output.
func (h *header) strip(p []byte) []byte {
	if h.done {
		return p
	}
	h.held = append(h.held, p...)
	from, to, ok := h.find()
	switch {
	case ok:
		out := append(h.held[:from], h.held[to:]...)
		h.held, h.done = nil, true
		return out
	case len(h.held) > maxHeader:
		return h.rest()
	}
	return nil
}

// find looks for a line's end that is the token and a number. The token alone is
// not enough: some shells quote the line that they cannot parse.
func (h *header) find() (from, to int, ok bool) {
	for at := 0; ; {
		i := bytes.Index(h.held[at:], []byte(h.trace+" "))
		if i < 0 {
			return 0, 0, false
		}
		from = at + i
		at = from + len(h.trace) + 1
		n := bytes.IndexByte(h.held[at:], '\n')
		if n < 0 {
			return 0, 0, false
		}
		digits, crlf := bytes.CutSuffix(h.held[at:at+n], []byte("\r"))
		pid, err := strconv.ParseUint(string(digits), 10, 32)
		if err != nil {
			continue
		}
		h.crlf = crlf
		// kill -9 -1 would mean every process.
		if pid > 1 && pid <= maxPID {
			h.pid = int(pid)
		}
		return from, at + n + 1, true
	}
}

// rest gives what was held back, when the line does not come any more: without our
// prefix, which a shell may have quoted.
func (h *header) rest() []byte {
	out := bytes.ReplaceAll(h.held, []byte(h.trace.prefix()), nil)
	h.held, h.done = nil, true
	return out
}

// trailer holds back what may be the line "TOKEN:STATUS" at the end of a stream.
type trailer struct {
	trace trace
	buf   []byte
	cut   int // buf up to here was given as output
}

// maxStatus is the longest ":STATUS\n" that counts, in bytes.
const maxStatus = len(":255\n")

// strip gives the part of p, and of what was held back before, that is output for
// sure. The result is valid until the next call.
func (t *trailer) strip(p []byte) []byte {
	held := copy(t.buf, t.held())
	t.buf = append(t.buf[:held], p...)
	t.cut = t.start(t.buf)
	return t.buf[:t.cut]
}

// held is what was held back.
func (t *trailer) held() []byte { return t.buf[t.cut:] }

// start is where the line may begin, else the end.
func (t *trailer) start(all []byte) int {
	from := max(0, len(all)-len(t.trace)-maxStatus)
	tail := all[from:]
	if at := bytes.LastIndex(tail, []byte(t.trace)); at >= 0 {
		return from + at
	}
	for n := min(len(t.trace)-1, len(tail)); n > 0; n-- {
		if bytes.HasSuffix(tail, []byte(t.trace[:n])) {
			return len(all) - n
		}
	}
	return len(all)
}

// status reads the line, when the stream has ended with it.
func (t *trailer) status() (int, bool) {
	text, ok := bytes.CutPrefix(t.held(), []byte(t.trace+":"))
	if !ok {
		return 0, false
	}
	text, ok = bytes.CutSuffix(text, []byte("\n"))
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text), 10, 8)
	return int(n), err == nil
}

// newlines turns \r\n back into \n. A terminal puts \r before every \n, so this
// loses nothing.
type newlines struct{ held bool }

// strip changes p in place; a \r at its end waits for what follows.
func (n *newlines) strip(p []byte) []byte {
	if !n.held && bytes.IndexByte(p, '\r') < 0 {
		return p
	}
	out := make([]byte, 0, len(p)+1)
	for _, c := range p {
		if n.held && c != '\n' {
			out = append(out, '\r')
		}
		if n.held = c == '\r'; !n.held {
			out = append(out, c)
		}
	}
	return out
}

// rest gives the \r that nothing followed.
func (n *newlines) rest() []byte {
	if !n.held {
		return nil
	}
	n.held = false
	return []byte{'\r'}
}
