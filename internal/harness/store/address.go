package store

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leakgate/leakgate/internal/text"
)

// Default is the address that error messages suggest.
const Default = schemeFile + ":" + defaultName

const (
	schemeFile     = "file"
	schemeGit      = "git"
	schemeCommand  = "command"
	schemeArtifact = "artifact"

	defaultName   = "leak-baseline.json"
	defaultRemote = "origin"

	// maxAddress is the maximum length of an address in bytes.
	maxAddress = 4096
	// maxQuoted is the maximum length of quoted text in a message, in
	// characters.
	maxQuoted = 100
)

// Address identifies the location of a baseline.
type Address struct {
	scheme string
	// path is the path of the file; for a git store, it is the path on the
	// branch.
	path           string
	remote, branch string
	// words lists the program and its arguments.
	words []string
	// name is the name of the artifact.
	name string
}

// Scheme returns the kind of store: file, git, command or artifact.
func (a Address) Scheme() string { return a.scheme }

// String returns the address in the form that Parse reads. It includes the
// arguments of a program, which may be secret: use Store.String for messages.
func (a Address) String() string {
	switch a.scheme {
	case schemeFile:
		return schemeFile + ":" + a.path
	case schemeGit:
		return schemeGit + ":" + a.remote + "/" + a.branch + "#" + a.path
	case schemeCommand:
		return schemeCommand + ":" + joinWords(a.words)
	case schemeArtifact:
		return schemeArtifact + ":" + a.name
	}
	return ""
}

// Parse parses the address of a store:
//
//	file:PATH
//	git:BRANCH#PATH, git:REMOTE/BRANCH#PATH (the remote is origin; a branch with a slash needs its remote)
//	command:PROGRAM [ARGUMENT...] (quotes group words; the command is not run by a shell)
//	artifact:NAME
//
// An error suggests what to write instead. It does not contain the credentials
// of a URL.
func Parse(s string) (Address, error) {
	if len(s) > maxAddress {
		return Address{}, fmt.Errorf("parse baseline store: %s; shorten it to %d",
			text.Bytes(int64(len(s))), maxAddress)
	}
	if strings.TrimSpace(s) == "" {
		return Address{}, fmt.Errorf("parse baseline store: no store given; write %s", Default)
	}
	a, err := parse(s)
	if err == nil {
		return a, nil
	}
	if a.scheme == schemeCommand || a.scheme != "" && !slices.Contains(schemes, a.scheme) {
		// Arguments may be secret, even after a misspelled "command".
		return Address{}, fmt.Errorf("parse baseline store %s: %w", quoted(a.scheme+":..."), err)
	}
	return Address{}, fmt.Errorf("parse baseline store %s: %w", quoted(s), err)
}

// quoted formats a part of an address for a message.
func quoted(s string) string { return text.Quote(redact(s), maxQuoted) }

// parse returns an address with its scheme even if the text after the scheme is
// invalid.
func parse(s string) (Address, error) {
	scheme, rest, found := strings.Cut(s, ":")
	if !found || !isScheme(scheme) {
		return Address{}, bare(s)
	}
	a := Address{scheme: scheme}
	if i := strings.IndexFunc(s, unprintable); i >= 0 || !utf8.ValidString(s) {
		return a, errors.New("control or invalid character; write one line of printable text")
	}
	if trimmed := strings.TrimSpace(rest); trimmed != rest {
		return a, fmt.Errorf("spaces around the value; write %s", quotedExample(scheme, trimmed))
	}
	var err error
	switch scheme {
	case schemeFile:
		a.path, err = rest, checkFile(rest)
	case schemeGit:
		a.remote, a.branch, a.path, err = parseGit(rest)
	case schemeCommand:
		a.words, err = splitWords(rest)
	case schemeArtifact:
		a.name, err = rest, checkArtifact(rest)
	default:
		err = unknown(scheme, rest)
	}
	return a, err
}

func unprintable(r rune) bool { return unicode.IsControl(r) || text.Printable(string(r)) != string(r) }

