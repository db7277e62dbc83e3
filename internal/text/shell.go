package text

import "strings"

// ShellQuote returns s as one word of a POSIX shell. Every byte but NUL, which no
// word can hold, arrives unchanged.
func ShellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
