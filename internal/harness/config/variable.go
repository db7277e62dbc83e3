package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// reference is ${NAME}, ${NAME:-default} or ${NAME:?message} in the text of a
// value.
type reference struct {
	written  string
	name     string
	operator string // "", ":-" or ":?"
	operand  string
}

const referenceForms = `write ${NAME}, ${NAME:-default} or ${NAME:?message}, or $${ for a literal ${`

var referencePattern = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]{0,127})(?:(:[-?])([^}]*))?\}`)

// cutReference parses the reference at the beginning of text.
func cutReference(text string) (reference, *fault) {
	end := strings.IndexByte(text, '}')
	if end < 0 {
		return reference{written: text}, &fault{message: `"${" is not closed: ` + referenceForms}
	}
	m := referencePattern.FindStringSubmatch(text)
	r := reference{written: text[:end+1]}
	switch {
	case m == nil:
		return r, &fault{message: quoted(r.written) + " is not a reference to a variable: " + referenceForms}
	case strings.Contains(m[3], "${"):
		return r, &fault{message: "nested ${...} are not supported: " + quoted(r.written)}
	}
	r.name, r.operator, r.operand = m[1], m[2], m[3]
	return r, nil
}

// value looks up the variable. own reports whether the value is a default from
// the file itself, which is not a secret.
func (r reference) value(getenv func(string) (string, bool)) (text string, own bool, f *fault) {
	v, set := getenv(r.name)
	switch {
	case r.operator == "" && !set:
		return "", false, &fault{unset: true, message: fmt.Sprintf(
			"the variable %s is not set: set it, or give a default as in ${%s:-value}", r.name, r.name)}
	case r.operator == "" || v != "":
		return v, false, nil
	case r.operator == ":?":
		return "", false,
			&fault{unset: true, message: fmt.Sprintf("the variable %s is required: %s", r.name, r.reason())}
	}
	return r.operand, true, nil
}

// longestReason is the maximum number of characters of the author's message
// that are shown.
const longestReason = 200

// reason returns the message of the file's author about a missing variable.
func (r reference) reason() string {
	if r.operand == "" {
		return "it is unset or empty"
	}
	return text.Head(r.operand, longestReason)
}

// filled is a string whose references have been replaced.
type filled struct {
	text  string
	names []string // names of the variables
	// secrets holds the values of variables; messages show only the names of
	// these variables.
	secrets []secret
}

// secret is the value of a variable that a file refers to.
type secret struct{ name, value string }

// fill replaces the references in the text of a value; $$ becomes one $, and
// any other $ is literal. The inserted text is not searched for references. A
// fault includes the reference as written, which is needed to find its column.
func fill(text string, getenv func(string) (string, bool)) (filled, string, *fault) {
	var b strings.Builder
	var out filled
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			b.WriteString(text)
			out.text = b.String()
			return out, "", nil
		}
		b.WriteString(text[:i])
		switch text = text[i:]; text[1] {
		case '$':
			b.WriteByte('$')
			text = text[2:]
		case '{':
			r, f := cutReference(text)
			if f != nil {
				return filled{}, r.written, f
			}
			v, own, f := r.value(getenv)
			if f != nil {
				return filled{}, r.written, f
			}
			b.WriteString(v)
			out.names = append(out.names, r.name)
			if !own {
				out.secrets = append(out.secrets, secret{r.name, v})
			}
			text = text[len(r.written):]
		default:
			b.WriteByte('$')
			text = text[1:]
		}
	}
}