// quotedExample formats an address as a suggestion. It omits the arguments of a
// program.
func quotedExample(scheme, rest string) string {
	if scheme == schemeCommand {
		return "command:PROGRAM [ARGUMENT...]"
	}
	return quoted(scheme + ":" + rest)
}

// isScheme reports whether a word before a colon can be a scheme. A single
// letter is a Windows drive, and user@host is the beginning of a repository's
// address.
func isScheme(word string) bool {
	return len(word) > 1 && !strings.ContainsFunc(word, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-.", r))
	})
}

// bare returns the error for an address without a scheme.
func bare(s string) error {
	if before, _, ok := strings.Cut(s, ":"); ok && strings.Contains(before, "@") {
		return errRepository
	}
	if strings.Contains(s, "#") {
		return fmt.Errorf("no scheme; write %s", quoted(schemeGit+":"+s))
	}
	return fmt.Errorf("no scheme; write %s", quoted(schemeFile+":"+s))
}

var errRepository = errors.New(
	"a repository URL; write git:REMOTE/BRANCH#PATH with the name of a remote (`git remote`)")

// meant maps words that users may write by mistake to the scheme that they
// mean.
var meant = map[string]string{
	"path": schemeFile, "local": schemeFile, "branch": schemeGit, "exec": schemeCommand, "cmd": schemeCommand,
	"program": schemeCommand, "run": schemeCommand,
	"artefact": schemeArtifact, "actions": schemeArtifact, "github": schemeArtifact,
}

var schemes = []string{schemeFile, schemeGit, schemeCommand, schemeArtifact}

// unknown returns the error for a scheme that does not exist.
func unknown(scheme, rest string) error {
	lower := strings.ToLower(scheme)
	if likely, ok := meant[lower]; ok {
		return fmt.Errorf("unknown scheme %s; write %s", quoted(scheme), quotedExample(likely, rest))
	}
	for limit := range 3 {
		for _, s := range schemes {
			if editDistance(lower, s) <= limit && 2*limit < len(s) {
				return fmt.Errorf("unknown scheme %s; write %s", quoted(scheme), quotedExample(s, rest))
			}
		}
	}
	if slices.Contains([]string{"http", "https", "ssh"}, lower) || strings.HasPrefix(lower, "git+") {
		return errRepository
	}
	if strings.HasPrefix(rest, "//") {
		return errors.New("URLs of this kind are not supported; write command:PROGRAM, a program that downloads " +
			"and uploads the baseline")
	}
	return fmt.Errorf("unknown scheme %s; want file, git, command or artifact", quoted(scheme))
}

// editDistance returns the number of insertions, deletions, substitutions and
// swaps of adjacent characters that turn a into b (optimal string alignment).
func editDistance(a, b string) int {
	if len(a) > 2*len(b) {
		return len(a) // too long to resemble any scheme
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			if i == 0 || j == 0 {
				d[i][j] = i + j
				continue
			}
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

func checkFile(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("no file given; write %s", Default)
	case strings.HasPrefix(name, "//"):
		return fmt.Errorf("want a path, not a URL; write %s", quoted(schemeFile+":"+strings.TrimPrefix(name, "//")))
	case strings.HasSuffix(name, "/") || path.Base(name) == "." || path.Base(name) == "..":
		return fmt.Errorf("a directory; write %s", quoted(schemeFile+":"+path.Join(name, defaultName)))
	}
	return nil
}

// checkArtifact checks a name by the rules of actions/upload-artifact (its
// docs, "Invalid characters in artifact name").
func checkArtifact(name string) error {
	const most, invalid = 200, "\":<>|*?\\/"
	switch {
	case name == "":
		return errors.New("no artifact given; write artifact:leak-baseline")
	case len(name) > most:
		return fmt.Errorf("the name has %d bytes; shorten it to %d", len(name), most)
	case strings.ContainsAny(name, invalid):
		return fmt.Errorf("an artifact name cannot contain any of %s; write artifact:leak-baseline", invalid)
	case name == "." || name == "..":
		return errors.New("not an artifact name; write artifact:leak-baseline")
	}
	return nil
}
