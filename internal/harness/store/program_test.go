package store

//unit:program the oracles of names and words are git and the shell, and stores are used by several processes
//unit:sleep other processes take real time

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// childVariable is the environment variable that makes the test binary act as
// one of the programs that tests start.
const childVariable = "LEAKGATE_TEST_STORE"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVariable); name != "" {
		os.Exit(children[name](os.Args[1:]))
	}
	os.Exit(m.Run())
}

// children maps arguments to child programs; for a command: store, the last
// argument is the command.
var children = map[string]func(args []string) int{
	"append": appendChild,
	"base":   baseChild,
}

// childEnv returns the environment of a child process. It disables the delay
// that the race detector adds at exit.
func childEnv(name string) []string {
	return append(os.Environ(), childVariable+"="+name, "GORACE=atexit_sleep_ms=0")
}

func testProgram(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// appendChild appends the numbers from FROM up to, but not including, TO to the
// file store PATH.
func appendChild(args []string) int {
	from, _ := strconv.Atoi(args[1])
	to, _ := strconv.Atoi(args[2])
	s, err := Open(Address{scheme: schemeFile, path: args[0]}, Options{Limit: time.Minute})
	for n := from; err == nil && n < to; n++ {
		err = s.Update(context.Background(), appending(n))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// appending returns an update that adds a number to a JSON list of numbers,
// unless the list contains it already.
func appending(n int) func(old [][]byte) ([]byte, error) {
	return func(old [][]byte) ([]byte, error) {
		var list []int
		if len(old) > 0 {
			if err := json.Unmarshal(old[0], &list); err != nil {
				return nil, err
			}
		}
		if slices.Contains(list, n) {
			return old[0], nil
		}
		return json.Marshal(append(list, n))
	}
}

// numbers returns the sorted numbers in a store.
func numbers(t *testing.T, s *Store) []int {
	t.Helper()
	contents, err := s.Load(t.Context())
	if err != nil || len(contents) != 1 {
		t.Fatalf("%d contents, %v", len(contents), err)
	}
	var list []int
	if err := json.Unmarshal(contents[0], &list); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// open returns the store at an address.
func open(t *testing.T, address string, o Options) *Store {
	t.Helper()
	a, err := Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(a, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func writing(content string) func([][]byte) ([]byte, error) {
	return func([][]byte) ([]byte, error) { return []byte(content), nil }
}

// names returns the sorted names in a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Every accepted branch is valid for git, and a branch that git accepts is
// rejected only for a documented reason.
func TestBranchesAgreeWithGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		recorded.Missing(t, "git is needed to check branch names: %v", err)
	}
	pieces := []string{
		"a", "b", ".", "..", "/", "-", "~", "^", ":", "?", "*", "[", "\\", " ", ".lock", "lock", "{", "é", "%", "=",
		"+", "'", "$(x)", "~1",
	}
	r := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 250 {
		name := ""
		for range 1 + r.IntN(4) {
			name += pieces[r.IntN(len(pieces))]
		}
		git := exec.Command("git", "check-ref-format", "--branch", name).Run() == nil
		own := checkBranch(name) == nil
		if own != git {
			t.Errorf("%q: accepted %t, git accepts %t", name, own, git)
		}
		if own {
			accepted++
		}
	}
	if accepted < 20 || accepted > 230 {
		t.Errorf("%d of 250 names accepted: want both valid and invalid names", accepted)
	}
}

// A command is split into the same words as in a shell, provided that the shell
// accepts it unchanged.
func TestWordsAgreeWithShell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		recorded.Missing(t, "sh is needed to check word splitting: %v", err)
	}
	pieces := []string{"a", "b=c", " ", "  ", "'", `"`, "''", "'x y'", `"z  w"`, "-", "/"}
	r := rand.New(rand.NewPCG(3, 4))
	var script strings.Builder
	var want [][]string
	for range 300 {
		line := "p"
		for range r.IntN(8) {
			line += pieces[r.IntN(len(pieces))]
		}
		words, err := splitWords(line)
		if err != nil {
			if !strings.Contains(err.Error(), "not closed") {
				t.Errorf("%s: %v", line, err)
			}
			if exec.Command(sh, "-n", "-c", line).Run() == nil {
				t.Errorf("%s: %v, but the shell accepts it", line, err)
			}
			continue
		}
		want = append(want, words)
		script.WriteString("set -- " + line + `; for w; do printf '%s\0' "$w"; done; printf '\n\0'` + "\n")
	}
	cmd := exec.Command(sh)
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(out), "\n\x00")
	if len(lines) != len(want)+1 || len(want) < 50 {
		t.Fatalf("%d lines, want %d", len(lines), len(want)+1)
	}
	for i, words := range want {
		if got := strings.Join(words, "\x00") + "\x00"; got != lines[i] {
			t.Errorf("got %q, want %q as from the shell", got, lines[i])
		}
	}
}

// baseChild is the program of a command: store, with the arguments MODE, FILE
// and VERB.
func baseChild(args []string) int {
	mode, file, verb := args[0], args[1], args[2]
	switch mode {
	case "fails":
		fmt.Fprintln(os.Stderr, "cannot reach https://me:hunter2@host/x \x1b[2J")
		return 1
	case "floods":
		for {
			if _, err := os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
				return 1
			}
		}
	case "babbles":
		os.Stderr.Write(bytes.Repeat([]byte("y\n"), 1<<20))
	case "silent":
		return 0
	}
	content, err := os.ReadFile(file)
	if verb == "get" {
		if errors.Is(err, os.ErrNotExist) {
			return exitNone
		}
		os.Stdout.Write(content)
		return 0
	}
	fresh, _ := io.ReadAll(os.Stdin)
	if mode == "compares" {
		// The directory is the lock that is held from the comparison until the
		// write.
		for os.Mkdir(file+".lock", 0o700) != nil {
			time.Sleep(time.Millisecond)
		}
		defer os.Remove(file + ".lock")
		content, err = os.ReadFile(file)
		if sum := os.Getenv("LEAKGATE_BASELINE_SHA256"); (err != nil) != (sum == "") || err == nil &&
			sum != sha(content) {
			return exitChanged
		}
	}
	if os.WriteFile(file+".new", fresh, 0o600) != nil || os.Rename(file+".new", file) != nil ||
		os.WriteFile(file+".branch", []byte(os.Getenv("LEAKGATE_BASELINE_BRANCH")), 0o600) != nil {
		return 1
	}
	return 0
}

