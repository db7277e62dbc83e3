package bisect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxGit is the time limit for one call of git: a checkout of a large
	// repository takes minutes.
	maxGit = 10 * time.Minute
	// maxOutput is the maximum size of git's output in bytes: git prints 41
	// bytes for each commit in a range.
	maxOutput = 64 << 20
	// maxSubject is the maximum length of a commit's subject in characters.
	maxSubject = 200
)

// repository is a work tree in which git runs.
type repository struct{ top string }

// environment returns the environment of git: git must not prompt, and must use
// the repository of its directory even if leakgate runs in a hook (git
// rev-parse --local-env-vars).
func environment() []string {
	out := []string{}
	for _, variable := range os.Environ() {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
			"GIT_PREFIX", "GIT_COMMON_DIR", "GIT_NAMESPACE":
		default:
			out = append(out, variable)
		}
	}
	return append(out, "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "LC_ALL=C")
}

// git runs git and returns its output without leading and trailing space.
// Canceling the context does not stop git: an aborted checkout would leave a
// lock and an incomplete work tree.
func (r *repository) git(ctx context.Context, args ...string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxGit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git",
		append([]string{"--no-pager", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false", "-C", r.top},
			args...)...)
	groupOf(cmd)
	cmd.Env = environment()
	cmd.WaitDelay = 5 * time.Second
	out, complaint := &limited{left: maxOutput}, &limited{left: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("git is not installed")
	case ctx.Err() != nil:
		return "", fmt.Errorf("run git %s: it took longer than %s", args[0], maxGit)
	case err != nil && complaint.Len() > 0:
		return out.text(), fmt.Errorf("run git %s: %w: %s", args[0], err, text.FirstLine(complaint.String(), maxReason))
	case err != nil:
		return out.text(), fmt.Errorf("run git %s: %w", args[0], err)
	case out.left < 0:
		return "", fmt.Errorf("run git %s: it printed more than %s", args[0], text.Size(maxOutput))
	}
	return out.text(), nil
}

// limited keeps the first bytes of an output and discards the rest.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := max(min(len(b), l.left), 0)
	l.left -= len(b)
	l.Buffer.Write(b[:n])
	return len(b), nil
}

func (l *limited) text() string { return strings.TrimSpace(l.String()) }

// Commit is a commit of the repository.
type Commit struct {
	Hash string
	// Subject is safe to print.
	Subject string
	// Date is the author date of the commit.
	Date time.Time
}

func (c Commit) String() string {
	return fmt.Sprintf("%s %s %s", c.Hash[:min(len(c.Hash), 12)], c.Date.Format(time.DateOnly), c.Subject)
}

// resolve returns the commit with the given name.
func (r *repository) resolve(ctx context.Context, name string) (Commit, error) {
	if name == "" || strings.HasPrefix(name, "-") {
		return Commit{}, fmt.Errorf("invalid commit %s: give a hash, a branch or a tag", text.Quote(name, 50))
	}
	hash, err := r.git(ctx, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		if ctx.Err() != nil {
			return Commit{}, err
		}
		return Commit{}, fmt.Errorf("find commit %s: not in %s", text.Quote(name, 50), r.top)
	}
	return r.commit(ctx, hash)
}

func (r *repository) commit(ctx context.Context, hash string) (Commit, error) {
	out, err := r.git(ctx,
		"log", "-1", "--no-show-signature", "--no-color", "--encoding=UTF-8",
		"--format=%H%x00%aI%x00%s", hash, "--")
	if err != nil {
		return Commit{}, err
	}
	parts := strings.SplitN(out, "\x00", 3)
	if len(parts) != 3 {
		return Commit{}, fmt.Errorf("read commit %s: git printed %s", text.Head(hash, 40), text.Quote(out, 50))
	}
	date, err := time.Parse(time.RFC3339, parts[1])
	if err != nil {
		date = time.Time{} // git accepts dates that no other program can parse
	}
	return Commit{Hash: parts[0], Subject: text.Head(parts[2], maxSubject), Date: date}, nil
}

// position is the original HEAD: a branch or a commit.
type position struct{ branch, hash string }

func (r *repository) position(ctx context.Context) (position, error) {
	hash, err := r.git(ctx, "rev-parse", "--verify", "HEAD")
	if err != nil {
		return position{}, err
	}
	branch, err := r.git(ctx, "symbolic-ref", "--quiet", "HEAD")
	if err != nil {
		branch = "" // detached
	}
	return position{branch, hash}, nil
}

// changes returns the tracked files that differ from HEAD, as git status prints
// them. Changes inside a submodule do not prevent a checkout.
func (r *repository) changes(ctx context.Context) ([]string, error) {
	out, err := r.git(ctx, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(out, "\n"), nil
}

// clean reverts the command's changes to tracked files, because they would make
// the next checkout fail. These files had no changes before the command ran.
func (r *repository) clean(ctx context.Context) (int, error) {
	list, err := r.changes(ctx)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	_, err = r.git(ctx, "reset", "--quiet", "--hard")
	return len(list), err
}

// bisecting reports whether a bisect is in progress.
func (r *repository) bisecting(ctx context.Context) (bool, error) {
	path, err := r.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", "BISECT_START")
	if err != nil {
		return false, err
	}
	_, err = os.Stat(path)
	return err == nil, nil
}

// remaining returns the commits that may be the first bad one, according to git
// bisect.
func (r *repository) remaining(ctx context.Context) ([]string, error) {
	refs, err := r.git(ctx, "for-each-ref", "--format=%(refname)", "refs/bisect/good-*")
	if err != nil {
		return nil, err
	}
	args := append([]string{"rev-list", "--topo-order", "refs/bisect/bad", "--not"}, strings.Fields(refs)...)
	out, err := r.git(ctx, args...)
	return strings.Fields(out), err
}
