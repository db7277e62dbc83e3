package androidsim

import (
	"errors"
	"fmt"
	"strings"
)

// testCommand is test and [.
func testCommand(s *shell, args []string) int {
	words := args[1:]
	if args[0] == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			s.complain("[: missing ]")
			return 2
		}
		words = words[:len(words)-1]
	}
	t := testParser{shell: s, words: words}
	if len(words) == 0 {
		return 1
	}
	result := t.or()
	if t.err == nil && len(t.words) > 0 {
		t.err = fmt.Errorf("%s: unexpected operator/operand", t.words[0])
	}
	if t.err != nil {
		s.complain("%s: %v", args[0], t.err)
		return 2
	}
	return truth(result)
}

// testParser reads a test from left to right: -o binds less than -a, ! more.
type testParser struct {
	*shell
	words []string
	depth int
	err   error
}

func (t *testParser) next() string {
	if len(t.words) == 0 {
		t.err = errors.New("missing second argument")
		return ""
	}
	w := t.words[0]
	t.words = t.words[1:]
	return w
}

func (t *testParser) at(word string) bool { return len(t.words) > 0 && t.words[0] == word }

func (t *testParser) or() bool {
	v := t.and()
	for t.err == nil && t.at("-o") {
		t.next()
		right := t.and()
		v = v || right
	}
	return v
}

func (t *testParser) and() bool {
	v := t.primary()
	for t.err == nil && t.at("-a") {
		t.next()
		right := t.primary()
		v = v && right
	}
	return v
}

func (t *testParser) primary() bool {
	if t.depth++; t.depth > maxDepth {
		t.err = errors.New("too deep")
	}
	defer func() { t.depth-- }()
	if t.err != nil {
		return false
	}
	// Two operands with an operator between them come first: [ ! = x ].
	if len(t.words) >= 3 && isBinary(t.words[1]) {
		left, op, right := t.next(), t.next(), t.next()
		return t.binary(left, op, right)
	}
	w := t.next()
	switch {
	case len(t.words) == 0:
		return w != ""
	case w == "!":
		return !t.primary()
	case w == "(":
		v := t.or()
		if t.next() != ")" && t.err == nil {
			t.err = errors.New("missing closing parenthesis")
		}
		return v
	case len(w) == 2 && w[0] == '-' && strings.IndexByte("nzefdsLhpSbcrwxt", w[1]) >= 0:
		return t.unaryTest(w, t.next())
	}
	return w != ""
}

func isBinary(op string) bool {
	switch op {
	case "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge":
		return true
	}
	return false
}

func (s *shell) unaryTest(op, word string) bool {
	switch op {
	case "-n":
		return word != ""
	case "-z":
		return word == ""
	case "-t":
		return false
	}
	return s.fileTest(op, word)
}

func (t *testParser) binary(left, op, right string) bool {
	v, err := t.compare(left, op, right)
	if err != nil {
		t.err = err
	}
	return v
}

// compare is what test and [[ have in common.
func (s *shell) compare(left, op, right string) (bool, error) {
	switch op {
	case "=", "==":
		return left == right, nil
	case "!=":
		return left != right, nil
	case "<":
		return left < right, nil
	case ">":
		return left > right, nil
	}
	a, err := s.number(left, 0)
	if err != nil {
		return false, err
	}
	b, err := s.number(right, 0)
	if err != nil {
		return false, err
	}
	switch op {
	case "-eq":
		return a == b, nil
	case "-ne":
		return a != b, nil
	case "-lt":
		return a < b, nil
	case "-le":
		return a <= b, nil
	case "-gt":
		return a > b, nil
	case "-ge":
		return a >= b, nil
	}
	return false, fmt.Errorf("%s: unknown operator", op)
}
