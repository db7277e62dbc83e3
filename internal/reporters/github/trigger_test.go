package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

const (
	headSHA = "1111111111111111111111111111111111111111"
	baseSHA = "2222222222222222222222222222222222222222"
)

// environment returns a getenv function for a workflow run with the given
// event.
func environment(t testing.TB, name, event string, more ...string) func(string) string {
	env := map[string]string{
		"GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_NAME": name, "GITHUB_SHA": testSHA, "GITHUB_RUN_ID": "77",
		"GITHUB_RUN_ATTEMPT": "2",
		"GITHUB_SERVER_URL":  "https://github.com", "GITHUB_API_URL": "https://api.github.com",
		"GITHUB_STEP_SUMMARY": "summary.md",
	}
	if event != "" {
		env["GITHUB_EVENT_PATH"] = filepath.Join(t.TempDir(), "event.json")
		if err := os.WriteFile(env["GITHUB_EVENT_PATH"], []byte(event), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return func(name string) string { return env[name] }
}

func side(ref, sha, repo string) string {
	return fmt.Sprintf(`{"ref":%q,"sha":%q,"repo":%s}`, ref, sha, repo)
}

const (
	ourRepo  = `{"id":1,"full_name":"o/r","default_branch":"main","owner":{"login":"o"}}`
	forkRepo = `{"id":2,"full_name":"alice/r","owner":{"login":"alice"}}`
)

func TestReadTrigger(t *testing.T) {
	pr := func(headRepo string) string {
		return `{"number":7,"pull_request":{"number":7,"head":` + side("main", headSHA, headRepo) + `,"base":` +
			side("main", baseSHA, ourRepo) + `},"repository":` + ourRepo + `}`
	}
	run := func(repo, pulls string) string {
		return `{"workflow_run":{"id":55,"head_sha":"` + headSHA + `","head_branch":"fix","head_repository":` + repo +
			`,"pull_requests":[` + pulls + `]},"repository":` + ourRepo + `}`
	}
	listed := func(number int, sha, baseRepo string) string {
		return fmt.Sprintf(`{"number":%d,"head":%s,"base":%s}`, number, side("fix", sha, `{"id":1}`),
			side("main", baseSHA, baseRepo))
	}
	group := `{"merge_group":{"head_sha":"` + headSHA + `","head_ref":"refs/heads/gh-readonly-queue/release/1.x/pr-7-` +
		baseSHA + `","base_sha":"` + baseSHA + `","base_ref":"refs/heads/release/1.x"},"repository":` + ourRepo + `}`
	for name, c := range map[string]struct {
		event, json string
		more        []string
		want        Trigger
	}{
		"pull request": {
			event: "pull_request", json: pr(ourRepo),
			want: Trigger{
				Number: 7, HeadSHA: headSHA, HeadOwner: "o", HeadBranch: "main", BaseBranch: "main", BaseSHA: baseSHA,
				DefaultBranch: "main",
			},
		},
		"of a fork": {
			event: "pull_request_target", json: pr(forkRepo),
			want: Trigger{
				Number: 7, HeadSHA: headSHA, HeadOwner: "alice", HeadBranch: "main", BaseBranch: "main",
				BaseSHA: baseSHA, DefaultBranch: "main", Fork: true,
			},
		},
		"pull request of a deleted fork": {
			event: "pull_request", json: pr("null"),
			want: Trigger{
				Number: 7, HeadSHA: headSHA, HeadBranch: "main", BaseBranch: "main", BaseSHA: baseSHA,
				DefaultBranch: "main", Fork: true,
			},
		},
		"without an event": {
			event: "pull_request", more: []string{"GITHUB_REF", "refs/pull/7/merge"},
			want: Trigger{Number: 7, Ref: "refs/pull/7/merge"},
		},
		"comment": {
			event: "issue_comment", json: `{"issue":{"number":7,"pull_request":{}},"repository":` + ourRepo + `}`,
			want: Trigger{Number: 7, DefaultBranch: "main"},
		},
		"comment on an issue": {
			event: "issue_comment", json: `{"issue":{"number":7},"repository":` + ourRepo + `}`,
			want: Trigger{HeadSHA: testSHA, HeadOwner: "o", DefaultBranch: "main"},
		},
		"push": {
			event: "push", json: `{"repository":` + ourRepo + `}`, more: []string{"GITHUB_REF", "refs/heads/a/b"},
			want: Trigger{
				HeadSHA: testSHA, HeadOwner: "o", HeadBranch: "a/b", DefaultBranch: "main", Ref: "refs/heads/a/b",
			},
		},
		"workflow run": {
			event: "workflow_run",
			json:  run(ourRepo, listed(7, headSHA, `{"id":1}`)+","+listed(9, headSHA, `{"id":2}`)),
			want: Trigger{
				Number: 7, HeadSHA: headSHA, HeadOwner: "o", HeadBranch: "fix", BaseBranch: "main", BaseSHA: baseSHA,
				DefaultBranch: "main", SourceRun: 55,
			},
		},
		"two pull requests": {
			event: "workflow_run",
			json:  run(ourRepo, listed(7, headSHA, `{"id":1}`)+","+listed(8, headSHA, `{"id":1}`)),
			want:  Trigger{HeadSHA: headSHA, HeadOwner: "o", HeadBranch: "fix", DefaultBranch: "main", SourceRun: 55},
		},
		"an outdated head": {
			event: "workflow_run", json: run(ourRepo, listed(7, baseSHA, `{"id":1}`)),
			want: Trigger{HeadSHA: headSHA, HeadOwner: "o", HeadBranch: "fix", DefaultBranch: "main", SourceRun: 55},
		},
		"workflow run of a fork": {
			event: "workflow_run", json: run(forkRepo, ""),
			want: Trigger{
				HeadSHA: headSHA, HeadOwner: "alice", HeadBranch: "fix", DefaultBranch: "main", SourceRun: 55,
				Fork: true,
			},
		},
		"merge group": {
			event: "merge_group", json: group,
			want: Trigger{
				Number: 7, HeadSHA: headSHA, HeadOwner: "o", HeadBranch: "gh-readonly-queue/release/1.x/pr-7-" +
					baseSHA,
				BaseBranch: "release/1.x", BaseSHA: baseSHA, DefaultBranch: "main"}},
		"merge group by ref": {
			event: "merge_group", json: `{}`,
			more: []string{"GITHUB_REF", "refs/heads/gh-readonly-queue/main/pr-12-" + baseSHA},
			want: Trigger{
				Number: 12, HeadSHA: testSHA, HeadOwner: "o", HeadBranch: "gh-readonly-queue/main/pr-12-" + baseSHA,
				BaseBranch: "main", Ref: "refs/heads/gh-readonly-queue/main/pr-12-" + baseSHA,
			}},
		"merge queue ref, other event": {
			event: "push", json: `{}`,
			more: []string{"GITHUB_REF", "refs/heads/gh-readonly-queue/main/pr-12-" + baseSHA},
			want: Trigger{
				HeadSHA: testSHA, HeadOwner: "o", HeadBranch: "gh-readonly-queue/main/pr-12-" + baseSHA,
				Ref: "refs/heads/gh-readonly-queue/main/pr-12-" + baseSHA,
			}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadTrigger(environment(t, c.event, c.json, c.more...))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Name, c.want.Owner, c.want.Repo, c.want.RunID, c.want.RunAttempt = c.event, "o", "r", 77, 2
			c.want.ServerURL, c.want.APIURL, c.want.GraphQLURL, c.want.SummaryPath = "https://github.com",
				"https://api.github.com", "https://api.github.com/graphql", "summary.md"
			if got != c.want {
				t.Errorf("\n got %+v\nwant %+v", got, c.want)
			}
			if url := got.RunURL(); url != "https://github.com/o/r/actions/runs/77" {
				t.Error(url)
			}
		})
	}
}

func TestReadTriggerErrors(t *testing.T) {
	big := filepath.Join(t.TempDir(), "big.json")
	file, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(maxEvent + 1); err != nil {
		t.Fatal(err)
	}
	file.Close()
	for name, c := range map[string]struct {
		json string
		more []string
		want string
	}{
		"not a workflow": {more: []string{"GITHUB_REPOSITORY", ""}, want: "GITHUB_REPOSITORY"},
		"path in a name": {more: []string{"GITHUB_REPOSITORY", "o/../x"}, want: "GITHUB_REPOSITORY"},
		"dots":           {more: []string{"GITHUB_REPOSITORY", "o/.."}, want: "GITHUB_REPOSITORY"},
		"API":            {more: []string{"GITHUB_API_URL", "ftp://x"}, want: "GITHUB_API_URL"},
		"no file":        {more: []string{"GITHUB_EVENT_PATH", "nowhere/x.json"}, want: "nowhere"},
		"folder":         {more: []string{"GITHUB_EVENT_PATH", t.TempDir()}, want: "GITHUB_EVENT_PATH"},
		"too big":        {more: []string{"GITHUB_EVENT_PATH", big}, want: "25 MB"},
		"not JSON":       {json: `{"number":`, want: "parse"},
		"commit":         {json: `{"pull_request":{"number":7,"head":{"sha":"../../x"}}}`, want: "invalid commit"},
		"number":         {json: `{"pull_request":{"number":-7}}`, want: "negative"},
	} {
		if got, err := ReadTrigger(environment(t, "pull_request", c.json, c.more...)); err == nil ||
			!strings.Contains(err.Error(), c.want) || got != (Trigger{}) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestGraphQLURL(t *testing.T) {
	for api, want := range map[string]string{
		"https://api.github.com":       "https://api.github.com/graphql",
		"https://api.github.com/":      "https://api.github.com/graphql",
		"https://git.corp/api/v3":      "https://git.corp/api/graphql",
		"https://git.corp/api/v3/":     "https://git.corp/api/graphql",
		"https://git.corp/gh/api/v3":   "https://git.corp/gh/api/graphql",
		"https://api.octocorp.ghe.com": "https://api.octocorp.ghe.com/graphql",
	} {
		got, err := ReadTrigger(environment(t, "push", "", "GITHUB_API_URL", api))
		if err != nil || got.GraphQLURL != want {
			t.Errorf("%s: %s %v, want %s", api, got.GraphQLURL, err, want)
		}
	}
	if got, _ := ReadTrigger(environment(t, "push", "", "GITHUB_GRAPHQL_URL",
		"https://x/graphql")); got.GraphQLURL != "https://x/graphql" {
		t.Error(got.GraphQLURL)
	}
}

func FuzzReadTrigger(f *testing.F) {
	f.Add("pull_request", `{"number":7,"pull_request":{"number":7,"head":{"ref":"x","sha":"`+headSHA+`","repo":null}}}`,
		"refs/pull/7/merge", headSHA)
	f.Add("workflow_run", `{"workflow_run":{"pull_requests":[{"number":7}]}}`, "refs/heads/main", "")
	f.Add("merge_group", `{"merge_group":{"head_ref":"gh-readonly-queue/main/pr-7-`+headSHA+`"}}`, "", headSHA)
	f.Add("issue_comment", `{"issue":{"number":1e3,"pull_request":{}}}`, "", "x")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, name, event, ref, sha string) {
		path := filepath.Join(dir, fmt.Sprintf("%d.json", os.Getpid()))
		if err := os.WriteFile(path, []byte(event), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadTrigger(
			environment(t, name, "", "GITHUB_EVENT_PATH", path, "GITHUB_REF", ref, "GITHUB_SHA", sha))
		if err != nil {
			if got != (Trigger{}) {
				t.Errorf("got %+v and error %v", got, err)
			}
			return
		}
		if !json.Valid([]byte(event)) {
			t.Error("no error for invalid JSON")
		}
		if got.Number < 0 || got.SourceRun < 0 || got.Owner != "o" || got.Repo != "r" {
			t.Errorf("%+v", got)
		}
		for _, commit := range []string{got.HeadSHA, got.BaseSHA} {
			if commit != "" && strings.Trim(commit, "0123456789abcdef") != "" {
				t.Errorf("commit %q", commit)
			}
		}
		if strings.HasPrefix(name, "pull_request") && got.HeadSHA != "" && !strings.Contains(event, got.HeadSHA) &&
			!strings.Contains(event, `\u`) {
			t.Errorf("%s does not come from the event", got.HeadSHA)
		}
	})
}

func TestLocate(t *testing.T) {
	pr := func(number int, sha, state, base string) map[string]any {
		return map[string]any{"number": number, "state": state, "label": "alice:fix",
			"head": map[string]any{
				"ref": "fix", "sha": sha,
				"repo": map[string]any{"id": 2, "full_name": "alice/r", "owner": map[string]any{"login": "alice"}},
			},
			"base": map[string]any{"ref": "main", "sha": baseSHA, "repo": map[string]any{"id": 1, "full_name": base}}}
	}
	fork := Trigger{
		Owner: "o", Repo: "r", Name: "workflow_run", HeadSHA: testSHA, HeadOwner: "alice", HeadBranch: "fix",
		Fork: true,
	}
	for name, c := range map[string]struct {
		pulls   []map[string]any
		trigger Trigger
		wrong   *trouble
		want    int
		err     error
	}{
		"one": {pulls: []map[string]any{pr(7, testSHA, "open", "o/r")}, trigger: fork, want: 7},
		"others": {
			pulls: []map[string]any{
				pr(5, testSHA, "closed", "o/r"), pr(6, testSHA, "open", "alice/r"), pr(4, headSHA, "open", "o/r"),
				pr(7, testSHA, "open", "O/R"),
			}, trigger: fork, want: 7,
		},
		"by branch": {
			pulls: []map[string]any{pr(7, testSHA, "open", "o/r")}, trigger: fork,
			wrong: &trouble{kind: "refuse", status: 422, body: `{"message":"No commit found for SHA"}`}, want: 7,
		},
		"head has moved": {
			pulls: []map[string]any{pr(7, headSHA, "open", "o/r")}, trigger: fork, err: ErrNoPullRequest,
		},
		"two": {
			pulls: []map[string]any{pr(7, testSHA, "open", "o/r"), pr(8, testSHA, "open", "o/r")}, trigger: fork,
			err: ErrNoPullRequest,
		},
		"none":          {trigger: fork, err: ErrNoPullRequest},
		"not permitted": {trigger: fork, wrong: &readOnly, err: ErrReadOnly},
		"head of a pull request given by its number": {
			pulls: []map[string]any{pr(7, testSHA, "open", "o/r")}, trigger: Trigger{Owner: "o", Repo: "r", Number: 7},
			want: 7,
		},
		"known": {trigger: Trigger{Number: 3, HeadSHA: testSHA, Fork: true}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFakeGitHub(t)
				w.pulls = append(w.pulls, c.pulls...)
				if w.pulls == nil {
					w.pulls = []map[string]any{}
				}
				if c.wrong != nil {
					w.faultOf = always("GET", "/commits/", *c.wrong)
				}
				s := w.session(Options{})
				got, err := s.Locate(t.Context(), c.trigger)
				if !errors.Is(err, c.err) || err == nil &&
					(got.Number != c.want || got.HeadSHA != testSHA || !got.Fork) {
					t.Errorf("%+v %v", got, err)
				}
				if err == nil && name != "known" &&
					(got.BaseBranch != "main" || got.BaseSHA != baseSHA || got.HeadOwner != "alice") {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}
