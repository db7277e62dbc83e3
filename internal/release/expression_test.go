package release

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// expression evaluates the subset of GitHub's expressions that the action uses:
// contexts, strings, == and !=, !, && and ||, parentheses, and the functions
// that return the state of the job. All values are strings; "" and "false"
// count as false.
type expression struct {
	tokens []string
	lookup func(name string) (string, error)
	err    error
}

// inTemplate matches an expression within a string.
var inTemplate = regexp.MustCompile(`\$\{\{(.*?)\}\}`)

var token = regexp.MustCompile(`\s*('[^']*'|==|!=|&&|\|\||[!()]|[A-Za-z_][A-Za-z0-9_.-]*(?:\(\))?)`)

func evaluate(text string, lookup func(string) (string, error)) (string, error) {
	text = strings.TrimSpace(text)
	e := expression{lookup: lookup}
	for text != "" {
		m := token.FindStringSubmatchIndex(text)
		if m == nil || m[0] != 0 {
			return "", fmt.Errorf("read expression at %q", text)
		}
		e.tokens = append(e.tokens, text[m[2]:m[3]])
		text = strings.TrimSpace(text[m[1]:])
	}
	value := e.or()
	if e.err == nil && len(e.tokens) > 0 {
		e.err = fmt.Errorf("unexpected %q in expression", e.tokens[0])
	}
	return value, e.err
}

// expand replaces the expressions in a string with their values.
func expand(text string, lookup func(string) (string, error)) (string, error) {
	var failed error
	out := inTemplate.ReplaceAllStringFunc(text, func(m string) string {
		value, err := evaluate(inTemplate.FindStringSubmatch(m)[1], lookup)
		if err != nil {
			failed = err
		}
		return value
	})
	return out, failed
}

func truth(value string) bool { return value != "" && value != "false" }

func asText(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

func (e *expression) take(want string) bool {
	if len(e.tokens) > 0 && e.tokens[0] == want {
		e.tokens = e.tokens[1:]
		return true
	}
	return false
}

func (e *expression) or() string {
	value := e.and()
	for e.take("||") {
		if next := e.and(); !truth(value) {
			value = next
		}
	}
	return value
}

func (e *expression) and() string {
	value := e.equality()
	for e.take("&&") {
		if next := e.equality(); truth(value) {
			value = next
		}
	}
	return value
}

func (e *expression) equality() string {
	value := e.unary()
	switch {
	case e.take("=="):
		return asText(value == e.unary())
	case e.take("!="):
		return asText(value != e.unary())
	}
	return value
}

func (e *expression) unary() string {
	switch {
	case e.take("!"):
		return asText(!truth(e.unary()))
	case e.take("("):
		value := e.or()
		if !e.take(")") {
			e.err = fmt.Errorf("missing ) in expression")
		}
		return value
	case len(e.tokens) == 0:
		e.err = fmt.Errorf("unexpected end of expression")
		return ""
	}
	word := e.tokens[0]
	e.tokens = e.tokens[1:]
	if strings.HasPrefix(word, "'") {
		return strings.Trim(word, "'")
	}
	value, err := e.lookup(word)
	if err != nil {
		e.err = err
	}
	return value
}

func TestEvaluate(t *testing.T) {
	values := map[string]string{"inputs.a-b": "x", "steps.s.outputs.n": "", "always()": "true", "cancelled()": "false"}
	lookup := func(name string) (string, error) {
		v, ok := values[name]
		if !ok {
			return "", fmt.Errorf("unknown %s", name)
		}
		return v, nil
	}
	for text, want := range map[string]string{
		"inputs.a-b":                                     "x",
		"inputs.a-b == 'x' && 'y'":                       "y",
		"steps.s.outputs.n || 'z'":                       "z",
		"!cancelled() && inputs.a-b != ''":               "true",
		"always() && (inputs.a-b == '' || cancelled())":  "false",
		"'' == steps.s.outputs.n || inputs.a-b == 'no'":  "true",
		"inputs.a-b == 'no' || inputs.a-b == 'x' && 'k'": "k",
	} {
		if got, err := evaluate(text, lookup); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a b", "inputs.missing", "(inputs.a-b", "inputs.a-b ==", "%"} {
		if got, err := evaluate(text, lookup); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
	if got, err := expand("${{ inputs.a-b }}/${{inputs.a-b}}", lookup); err != nil || got != "x/x" {
		t.Errorf("expands to %q, %v", got, err)
	}
}
