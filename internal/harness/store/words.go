package store

import (
	"errors"
	"fmt"
	"strings"
)

// special lists the characters that have a meaning for a shell but not here.
const special = "|&;<>$`*?"

// splitWords splits a command into words at blanks. Single or double quotes
// group their content unchanged; a backslash is an ordinary character, because
// Windows paths contain it.
func splitWords(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	var quote rune
	for _, r := range s {
		switch {
		case quote == r && quote != 0:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		case strings.ContainsRune(special, r):
			return nil, fmt.Errorf("the command is not run by a shell, so %q has no special meaning; "+
				"quote it ('...') or put the command into a script", string(r))
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote is not closed; close it with %c", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("no program given; write command:PROGRAM [ARGUMENT...]")
	}
	return words, nil
}

// joinWords formats words in such a way that splitWords returns the same words.
func joinWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quoteWord(w)
	}
	return strings.Join(out, " ")
}

func quoteWord(w string) string {
	if w != "" && !strings.ContainsAny(w, special+`'" `) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'"'"'`) + "'"
}
