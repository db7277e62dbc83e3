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
// the same time.
type JDK struct {
	java, jcmd string
	// api is the path of the file that contains the classes of older releases
	// for javac.
	api string
}

// New finds the JDK through PATH. If there is no JDK, recorded.Missing ends the
// test.
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

// timeout limits the run time of every program and the wait for every response:
// it stops tests that hang, without delaying other tests.
const timeout = 2 * time.Minute

// small holds the options of a JVM for one short task: only the C1 compiler,
// and one thread for garbage collection. With the last option, a JVM that is
// killed does not leave files in /tmp.
var small = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"}

// environment returns the environment without the variables that add options to
// every JVM.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C"}, more...)
}

// run runs a tool in a directory and returns its output.
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
