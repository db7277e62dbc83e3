package release

//unit:program the built program says which verbs and flags it has

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// commandLine is a call of leakgate in a script or an example. The command
// includes its subcommand, as in "baseline update".
type commandLine struct {
	place string
	verbs []string
	flags []string
}

var (
	// shown matches a command in the prose of a page or a comment.
	shown = regexp.MustCompile("`leakgate ([^`]+)`")
	// typed matches a line of a script, or of a block of Markdown.
	typed = regexp.MustCompile(`(?m)^ *(?: |- |run: )leakgate ([a-z].*)$`)

	endOfCommand = regexp.MustCompile(` [#|>&;]`)
	flagWord     = regexp.MustCompile(`^--[a-z][a-z-]*`)
	verbWord     = regexp.MustCompile(`^[a-z]+$`)
)

// commandLines returns the command lines of all examples and of the action.
func commandLines(t *testing.T) []commandLine {
	t.Helper()
	var out []commandLine
	for _, folder := range []string{"examples/prgate", "examples/nightly"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			out = append(out, readCommands(filepath.Base(path), strings.ReplaceAll(string(text), "\\\n", " "))...)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return append(out, actionCommands(t)...)
}

func readCommands(place, text string) []commandLine {
	var out []commandLine
	for _, m := range append(shown.FindAllStringSubmatch(text, -1), typed.FindAllStringSubmatch(text, -1)...) {
		command := m[1]
		if end := endOfCommand.FindStringIndex(command); end != nil {
			command = command[:end[0]]
		}
		out = append(out, readCommand(place, strings.Fields(command)))
	}
	return out
}

func readCommand(place string, words []string) commandLine {
	c := commandLine{place: place, verbs: words[:1]}
	if len(words) > 1 && slices.Contains([]string{"baseline", "config"}, words[0]) && verbWord.MatchString(words[1]) {
		c.verbs = words[:2]
	}
	for _, word := range words {
		if flag := flagWord.FindString(word); flag != "" {
			c.flags = append(c.flags, flag)
		}
	}
	return c
}

// actionCommands returns the command lines that the action runs, for every way
// in which it can judge and report.
func actionCommands(t *testing.T) []commandLine {
	t.Helper()
	t.Setenv("FAKE_VERDICT", "pass")
	rest := map[string]string{
		"profile": "pr", "mapping": "m.txt", "baseline": "file:b.json", "accepted": "a.yaml", "check": "true",
		"sarif": "true", "record": "true",
	}
	var out []commandLine
	for _, judged := range []map[string]string{
		{}, {"dumps": "com.shop=1.hprof"}, {"run": "leakgate-run"}, {"leakcanary": "logcat.txt"},
	} {
		maps.Copy(judged, rest)
		judged["config"] = "leakgate.yaml"
		r := served(t, v1(), judged)
		if !r.run() {
			t.Fatalf("failed:\n%s", r.log.String())
		}
		for _, call := range r.calls() {
			out = append(out, readCommand("action.yml", strings.Fields(call)))
		}
	}
	return out
}

// builds makes all tests share one build of the program.
var builds = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "leakgate-release-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "leakgate")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/leakgate")
	build.Dir = root
	// The environment is the same as that of a release build, so the packages
	// are in the cache afterwards.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build leakgate: %w: %s", err, out)
	}
	return os.ReadFile(path)
})

// builtProgram returns the path of the program.
func builtProgram(t *testing.T) string {
	t.Helper()
	touchTree(t)
	program, err := builds()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "leakgate")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	if err := os.WriteFile(path, program, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every command and flag that the examples and the action use exists.
func TestCommandsExist(t *testing.T) {
	program := builtProgram(t)
	help := map[string]string{}
	commands := commandLines(t)
	for _, c := range commands {
		verb := strings.Join(c.verbs, " ")
		if _, asked := help[verb]; !asked {
			out, err := exec.CommandContext(t.Context(), program, append(slices.Clone(c.verbs), "--help")...).
				CombinedOutput()
			if err != nil || !strings.Contains(string(out), "leakgate "+verb) {
				t.Errorf("%s: there is no command leakgate %s", c.place, verb)
				out = nil
			}
			help[verb] = string(out)
		}
		for _, flag := range c.flags {
			if help[verb] != "" && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).MatchString(help[verb]) {
				t.Errorf("%s: leakgate %s has no flag %s", c.place, verb, flag)
			}
		}
	}
	if len(commands) < 15 || len(help) < 6 {
		t.Errorf("found only %d commands with %d verbs, want at least 15 with 6", len(commands), len(help))
	}
}

func TestReadCommands(t *testing.T) {
	text := "# leakgate in CI\nsee `leakgate gate --dump P=a` \n    leakgate baseline update --run D   # " +
		"--none\nleakgate is fine\n" +
		"      - leakgate mark --run \"$D\" --wait \"loop 1\" || exit\n      run: leakgate comment --run D >out --no\n"
	want := "gate [--dump]; baseline update [--run]; mark [--run --wait]; comment [--run]"
	var got []string
	for _, c := range readCommands("x", text) {
		got = append(got, fmt.Sprint(strings.Join(c.verbs, " "), " ", c.flags))
	}
	slices.Sort(got)
	wanted := strings.Split(want, "; ")
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("reads %q, want %q", got, wanted)
	}
}
