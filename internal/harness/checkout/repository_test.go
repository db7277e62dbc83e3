package checkout

//unit:program git makes the checkouts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// repository is a git checkout for a test.
type repository struct {
	testing.TB
	dir string
}

func newRepository(tb testing.TB) repository {
	tb.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		recorded.Missing(tb, "git is needed: %v", err)
	}
	// The user's own configuration must have no effect.
	tb.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	tb.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	r := repository{tb, tb.TempDir()}
	r.git("init", "-q", "-b", "main")
	return r
}

// git runs git and returns its output without the trailing newline.
func (r repository) git(args ...string) string {
	r.Helper()
	return r.gitWith("", args...)
}

func (r repository) gitWith(stdin string, args ...string) string {
	r.Helper()
	out, err := r.try(stdin, args...)
	if err != nil {
		r.Fatalf("git %q: %v", args, err)
	}
	return out
}

// try is like gitWith, but git may fail.
func (r repository) try(stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(r.Context(), "git",
		append([]string{"-C", r.dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "gc.auto=0"},
			args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, complaint.String())
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

func (r repository) write(path, content string) {
	r.Helper()
	path = filepath.Join(r.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		r.Fatal(err)
	}
}

// commit commits all files and returns the id of the commit.
func (r repository) commit() string {
	r.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "a")
	return r.git("rev-parse", "HEAD")
}

func (r repository) open() *Checkout {
	r.Helper()
	return open(r, r.dir)
}

func open(tb testing.TB, dir string) *Checkout {
	tb.Helper()
	c, err := Open(tb.Context(), dir)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
