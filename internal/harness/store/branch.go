package store

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// maxRef is the maximum length in bytes of the name of a branch or remote and
// of a path on a branch, because git may store a ref as a file.
const maxRef = 200

// parseGit reads [REMOTE/]BRANCH#PATH.
func parseGit(s string) (remote, branch, file string, err error) {
	if strings.Contains(s, "://") || strings.HasPrefix(s, "//") || strings.Contains(strings.SplitN(s, "#", 2)[0], "@") {
		return "", "", "", errRepository
	}
	where, file, found := strings.Cut(s, "#")
	if !found || file == "" {
		if b, f, ok := strings.Cut(where, ":"); ok && f != "" {
			return "", "", "", fmt.Errorf("no path on the branch; write %s", quoted(schemeGit+":"+b+"#"+f))
		}
		return "", "", "", fmt.Errorf("no path on the branch; write %s", quoted(schemeGit+":"+where+"#"+defaultName))
	}
	remote, branch = defaultRemote, where
	if r, b, ok := strings.Cut(where, "/"); ok {
		remote, branch = r, b
	}
	if err := checkRemote(remote); err != nil {
		return "", "", "", err
	}
	if err := checkBranch(branch); err != nil {
		return "", "", "", err
	}
	return remote, branch, file, checkPath(file)
}

// checkRemote accepts the usual names of remotes. It rejects URLs, which may
// contain credentials.
func checkRemote(name string) error {
	allowed := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.", r)
	}
	if name == "" || len(name) > maxRef || strings.ContainsRune("-.", rune(name[0])) ||
		strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) }) {
		return fmt.Errorf("invalid remote %s; want letters, digits, dots, dashes and underscores, such as origin",
			quoted(name))
	}
	return nil
}

// checkBranch accepts the branch names that git-check-ref-format(1) allows,
// except "#", which ends the branch name here, and "@", which that page
// reserves for HEAD.
func checkBranch(name string) error {
	fail := func(why string) error {
		return fmt.Errorf("invalid branch %s: %s; name a branch such as leak-baseline", quoted(name), why)
	}
	switch {
	case name == "":
		return fail("it is empty")
	case len(name) > maxRef:
		return fail(fmt.Sprintf("longer than %d bytes", maxRef))
	case name == "HEAD" || strings.Contains(name, "@"):
		return fail(`it cannot be HEAD or contain "@"`)
	case name[0] == '-':
		return fail("it starts with a dash")
	case strings.Contains(name, ".."):
		return fail(`it contains ".."`)
	case strings.HasSuffix(name, "."):
		return fail("it ends with a dot")
	case strings.ContainsAny(name, "~^:?*[\\#") ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return fail(`it contains a space or one of ~^:?*[\#`)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return fail("a part between slashes is empty")
		case part[0] == '.':
			return fail("a part starts with a dot")
		case strings.HasSuffix(part, ".lock"):
			return fail(`a part ends with ".lock"`)
		}
	}
	return nil
}

// checkPath accepts a path below the root of a branch if every system can check
// it out.
func checkPath(name string) error {
	fail := func(why string) error {
		return fmt.Errorf("invalid path %s: %s; write a path on the branch such as %s", quoted(name), why, defaultName)
	}
	switch {
	case name == "":
		return errors.New("no path on the branch")
	case len(name) > maxRef:
		return fail(fmt.Sprintf("longer than %d bytes", maxRef))
	case name[0] == '/':
		return fail("it is absolute")
	case name[0] == '-':
		return fail("it starts with a dash")
	case strings.ContainsAny(name, "\\\":*?<>|") || strings.ContainsFunc(name, unicode.IsControl):
		return fail(`it contains one of \":*?<>|`)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return fail("a part between slashes is empty")
		case part == "." || part == "..":
			return fail(`it contains "." or ".."`)
		case strings.HasPrefix(strings.ToLower(part), ".git") || strings.HasPrefix(strings.ToLower(part), "git~"):
			// git never checks out .git, its short name on NTFS, or
			// .gitmodules.
			return fail("git reserves names such as .git")
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return fail("a part ends with a dot or a space")
		}
	}
	return nil
}
