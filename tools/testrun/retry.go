package main

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// maxRetries is the maximum number of tests that may run again: if more tests
// fail, the failures are assumed not to be random.
const maxRetries = 2

// retry runs the failed tests once more. ok is false if any of them fails
// again.
func retry(out io.Writer, r *results, log string, args []string) (ok bool, err error) {
	failed := slices.DeleteFunc(slices.Clone(r.tests), func(x result) bool {
		return x.action != "fail" || strings.Contains(x.Test, "/")
	})
	if len(failed) == 0 || len(failed) > maxRetries {
		return false, nil
	}
	for _, x := range failed {
		again, _, ok, err := goTest(out, again(args, x.name))
		if err != nil || !ok || len(again.tests) == 0 {
			return false, err
		}
		line := fmt.Sprintf("FLAKY %s %s, first failure: %s\n", short(x.Package), x.Test, x.first)
		fmt.Fprint(out, line)
		if err := record(log, line); err != nil {
			return false, err
		}
	}
	return true, nil
}

// again converts the arguments of the first run to arguments that run one test.
func again(args []string, x name) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		switch {
		case args[i] == "-run" || args[i] == "-skip":
			i++
		case strings.HasPrefix(args[i], "./"):
		default:
			out = append(out, args[i])
		}
	}
	return append(out, "-count=1", "-run", "^"+regexp.QuoteMeta(x.Test)+"$", x.Package)
}

func record(log, line string) error {
	f, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("record flaky test: %w", err)
	}
	_, err = f.WriteString(line)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("record flaky test: %w", err)
	}
	return nil
}
