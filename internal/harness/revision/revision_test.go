package revision

//unit:program asks git for the commit of a checkout

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// variables returns a replacement for os.Getenv that reads the variables from a
// map.
func variables(of map[string]string) func(string) string {
	return func(name string) string { return of[name] }
}

func TestOfCI(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		path := filepath.Join(dir, "event.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pull := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_SHA": "merge", "GITHUB_REF": "refs/pull/12/merge",
		"GITHUB_REF_NAME": "12/merge", "GITHUB_HEAD_REF": "fix",
	}
	with := func(of map[string]string, name, value string) map[string]string {
		out := maps.Clone(of)
		out[name] = value
		return out
	}
	for name, c := range map[string]struct {
		variables map[string]string
		event     string
		want      *record.Revision
	}{
		"a push to GitHub": {
			map[string]string{
				"GITHUB_ACTIONS": "true", "GITHUB_SHA": "8c1d0fe", "GITHUB_REF": "refs/heads/main",
				"GITHUB_REF_NAME": "main",
			}, `{"ref":"refs/heads/main"}`,
			&record.Revision{Commit: "8c1d0fe", Branch: "main"},
		},
		"a pull request": {
			pull, `{"pull_request":{"number":12,"head":{"sha":"b71e004","ref":"fix"}}}`,
			&record.Revision{Commit: "b71e004", Branch: "fix", PullRequest: 12},
		},
		"a pull request without its event": {
			pull, "", &record.Revision{Commit: "merge", Branch: "fix", PullRequest: 12},
		},
		"pull request with a corrupt event": {
			pull, `{"pull_request":`, &record.Revision{Commit: "merge", Branch: "fix", PullRequest: 12},
		},
		"a pull request with a negative number": {
			with(pull, "GITHUB_REF", "refs/pull/-1/merge"), "", &record.Revision{Commit: "merge", Branch: "fix"},
		},
		"a GitLab merge request": {
			map[string]string{
				"GITLAB_CI": "true", "CI_COMMIT_SHA": "merge", "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": "b71e004",
				"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix", "CI_MERGE_REQUEST_IID": "7",
			}, "",
			&record.Revision{Commit: "b71e004", Branch: "fix", PullRequest: 7},
		},
		"a branch of GitLab": {
			map[string]string{"GITLAB_CI": "true", "CI_COMMIT_SHA": "8c1d0fe", "CI_COMMIT_REF_NAME": "main"}, "",
			&record.Revision{Commit: "8c1d0fe", Branch: "main"},
		},
		"no variables": {map[string]string{"GITLAB_CI": "true"}, "", nil},
	} {
		of := c.variables
		if c.event != "" {
			of = with(of, "GITHUB_EVENT_PATH", file(c.event))
		}
		for _, got := range []*record.Revision{Of(t.Context(), dir, variables(of)), OfCI(variables(of))} {
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
	}
	long := Of(t.Context(), dir,
		variables(map[string]string{
			"GITHUB_ACTIONS": "true", "GITHUB_HEAD_REF": strings.Repeat("x", 10*maxName) + "\x1b[2J",
		}))
	if long == nil || len([]rune(long.Branch)) > maxName || strings.Contains(long.Branch, "\x1b") {
		t.Errorf("%+v", long)
	}
}

// For a checkout, the revision contains the commit, the branch and whether
// files differ from the commit. A file system monitor configured in the
// checkout is not run.
func TestOfGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		recorded.Missing(t, "a checkout needs git: %v", err)
	}
	none := variables(nil)
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if got := Of(t.Context(), dir, none); got != nil {
		t.Errorf("without a checkout: %+v", got)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git",
			append([]string{
				"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false",
			}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v, %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run("init", "-q", "-b", "trunk")
	if got := Of(t.Context(), dir, none); got != nil {
		t.Errorf("without a commit: %+v", got)
	}
	write("1")
	run("add", "a")
	run("commit", "-q", "-m", "one")
	trap := filepath.Join(dir, "trapped")
	run("config", "core.fsmonitor", "touch "+trap+"; true")
	commit := run("-c", "core.fsmonitor=false", "rev-parse", "HEAD")
	if got, want := Of(t.Context(), dir, none), (record.Revision{Commit: commit, Branch: "trunk"}); got == nil ||
		*got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	write("2")
	if got := Of(t.Context(), dir, none); got == nil || !got.Modified {
		t.Errorf("modified: %+v", got)
	}
	run("-c", "core.fsmonitor=false", "checkout", "-q", "--detach")
	if got, want := Of(t.Context(), dir, none), (record.Revision{Commit: commit, Modified: true}); got == nil ||
		*got != want {
		t.Errorf("detached: %+v, want %+v", got, want)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a program named by the checkout was run")
	}
}
