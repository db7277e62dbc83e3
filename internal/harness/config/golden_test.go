package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the expected output of the tests")

// environment returns the environment that all tests use.
func environment(name string) (string, bool) {
	v, ok := map[string]string{
		"SHOP": "com.shop", "EMPTY": "", "WORD": "many", "EVENTS": "5000", "LENGTH": "2d", "DOLLAR": "${SHOP} $$",
	}[name]
	return v, ok
}

// golden compares a string with the expected content of a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(string(want), "\r\n", "\n"); got != want {
		t.Errorf("%s: got:\n%s\nwant:\n%s\n(go test -update rewrites it)", file, got, want)
	}
}

// badFiles returns all invalid files in testdata.
func badFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("find files: %d, %v", len(files), err)
	}
	mistakes, err := filepath.Glob("testdata/mistakes/*.yaml")
	if err != nil || len(mistakes) < 20 {
		t.Fatalf("find mistakes: %d, %v", len(mistakes), err)
	}
	return append(files, mistakes...)
}

// typed parses the command line in the comment on the second line of a file, if
// there is one. The command line sets variables and flags; the flags are
// converted to choices.
type typed struct {
	line    string
	getenv  func(string) (string, bool)
	choices []Choice
}

// commandOf returns the command line of a file in testdata; a file without one
// is checked in the environment that all tests use.
func commandOf(t *testing.T, file string, text []byte) typed {
	t.Helper()
	lines := strings.SplitN(string(text), "\n", 3)
	if len(lines) < 2 || !strings.HasPrefix(lines[1], "# $ ") {
		return typed{line: "leakgate config verify " + filepath.Base(file), getenv: environment}
	}
	c := typed{line: strings.TrimPrefix(lines[1], "# $ ")}
	variables := map[string]string{}
	words := strings.Fields(c.line)
	for ; strings.Contains(words[0], "="); words = words[1:] {
		name, value, _ := strings.Cut(words[0], "=")
		variables[name] = value
	}
	c.getenv = func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	for i, word := range words {
		switch word {
		case "--profile":
			c.choices = append(c.choices, WithProfile(words[i+1]))
		case "--device":
			c.choices = append(c.choices, WithFlag(word, "devices.serials", words[i+1]))
		}
	}
	return c
}

// TestBadFiles compares all messages about each file in testdata with the
// expected messages in the file next to it.
func TestBadFiles(t *testing.T) {
	for _, file := range badFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line := commandOf(t, file, text)
			c, err := Parse(filepath.Base(file), text, line.getenv, line.choices...)
			if err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			checkErrors(t, text, err)
			golden(t, strings.TrimSuffix(file, ".yaml")+".want", err.Error()+"\n")
			// Each problem is reported once, even if it was found with several
			// profiles.
			problems, _ := errors.AsType[Errors](err)
			seen := map[string]bool{}
			for _, p := range problems {
				if seen[p.Error()] {
					t.Errorf("problem reported twice: %v", p)
				}
				seen[p.Error()] = true
			}
		})
	}
}
