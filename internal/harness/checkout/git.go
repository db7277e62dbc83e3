package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// command describes one call of git and its limits.
type command struct {
	time   time.Duration
	output int64 // bytes
	stdin  string
	to     io.Writer // if not nil, receives the output in place of the result
}

// hardened lists the options that are passed to every git command. They
// override settings in the configuration of the checkout that may name
// programs.
var hardened = []string{
	"--no-pager",
	"-c", "core.fsmonitor=false",
	"-c", "core.hooksPath=" + os.DevNull,
	"-c", "safe.bareRepository=explicit",
	"-c", "core.quotePath=true",
}

// environment lists the variables that are set for every git command. A partial
// clone fetches missing objects with programs from its configuration. Since git
// 2.45, GIT_NO_LAZY_FETCH forbids this; GIT_ALLOW_PROTOCOL does so in all
// versions.
var environment = []string{
	"GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none",
	"GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C",
}

// kept reports whether a variable of leakgate's environment is passed to git.
// The variables with which users configure git are kept; others, such as
// GIT_DIR inside a hook, would select another repository or another format.
func kept(name string) bool {
	switch name {
	case "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_COUNT", "GIT_EXEC_PATH",
		"GIT_DISCOVERY_ACROSS_FILESYSTEM":
		return true
	}
	return !strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "GIT_CONFIG_KEY_") ||
		strings.HasPrefix(name, "GIT_CONFIG_VALUE_")
}

func (c *Checkout) environment() []string {
	var out []string
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); kept(strings.ToUpper(name)) {
			out = append(out, variable)
		}
	}
	// If .git is damaged, git must not use a repository in a parent directory.
	return append(append(out, environment...), "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.top))
}

// git runs git in the top directory and returns its output. git does not
// prompt, changes nothing and starts no other program.
func (c *Checkout) git(ctx context.Context, limits command, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limits.time)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append(append([]string{"-C", c.top}, hardened...), args...)...)
	cmd.Env = c.environment()
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(limits.stdin)
	var out, complaint bytes.Buffer
	to := limits.to
	if to == nil {
		to = &out
	}
	output := &boundedWriter{to: to, left: limits.output}
	cmd.Stdout = output
	cmd.Stderr = &tolerantWriter{to: &complaint, left: 4 << 10}
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("run git %s: %w", args[0], ctx.Err())
	case output.err != nil:
		return nil, fmt.Errorf("read output of git %s: %w", args[0], output.err)
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("git is not installed")
	case err != nil && complaint.Len() > 0:
		return nil, fmt.Errorf("run git %s: %w: %s", args[0], err, text.FirstLine(complaint.String(), maxName))
	case err != nil:
		return nil, fmt.Errorf("run git %s: %w", args[0], err)
	}
	return out.Bytes(), nil
}

// exitCode returns the exit code of git that an error contains; -1 if git did
// not exit by itself.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return -1
}

// boundedWriter returns an error once the output exceeds the number of bytes in
// left; git then exits as well.
type boundedWriter struct {
	to   io.Writer
	left int64
	err  error
}

func (w *boundedWriter) Write(b []byte) (int, error) {
	if w.left -= int64(len(b)); w.left < 0 {
		w.err = errTooLarge
		return 0, w.err
	}
	n, err := w.to.Write(b)
	w.err = err
	return n, err
}

// tolerantWriter keeps at most the number of bytes in left and discards the
// rest.
type tolerantWriter struct {
	to   *bytes.Buffer
	left int
}

func (w *tolerantWriter) Write(b []byte) (int, error) {
	n := min(len(b), w.left)
	w.left -= n
	w.to.Write(b[:n])
	return len(b), nil
}
