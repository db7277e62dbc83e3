package checkout

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxOwnersFile is the maximum size in bytes of a CODEOWNERS file that
	// GitHub loads.
	maxOwnersFile = 3 << 20
	// maxPattern is the maximum length of a pattern, and maxOwned the maximum
	// length of a path that is looked up, both in bytes.
	maxPattern, maxOwned = 4096, 4096
	// maxOwners is the maximum number of owners of one pattern.
	maxOwners = 100
)

// owner matches a user, a team or an e-mail address. The names of users managed
// by a company contain an underscore.
var owner = regexp.MustCompile(
	`^(@[0-9A-Za-z][0-9A-Za-z_-]{0,99}(/[0-9A-Za-z_][0-9A-Za-z._-]{0,99})?|[0-9A-Za-z._%+-]{1,64}@[0-9A-Za-z][0-9A-Za-z-]*(\.[0-9A-Za-z-]+)+)$`)

// Owners returns the owners of a file according to the CODEOWNERS file of the
// checkout, by GitHub's rules (docs.github.com, About code owners): "@user",
// "@org/team" or "name@example.com". It returns nil if the file has no owners.
// path is the slash-separated path relative to the top directory. CODEOWNERS is
// not trusted: a pull request may have changed it.
func (c *Checkout) Owners(path string) []string {
	if len(path) > maxOwned {
		return nil
	}
	parts := strings.Split(path, "/")
	for _, rule := range slices.Backward(c.owners()) {
		if rule.pattern.matches(parts) {
			return slices.Clone(rule.owners)
		}
	}
	return nil
}

// readOwners reads the first CODEOWNERS file in GitHub's search order.
func (c *Checkout) readOwners() []ownerRule {
	root, err := os.OpenRoot(c.top)
	if err != nil {
		return nil
	}
	defer root.Close()
	for _, path := range []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"} {
		content, err := readFile(root, path, maxOwnersFile)
		switch {
		case err == nil:
			return ownerRules(string(content))
		case errors.Is(err, errTooLarge):
			return nil
		}
	}
	return nil
}

// ownerRule is a line of CODEOWNERS.
type ownerRule struct {
	pattern ownerPattern
	owners  []string // nil means that matching files have no owner
}

// ownerRules parses CODEOWNERS. Like GitHub, it skips invalid lines.
func ownerRules(content string) []ownerRule {
	var rules []ownerRule
	for line := range strings.SplitSeq(strings.TrimPrefix(content, "\ufeff"), "\n") {
		fields := ownerFields(line)
		if len(fields) == 0 {
			continue
		}
		pattern, ok := parseOwnerPattern(fields[0])
		if !ok {
			continue
		}
		rule := ownerRule{pattern: pattern}
		for _, field := range fields[1:] {
			if owner.MatchString(field) && len(rule.owners) < maxOwners {
				rule.owners = append(rule.owners, field)
			}
		}
		if len(fields) > 1 && rule.owners == nil {
			continue // the line names owners, but none is valid
		}
		rules = append(rules, rule)
	}
	return rules
}

// ownerFields splits a line, up to a comment, at blanks that are not preceded
// by a backslash.
func ownerFields(line string) []string {
	var fields []string
	for {
		line = strings.TrimLeft(line, " \t\r\f\v")
		if line == "" || line[0] == '#' {
			return fields
		}
		end := 0
		for end < len(line) && strings.IndexByte(" \t\r\f\v", line[end]) < 0 {
			if line[end] == '\\' && end+1 < len(line) {
				end++
			}
			end++
		}
		fields = append(fields, line[:end])
		line = line[end:]
	}
}

// ownerPattern is a pattern in CODEOWNERS: a .gitignore pattern without
// negation or character ranges.
type ownerPattern struct {
	segments []string // "**" stands for any number of directories; other parts may contain * and ?
	inside   bool     // matches only the content of directories that the segments match
	exact    bool     // does not match the content of a directory
}

func parseOwnerPattern(s string) (ownerPattern, bool) {
	switch {
	case len(s) > maxPattern, strings.HasPrefix(s, "!"), strings.HasPrefix(s, `\#`), hasRange(s),
		strings.Contains(s, "***"), strings.Trim(s, "/") == "":
		return ownerPattern{}, false
	}
	var p ownerPattern
	s, p.inside = strings.CutSuffix(s, "/")
	anchored := strings.Contains(s, "/")
	p.segments = strings.Split(strings.TrimPrefix(s, "/"), "/")
	if slices.Contains(p.segments, "") {
		return ownerPattern{}, false
	}
	if !anchored {
		p.segments = append([]string{"**"}, p.segments...)
	}
	last := len(p.segments) - 1
	switch {
	case s == "**" && !p.inside: // matches all files
	case p.segments[last] == "**" && p.inside: // `a/**/` means `a/**/*/`
		p.segments = append(p.segments, "*")
	case p.segments[last] == "**":
		p.inside = true
		p.segments = p.segments[:last]
	case p.segments[last] == "*" && !p.inside:
		// Unlike in .gitignore, `docs/*` matches only files directly in docs.
		p.exact = true
	}
	return p, true
}

// hasRange reports whether a pattern contains brackets or ends with a
// backslash.
func hasRange(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '[', ']':
			return true
		case '\\':
			if i++; i == len(s) {
				return true
			}
		}
	}
	return false
}

// matches reports whether the pattern matches a path, in time proportional to
// the product of both lengths.
func (p ownerPattern) matches(path []string) bool {
	// at[n] reports whether the segments so far match the first n parts of the
	// path.
	at := make([]bool, len(path)+1)
	at[0] = true
	for _, segment := range p.segments {
		if segment == "**" {
			for n := 1; n <= len(path); n++ {
				at[n] = at[n] || at[n-1]
			}
			continue
		}
		for n := len(path); n > 0; n-- {
			at[n] = at[n-1] && matchSegment(segment, path[n-1])
		}
		at[0] = false
	}
	first, last := 0, len(path)
	if p.inside {
		last--
	}
	if p.exact {
		first = len(path)
	}
	for n := first; n <= last; n++ {
		if at[n] {
			return true
		}
	}
	return false
}

// matchSegment reports whether a pattern matches one part of a path. On a
// mismatch, the last * matches one more byte.
func matchSegment(pattern, part string) bool {
	i, star, retry := 0, -1, 0
	for n := 0; n < len(part); {
		literal := i
		if i+1 < len(pattern) && pattern[i] == '\\' {
			literal++
		}
		switch {
		case literal == i && i < len(pattern) && pattern[i] == '*':
			star, retry = i, n
			i++
		case i < len(pattern) && (literal == i && pattern[i] == '?' || pattern[literal] == part[n]):
			i, n = literal+1, n+1
		case star >= 0:
			retry++
			i, n = star+1, retry
		default:
			return false
		}
	}
	return strings.Trim(pattern[i:], "*") == ""
}
