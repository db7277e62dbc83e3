package footprint

import (
	"strings"
)

const (
	// commLen is how long a name is at most: TASK_COMM_LEN less the zero at its end
	// (include/linux/sched.h). A name of this length may have been cut.
	commLen = 15
	// maxThreadName bounds a name that is no comm.
	maxThreadName = 64
)

// threadName is a name taken apart: what its numbers are replaced with is the skeleton, and the
// numberRuns are beside it. A 0 stands for a number; no printable name has one.
type threadName struct {
	skeleton string
	numbers  []string
	cut      bool
}

const digitMark = '\x00'

func parseName(comm string) threadName {
	text := printable(comm, maxThreadName)
	n := threadName{cut: len(comm) == commLen}
	if at := ofBinder(text); at > 0 {
		_, pid, _ := strings.Cut(text[:at-1], ":")
		n.skeleton, n.numbers = text[:at-1-len(pid)]+"\x00_\x00", []string{pid, text[at:]}
		return n
	}
	var skeleton strings.Builder
	for len(text) > 0 {
		at := strings.IndexFunc(text, isNumeral)
		if at < 0 {
			skeleton.WriteString(text)
			break
		}
		skeleton.WriteString(text[:at])
		skeleton.WriteByte(digitMark)
		text = text[at:]
		end := strings.IndexFunc(text, func(r rune) bool { return !isNumeral(r) })
		if end < 0 {
			end = len(text)
		}
		n.numbers = append(n.numbers, text[:end])
		text = text[end:]
	}
	n.skeleton = skeleton.String()
	return n
}

// ofBinder gives where the number of a thread of a binder pool begins, 0 where it is none:
// it is the only one in hex (frameworks/native libs/binder/ProcessState.cpp,
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

// front tells whether the beginning may be what was cut: the runtime of Android keeps the
// end of a name with a dot and without an @ (art libartbase/base/utils.cc, SetThreadName).
func (n *threadName) front() bool {
	return n.cut && strings.Contains(n.skeleton, ".") && !strings.Contains(n.skeleton, "@")
}

// open tells whether a number of the name was perhaps cut itself.
func (n *threadName) open(i int) bool {
	return n.cut && i == len(n.numbers)-1 && n.skeleton[len(n.skeleton)-1] == digitMark ||
		n.front() && i == 0 && n.skeleton[0] == digitMark
}

// fillIn puts numbers into a skeleton.
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
