package ksh

import (
	"errors"
	"fmt"
	"strings"
)

// test implements the commands test and [, but not -a, -o or parentheses:
// scripts use && and || instead.
func test(s *shell, args []string) int {
	words := args[1:]
	if args[0] == "[" {
		if len(words) == 0 || words[len(words)-1] != "]" {
			s.complain("[: missing ]")
			return 2
		}
		words = words[:len(words)-1]
	}
	result, err := s.evaluate(words)
	if err != nil {
		s.complain("%s: %v", args[0], err)
		return 2
	}
	return statusOf(result)
}

func (s *shell) evaluate(words []string) (bool, error) {
	switch n := len(words); {
	case n < 2:
		return n == 1 && words[0] != "", nil
	// Two operands with an operator between them take precedence over a
	// negation, as in [ ! = x ].
	case n == 3 && strings.Contains(" = == != -eq -ne -lt -le -gt -ge ", " "+words[1]+" "):
		return compare(words[0], words[1], words[2])
	case words[0] == "!":
		result, err := s.evaluate(words[1:])
		return !result, err
	case n == 2:
		return s.unary(words[0], words[1])
	}
	return false, fmt.Errorf("%s: unexpected operator/operand", words[1])
}

func compare(left, op, right string) (bool, error) {
	switch op {
	case "=", "==":
		return left == right, nil
	case "!=":
		return left != right, nil
	}
	a, err := number(left)
	b, berr := number(right)
	err = errors.Join(err, berr)
	switch op {
	case "-eq":
		return a == b, err
	case "-ne":
		return a != b, err
	case "-lt":
		return a < b, err
	case "-le":
		return a <= b, err
	case "-gt":
		return a > b, err
	}
	return a >= b, err // -ge
}

func (s *shell) unary(op, word string) (bool, error) {
	switch op {
	case "-n":
		return word != "", nil
	case "-z":
		return word == "", nil
	}
	i, err := s.sys.Stat(s.sys.Clean(s.dir, word), s.cred)
	exists := word != "" && err == nil
	switch op {
	case "-e":
		return exists, nil
	case "-f":
		return exists && i.Mode().IsRegular(), nil
	case "-d":
		return exists && i.IsDir(), nil
	case "-s":
		return exists && i.Size() > 0, nil
	}
	return false, fmt.Errorf("%s: unexpected operator/operand", op)
}
