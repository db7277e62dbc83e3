package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable is a text of unknown origin as it may stand in a message: what a
// terminal would obey or not show is spelled out, as in a text of double quotes.
// Text that is fine stays as it is.
func printable(text string) string {
	if !strings.ContainsFunc(text, unprintable) && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case unprintable(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unprintable are the control characters, those that turn the direction of text
// and all others that have no shape of their own.
func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// escape spells a character as YAML does in double quotes
// (https://yaml.org/spec/1.2.2/#57-escaped-characters).
func escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r < 0x100:
		return fmt.Sprintf(`\x%02x`, r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// plainText is free text that needs no quotes: it begins with a letter or a
// slash, and holds nothing that means anything to YAML or to this file.
var plainText = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9._/]*([:@=+-][A-Za-z0-9._/]+)*$`)

// truths are words that one version of YAML or another takes for something else
// than text (https://yaml.org/type/bool.html).
var truths = map[string]bool{"y": true, "n": true, "yes": true, "no": true, "on": true, "off": true, "true": true, "false": true, "null": true}

// yamlText writes free text as a value of YAML that is read as this text: quoted
// unless nobody can take it for anything else, on one line, and with its dollars
// protected from being filled in.
func yamlText(text string) string {
	if plainText.MatchString(text) && !truths[strings.ToLower(text)] {
		return text
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '$' && i+1 < len(text) && (text[i+1] == '$' || text[i+1] == '{'):
			b.WriteString("$$")
		case unprintable(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// yamlTexts writes a list on one line.
func yamlTexts(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = yamlText(t)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// quoted shows a value of the user inside a message.
func quoted(text string) string { return strconv.Quote(shortened(text)) }

// shortened cuts a value of the user to a length that leaves a message readable.
func shortened(text string) string { return cut(text, 60) }

// cut cuts a text to a number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) > most {
		return string([]rune(text)[:most]) + "…"
	}
	return text
}
