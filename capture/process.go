package capture

import (
	"fmt"
	"strings"
	"unicode"
)

// Process is one life of a process of an app. Name and user identify the
// process; pid and start time identify the life, because a pid can be reused.
type Process struct {
	Name string
	// User is the Android user, 0 for the owner.
	User int
	UID  int
	PID  int
	// Start is the start time in clock ticks since boot, field 22 of
	// /proc/PID/stat.
	Start uint64
	// Twin numbers the processes with the same user and name that run at the
	// same time: 0 is the first process, 2 the second. FindProcesses always
	// sets Twin to 0; its caller numbers the processes.
	Twin int
}

// twinSign separates the name from the number in the key of a twin. Process
// names do not contain this character.
const twinSign = '#'

// perUser is AID_USER_OFFSET, the width of one Android user's range of uids
// (system/core libcutils/include/private/android_filesystem_config.h).
const perUser = 100000

// Isolated reports whether the process runs under an isolated uid, from 90000
// (AID_ISOLATED_START; app zygotes use the first uids of this range) to 99999.
// run-as cannot run commands under such a uid.
func (p Process) Isolated() bool {
	app := p.UID % perUser
	return app >= 90000 && app <= 99999
}

// Installed reports whether the process runs under the uid of an installed app
// (AID_APP_START); lower uids belong to the system.
func (p Process) Installed() bool { return p.UID%perUser >= 10000 }

// Key identifies a process. A restart of the process does not change its key.
type Key struct {
	User int
	Name string
}

// Key returns the key of the process. The key of a twin is NAME#2.
func (p Process) Key() Key {
	if p.Twin > 1 {
		return Key{User: p.User, Name: fmt.Sprintf("%s%c%d", p.Name, twinSign, p.Twin)}
	}
	return Key{User: p.User, Name: p.Name}
}

// String returns NAME, or NAME (user N) for a user other than the owner.
func (k Key) String() string {
	if k.User == 0 {
		return k.Name
	}
	return fmt.Sprintf("%s (user %d)", k.Name, k.User)
}

// Same reports whether p and q are the same life of a process.
func (p Process) Same(q Process) bool {
	return p.PID == q.PID && p.Start == q.Start
}

// Package returns the part of the name before the first colon, which is the
// app's package unless the process chose its own name.
func (p Process) Package() string {
	name, _, _ := strings.Cut(p.Name, ":")
	if i := strings.LastIndexByte(name, twinSign); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		return name[:i] // not the name of an app's process, but one stored in a run
	}
	return name
}

// Pattern matches processes by name: an exact name, or a prefix followed by one
// star.
type Pattern string

// Match reports whether the pattern matches a process name.
func (p Pattern) Match(name string) bool {
	if head, ok := strings.CutSuffix(string(p), "*"); ok {
		return strings.HasPrefix(name, head)
	}
	return string(p) == name
}

// stem returns the part of the pattern that every matching name contains.
func (p Pattern) stem() string { return strings.TrimSuffix(string(p), "*") }

// ParsePattern validates a pattern. It rejects text that cannot be part of an
// app's process name, so that a typing error is reported immediately and does
// not look like a process that never starts.
func ParsePattern(text string) (Pattern, error) {
	stem := strings.TrimSuffix(text, "*")
	if stem == "" {
		return "", fmt.Errorf("parse process pattern %q: want at least one letter before the star", text)
	}
	if len(text) > 255 {
		return "", fmt.Errorf("parse process pattern: longer than 255 bytes")
	}
	if strings.TrimSpace(stem) != stem {
		return "", fmt.Errorf("parse process pattern %q: space at the beginning or end", text)
	}
	if stem[0] == '-' {
		return "", fmt.Errorf("parse process pattern %q: a process name does not start with a dash", text)
	}
	for _, c := range stem {
		if !patternRune(c) {
			return "", fmt.Errorf("parse process pattern %q: invalid character %q; "+
				"a star may only be the last character", text, c)
		}
	}
	return Pattern(text), nil
}

// patternRune reports whether a pattern may contain this character: letters and
// digits of every language, spaces, and the punctuation in names of Java
// classes and programs.
func patternRune(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) || strings.ContainsRune("._:-$/@ +", c)
}
