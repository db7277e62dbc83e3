package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"
)

const testPhrases = `
# what a function does
tells\b => reports
left out\b => skipped
`

func mustParse(t *testing.T, exceptions string) *rules {
	t.Helper()
	r, err := parseRules(testPhrases, exceptions)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reportOf(t *testing.T, files map[string]string, exceptions string) []string {
	t.Helper()
	r := mustParse(t, exceptions)
	root := fstest.MapFS{}
	names := []string{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
		names = append(names, name)
	}
	found, err := check(root, names, r)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if n := r.report(&out, names, found); n != strings.Count(out.String(), "\n") {
		t.Errorf("report returned %d, want the number of lines of:\n%s", n, out.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestFindsPhrases(t *testing.T) {
	long := strings.Repeat("x ", 45)
	for name, c := range map[string]struct {
		file, text, want string
	}{
		"comment": {
			"a.go", "package a\n\n// Run tells why.\nfunc Run() {}\n", "a.go:3: \"tells\": write reports",
		},
		"phrase across a line break": {
			"a.go", "package a\n\n// A line that is left\n// out is here.\nfunc Run() {}\n",
			"a.go:3: \"left out\": write skipped",
		},
		"text": {"a.go", "package a\n\nconst a = \"it tells\"\n", "a.go:3: \"tells\": write reports"},
		"reason in a nolint directive": {
			"a.go", "package a\n\nvar a = 1 //nolint:x // it tells\n", "a.go:3: \"tells\": write reports",
		},
		"import path":           {"a.go", "package a\n\nimport _ \"tells\"\n", ""},
		"name":                  {"a.go", "package a\n\nvar tells = 1\n", ""},
		"part of a word":        {"a.go", "package a\n\n// foretells\nvar a = 1\n", ""},
		"page":                  {"a.md", "x\n\nIt tells.\n", "a.md:3: \"tells\": write reports"},
		"code in a page":        {"a.md", "`tells` and\n\n    tells\n\n```\ntells\n```\n", ""},
		"comment in a Makefile": {"Makefile", "# It tells.\n", "Makefile:1: \"tells\": write reports"},
		"recorded data":         {"testdata/a.md", "It tells.", ""},
		"long comment": {
			"a.go", "package a\n\n// " + long + "\nvar a = 1\n", "a.go:3: comment of 93 columns: wrap it at 80",
		},
		"address": {"a.go", "package a\n\n// https://" + strings.Repeat("x", 90) + "\nvar a = 1\n", ""},
		"long line": {
			"a.go", "package a\n\nvar a = []string{" + strings.Repeat("\"\", ", 30) + "}\n",
			"a.go:3: line of 138 columns: break it at 120",
		},
		"raw text":            {"a.go", "package a\n\nvar a = `" + strings.Repeat("x", 130) + "`\n", ""},
		"long line in a page": {"a.md", strings.Repeat("x ", 70) + "\n", "a.md:1: line of 140 columns: wrap it at 120"},
		"table":               {"a.md", "| " + strings.Repeat("x ", 70) + "|\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := strings.Join(reportOf(t, map[string]string{c.file: c.text}, ""), "\n"); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestExceptions(t *testing.T) {
	files := map[string]string{"b/a.md": "It tells."}
	for exceptions, want := range map[string]string{
		"b/a.md | tells\\b | a quote": "",
		"b/ | * | recorded":           "",
		"b/*.md | tells\\b | a quote": "",
		"b/a.md | left out\\b | a quote": "b/a.md:1: \"tells\": write " +
			"reports\nexceptions.txt:1: nothing in b/a.md needs it",
		"b/a.md | tells\\b | a quote\nc/ | tells\\b | a removed directory": "exceptions.txt:2: " +
			"no tracked file matches c/",
		"b/ | tells\\b | a quote\nb/a.md | left out\\b | quote": "exceptions.txt:2: nothing in b/a.md needs it",
	} {
		if got := strings.Join(reportOf(t, files, exceptions), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", exceptions, got, want)
		}
	}
}

func TestRejectsLists(t *testing.T) {
	for name, c := range map[string]struct{ phrases, exceptions, want string }{
		"phrase without a replacement": {"tells\\b\n", "", "phrases.txt:1: want PHRASE => BETTER"},
		"duplicate phrase":             {"a => b\na => c\n", "", `phrases.txt:2: "a" is in the list twice`},
		"invalid pattern":              {"( => b\n", "", "phrases.txt:1: error parsing"},
		"exception without a reason":   {"a => b\n", "x | a |\n", "exceptions.txt:1: want FILES | PHRASE | REASON"},
		"unknown phrase":               {"a => b\n", "\nx | c | r\n", `exceptions.txt:2: "c" is not in phrases.txt`},
	} {
		if _, err := parseRules(c.phrases, c.exceptions); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// TestLists checks the format of the two lists.
func TestLists(t *testing.T) {
	r, err := defaultRules()
	if err != nil {
		t.Fatal(err)
	}
	if len(r.phrases) < 40 {
		t.Errorf("only %d phrases", len(r.phrases))
	}
}
