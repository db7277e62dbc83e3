package main

import (
	"errors"
	"os"
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

// Every command line that a page shows has a verb and flags that exist.
func TestReadmeCommands(t *testing.T) {
	line := regexp.MustCompile("(?m)(?:^    |\\| |`)(?:go run \\./cmd/)?leakgate ([a-z]+)([^`|\n#]*)")
	pages, err := filepath.Glob("../../*.md")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, page := range append(pages, more...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			checkCommand(t, filepath.Base(page), m[1], m[2])
			seen[m[1]] = true
		}
	}
	for _, cmd := range newRoot(&console{}).Commands() {
		if !seen[cmd.Name()] && !slices.Contains([]string{"completion", "help", "version"}, cmd.Name()) {
			t.Errorf("no page shows %s", cmd.Name())
		}
	}
}

var quoted = regexp.MustCompile(`'[^']*'|"[^"]*"|\[flags\]|\[--json\]`)

// placeholder is what a page writes for a value.
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

// The file in the README is complete, and the same as the example's.
func TestReadmeConfig(t *testing.T) {
	_, rest, ok := strings.Cut(readme(t)[strings.Index(readme(t), "## Nightly"):], "```yaml\n")
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
	if shown.App.Package != example.App.Package || shown.Duration != example.Duration || *shown.Workload.Monkey != *example.Workload.Monkey || shown.Devices.Require != example.Devices.Require {
		t.Errorf("README %+v\nexample %+v", shown, example)
	}
}

// The leak in the README is told as the program tells it: each of its lines stands, in the
// same order, in what it prints of the recorded dump. Lines that are left out are "...".
func TestReadmeAnalyze(t *testing.T) {
	_, rest, ok := strings.Cut(readme(t), "```\nLeakyService: ")
	sample, _, ended := strings.Cut(rest, "```")
	text, err := os.ReadFile("testdata/analyze/recorded.txt")
	if !ok || !ended || err != nil {
		t.Fatal("no leak in the README, or none that is recorded", err)
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
			t.Fatalf("the program does not print %q there", line)
		}
		left, gap = left[at+1:], false
	}
}

func TestReadmeExitCodes(t *testing.T) {
	text := readme(t)
	for code, word := range map[string]string{
		"0": "no leak", "1": "a leak", "2": "wrong", "3": "no usable device", "4": "workload failed", "5": "--strict", "130": "interrupted",
	} {
		if !regexp.MustCompile(`(?m)^\| ` + code + ` \|[^|]*` + regexp.QuoteMeta(word)).MatchString(text) {
			t.Errorf("exit code %s is not told as %q", code, word)
		}
	}
	if record.ExitClean != 0 || record.ExitLeak != 1 || exitUsage != 2 || record.ExitNoDevice != 3 || record.ExitWorkload != 4 || record.ExitInconclusive != 5 || record.ExitInterrupted != 130 {
		t.Error("the exit codes have changed")
	}
}

func TestLinksOfThePages(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/formats/*.md"} {
		pages, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
}

// Every file of a run that the page shows is one that leakgate accepts.
func TestReadmeFiles(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readme(t), -1)
	if len(blocks) < 2 {
		t.Fatalf("%d blocks of YAML", len(blocks))
	}
	for _, b := range blocks {
		if _, err := config.Parse("readme.yaml", []byte(b[1]), func(string) (string, bool) { return "", false }); err != nil {
			t.Errorf("%s\n%v", b[1], err)
		}
	}
}
