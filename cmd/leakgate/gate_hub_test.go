package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hubToken must not appear in anything that leakgate writes.
const hubToken = "ghs_0123456789abcdefghijSECRET"

// hub is the part of GitHub that the commands use, in memory: the repository
// shop/app with one open pull request. Its responses are never late;
// reporters/github tests GitHub with all its delays and errors.
type hub struct {
	t *testing.T

	mu        sync.Mutex
	readOnly  bool
	down      bool
	pull      hubPull
	comments  []map[string]any
	artifacts []hubArtifact
	checks    []map[string]any
	sarifs    []map[string]any
	// seen lists the method and the path of each request.
	seen []string
}

type hubPull struct {
	number               int
	headSHA, baseSHA     string
	headRepo, headBranch string
}

// hubArtifact is an artifact that a run has uploaded, with the branch, the
// event and the repository of that run.
type hubArtifact struct {
	name, branch, event, sha string
	repository               int64
	zip                      []byte
}

// hubRepository and hubFork are the IDs of the two repositories.
const (
	hubRepository = 11
	hubFork       = 12
)

func newHub(t *testing.T) *hub {
	return &hub{
		t: t,
		pull: hubPull{
			number: 7, headSHA: strings.Repeat("a", 40), baseSHA: strings.Repeat("b", 40), headRepo: "shop/app",
			headBranch: "wish",
		},
	}
}

// env returns the variables of a job. The event file has the same form as on
// GitHub.
func (h *hub) env(event string, payload, more map[string]any) map[string]string {
	h.t.Helper()
	dir := h.t.TempDir()
	payload["repository"] = map[string]any{
		"id": hubRepository, "full_name": "shop/app", "default_branch": "main",
		"owner": map[string]any{"login": "shop"},
	}
	raw, err := json.Marshal(payload)
	path := filepath.Join(dir, "event.json")
	if err == nil {
		err = os.WriteFile(path, raw, 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	env := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": path,
		"GITHUB_REPOSITORY": "shop/app", "GITHUB_TOKEN": hubToken,
		"GITHUB_API_URL": "https://api.hub.test", "GITHUB_GRAPHQL_URL": "https://api.hub.test/graphql",
		"GITHUB_SERVER_URL": "https://hub.test",
		"GITHUB_RUN_ID":     "4711", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary.md"),
		"PATH": os.Getenv("PATH"), "HOME": dir,
	}
	for name, value := range more {
		env[name] = fmt.Sprint(value)
	}
	return env
}

// pushed returns the variables of a job for a push to main.
func (h *hub) pushed(sha string) map[string]string {
	return h.env("push", map[string]any{"ref": "refs/heads/main", "after": sha},
		map[string]any{"GITHUB_REF": "refs/heads/main", "GITHUB_SHA": sha})
}

// pulled returns the variables of a job for the pull request. GITHUB_SHA is the
// merge commit.
func (h *hub) pulled() map[string]string {
	return h.env("pull_request",
		map[string]any{"action": "synchronize", "number": h.pull.number, "pull_request": h.pull.json()},
		map[string]any{
			"GITHUB_REF": fmt.Sprintf("refs/pull/%d/merge", h.pull.number), "GITHUB_SHA": strings.Repeat("c", 40),
			"GITHUB_BASE_REF": "main", "GITHUB_HEAD_REF": h.pull.headBranch,
		})
}

// completed returns the variables of the job that the repository itself runs
// after a job for a fork's pull request. GitHub lists no pull requests for such
// a run.
func (h *hub) completed() map[string]string {
	owner, _, _ := strings.Cut(h.pull.headRepo, "/")
	return h.env("workflow_run", map[string]any{"action": "completed", "workflow_run": map[string]any{
		"id": 815, "event": "pull_request", "head_sha": h.pull.headSHA, "head_branch": h.pull.headBranch,
		"pull_requests": []any{},
		"head_repository": map[string]any{
			"id": hubFork, "full_name": h.pull.headRepo, "owner": map[string]any{"login": owner},
		},
	}}, map[string]any{"GITHUB_REF": "refs/heads/main", "GITHUB_SHA": h.pull.baseSHA})
}

func (p *hubPull) json() map[string]any {
	head := map[string]any{"id": hubRepository, "full_name": "shop/app", "owner": map[string]any{"login": "shop"}}
	base := maps.Clone(head)
	if p.headRepo != "shop/app" {
		owner, _, _ := strings.Cut(p.headRepo, "/")
		head = map[string]any{"id": hubFork, "full_name": p.headRepo, "owner": map[string]any{"login": owner}}
	}
	return map[string]any{
		"number": p.number, "state": "open",
		"head": map[string]any{"sha": p.headSHA, "ref": p.headBranch, "repo": head},
		"base": map[string]any{"sha": p.baseSHA, "ref": "main", "repo": base},
	}
}

// typed runs a command line in a job. The token must not be in the output, in
// the summary or in any file of the current directory.
func (h *hub) typed(env map[string]string, args ...string) (code int, out, errOut string) {
	h.t.Helper()
	var o, e bytes.Buffer
	c := environment(env, &o, &e)
	c.github = h
	code = call(args, c)
	h.assertNoToken("standard output", o.String())
	h.assertNoToken("standard error", e.String())
	h.assertNoToken("the summary", h.summary(env))
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".hprof") {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() > 1<<20 {
			return err // written by the test itself
		}
		text, err := os.ReadFile(path)
		h.assertNoToken(path, string(text))
		return err
	})
	if err != nil {
		h.t.Error(err)
	}
	return code, o.String(), e.String()
}