func base(t *testing.T, mode string, limit time.Duration) (*Store, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "base.json")
	return open(t, "command:"+joinWords([]string{testProgram(t), mode, file}),
		Options{Env: childEnv("base"), Branch: "main", Limit: limit}), file
}

func TestCommand(t *testing.T) {
	s, file := base(t, "stores", time.Minute)
	if _, err := s.Load(t.Context()); !errors.Is(err, ErrNone) {
		t.Fatalf("got error %v from an empty store, want %v", err, ErrNone)
	}
	calls := 0
	if err := s.Update(t.Context(),
		func(old [][]byte) ([]byte, error) { calls++; return []byte("one"), nil }); err != nil || calls != 1 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	if got, err := s.Load(t.Context()); err != nil || len(got) != 1 || string(got[0]) != "one" {
		t.Fatalf("%q, %v", got, err)
	}
	if branch, _ := os.ReadFile(file + ".branch"); string(branch) != "main" {
		t.Errorf("branch %q", branch)
	}
	if err := os.Remove(file + ".branch"); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), writing("one")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file + ".branch"); err == nil {
		t.Error("the same content was written again")
	}
}

func TestCommandFails(t *testing.T) {
	s, _ := base(t, "fails", time.Minute)
	for _, err := range []error{second(s.Load(t.Context())), s.Update(t.Context(), writing("x"))} {
		if err == nil || errors.Is(err, ErrNone) ||
			!strings.Contains(err.Error(), "exited with code 1: cannot reach https://***@host/x ?[2J") {
			t.Error(err)
		}
	}
	silent, _ := base(t, "silent", time.Minute)
	if _, err := silent.Load(t.Context()); err == nil || errors.Is(err, ErrNone) ||
		!strings.Contains(err.Error(), "exit with 3") {
		t.Errorf("without output: %v", err)
	}
	floods, _ := base(t, "floods", time.Minute)
	if _, err := floods.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 16.0 MB") {
		t.Errorf("too much output: %v", err)
	}
	babbles, file := base(t, "babbles", time.Minute)
	if err := os.WriteFile(file, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := babbles.Load(t.Context()); err != nil || string(got[0]) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	missing := open(t, "command:./no-such-program", Options{Dir: t.TempDir()})
	if _, err := missing.Load(t.Context()); !errors.Is(err, os.ErrNotExist) || errors.Is(err, ErrNone) {
		t.Errorf("without a program: %v", err)
	}
}

// If the program compares before it writes, no update of concurrent writers is
// lost.
func TestCommandCompares(t *testing.T) {
	s, _ := base(t, "compares", time.Minute)
	both(t, func(writer int) error {
		for i := range 5 {
			if err := s.Update(t.Context(), appending(2*i+writer)); err != nil {
				return err
			}
		}
		return nil
	})
	if got := numbers(t, s); !slices.Equal(got, upTo(10)) {
		t.Error(got)
	}
}

// both runs two writers at the same time.
func both(t *testing.T, write func(writer int) error) {
	t.Helper()
	errs := make(chan error, 2)
	for w := range 2 {
		go func() { errs <- write(w) }()
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func second(_ [][]byte, err error) error { return err }

func sha(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }
