// Package sharktest runs Shark, LeakCanary's heap analysis, as a second
// implementation for tests: it analyzes heap dumps and returns leaks with
// paths, statuses and sizes.
//
//	s := sharktest.New(t)
//	answers := s.Analyze(t, []sharktest.Request{{Dump: path, Mode: sharktest.Android, Finder: sharktest.Filter}})
//
// The version of Shark is jars.Shark.Version, from Maven Central. It requires
// java and javac and, for the first run, mvn and network access; the result is
// kept in the user's cache. If one of these requirements is missing,
// recorded.Missing ends the test.
//
// One JVM processes all requests of a call, because starting it takes longer
// than analyzing a small dump. If the results of Shark and leakgate differ,
// either may be wrong; the package does not decide which.
package sharktest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/jars"
	"github.com/leakgate/leakgate/internal/recorded"
)

// Shark is an installation of Shark that is ready to run.
type Shark struct {
	java, javac, cache, classPath string
}

// New finds Shark or downloads it. If Shark can neither be found nor
// downloaded, recorded.Missing ends the test.
func New(tb testing.TB) *Shark {
	tb.Helper()
	s := &Shark{}
	s.java, s.javac = find(tb, "java"), find(tb, "javac")
	cache, err := os.UserCacheDir()
	if err != nil {
		recorded.Missing(tb, "Shark needs a folder for its files: %v", err)
	}
	s.cache = filepath.Join(cache, "leakgate-test")
	if s.classPath, err = jars.Shark.Fetch(tb.Context(),
		filepath.Join(s.cache, "shark-"+jars.Shark.Version)); err != nil {
		recorded.Missing(tb, "fetch Shark %s: %v", jars.Shark.Version, err)
	}
	return s
}

func find(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		recorded.Missing(tb, "Shark needs %s: %v", name, err)
	}
	return path
}

// Program is a Java program that was compiled with Shark in its class path.
type Program struct {
	name            string
	java, classPath string
}

// release is the Java release for which the programs are compiled; they also
// run on newer JVMs.
const release = "11"

// Compile compiles a Java program unless it is already compiled. The program is
// a class with the given name and a main method. A compile error fails the
// test.
func (s *Shark) Compile(tb testing.TB, name, text string) *Program {
	tb.Helper()
	dir := filepath.Join(s.cache, "classes",
		fmt.Sprintf("%s-%x", name, sha256.Sum256([]byte(release+jars.Shark.Version+text)))[:len(name)+17])
	if _, err := os.Stat(dir); err != nil {
		if err := s.compile(tb.Context(), name, text, dir); err != nil {
			tb.Fatalf("compile %s: %v", name, err)
		}
	}
	return &Program{name, s.java, dir + string(filepath.ListSeparator) + s.classPath}
}

func (s *Shark) compile(ctx context.Context, name, text, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	defer os.RemoveAll(part)
	file, classes := filepath.Join(part, name+".java"), filepath.Join(part, "classes")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write program: %w", err)
	}
	cmd := exec.CommandContext(ctx, s.javac, "-encoding", "UTF-8", "-nowarn", "--release", release, "-cp", s.classPath,
		"-d", classes, file)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return jars.Install(classes, dir)
}

// stack is the stack size of a program. Shark follows each path recursively,
// and a list in a heap may be long.
const stack = "-Xss512m"

// Run runs a program and returns its standard output. If the program fails, the
// test fails too.
func (p *Program) Run(tb testing.TB, args ...string) []byte {
	tb.Helper()
	argv := append([]string{
		"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", stack, "-Dfile.encoding=UTF-8", "-cp", p.classPath, p.name,
	}, args...)
	cmd := exec.CommandContext(tb.Context(), p.java, argv...)
	cmd.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		tb.Fatalf("run %s: %v: %s", p.name, err, said.Bytes())
	}
	return out.Bytes()
}
