package capture

import (
	"fmt"
	"strings"
	"unicode"
)

// Process is one process of an app at one time. Name and user say what it is,
// pid and start time which incarnation: a pid alone may be reused.
type Process struct {
	Name string
	// User is the Android user, 0 for the owner.
	User int
	UID  int
	PID  int
	// Start is field 22 of /proc/PID/stat, clock ticks since boot.
	Start uint64
	// Twin numbers processes of one user and name that run at the same time: 0 is the first, 2
	// the second. FindProcesses leaves it 0; who watches them numbers them.
	Twin int
}

// twinSign stands before the number of a twin in its key. No name of a process has it.
const twinSign = '#'

// perUser is AID_USER_OFFSET, the width of one Android user's range of uids
// (system/core libcutils/include/private/android_filesystem_config.h).
const perUser = 100000

// Isolated tells whether the process runs under an isolated uid, which no
// run-as can reach (AID_ISOLATED_START 90000 for app zygotes, to 99999).
func (p Process) Isolated() bool {
	app := p.UID % perUser
	return app >= 90000 && app <= 99999
}

// Installed reports whether the process runs under the uid of an installed app
// (AID_APP_START); those below are of the system.
func (p Process) Installed() bool { return p.UID%perUser >= 10000 }

// Key names the process across its restarts.
type Key struct {
	User int
	Name string
}

// Key returns the name that stays when the process restarts. That of a twin is NAME#2.
func (p Process) Key() Key {
	if p.Twin > 1 {
		return Key{User: p.User, Name: fmt.Sprintf("%s%c%d", p.Name, twinSign, p.Twin)}
	}
	return Key{User: p.User, Name: p.Name}
}

// String gives NAME, or NAME (user N) for another user than the owner.
func (k Key) String() string {
	if k.User == 0 {
		return k.Name
	}
	return fmt.Sprintf("%s (user %d)", k.Name, k.User)
}

// Same tells whether two readings belong to one incarnation.
func (p Process) Same(q Process) bool {
	return p.PID == q.PID && p.Start == q.Start
}

// Package is the part of the name before the first colon, which for a process
// that does not choose a name of its own is the package of its app.
func (p Process) Package() string {
	name, _, _ := strings.Cut(p.Name, ":")
	if i := strings.LastIndexByte(name, twinSign); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		return name[:i] // a name that a run recorded
	}
	return name
}

// Pattern chooses processes by name: an exact name, or a beginning followed by
// one star at the end.
type Pattern string

// Match tells whether the pattern chooses a process of this name.
func (p Pattern) Match(name string) bool {
	if head, ok := strings.CutSuffix(string(p), "*"); ok {
		return strings.HasPrefix(name, head)
	}
	return string(p) == name
}

// stem is the text that every name chosen by the pattern holds.
func (p Pattern) stem() string { return strings.TrimSuffix(string(p), "*") }

// ParsePattern checks a pattern. It refuses what no process name of an app can
// be, so that a typing error is told at once and not as a process that never comes.
func ParsePattern(text string) (Pattern, error) {
	stem := strings.TrimSuffix(text, "*")
	if stem == "" {
		return "", fmt.Errorf("parse process pattern %q: a pattern needs at least one letter before the star", text)
	}
	if len(text) > 255 {
		return "", fmt.Errorf("parse process pattern: longer than 255 bytes")
	}
	if strings.TrimSpace(stem) != stem {
		return "", fmt.Errorf("parse process pattern %q: blanks at its beginning or end", text)
	}
	if stem[0] == '-' {
		return "", fmt.Errorf("parse process pattern %q: a process name does not begin with a dash", text)
	}
	for _, c := range stem {
		if !patternRune(c) {
			return "", fmt.Errorf("parse process pattern %q: %q cannot stand in a process name; a star may only be the last character", text, c)
		}
	}
	return Pattern(text), nil
}

// patternRune reports whether a pattern may name a process with this character: letters and digits
// of every language, blanks, and what stands in names of Java and of programs.
func patternRune(c rune) bool {
	return unicode.IsLetter(c) || unicode.IsMark(c) || unicode.IsDigit(c) || strings.ContainsRune("._:-$/@ +", c)
}
