package release

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/hproftest"
)

// fakeGitHub holds the artifacts of a repository and the comments of one pull
// request.
type fakeGitHub struct {
	mu        sync.Mutex
	baselines [][]byte // uploaded on main, oldest first
	comments  []map[string]any
	unknown   []string // unknown requests
}

const mainCommit = "b71e004b71e004b71e004b71e004b71e004b71e0"

func (g *fakeGitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	repository := map[string]any{"id": 1, "full_name": "acme/shop"}
	path, inRepository := strings.CutPrefix(r.URL.Path, "/api/repos/acme/shop")
	var n int
	switch {
	case r.URL.Path == "/graphql":
		answer(http.StatusOK,
			map[string]any{"data": map[string]any{"viewer": map[string]any{"login": "github-actions[bot]"}}})
	case scan(r.URL.Path, "/storage/%d", &n) && n <= len(g.baselines):
		_, _ = w.Write(zipped("leak-baseline.json", g.baselines[n-1]))
	case !inRepository:
		g.refuse(w, r)
	case path == "/actions/artifacts" && r.URL.Query().Get("name") == "leakgate-baseline":
		list := []map[string]any{}
		for i := range g.baselines {
			list = append(list,
				map[string]any{
					"id": i + 1, "name": "leakgate-baseline", "expired": false,
					"created_at": time.Unix(int64(i), 0).UTC(),
					"workflow_run": map[string]any{
						"id": i + 1, "repository_id": 1, "head_repository_id": 1, "head_branch": "main",
						"head_sha": mainCommit,
					}})
		}
		answer(http.StatusOK, map[string]any{"total_count": len(list), "artifacts": list})
	case scan(path, "/actions/runs/%d", &n):
		answer(http.StatusOK,
			map[string]any{
				"id": n, "event": "push", "head_branch": "main", "head_sha": mainCommit, "repository": repository,
				"head_repository": repository,
			})
	case scan(path, "/actions/artifacts/%d/zip", &n):
		http.Redirect(w, r, fmt.Sprintf("/storage/%d", n), http.StatusFound)
	case path == "/issues/7/comments" && r.Method == http.MethodGet:
		answer(http.StatusOK, append([]map[string]any{}, g.comments...))
	case path == "/issues/7/comments" && r.Method == http.MethodPost:
		var c map[string]any
		_ = json.NewDecoder(r.Body).Decode(&c)
		c["id"], c["user"] = len(g.comments)+1, map[string]any{"login": "github-actions[bot]", "type": "Bot"}
		g.comments = append(g.comments, c)
		answer(http.StatusCreated, c)
	default:
		g.refuse(w, r)
	}
}

// posted returns the bodies of the comments, and the unknown requests.
func (g *fakeGitHub) posted() (texts, refused []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.comments {
		texts = append(texts, fmt.Sprint(c["body"]))
	}
	return texts, slices.Clone(g.unknown)
}

// upload stores a baseline and returns the number of stored baselines; it
// ignores nil.
func (g *fakeGitHub) upload(baseline []byte) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if baseline != nil {
		g.baselines = append(g.baselines, baseline)
	}
	return len(g.baselines)
}

func (g *fakeGitHub) refuse(w http.ResponseWriter, r *http.Request) {
	g.unknown = append(g.unknown, r.Method+" "+r.URL.String())
	http.NotFound(w, r)
}

// scan parses a path that contains one number.
func scan(path, form string, n *int) bool {
	got, err := fmt.Sscanf(path, form, n)
	return err == nil && got == 1 && fmt.Sprintf(form, *n) == path
}

func zipped(name string, text []byte) []byte {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	file, err := z.Create(name)
	if err == nil {
		_, err = file.Write(text)
	}
	if err != nil || z.Close() != nil {
		return nil
	}
	return out.Bytes()
}

