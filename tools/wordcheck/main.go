// Command wordcheck checks the tree against the project's writing rules: no
// phrase of phrases.txt in comments, strings and pages, Go lines of at most 120
// columns, comments of at most 80, Markdown lines of at most 120. Exceptions
// are listed in exceptions.txt, each with a reason.
//
//	go -C tools run ./wordcheck [-count] DIR
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wordcheck:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, args []string) error {
	flags := flag.NewFlagSet("wordcheck", flag.ContinueOnError)
	count := flags.Bool("count", false, "print the number of occurrences of each phrase, including exceptions")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one directory, the root of a clone")
	}
	root := flags.Arg(0)
	rules, err := defaultRules()
	if err != nil {
		return err
	}
	files, err := tracked(root)
	if err != nil {
		return err
	}
	found, err := check(os.DirFS(root), files, rules)
	if err != nil {
		return err
	}
	if *count {
		return printCounts(out, found)
	}
	left := rules.report(out, files, found)
	if left > 0 {
		return fmt.Errorf("%d findings: rewrite the text, or add an exception with its reason to "+
			"tools/wordcheck/exceptions.txt", left)
	}
	return nil
}

// tracked returns the files that git tracks in root, sorted.
func tracked(root string) ([]string, error) {
	cmd := exec.Command("git", "-C", root, "ls-files", "-z")
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list tracked files of %s: %w", root, err)
	}
	files := strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")
	slices.Sort(files)
	return files, nil
}

func printCounts(out io.Writer, found []finding) error {
	counts := map[string]int{}
	for _, f := range found {
		counts[f.phrase]++
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := counts[b] - counts[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if _, err := fmt.Fprintf(out, "%6d  %s\n", counts[name], name); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%6d  in total\n", len(found))
	return err
}
