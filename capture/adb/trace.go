package adb

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/leakgate/leakgate/internal/text"
)

// trace identifies a command on the device by a token, which is new for every
// command. The token is in the command line and is printed before the first
// output of the command.
type trace string

func newTrace() trace {
	var b [12]byte
	// Since Go 1.24, crypto/rand.Read is guaranteed not to fail.
	_, _ = rand.Read(b[:])
	return trace("lg" + hex.EncodeToString(b[:]))
}

// prefixed returns the command for shell v2. The prefix is on the command's
// first line, so line numbers in the shell's messages stay correct. Nothing
// follows the command, so its quotes, comments, here-documents and exit status
// are unaffected.
func (t trace) prefixed(command string) string {
	return t.prefix() + command
}

func (t trace) prefix() string { return "echo " + string(t) + " $$ >&2; " }

// enclosed returns the command for services without an exit status. The
// subshell confines exec and exit in the command, and eval confines syntax
// errors, so the last line is always printed. Standard input is empty, because
// the service never closes it.
func (t trace) enclosed(command string) string {
	return "echo " + string(t) + " $$; exec </dev/null; (eval " + text.ShellQuote(command) + "); echo " + string(t) +
		":$?"
}

// killScript returns the script that kills a command on the device. If the
// process id of the shell is known, the script kills the process group that the
// shell leads. If that fails, it kills the shell's children and the shell.
// `kill -9 -PID` without -- works in every shell. If the id is unknown, the
// script searches command lines for the token; the brackets keep the pattern
// from matching itself.
func (t trace) killScript(pid int) string {
	if pid != 0 {
		return endOne(strconv.Itoa(pid))
	}
	last := len(t) - 1
	pattern := string(t[:last]) + "[" + string(t[last:]) + "]"
	return "for p in $(grep -l -s " + pattern + " /proc/[0-9]*/cmdline); do p=${p#/proc/}; p=${p%/cmdline}; " +
		endOne("$p") + "; done"
}

func endOne(pid string) string {
	return fmt.Sprintf("kill -9 -%[1]s 2>/dev/null || { pkill -9 -P %[1]s; kill -9 %[1]s; } 2>/dev/null", pid)
}

// maxPID is the kernel's PID_MAX_LIMIT.
const maxPID = 1 << 22

// maxHeader is the maximum number of bytes that may precede the line with the
// process id, for example warnings from the device's linker.
const maxHeader = 4 << 10

// header removes the line "TOKEN PID" from the beginning of a stream.
type header struct {
	trace trace
	// pid is the shell's process id, or 0 before it is known.
	pid int
	// crlf reports whether the line ended with \r\n, which means that a
	// terminal rewrites line endings.
	crlf bool
	// done reports whether the line was found, or is no longer expected.
	done bool
	held []byte
}

// strip returns the output contained in p and in the bytes that were held back.
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

// find locates the token and a number at the end of a line. The token alone is
// not sufficient: some shells quote a line that they cannot parse.
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
		// A pid of 1 is rejected: kill -9 -1 would kill every process.
		if pid > 1 && pid <= maxPID {
			h.pid = int(pid)
		}
		return from, at + n + 1, true
	}
}

// rest returns the held-back text without our prefix, which a shell may have
// quoted. It is called when the line is no longer expected.
func (h *header) rest() []byte {
	out := bytes.ReplaceAll(h.held, []byte(h.trace.prefix()), nil)
	h.held, h.done = nil, true
	return out
}

// trailer holds back text at the end of a stream that could be the line
// "TOKEN:STATUS".
type trailer struct {
	trace trace
	buf   []byte
	cut   int // buf before this index has been returned as output
}

// maxStatus is the maximum length of ":STATUS\n", in bytes.
const maxStatus = len(":255\n")

// strip appends p to the bytes that were held back, and returns those bytes
// that are certainly output. The result is valid until the next call.
func (t *trailer) strip(p []byte) []byte {
	held := copy(t.buf, t.held())
	t.buf = append(t.buf[:held], p...)
	t.cut = t.start(t.buf)
	return t.buf[:t.cut]
}

// held returns the bytes that are held back.
func (t *trailer) held() []byte { return t.buf[t.cut:] }

// start returns the index in the given text at which the line may begin, or the
// length of the text if the line cannot begin there.
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

// status parses the line "TOKEN:STATUS", if the stream ends with it.
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

// newlines converts \r\n back to \n. A terminal inserts \r before every \n, so
// nothing is lost.
type newlines struct{ held bool }

// strip changes p in place and holds back a \r at its end.
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

// rest returns a held-back \r if nothing followed it.
func (n *newlines) rest() []byte {
	if !n.held {
		return nil
	}
	n.held = false
	return []byte{'\r'}
}
