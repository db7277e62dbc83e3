package checkout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// Checkout is the work tree of the app under test. Its methods may be called
// concurrently.
type Checkout struct {
	top   string
	noGit error // the reason why git cannot be used; nil if it can

	sources sync.Mutex
	index   *index // nil until it is needed

	owners func() []ownerRule
}

// Open returns the checkout that contains a directory. Its top directory is dir
// or the nearest parent with a .git, or dir itself if there is none. If git is
// missing or rejects the checkout, Open still succeeds; Changed and Ancestors
// then return the reason as their error.
func Open(ctx context.Context, dir string) (*Checkout, error) {
	dir, err := resolve(dir)
	if err != nil {
		return nil, fmt.Errorf("open checkout: %w", err)
	}
	c := &Checkout{top: dir, noGit: fmt.Errorf("%s is not in a git checkout", text.Quote(dir, maxName))}
	c.owners = sync.OnceValue(c.readOwners)
	top, ok := topOf(dir)
	if !ok {
		return c, nil
	}
	c.top = top
	_, c.noGit = c.git(ctx, command{time: askGit, output: 4 << 10}, "rev-parse", "--git-dir")
	if ctx.Err() != nil {
		return nil, fmt.Errorf("open checkout: %w", ctx.Err())
	}
	return c, nil
}

// Top returns the absolute path of the top directory.
func (c *Checkout) Top() string { return c.top }

// resolve returns the absolute path of a directory with symbolic links
// resolved.
func resolve(dir string) (string, error) {
	dir, err := filepath.Abs(cmp.Or(dir, "."))
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory", text.Quote(dir, maxName))
	}
	return dir, nil
}

// topOf returns the nearest directory that contains a .git, which is a file in
// a linked work tree. It does not use git, because git follows core.worktree in
// the checkout's configuration and accepts a directory of the pull request that
// looks like a bare repository.
func topOf(dir string) (string, bool) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

const (
	// askGit is the time limit for one short git command: a checkout may be on
	// a slow disk.
	askGit = 20 * time.Second
	// maxName is the maximum length of a name in an error, in characters.
	maxName = 200
)

var errTooLarge = errors.New("too large")

// readFile returns the content of a regular file inside the root. It returns
// errTooLarge if the file has more than limit bytes.
func readFile(root *os.Root, path string, limit int64) ([]byte, error) {
	path = filepath.FromSlash(path)
	// Opening a named pipe would block until it has a writer.
	info, err := root.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", text.Quote(path, maxName))
	}
	if info.Size() > limit {
		return nil, errTooLarge
	}
	file, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errTooLarge
	}
	return data, err
}

// isSource reports whether a file contains Java or Kotlin code.
func isSource(path string) bool {
	return strings.HasSuffix(path, ".java") || strings.HasSuffix(path, ".kt")
}