// leaky writes the dumps of three loops. perLoop is the number of instances of
// each screen that leak in a loop.
func leaky(t *testing.T, dir string, hour int, perLoop map[string]int) {
	t.Helper()
	for loop := 1; loop <= 3; loop++ {
		h := hproftest.Android(hproftest.Phone{SDK: 34, Process: "com.shop"})
		for _, screen := range []string{"Cart", "Wish"} {
			var held []hproftest.Ref
			for range perLoop[screen] * loop {
				held = append(held, h.Activity("com.shop."+screen+"Activity", hproftest.Destroyed).Ref)
			}
			if len(held) > 0 {
				h.Hold("com.shop."+screen+"Bus", "listeners", h.ArrayList(held...).Ref)
			}
		}
		dump, _, err := h.Dump(hproftest.Form{Time: time.Date(2026, 11, 1, hour, loop, 0, 0, time.UTC)})
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, fmt.Sprintf("CartTest.opens-%02d.hprof", loop)), dump, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// journey is a repository whose workflows run with the program built from this
// tree.
type journey struct {
	t       *testing.T
	github  *fakeGitHub
	api     *httptest.Server
	release *fakeReleases
	hour    int
}

// job runs the action on dumps, and stores the resulting baseline as GitHub
// does.
func (j *journey) job(event string, fork bool, perLoop map[string]int) *runner {
	j.t.Helper()
	r := served(j.t, j.release, map[string]string{"dumps": "com.shop=*.hprof"})
	j.hour++
	leaky(j.t, r.workspace, j.hour, perLoop)
	head := map[string]any{"id": 1, "full_name": "acme/shop"}
	if fork {
		head = map[string]any{"id": 2, "full_name": "mallory/shop"}
	}
	payload := map[string]any{
		"repository": map[string]any{
			"id": 1, "full_name": "acme/shop", "default_branch": "main", "owner": map[string]any{"login": "acme"},
		},
	}
	commit := fmt.Sprintf("%040x", j.hour)
	r.github["event_name"], r.github["ref"], r.github["event.pull_request.head.repo.full_name"] = event,
		"refs/heads/main", ""
	if event == "pull_request" {
		payload["number"] = 7
		payload["pull_request"] = map[string]any{"number": 7,
			"head": map[string]any{"ref": "wish", "sha": commit, "repo": head},
			"base": map[string]any{
				"ref": "main", "sha": mainCommit, "repo": map[string]any{"id": 1, "full_name": "acme/shop"},
			}}
		r.github["ref"], r.github["event.pull_request.head.repo.full_name"] = "refs/pull/7/merge",
			head["full_name"].(string)
	}
	text, err := json.Marshal(payload)
	if err != nil {
		j.t.Fatal(err)
	}
	path := filepath.Join(j.t.TempDir(), "event.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		j.t.Fatal(err)
	}
	r.env = []string{
		"GITHUB_ACTIONS=true", "GITHUB_EVENT_PATH=" + path, "GITHUB_API_URL=" + j.api.URL + "/api",
		"GITHUB_GRAPHQL_URL=" + j.api.URL + "/graphql",
		"GITHUB_SERVER_URL=" + j.api.URL, "GITHUB_SHA=" + commit, "GITHUB_REF_NAME=main",
		"GITHUB_RUN_ID=" + fmt.Sprint(j.hour), "GITHUB_RUN_ATTEMPT=1"}
	r.run()
	if _, stored := r.artifacts()["leakgate-baseline"]; stored {
		baseline, err := os.ReadFile(filepath.Join(r.workspace, "leak-baseline", "leak-baseline.json"))
		if err != nil {
			j.t.Fatal(err)
		}
		j.github.upload(baseline)
	}
	return r
}

// expect checks how a job ended.
func (j *journey) expect(r *runner, verdict string, code int) {
	j.t.Helper()
	if got := r.outputs["judge"]["verdict"]; got != verdict || r.exitCode != code || r.failed != (code != 0) {
		j.t.Errorf("verdict %q with exit code %d, want %s with %d:\n%s", got, r.exitCode, verdict, code, r.log.String())
	}
	if strings.Contains(r.log.String(), "ghs_secret") || strings.Contains(r.summary, "ghs_secret") {
		j.t.Error("the token is in the log or the summary")
	}
	if !strings.Contains(r.summary, "leakgate") {
		j.t.Errorf("got the job summary %q, want one from leakgate", r.summary)
	}
	for name := range r.artifacts() {
		if name != "leakgate" && name != "leakgate-baseline" {
			j.t.Errorf("stored %s", name)
		}
	}
}

// TestFirstDays uses the program built from this tree to check what the README
// of examples/prgate promises for the first days. The test covers everything
// from the action to the comment.
func TestFirstDays(t *testing.T) {
	program, err := os.ReadFile(builtProgram(t))
	if err != nil {
		t.Fatal(err)
	}
	j := &journey{t: t, github: &fakeGitHub{}, release: v1()}
	j.release.program = program
	j.api = httptest.NewServer(j.github)
	t.Cleanup(j.api.Close)
	known, grown, added := map[string]int{"Cart": 2}, map[string]int{"Cart": 3}, map[string]int{"Cart": 2, "Wish": 1}

	j.expect(j.job("pull_request", false, known), "neutral", 0) // there is no baseline to compare with
	j.expect(j.job("push", false, known), "neutral", 0)
	if n := j.github.upload(nil); n != 1 {
		t.Fatalf("got %d baselines", n)
	}
	j.expect(j.job("pull_request", false, known), "pass", 0)
	j.expect(j.job("pull_request", false, grown), "pass", 0) // one base run does not show how much runs vary
	before, _ := j.github.posted()

	j.expect(j.job("pull_request", true, added), "fail", 1)
	if after, _ := j.github.posted(); len(after) != len(before) {
		t.Errorf("a fork gets a comment: %q", after)
	}
	j.expect(j.job("pull_request", false, added), "fail", 1)
	if comments, _ := j.github.posted(); !strings.Contains(strings.Join(comments, ""), "WishActivity") {
		t.Errorf("got comments %q, want one that names the leak", comments)
	}

	j.expect(j.job("push", false, known), "pass", 0)
	j.expect(j.job("push", false, known), "pass", 0)
	j.expect(j.job("pull_request", true, grown), "fail", 1) // three base runs are enough
	if _, refused := j.github.posted(); len(refused) > 0 {
		t.Errorf("unknown requests: %q", refused)
	}
}
