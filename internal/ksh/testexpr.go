package ksh

import (
	"errors"
	"fmt"
	"strings"
)

// test is test and [.
func test(s *shell, args []string) int {
	words := args[1:]
	if args[0] == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			s.complain("[: missing ]")
			return 2
		}
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return 1
	}
	t := testParser{shell: s, words: words}
	result := t.or()
	if t.err == nil && len(t.words) > 0 {
		t.err = fmt.Errorf("%s: unexpected operator/operand", t.words[0])
	}
	if t.err != nil {
		s.complain("%s: %v", args[0], t.err)
		return 2
	}
	return statusOf(result)
}

// testParser reads a test from left to right: -o binds less than -a, ! more.
type testParser struct {
	*shell
	words []string
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

func (t *testParser) at(word string) bool {
	return t.err == nil && len(t.words) > 0 && t.words[0] == word
}

func (t *testParser) or() bool {
	v := t.and()
	for t.at("-o") {
		t.next()
		right := t.and()
		v = v || right
	}
	return v
}

func (t *testParser) and() bool {
	v := t.primary()
	for t.at("-a") {
		t.next()
		right := t.primary()
		v = v && right
	}
	return v
}

func (t *testParser) primary() bool {
	// Two operands with an operator between them come first: [ ! = x ].
	if len(t.words) >= 3 {
		if compare := comparisons[t.words[1]]; compare != nil {
			left, _, right := t.next(), t.next(), t.next()
			v, err := compare(left, right)
			if t.err == nil {
				t.err = err
			}
			return v
		}
	}
	w := t.next()
	switch {
	case len(t.words) == 0:
		return w != ""
	case w == "!":
		return !t.primary()
	case w == "-n":
		return t.next() != ""
	case w == "-z":
		return t.next() == ""
	case len(w) == 2 && w[0] == '-' && strings.IndexByte("efds", w[1]) >= 0:
		return t.fileTest(w, t.next())
	}
	return w != ""
}

var comparisons = map[string]func(left, right string) (bool, error){
	"=":   func(left, right string) (bool, error) { return left == right, nil },
	"==":  func(left, right string) (bool, error) { return left == right, nil },
	"!=":  func(left, right string) (bool, error) { return left != right, nil },
	"-eq": byNumber(func(a, b int64) bool { return a == b }),
	"-ne": byNumber(func(a, b int64) bool { return a != b }),
	"-lt": byNumber(func(a, b int64) bool { return a < b }),
	"-le": byNumber(func(a, b int64) bool { return a <= b }),
	"-gt": byNumber(func(a, b int64) bool { return a > b }),
	"-ge": byNumber(func(a, b int64) bool { return a >= b }),
}

func byNumber(compare func(a, b int64) bool) func(left, right string) (bool, error) {
	return func(left, right string) (bool, error) {
		a, err := number(left)
		b, berr := number(right)
		return compare(a, b), errors.Join(err, berr)
	}
}

// fileTest is -e, -f and the like.
func (s *shell) fileTest(op, name string) bool {
	i, err := s.sys.Stat(s.sys.Clean(s.dir, name), s.cred)
	if name == "" || err != nil {
		return false
	}
	switch op {
	case "-f":
		return i.Mode().IsRegular()
	case "-d":
		return i.IsDir()
	case "-s":
		return i.Size() > 0
	}
	return true
}
