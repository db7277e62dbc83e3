package shell

import (
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Prefix is the start of a command line that makes a command run under another
// uid. The zero Prefix has no effect.
type Prefix struct {
	words string
	// quoted means that the command is passed as one quoted word (su -c).
	quoted bool
}

// SU returns the two ways to call su: the syntax of Android's own builds, and
// the syntax of su programs installed by rooting tools.
func SU() [2]Prefix { return [2]Prefix{{words: "su 0"}, {words: "su -c", quoted: true}} }

// RunAs returns the prefix that runs a command as the app of a package.
func RunAs(pkg string, user int) Prefix {
	words := "run-as " + text.ShellQuote(pkg)
	if user != 0 {
		words += " --user " + strconv.Itoa(user)
	}
	return Prefix{words: words}
}

// String returns the words of the prefix.
func (p Prefix) String() string { return p.words }

// IsZero reports whether the prefix has no effect.
func (p Prefix) IsZero() bool { return p.words == "" }

// IsSU reports whether the prefix calls su.
func (p Prefix) IsSU() bool { return strings.HasPrefix(p.words, "su ") }

// Wrap returns the command line that runs command under the uid of the prefix.
func (p Prefix) Wrap(command string) string {
	switch {
	case p.IsZero():
		return command
	case p.quoted:
		return p.words + " " + text.ShellQuote(command)
	}
	return p.words + " " + command
}
