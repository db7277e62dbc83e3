package main

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/spf13/pflag"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readPages returns the Markdown files of the repository, keyed by path.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/formats/*.md", "examples/*/*.md"} {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: no pages found, %v", pattern, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.ToSlash(path)] = string(text)
		}
	}
	return all
}

// TestPageCommands checks that every command line on a page has a verb and
// flags that exist, and that every verb is on some page.
func TestPageCommands(t *testing.T) {
	line := regexp.MustCompile("(?m)(?:^ {4,}(?:- run: )?|\\| |&& |`)(?:go run \\./cmd/)?leakgate ([a-z]+)([^`|\n#]*)")
	seen := map[string]bool{}
	for page, text := range readPages(t) {
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			checkCommand(t, page, m[1], m[2])
			seen[m[1]] = true
		}
	}
	for _, cmd := range newRoot(&console{}).Commands() {
		if !seen[cmd.Name()] && !slices.Contains([]string{"completion", "help", "version"}, cmd.Name()) {
			t.Errorf("no page contains the command %s", cmd.Name())
		}
	}
}

var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"|\[flags\]|\[--json\]`)

// placeholder matches what a page writes in place of a value, such as DIR.
var placeholder = regexp.MustCompile(`^[A-Z]+$`)

func checkCommand(t *testing.T, page, name, args string) {
	t.Helper()
	words := strings.Fields(quoted.ReplaceAllString(name+" "+args, "x"))
	cmd, rest, err := newRoot(&console{}).Find(words)
	if err == nil && !cmd.HasParent() {
		err = unknownCommand(cmd, name)
	}
	if err == nil {
		err = cmd.ParseFlags(rest)
		if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok && placeholder.MatchString(e.GetValue()) {
			err = nil
		}
	}
	if err == nil && cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		err = unknownCommand(cmd, cmd.Flags().Arg(0))
	}
	if err != nil {
		t.Errorf("%s: leakgate %s%s: %v", page, name, args, err)
	}
}

// The configuration file in the README is complete and equals that of the
// example.
func TestReadmeConfig(t *testing.T) {
	_, rest, ok := strings.Cut(readme(t)[strings.Index(readme(t), "## Run all night"):], "```yaml\n")
	text, _, ended := strings.Cut(rest, "```")
	if !ok || !ended {
		t.Fatal("no YAML in the README")
	}
	shown, err := config.Parse("README.md", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	example, err := config.Load("../../examples/nightly/phone.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if shown.App.Package != example.App.Package || shown.Duration != example.Duration ||
		*shown.Workload.Monkey != *example.Workload.Monkey || shown.Devices.Require != example.Devices.Require {
		t.Errorf("README %+v\nexample %+v", shown, example)
	}
}

// TestPageLeak checks that each line of the leak trace on docs/analyze.md is in
// the output of the program for the recorded dump, in the same order. Omitted
// lines are shown as "...".
func TestPageLeak(t *testing.T) {
	_, rest, ok := strings.Cut(readPages(t)["../../docs/analyze.md"], "```\nLeakyService: ")
	sample, _, ended := strings.Cut(rest, "```")
	text, err := os.ReadFile("testdata/analyze/recorded.txt")
	if !ok || !ended || err != nil {
		t.Fatal("the page has no leak, or the recorded report is missing:", err)
	}
	left, gap := strings.Split(string(text), "\n"), true
	for line := range strings.Lines("LeakyService: " + sample) {
		line = strings.TrimSuffix(line, "\n")
		if line == "..." {
			gap = true
			continue
		}
		at := slices.Index(left, line)
		if at < 0 || at > 0 && !gap {
			t.Fatalf("the program does not print %q, or not in this order", line)
		}
		left, gap = left[at+1:], false
	}
}

func TestReadmeExitCodes(t *testing.T) {
	text := readme(t)
	for code, word := range map[string]string{
		"0": "no leak", "1": "a leak", "2": "invalid", "3": "no usable device", "4": "workload failed", "5": "--strict",
		"130": "interrupted",
	} {
		if !regexp.MustCompile(`(?m)^\| ` + code + ` \|[^|]*` + regexp.QuoteMeta(word)).MatchString(text) {
			t.Errorf("exit code %s is not described as %q", code, word)
		}
	}
	if record.ExitClean != 0 || record.ExitLeak != 1 || exitUsage != 2 || record.ExitNoDevice != 3 ||
		record.ExitWorkload != 4 || record.ExitInconclusive != 5 || record.ExitInterrupted != 130 {
		t.Error("the exit codes have changed")
	}
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	heading = regexp.MustCompile("(?m)^#+ +(.*)$")
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors that GitHub creates for the headings of a page.
func anchors(text string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		all = append(all, slug)
	}
	return all
}

// TestPageLinks checks that every relative link leads to a file, and its anchor
// to a heading.
func TestPageLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]*))?\)`)
	all, checked := readPages(t), 0
	for page, text := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target := page
			if m[1] != "" {
				target = path.Join(path.Dir(page), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			}
			if m[2] != "" {
				checked++
				if !slices.Contains(anchors(all[target]), m[2]) {
					t.Errorf("%s: %s has no heading #%s", page, target, m[2])
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("found only %d anchors", checked)
	}
}

// TestPageIndex checks that docs/README.md lists every page.
func TestPageIndex(t *testing.T) {
	all := readPages(t)
	for page := range all {
		name, ok := strings.CutPrefix(page, "../../docs/")
		if ok && name != "README.md" && !strings.Contains(all["../../docs/README.md"], "]("+name) {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// TestPageFiles checks that every complete file of a run on a page passes
// `leakgate config verify`.
func TestPageFiles(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n((?:#[^\n]*\n)*version: 1\n.*?)```")
	checked := map[string]int{}
	for page, text := range readPages(t) {
		// the files after this heading of config.md contain mistakes
		text, _, _ = strings.Cut(text, "## What only leakgate sees")
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(b[1], "version: 1\naccepted:") { // a file of accepted leaks
				continue
			}
			file := filepath.Join(t.TempDir(), "leakgate.yaml")
			if err := os.WriteFile(file, []byte(b[1]), 0o600); err != nil {
				t.Fatal(err)
			}
			if code, out, errOut := typed(t, nil, "config", "verify", file); code != 0 {
				t.Errorf("%s: exit %d\n%s\n%s%s", page, code, b[1], out, errOut)
			}
			checked[page]++
		}
	}
	if checked["../../README.md"] < 2 || len(checked) < 8 {
		t.Errorf("got run files per page %v, want at least 2 in the README and at least 8 pages", checked)
	}
}
