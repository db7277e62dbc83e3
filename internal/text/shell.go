package text

import "strings"

// ShellQuote returns s as one word of a POSIX shell. Every byte except NUL,
// which no word can contain, is preserved.
func ShellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
