package footprint

import (
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// commLen is the maximum length of a name: TASK_COMM_LEN without the
	// terminating zero (include/linux/sched.h). A name of this length may be
	// truncated.
	commLen = 15
	// maxThreadName is the maximum length of a name that is not from the
	// kernel.
	maxThreadName = 64
)

// threadName is a parsed name. The skeleton has a 0 byte in place of each
// number; numbers holds the numbers. No printable name contains a 0 byte.
type threadName struct {
	skeleton string
	numbers  []string
	cut      bool
}

const digitMark = '\x00'

func parseName(comm string) threadName {
	rest := printableThread(comm)
	n := threadName{cut: len(comm) == commLen}
	if at := ofBinder(rest); at > 0 {
		_, pid, _ := strings.Cut(rest[:at-1], ":")
		n.skeleton, n.numbers = rest[:at-1-len(pid)]+"\x00_\x00", []string{pid, rest[at:]}
		return n
	}
	var skeleton strings.Builder
	for len(rest) > 0 {
		at := strings.IndexFunc(rest, isNumeral)
		if at < 0 {
			skeleton.WriteString(rest)
			break
		}
		skeleton.WriteString(rest[:at])
		skeleton.WriteByte(digitMark)
		rest = rest[at:]
		end := strings.IndexFunc(rest, func(r rune) bool { return !isNumeral(r) })
		if end < 0 {
			end = len(rest)
		}
		n.numbers = append(n.numbers, rest[:end])
		rest = rest[end:]
	}
	n.skeleton = skeleton.String()
	return n
}

func printableThread(comm string) string {
	return text.Printable(comm[:min(len(comm), maxThreadName)])
}

// ofBinder returns the position of the number in a thread's name if the thread
// belongs to a binder pool, and 0 otherwise. No other number in the name of a
// thread is hexadecimal (frameworks/native libs/binder/ProcessState.cpp,
// makeBinderThreadName: "%s:%d_%X").
func ofBinder(text string) int {
	pool, rest, _ := strings.Cut(text, ":")
	pid, hex, _ := strings.Cut(rest, "_")
	if !strings.HasSuffix(strings.ToLower(pool), "binder") || strings.Trim(pid, "0123456789") != "" || pid == "" ||
		strings.Trim(hex, "0123456789ABCDEF") != "" || hex == "" {
		return 0
	}
	return len(text) - len(hex)
}

// front reports whether the beginning of the name may be truncated: Android's
// runtime keeps only the end of a name that contains a dot but no @ (art
// libartbase/base/utils.cc, SetThreadName).
func (n *threadName) front() bool {
	return n.cut && strings.Contains(n.skeleton, ".") && !strings.Contains(n.skeleton, "@")
}

// open reports whether a number of the name may itself be truncated.
func (n *threadName) open(i int) bool {
	return n.cut && i == len(n.numbers)-1 && n.skeleton[len(n.skeleton)-1] == digitMark ||
		n.front() && i == 0 && n.skeleton[0] == digitMark
}

// fillIn replaces the NUL bytes in a skeleton with numbers.
func fillIn(skeleton string, number func(i int) string) string {
	parts := strings.Split(skeleton, "\x00")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString(number(i - 1))
		}
		b.WriteString(part)
	}
	return b.String()
}

func isNumeral(r rune) bool { return '0' <= r && r <= '9' }
