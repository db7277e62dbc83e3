package comparison

import (
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Strings from the app, the device or the pull request are escaped in one way
// for GitHub and GitLab: everything that is not plainly a word or a number is
// put in a code span. Within a code span, neither the Markdown parser nor the
// filters after it (mentions, references to issues and commits, emoji, links,
// formulas) interpret anything. HTML entities such as &#64; would not hide a
// mention from the filters, because the filters run after entities are
// resolved. See the GitHub Flavored Markdown Spec 0.29, 6.3 (code spans) and
// 4.10 (pipes in tables).

// markup is the context in which a string is printed.
type markup int

const (
	onTerminal markup = iota
	// inLine is a Markdown paragraph or list item.
	inLine
	// inCell is a cell of a Markdown table, where a pipe ends the cell even
	// within code.
	inCell
	// inHTML is the summary of a <details>, where Markdown is not parsed.
	inHTML
)

// unknown is printed for an unknown value.
const unknown = "–"

// code returns the first n characters of a name as a code span.
func (m markup) code(s string, n int) string {
	s = strings.Join(strings.Fields(text.Head(s, n)), " ")
	switch {
	case s == "":
		return unknown
	case m == onTerminal:
		return s
	case m == inHTML:
		return "<code>" + htmlEscaper.Replace(s) + "</code>"
	}
	if s[0] == '`' || s[len(s)-1] == '`' {
		s = " " + s + " " // one space on each side is not part of the code
	}
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if m == inCell {
		// A pipe after a backslash does not end the cell. The Markdown parser
		// removes this backslash, even within code and after another backslash.
		s = strings.ReplaceAll(s, "|", `\|`)
	}
	return fence + s + fence
}

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&#39;")

// longestRun returns the length of the longest run of a character.
func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if run++; s[i] != c {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

// prose escapes the first n characters of a message that people wrote or that
// contains names: words and numbers stay unchanged, and everything else is put
// in code spans.
func (m markup) prose(s string, n int) string {
	words := strings.Fields(text.Head(s, n))
	if m == onTerminal {
		return strings.Join(words, " ")
	}
	if len(words) == 1 && digits.MatchString(words[0]) {
		return m.code(words[0], maxText) // a full stop after it would make it a list number
	}
	for i, w := range words {
		words[i] = m.word(w, i == 0)
	}
	return strings.Join(words, " ")
}

// word escapes one word of prose. Brackets and punctuation around it stay
// outside the code span.
func (m markup) word(w string, first bool) string {
	inner := strings.TrimLeft(w, "(")
	core := strings.TrimRight(inner, ").,;:!?…")
	before, after := w[:len(w)-len(inner)], inner[len(core):]
	switch {
	case core == "" && !first:
		return w
	case core == "" || first && leadsList(core, after) || !plainWord(core):
		if core == "" {
			return m.code(w, maxText)
		}
		return before + m.code(core, maxText) + after
	}
	return w
}

// leadsList reports whether a word at the start of a line would begin a list.
func leadsList(core, after string) bool {
	return (after == "." || after == ")") && digits.MatchString(core)
}

var (
	digits = regexp.MustCompile(`^\d+$`)
	// linked matches what GitHub interprets as the hash of a commit or the
	// beginning of an address.
	linked = regexp.MustCompile(`[0-9A-Fa-f]{7}|(?i:www)`)
	// plain matches what needs no escaping: a word, possibly with an
	// apostrophe, a slash or hyphens (but not GH-12, JIRA-12 or GHSA-...); a
	// number, possibly with a sign, a percent sign or an exponent; a range; a
	// date; an arrow, a dash or a mathematical symbol.
	plain = regexp.MustCompile(
		`^([\p{L}\p{M}\p{N}]+(['’]\p{L}+)?|\p{L}+/\p{L}+|\p{Ll}+(-\p{Ll}+)+|[+−-]?\d{1,9}(\.\d{1,6})?(e[+-]\d{1,3}|%)?|\d{1,9}(\.\d{1,6})?–\d{1,9}(\.\d{1,6})?|\d{4}-\d\d-\d\d|[→–—×≥≤=±≈·])$`)
)

// identifier matches a name in a program, such as OkHttp, but not a unit such
// as kB.
var identifier = regexp.MustCompile(`\p{Ll}\p{Lu}.`)

func plainWord(w string) bool {
	return plain.MatchString(w) && !linked.MatchString(w) && !identifier.MatchString(w)
}

// bold emphasizes a message that leakgate itself wrote.
func (m markup) bold(s string) string {
	switch m {
	case onTerminal:
		return s
	case inHTML:
		return "<b>" + s + "</b>"
	}
	return "**" + s + "**"
}

// fenced returns lines as a code block, with a fence that no line can close.
func fenced(language string, lines []string) string {
	longest := 2
	for i, line := range lines {
		lines[i] = text.Head(line, maxText)
		longest = max(longest, longestRun(lines[i], '`'))
	}
	fence := strings.Repeat("`", longest+1)
	return fence + language + "\n" + strings.Join(lines, "\n") + "\n" + fence + "\n"
}

// plainBase matches a URL that needs no escaping in a link.
var plainBase = regexp.MustCompile(`^https?://[A-Za-z0-9._~:/?=%@+-]*[A-Za-z0-9/]$`)

// address returns a URL that is safe as the destination of a link, or "" if it
// is not safe.
func address(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || !plainBase.MatchString(s) || len(s) > 500 {
		return ""
	}
	return s
}

var wholeCommit = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

// fileAddress returns the URL of a line of a file in the repository, or "" if
// there is none.
func fileAddress(repo, sha, file string, line int) string {
	repo, file = address(strings.TrimSuffix(repo, "/")), repositoryPath(file)
	if repo == "" || file == "" || !wholeCommit.MatchString(sha) || strings.ContainsAny(repo, "?#") {
		return ""
	}
	to := repo + "/blob/" + sha + "/" + escapedPath(file)
	if line > 0 {
		to += "#L" + strconv.Itoa(line)
	}
	return to
}

// escapedPath percent-encodes every byte of a path except slashes and
// unreserved characters (RFC 3986, 2.3).
func escapedPath(file string) string {
	var b strings.Builder
	for i := range len(file) {
		if c := file[i]; c == '/' || c == '.' || c == '_' || c == '~' || c == '-' || '0' <= c && c <= '9' || 'A' <= c &&
			c <= 'Z' || 'a' <= c && c <= 'z' {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(strconv.FormatUint(uint64(c)|0x100, 16)[1:]))
		}
	}
	return b.String()
}

// repositoryPath returns the path of a file within the repository, or "" if the
// path leads out of it.
func repositoryPath(file string) string {
	if file == "" || file == "." || path.IsAbs(file) || path.Clean(file) != file || strings.HasPrefix(file, "../") ||
		file == ".." || strings.ContainsAny(file, `\:`) || text.Printable(file) != file {
		return ""
	}
	return file
}

// shellWord returns a word of a command that users paste, or KEY if a program
// would interpret the word as an option.
func shellWord(s, instead string) string {
	s = text.Head(s, 200)
	switch {
	case s == "" || s[0] == '-':
		return instead
	case plainShell.MatchString(s):
		return s
	}
	return text.ShellQuote(s)
}

var plainShell = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,-]+$`)