func (h *hub) assertNoToken(where, text string) {
	h.t.Helper()
	if strings.Contains(text, hubToken) || strings.Contains(text, hubToken[4:]) {
		h.t.Errorf("%s contains the token:\n%s", where, text)
	}
}

// summary returns the summary of a job, "" if there is none.
func (h *hub) summary(env map[string]string) string {
	text, err := os.ReadFile(env["GITHUB_STEP_SUMMARY"])
	if err != nil && !os.IsNotExist(err) {
		h.t.Error(err)
	}
	return string(text)
}

// count returns the number of requests with this prefix.
func (h *hub) count(prefix string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, line := range h.seen {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// body returns the text of the only comment.
func (h *hub) body() string {
	h.t.Helper()
	if len(h.comments) != 1 {
		h.t.Fatalf("got %d comments, want 1", len(h.comments))
	}
	return h.comments[0]["body"].(string)
}

// RoundTrip responds to one request.
func (h *hub) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	h.seen = append(h.seen, r.Method+" "+r.URL.Path)
	if h.down {
		return nil, fmt.Errorf("dial tcp: lookup %s: no such host", r.URL.Host)
	}
	status, header, answer := h.answer(r, body)
	raw, ok := answer.([]byte)
	if !ok && answer != nil {
		raw, _ = json.Marshal(answer)
	}
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1",
		ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(raw)), ContentLength: int64(len(raw)), Request: r,
	}, nil
}

func (h *hub) answer(r *http.Request, body []byte) (int, http.Header, any) {
	header := http.Header{"Content-Type": {"application/json"}}
	authorized := r.Header.Get("Authorization") == "Bearer "+hubToken
	if r.URL.Host == "storage.test" {
		if r.Header.Get("Authorization") != "" {
			h.t.Error("the token was sent to the storage server")
		}
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		return 200, header, h.artifacts[n-1].zip
	}
	if r.URL.Host != "api.hub.test" || !authorized {
		return 401, header, map[string]any{"message": "Bad credentials"}
	}
	if r.URL.Path == "/graphql" {
		return 200, header,
			map[string]any{"data": map[string]any{"viewer": map[string]any{"login": "github-actions[bot]"}}}
	}
	if r.Method != http.MethodGet && h.readOnly {
		return 403, header, map[string]any{"message": "Resource not accessible by integration"}
	}
	var in map[string]any
	_ = json.Unmarshal(body, &in) // GET requests have none
	path, ok := strings.CutPrefix(r.URL.Path, "/repos/shop/app/")
	if !ok {
		return 404, header, map[string]any{"message": "Not Found"}
	}
	status, answer := h.route(r, header, path, in)
	return status, header, answer
}

