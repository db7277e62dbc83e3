package revision

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

const (
	// askGit is the time limit of one git command; a checkout may be on a slow
	// disk.
	askGit = 5 * time.Second
	// maxName is the maximum length of a name, in characters.
	maxName = 200
	// maxEvent is the maximum size of the GitHub event file, in bytes; GitHub
	// allows 25 MB.
	maxEvent = 32 << 20
)

// Of returns the revision of the source in a directory. It returns nil if
// neither the CI variables nor git provides it. getenv is os.Getenv.
func Of(ctx context.Context, dir string, getenv func(string) string) *record.Revision {
	if r, inCI := ofCI(getenv); inCI {
		return printable(r)
	}
	return printable(ofGit(ctx, dir))
}

// OfCI returns the revision that a CI job tests, or nil outside of CI or if the
// job does not name it.
func OfCI(getenv func(string) string) *record.Revision {
	r, _ := ofCI(getenv)
	return printable(r)
}

// ofCI reads the variables of the CI job. It returns false outside of CI.
func ofCI(getenv func(string) string) (record.Revision, bool) {
	switch {
	case getenv("GITHUB_ACTIONS") == "true":
		return ofGitHub(getenv), true
	case getenv("GITLAB_CI") == "true":
		return ofGitLab(getenv), true
	}
	return record.Revision{}, false
}

// printable makes the names of a revision safe to print. It returns nil for a
// revision without any names.
func printable(r record.Revision) *record.Revision {
	r.Commit, r.Branch = text.Head(text.Printable(r.Commit), maxName), text.Head(text.Printable(r.Branch), maxName)
	if r == (record.Revision{}) {
		return nil
	}
	return &r
}

// ofGitHub reads the variables of GitHub Actions
// (docs.github.com/en/actions/reference/workflows-and-actions/variables). For a
// pull request GITHUB_SHA is a temporary merge commit; the commit of the branch
// is in the event file.
func ofGitHub(getenv func(string) string) record.Revision {
	r := record.Revision{
		Commit: getenv("GITHUB_SHA"), Branch: cmp.Or(getenv("GITHUB_HEAD_REF"), getenv("GITHUB_REF_NAME")),
	}
	if number, ok := strings.CutPrefix(getenv("GITHUB_REF"), "refs/pull/"); ok {
		number, _, _ = strings.Cut(number, "/")
		r.PullRequest = positive(number)
	}
	file, err := os.Open(getenv("GITHUB_EVENT_PATH"))
	if err != nil {
		return r
	}
	defer file.Close()
	var event struct {
		PullRequest struct {
			Number int
			Head   struct{ SHA, Ref string }
		} `json:"pull_request"`
	}
	if json.NewDecoder(io.LimitReader(file, maxEvent)).Decode(&event) != nil {
		return r // the variables contain everything that is needed
	}
	p := event.PullRequest
	r.Commit, r.Branch, r.PullRequest = cmp.Or(p.Head.SHA, r.Commit), cmp.Or(p.Head.Ref, r.Branch),
		cmp.Or(max(p.Number, 0), r.PullRequest)
	return r
}

// ofGitLab reads the variables of GitLab CI
// (docs.gitlab.com/ci/variables/predefined_variables).
func ofGitLab(getenv func(string) string) record.Revision {
	return record.Revision{
		Commit:      cmp.Or(getenv("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA"), getenv("CI_COMMIT_SHA")),
		Branch:      cmp.Or(getenv("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME"), getenv("CI_COMMIT_REF_NAME")),
		PullRequest: positive(getenv("CI_MERGE_REQUEST_IID")),
	}
}

func positive(number string) int {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// ofGit returns the commit that is checked out.
func ofGit(ctx context.Context, dir string) record.Revision {
	commit, ok := git(ctx, dir, "rev-parse", "--verify", "HEAD")
	if !ok {
		return record.Revision{}
	}
	r := record.Revision{Commit: commit}
	if branch, ok := git(ctx, dir, "symbolic-ref", "--short", "HEAD"); ok {
		r.Branch = branch
	}
	changes, ok := git(ctx, dir, "status", "--porcelain", "--untracked-files=no")
	r.Modified = ok && changes != ""
	return r
}

// git runs a git command without a terminal. The command must not change the
// index, or run a program that the checkout names. git returns false if there
// is no git program or no checkout.
func git(ctx context.Context, dir string, args ...string) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, askGit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git",
		append([]string{"-c", "core.fsmonitor=false", "-C", cmp.Or(dir, ".")}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err == nil
}
