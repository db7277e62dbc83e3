package jvmtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// JDK represents the Java tools of this machine. Several tests may use it at
// once.
type JDK struct {
	java, jcmd string
	// api is the path of javac's class files of older releases.
	api string
}

// New finds the JDK by PATH. If there is none, the test ends as with
// recorded.Missing.
func New(tb testing.TB) *JDK {
	tb.Helper()
	javac, err := filepath.EvalSymlinks(find(tb, "javac"))
	if err != nil {
		tb.Fatalf("find JDK: %v", err)
	}
	bin := filepath.Dir(javac)
	j := &JDK{filepath.Join(bin, "java"), filepath.Join(bin, "jcmd"), filepath.Join(bin, "..", "lib", "ct.sym")}
	for _, path := range []string{j.java, j.jcmd, j.api} {
		if _, err := os.Stat(path); err != nil {
			recorded.Missing(tb, "a complete JDK is needed: %v", err)
		}
	}
	return j
}

func find(tb testing.TB, program string) string {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		recorded.Missing(tb, "%s is needed: %v", program, err)
	}
	return path
}

// timeout is the timeout of every program and every response: it ends tests
// that hang, without delaying other tests.
const timeout = 2 * time.Minute

// small are the options of a JVM for one short task: only the first compiler,
// and one thread for garbage collection. With the last option, a JVM that is
// killed leaves no files in /tmp.
var small = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"}

// environment returns the environment without the variables that add options to
// every JVM.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C"}, more...)
}

// run runs a tool in a folder and returns its output.
func run(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w: %s", filepath.Base(program), err, strings.TrimSpace(out.String()))
	}
	return out.String(), nil
}
