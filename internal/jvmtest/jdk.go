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

// JDK are the tools of Java on this machine. It may be used by several tests at once.
type JDK struct {
	java, jcmd string
	// api is where javac knows the class files of older releases from.
	api string
}

// New finds the JDK by PATH. Without it the test ends as recorded.Missing says.
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
			recorded.Missing(tb, "a whole JDK is needed: %v", err)
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

// patience bounds every program and every answer: it ends tests that hang, it paces
// nothing.
const patience = 2 * time.Minute

// small makes a JVM of one short task: no second compiler, one thread that collects. With
// the last option it leaves no file in /tmp when it is killed.
var small = []string{"-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData"}

// environment has none of the variables that give every JVM options.
func environment(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), "LANG=C"}, more...)
}

// run runs a tool to its end in a folder and gives what it printed.
func run(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
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
