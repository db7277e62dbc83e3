package store

import (
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// maxSaid is the maximum number of characters that are quoted from a program's
// output.
const maxSaid = 400

var (
	// userInfo is greedy, because a password may contain a slash or another "@"
	// and hiding too much does no harm.
	userInfo = regexp.MustCompile(`://[^\s'"]*@`)
	query    = regexp.MustCompile(`(://[^\s'"?]*)\?[^\s'"]*`)
	// authorization matches an Authorization header in git's trace output.
	authorization = regexp.MustCompile(`(?i)(authorization\s*:\s*)[^\r\n'"]*`)
)

// redact removes user names, passwords and queries from the URLs in a string,
// and credentials from headers.
func redact(s string) string {
	s = userInfo.ReplaceAllString(s, "://***@")
	s = query.ReplaceAllString(s, "$1?***")
	return authorization.ReplaceAllString(s, "$1***")
}

// said formats the output of a program as one bounded line for a message.
func said(output string) string {
	lines := strings.FieldsFunc(redact(output), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return text.Head(text.Printable(strings.Join(lines, " / ")), maxSaid)
}