func (h *hub) route(r *http.Request, header http.Header, path string, in map[string]any) (int, any) {
	comments := fmt.Sprintf("issues/%d/comments", h.pull.number)
	id := func(prefix, suffix string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path, prefix), suffix))
		return n
	}
	switch {
	case path == comments && r.Method == "GET":
		return 200, append([]map[string]any{}, h.comments...)
	case path == comments && r.Method == "POST":
		n := len(h.comments) + 1
		c := map[string]any{
			"id": n, "body": in["body"], "user": map[string]any{"login": "github-actions[bot]", "type": "Bot"},
			"html_url": fmt.Sprintf("https://hub.test/shop/app/pull/%d#issuecomment-%d", h.pull.number, n),
		}
		h.comments = append(h.comments, c)
		return 201, c
	case strings.HasPrefix(path, "issues/comments/") && r.Method == "PATCH":
		c := h.comments[id("issues/comments/", "")-1]
		c["body"] = in["body"]
		return 200, c
	case path == "check-runs" && r.Method == "POST":
		in["id"], in["html_url"] = len(h.checks)+1, "https://hub.test/check"
		h.checks = append(h.checks, in)
		return 201, map[string]any{"id": in["id"], "html_url": in["html_url"]}
	case path == "code-scanning/sarifs":
		h.sarifs = append(h.sarifs, in)
		return 202, map[string]any{"id": "sarif-1"}
	case path == "actions/artifacts":
		return 200, h.list(r.FormValue("name"))
	case strings.HasPrefix(path, "actions/artifacts/"):
		header.Set("Location", fmt.Sprintf("https://storage.test/%d?sig=secret", id("actions/artifacts/", "/zip")))
		return 302, nil
	case strings.HasPrefix(path, "actions/runs/"):
		return h.run(id("actions/runs/", ""))
	case path == "commits/"+h.pull.headSHA+"/pulls" && h.pull.headRepo == "shop/app":
		return 200, []any{h.pull.json()}
	case strings.HasPrefix(path, "commits/"):
		return 200, []any{} // GitHub lists no pull requests for the commits of a fork
	case path == "pulls" && r.FormValue("head") == strings.Split(h.pull.headRepo, "/")[0]+":"+h.pull.headBranch:
		return 200, []any{h.pull.json()}
	case path == "pulls":
		return 200, []any{}
	}
	return 404, map[string]any{"message": "Not Found"}
}

// list returns the artifacts with the given name, newest first.
func (h *hub) list(name string) map[string]any {
	all := []any{}
	for i, a := range h.artifacts {
		if a.name == name {
			all = append([]any{map[string]any{
				"id": i + 1, "name": a.name, "expired": false, "size_in_bytes": len(a.zip),
				"created_at": time.Now().Add(time.Duration(i-100) * time.Minute).UTC().Format(time.RFC3339),
				"workflow_run": map[string]any{
					"id": i + 1, "head_branch": a.branch, "head_sha": a.sha, "repository_id": hubRepository,
					"head_repository_id": a.repository,
				},
			}}, all...)
		}
	}
	return map[string]any{"total_count": len(all), "artifacts": all}
}

// run returns the HTTP status and the body of the response about the workflow
// run that uploaded the artifact with the same number.
func (h *hub) run(n int) (int, any) {
	if n < 1 || n > len(h.artifacts) {
		return 404, map[string]any{"message": "Not Found"}
	}
	a := h.artifacts[n-1]
	return 200, map[string]any{
		"id": n, "event": a.event, "head_branch": a.branch, "head_sha": a.sha,
		"repository": map[string]any{"id": hubRepository}, "head_repository": map[string]any{"id": a.repository},
	}
}

// upload adds an artifact of one file.
func (h *hub) upload(a hubArtifact, file string, content []byte) {
	h.t.Helper()
	a.zip = h.zipped(file, content)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.artifacts = append(h.artifacts, a)
}

// zipped returns a zip file of one file.
func (h *hub) zipped(file string, content []byte) []byte {
	h.t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	w, err := z.Create(file)
	if err == nil {
		_, err = w.Write(content)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return out.Bytes()
}
