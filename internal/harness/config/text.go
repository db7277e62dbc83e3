package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// plainText matches free text that needs no quotes: it begins with a letter or
// a slash, and contains no characters that have a meaning in YAML or in this
// file.
var plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9._/]*([:@=+-][A-Za-z0-9._/]+)*$`)

// truths lists words that some version of YAML parses as something other than
// text (https://yaml.org/type/bool.html).
var truths = map[string]bool{
	"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true,
}

// yamlText writes free text as a YAML value that yields the same text when it
// is parsed. The value is quoted unless it is unambiguous and on one line.
// Dollar signs are escaped.
func yamlText(free string) string {
	if plainText.MatchString(free) && !truths[strings.ToLower(free)] {
		return free
	}
	var b strings.Builder
	free = strings.ToValidUTF8(free, "\ufffd")
	for i := range len(free) {
		if rest := free[i:]; strings.HasPrefix(rest, "$$") || strings.HasPrefix(rest, "${") {
			b.WriteByte('$')
		}
		b.WriteByte(free[i])
	}
	return text.Quote(b.String(), b.Len())
}

// yamlTexts writes a list on one line.
func yamlTexts(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = yamlText(t)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// yamlPairs writes a mapping on one line, sorted by its keys.
func yamlPairs(pairs map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		out = append(out, yamlText(k)+": "+yamlText(pairs[k]))
	}
	if out == nil {
		return "{}"
	}
	return "{ " + strings.Join(out, ", ") + " }"
}

// quoted returns the user's value in quotes, for a message.
func quoted(value string) string { return text.Quote(value, 60) }
