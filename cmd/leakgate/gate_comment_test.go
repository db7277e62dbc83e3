package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/harness/checkout"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
)

const (
	wishFile = "app/src/main/java/com/shop/WishBus.java"
	wishBase = "package com.shop;\n\nimport java.util.*;\n\nfinal class WishBus {\n  private WishBus() {}\n}\n"
	wishHead = "package com.shop;\n\nimport java.util.*;\n\nfinal class WishBus {\n  static final List<Object> " +
		"listeners = new ArrayList<>();\n\n  private WishBus() {}\n}\n"
	wishLine = 6
)

// request makes a checkout of a pull request whose head adds the leaking field,
// and records a base run of the commit before it.
func (h *hub) request(base string) {
	t := h.t
	t.Helper()
	commit := func(text string) string {
		for name, text := range map[string]string{
			wishFile: text, ".github/CODEOWNERS": "* @shop/all\nWishBus.java @shop/wishes\n",
			".gitignore": "*.hprof\n*.json\nresult/\n",
		} {
			path := filepath.FromSlash(name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		git(t, ".", "add", ".")
		git(t, ".", "commit", "-m", "wish")
		return git(t, ".", "rev-parse", "HEAD")
	}
	git(t, ".", "init")
	h.pull.baseSHA = commit(wishBase)
	if code, _, errOut := h.typed(h.pushed(h.pull.baseSHA), "baseline", "update", "--dump", base, "--baseline",
		fileStore); code != 0 {
		t.Fatal(errOut)
	}
	h.pull.headSHA = commit(wishHead)
}

// A pull request that leaks gets one comment, a check and an alert, which state
// what leaks, what holds it, that the pull request adds it and whom to ask. The
// comment is not edited while it is up to date, and is shortened when the leak
// is gone. A pull request without leaks gets no comment.
func TestCommentOnAPullRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := inFolder(t)
		dumps := heapsOf(t, dir)
		h := newHub(t)
		h.request(dumps.base)
		job := h.pulled()
		judge := func(dump string, want int) *comparison.Comparison {
			t.Helper()
			if code, out, errOut := h.typed(job, "gate", "--dump", dump, "--out", "result"); code != want {
				t.Fatalf("exit %d, want %d\n%s%s", code, want, out, errOut)
			}
			c, err := readComparison("result")
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		post := func(want string, more ...string) {
			t.Helper()
			if code, out, errOut := h.typed(job,
				append([]string{"comment", "--run", "result"}, more...)...); code != 0 ||
				out != "" || !strings.Contains(errOut, want) {
				t.Errorf("exit %d, want 0 with %q\n%s%s", code, want, out, errOut)
			}
		}
		c := judge(dumps.worse, 1)
		if c.Head.Commit != h.pull.headSHA || c.Head.PullRequest != 7 || c.Base.Commit != h.pull.baseSHA ||
			c.Base.Behind == nil || *c.Base.Behind != 0 {
			t.Errorf("%+v\n%+v", c.Head, c.Base)
		}
		post("comment created: https://hub.test/shop/app/pull/7#issuecomment-1", "--check", "--sarif")
		body := h.body()
		for _, want := range []string{
			"<!-- leakgate:comment key=com.shop v=1 -->\n### ❌ leakgate `com.shop`: 1 new leak",
			"╰→ com.shop.WishActivity instance", "static WishBus.listeners",
			fmt.Sprintf("[`WishBus.java:%d`](https://hub.test/shop/app/blob/%s/%s#L%[1]d)", wishLine, h.pull.headSHA,
				wishFile),
			"**this pull request adds this line**", "Code owner: `@shop/wishes`", h.pull.baseSHA[:7],
			h.pull.headSHA[:7], "(https://hub.test/shop/app/actions/runs/4711)",
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the comment does not contain %q:\n%s", want, body)
			}
		}
		if file, err := os.ReadFile(filepath.Join("result", commentName)); err != nil || string(file) != body ||
			h.summary(job) != body {
			t.Errorf("%v: the comment, its file and the summary differ:\n%s\n%s\n%s", err, body, file, h.summary(job))
		}
		h.assertCheck(c)
		h.assertAlert(c)

		post("comment unchanged")
		if n := h.count("PATCH ") + h.count("POST /repos/shop/app/issues"); n != 1 {
			t.Errorf("%d requests write comments, want 1, which creates the comment", n)
		}
		judge(dumps.same, 0)
		post("comment edited")
		if body := h.body(); !strings.Contains(body, "### ✅ leakgate `com.shop`") ||
			strings.Contains(body, "WishActivity") || len(body) > 2000 {
			t.Errorf("got a comment of %d bytes, want at most 2000 without the leak\n%s", len(body), body)
		}
		h.comments = nil
		post("nothing is worse: no comment written")
		if len(h.comments) > 0 {
			t.Errorf("%q", h.comments)
		}
	})
}

// Commits added to the base branch since the last push are part of the merge
// that is checked out, but not of the pull request, although the event names
// the older base. If the base branch is checked out, as on pull_request_target,
// the comment does not say what the pull request changes.
func TestCommentAfterTheBaseMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := inFolder(t)
		dumps := heapsOf(t, dir)
		h := newHub(t)
		h.request(dumps.base)
		moved := h.pull.headSHA // the commit that adds the line, now on the base branch
		git(t, ".", "checkout", h.pull.baseSHA)
		git(t, ".", "commit", "--allow-empty", "-m", "something else")
		h.pull.headSHA = git(t, ".", "rev-parse", "HEAD")
		git(t, ".", "checkout", moved)
		git(t, ".", "merge", "--no-ff", "-m", "as GitHub does", h.pull.headSHA)
		job := h.pulled()
		for _, c := range []struct {
			at, says, not string
			behind        int
		}{
			{"HEAD", "not changed by this pull request", "this pull request adds", 1},
			{moved, "WishBus.listeners` is declared in", " by this pull request", -1},
		} {
			git(t, ".", "checkout", c.at)
			if code, out, errOut := h.typed(job, "gate", "--dump", dumps.worse, "--out", "result"); code != 1 {
				t.Fatalf("exit %d\n%s%s", code, out, errOut)
			}
			body, err := os.ReadFile(filepath.Join("result", commentName))
			if err != nil || !strings.Contains(string(body), c.says) || strings.Contains(string(body), c.not) {
				t.Errorf("at %s: %v:\n%s", c.at, err, body)
			}
			result, err := readComparison("result")
			if err != nil || (result.Base.Behind == nil) != (c.behind < 0) || result.Base.Behind != nil &&
				*result.Base.Behind != c.behind {
				t.Errorf("at %s: %v: %+v", c.at, err, result.Base)
			}
		}
	})
}

// assertCheck checks that the check run of the head fails, with an annotation
// at the line that declares the leaking field.
func (h *hub) assertCheck(c *comparison.Comparison) {
	h.t.Helper()
	if len(h.checks) != 1 {
		h.t.Fatalf("got %d check runs, want 1", len(h.checks))
	}
	check := h.checks[0]
	output, _ := check["output"].(map[string]any)
	notes, _ := output["annotations"].([]any)
	if check["head_sha"] != h.pull.headSHA || check["conclusion"] != "failure" ||
		check["name"] != "leakgate com.shop" || output["title"] != c.Text || len(notes) != 1 {
		h.t.Fatalf("%v", check)
	}
	note := notes[0].(map[string]any)
	if note["path"] != wishFile || note["start_line"] != float64(wishLine) || note["annotation_level"] != "failure" ||
		!strings.Contains(fmt.Sprint(note["title"], note["message"]), "WishActivity") {
		h.t.Errorf("%v", note)
	}
}

// assertAlert checks that code scanning has one alert, identified by the key of
// the leak.
func (h *hub) assertAlert(c *comparison.Comparison) {
	h.t.Helper()
	if len(h.sarifs) != 1 || h.sarifs[0]["commit_sha"] != h.pull.headSHA || h.sarifs[0]["ref"] != "refs/pull/7/head" {
		h.t.Fatalf("%v", h.sarifs)
	}
	packed, err := base64.StdEncoding.DecodeString(h.sarifs[0]["sarif"].(string))
	if err != nil {
		h.t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		h.t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	var log struct {
		Runs []struct {
			Results []struct {
				PartialFingerprints map[string]string
				Locations           []struct {
					PhysicalLocation struct{ ArtifactLocation struct{ URI string } }
				}
			}
		}
	}
	if err != nil || json.Unmarshal(raw, &log) != nil || len(log.Runs) != 1 || len(log.Runs[0].Results) != 1 {
		h.t.Fatalf("%v\n%s", err, raw)
	}
	result := log.Runs[0].Results[0]
	if !strings.Contains(fmt.Sprint(result.PartialFingerprints), c.Leaks[0].Key) || len(result.Locations) != 1 ||
		result.Locations[0].PhysicalLocation.ArtifactLocation.URI != wishFile {
		h.t.Errorf("%+v", result)
	}
}

// If only the class of a field is found, a change to the line that declares the
// class does not count as adding the field.
func TestLocateWithinAClass(t *testing.T) {
	inFolder(t)
	git(t, ".", "init")
	commit := func(header string) string {
		if err := os.WriteFile("Cart.java",
			[]byte("package com.shop;\n"+header+
				" {\n  Object last;\n  Runnable r() { Object kept = last; return () -> kept.hashCode(); }\n}\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		git(t, ".", "add", ".")
		git(t, ".", "commit", "-m", "cart")
		return git(t, ".", "rev-parse", "HEAD")
	}
	base, head := commit("class Cart"), commit("final class Cart")
	tree, err := checkout.Open(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	changes, err := tree.Changed(t.Context(), base, head)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []comparison.Suspect{
		{Class: "com.shop.Cart$$ExternalSyntheticLambda0", Field: "f$0"}, {Class: "com.shop.Cart", Field: "last"},
	} {
		locateSuspect(t.Context(), tree, &s, &changes)
		if s.File != "Cart.java" || s.Changed == nil || !*s.Changed || s.Added == nil || *s.Added {
			t.Errorf("%+v: changed %v, added %v", s, *s.Changed, *s.Added)
		}
	}
}

// posted writes gate.json of a comparison with one leak.
func posted(t *testing.T, verdict comparison.Result, status comparison.Status) {
	t.Helper()
	one := 1.0
	c := &comparison.Comparison{
		Verdict: verdict, ExitCode: map[comparison.Result]int{comparison.Fail: 1}[verdict], Text: "1 leak",
		Judged: true, Head: comparison.Head{App: "com.shop"}, Base: comparison.Base{Runs: 3},
		Leaks: []comparison.Row{
			{
				Process: "com.shop", Type: "leak", Class: "com.shop.WishActivity", Key: strings.Repeat("d", 40),
				Unit: "loop", Status: status, Fails: verdict == comparison.Fail, PerLoop: comparison.Sides{Head: &one},
			},
		},
	}
	if err := os.MkdirAll("result", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := comparison.Write("result", c); err != nil {
		t.Fatal(err)
	}
}

// --when decides whether a new comment is written. An existing comment is
// always edited, unless --when is never.
func TestCommentWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFolder(t)
		results := []struct {
			verdict comparison.Result
			status  comparison.Status
		}{{comparison.Pass, comparison.Known}, {comparison.Pass, comparison.Moved}, {comparison.Fail, comparison.New}}
		for when, want := range map[string]string{
			"always": "+++", "changed": " ++", "failed": "  +", "changed || failed": " ++", "": " ++", "never": "   ",
		} {
			got := ""
			for _, r := range results {
				posted(t, r.verdict, r.status)
				h := newHub(t)
				args := []string{"comment", "--run", "result"}
				if when != "" {
					args = append(args, "--when", when)
				}
				if code, _, errOut := h.typed(h.pulled(), args...); code != 0 {
					t.Errorf("exit %d\n%s", code, errOut)
				}
				got += map[bool]string{true: "+", false: " "}[len(h.comments) == 1]
				h.comments = []map[string]any{
					{
						"id": 1, "body": comparison.CommentMarker("com.shop") + "\nold",
						"user": map[string]any{"login": "github-actions[bot]", "type": "Bot"},
					},
				}
				if code, _, errOut := h.typed(h.pulled(), args...); code != 0 ||
					(h.body() == comparison.CommentMarker("com.shop")+"\nold") != (when == "never") {
					t.Errorf("--when %q, %s: exit %d\n%s%s", when, r.status, code, errOut, h.body())
				}
			}
			if got != want {
				t.Errorf("--when %q: got comments %q, want %q for no change, a moved leak and a failure", when, got,
					want)
			}
		}
		// A setting of the config file applies unless a flag overrides it; a
		// job with another key has a separate comment.
		posted(t, comparison.Fail, comparison.New)
		if err := os.WriteFile("run.yaml",
			[]byte("version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngithub: { comment: { key: "+
				"nightly, when: never }, summary: false, check: true }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		h := newHub(t)
		job := h.pulled()
		if code, _, errOut := h.typed(job, "comment", "--run", "result", "--config", "run.yaml"); code != 0 ||
			len(h.comments) != 0 || len(h.checks) != 1 || h.checks[0]["name"] != "leakgate nightly" ||
			h.summary(job) != "" {
			t.Errorf("exit %d, %d comments, %v\n%s", code, len(h.comments), h.checks, errOut)
		}
		for _, more := range [][]string{{"--config", "run.yaml", "--when", "always"}, {"--key", "smoke"}} {
			if code, _, errOut := h.typed(job, append([]string{"comment", "--run", "result"}, more...)...); code != 0 {
				t.Errorf("exit %d\n%s", code, errOut)
			}
		}
		if len(h.comments) != 2 || !strings.Contains(fmt.Sprint(h.comments), "key=nightly") ||
			!strings.Contains(fmt.Sprint(h.comments), "key=smoke") {
			t.Errorf("%q", h.comments)
		}
	})
}

// A run without a verdict uploads no alerts: GitHub closes each alert that is
// missing from an upload.
func TestCommentWithoutAVerdict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFolder(t)
		for judged, want := range map[bool]int{false: 0, true: 1} {
			c := &comparison.Comparison{
				Verdict: comparison.Neutral, ExitCode: 5, Text: "nothing could be judged", Judged: judged,
				Head: comparison.Head{App: "com.shop"},
			}
			if err := os.MkdirAll("result", 0o700); err != nil {
				t.Fatal(err)
			}
			if err := comparison.Write("result", c); err != nil {
				t.Fatal(err)
			}
			h := newHub(t)
			if code, out, errOut := h.typed(h.pulled(), "comment", "--run", "result", "--sarif",
				"--check"); code != 0 ||
				len(h.sarifs) != want || h.checks[0]["conclusion"] != "neutral" {
				t.Errorf("judged %v: exit %d, %d uploads, %v\n%s%s", judged, code, len(h.sarifs), h.checks, out, errOut)
			}
		}
	})
}

// With a read-only token only the summary is written, and it names the workflow
// that posts. Missing permissions of the job are an error.
func TestCommentNotPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFolder(t)
		posted(t, comparison.Fail, comparison.New)
		for name, c := range map[string]struct {
			change  func(h *hub, job map[string]string)
			code    int
			want    string
			summary bool
		}{
			"read-only token": {
				func(h *hub, _ map[string]string) { h.readOnly = true }, 2, "permissions: { pull-requests: write }",
				true,
			},
			"token of Dependabot": {
				func(h *hub, job map[string]string) { h.readOnly, job["GITHUB_ACTOR"] = true, "dependabot[bot]" }, 0,
				"post from a workflow on workflow_run", true,
			},
			"token of a fork": {func(h *hub, job map[string]string) {
				h.readOnly, h.pull.headRepo = true, "mallory/app"
				maps.Copy(job, h.pulled())
			}, 0, "post from a workflow on workflow_run", true},
			"token of a workflow that runs after a fork's workflow": {func(h *hub, job map[string]string) {
				h.readOnly, h.pull.headRepo = true, "mallory/app"
				maps.Copy(job, h.completed())
			}, 2, "permissions: { pull-requests: write }", true},
			"no token": {
				func(_ *hub, job map[string]string) { delete(job, "GITHUB_TOKEN") }, 2, "set GITHUB_TOKEN", true,
			},
			"invalid token": {
				func(_ *hub, job map[string]string) { job["GITHUB_TOKEN"] = hubToken + "x" }, 2, "the token is invalid",
				true,
			},
			"GitHub not reachable": {func(h *hub, _ map[string]string) { h.down = true }, 2, "no such host", true},
			"no event file": {func(_ *hub, job map[string]string) {
				if err := os.WriteFile(job["GITHUB_EVENT_PATH"], []byte("{"), 0o600); err != nil {
					t.Fatal(err)
				}
			}, 2, "read workflow event", false},
			"no repository": {
				func(_ *hub, job map[string]string) { delete(job, "GITHUB_REPOSITORY") }, 2,
				"run this in a GitHub workflow", false,
			},
			"not in a workflow": {
				func(_ *hub, job map[string]string) { delete(job, "GITHUB_ACTIONS") }, 2,
				"not a GitHub Actions workflow", false,
			},
		} {
			h := newHub(t)
			job := h.pulled()
			c.change(h, job)
			code, out, errOut := h.typed(job, "comment", "--run", "result", "--check", "--sarif")
			if code != c.code || out != "" || !strings.Contains(errOut, c.want) || len(h.comments)+len(h.checks)+
				len(h.sarifs) > 0 || strings.Contains(h.summary(job), "WishActivity") != c.summary {
				t.Errorf("%s: exit %d, want %d with %q; summary %q\n%s%s", name, code, c.code, c.want, h.summary(job),
					out, errOut)
			}
		}
		// A push to main has no pull request.
		h := newHub(t)
		h.pull.headRepo = "kim/app" // no pull request has the commit
		if code, _, errOut := h.typed(h.pushed(h.pull.headSHA), "comment", "--run", "result", "--check"); code != 0 ||
			len(h.comments) > 0 || len(h.checks) != 1 || !strings.Contains(errOut, "nothing to comment on") {
			t.Errorf("exit %d\n%s", code, errOut)
		}
	})
}

// hostile is text that any field of an artifact from a fork may contain.
const hostile = "@octocat #1 --> <img src=x onerror=alert(1)> ![a](https://evil.test/a) [b](https://evil.test/b) " +
	"https://evil.test/c `` ``` <!-- --> | **x** </details></code>\n\n# Big\n\n::error::x\x1b[31m"

// poison replaces the value of each free-text field of gate.json with hostile.
func poison(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = poison(v[k], k)
		}
	case []any:
		for i := range v {
			v[i] = poison(v[i], name)
		}
	case string:
		switch name {
		case "schema", "verdict", "status", "unit", "type", "started", "time":
			return v
		}
		return hostile
	}
	return v
}

// An artifact from a fork's run does not control the workflow that posts it:
// its content cannot determine where the comment is posted or what effect it
// has.
func TestCommentOfAFork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := inFolder(t)
		dumps := heapsOf(t, dir)
		h := newHub(t)
		h.request(dumps.base)
		h.pull.headRepo = "mallory/app"
		if code, _, errOut := h.typed(h.pulled(), "gate", "--dump", dumps.worse, "--out", "result"); code != 1 {
			t.Fatalf("exit %d\n%s", code, errOut)
		}
		path := filepath.Join("result", comparison.FileName)
		raw, err := os.ReadFile(path)
		var gate map[string]any
		if err != nil || json.Unmarshal(raw, &gate) != nil {
			t.Fatal(err)
		}
		poison(gate, "")
		gate["head"].(map[string]any)["pull_request"] = 999
		gate["base"].(map[string]any)["branch"] = hostile
		gate["warnings"] = []any{hostile, hostile}
		if raw, err = json.Marshal(gate); err == nil {
			err = os.WriteFile(path, raw, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		job := h.completed()
		code, out, errOut := h.typed(job, "comment", "--run", "result", "--check", "--sarif")
		if code != 0 || out != "" {
			t.Fatalf("exit %d\n%s%s", code, out, errOut)
		}
		if h.count("POST /repos/shop/app/issues/7/comments") != 1 || h.count("POST /repos/shop/app/issues/") != 1 ||
			h.checks[0]["head_sha"] != h.pull.headSHA || h.sarifs[0]["ref"] != "refs/pull/7/head" {
			t.Errorf("%q", h.seen)
		}
		for where, text := range map[string]string{
			"comment": h.body(), "summary": h.summary(job),
			"check": h.checks[0]["output"].(map[string]any)["summary"].(string),
		} {
			assertHarmless(t, where, text)
		}
		if strings.ContainsAny(errOut, "\x1b") || strings.Contains(errOut, "\n::error::") {
			t.Errorf("%q", errOut)
		}

		writes := h.count("POST ") + h.count("PATCH ")
		for want, change := range map[string]func() error{
			"larger than 16.0 MB": func() error { return os.Truncate(path, 50<<20) },
			`schema is "leakgate.gate/2"`: func() error {
				return os.WriteFile(path, []byte(`{"schema":"leakgate.gate/2"}`), 0o600)
			},
			"invalid character": func() error { return os.WriteFile(path, []byte("<html>"), 0o600) },
			"want pass, fail or neutral": func() error {
				return os.WriteFile(path, bytes.Replace(raw, []byte(`"verdict":"fail"`), []byte(`"verdict":"PASS"`), 1),
					0o600)
			},
			"exit_code is out of range": func() error {
				return os.WriteFile(path, bytes.Replace(raw, []byte(`"exit_code":1`), []byte(`"exit_code":-1`), 1),
					0o600)
			},
		} {
			if err := change(); err != nil {
				t.Fatal(err)
			}
			job := h.completed()
			code, out, errOut := h.typed(job, "comment", "--run", "result", "--check")
			if code != 2 || out != "" || !strings.Contains(errOut, want) || h.summary(job) != "" ||
				h.count("POST ")+h.count("PATCH ") != writes {
				t.Errorf("exit %d, want 2 with %q\n%s%s", code, want, out, errOut)
			}
		}
	})
}

// markerLine matches the first line of a comment, whatever the name of the app.
var markerLine = regexp.MustCompile(`^<!-- leakgate:comment key=[A-Za-z0-9._~%-]+ v=1 -->\n`)

var (
	backticks = regexp.MustCompile("`+")
	inHTML    = regexp.MustCompile(`<code>[^<]*</code>`)
)

// outsideOfCode returns Markdown without its code blocks and code spans: a span
// ends at the next run of backticks of the same length. Code in summaries is
// removed as well. Package comparison parses such comments with an independent
// parser.
func outsideOfCode(markdown string) string {
	markdown = inHTML.ReplaceAllString(markdown, "")
	var out strings.Builder
	from, runs := 0, backticks.FindAllStringIndex(markdown, -1)
	for len(runs) > 0 {
		run := runs[0]
		runs = runs[1:]
		end := slices.IndexFunc(runs, func(at []int) bool { return at[1]-at[0] == run[1]-run[0] })
		if end < 0 {
			continue
		}
		out.WriteString(markdown[from:run[0]])
		from, runs = runs[end][1], runs[end+1:]
	}
	return out.String() + markdown[from:]
}

// assertHarmless checks that outside of code the comment contains no hostile
// text that GitHub would interpret, and that the comment ends where it should.
func assertHarmless(t *testing.T, where, markdown string) {
	t.Helper()
	marker := markerLine.FindString(markdown)
	seen := outsideOfCode(markdown[len(marker):])
	for _, bad := range []string{
		"@octocat", "#1", "evil.test", "<img", "onerror", "<h1", "alert(", "::error", "-->", "\x1b", "999",
	} {
		if strings.Contains(seen, bad) {
			t.Errorf("%s: %q outside of code:\n%s", where, bad, seen)
		}
	}
	if marker == "" || strings.Count(seen, "<details") != strings.Count(seen, "</details>") ||
		!strings.Contains(seen, "❌ leakgate") {
		t.Errorf("%s:\n%s", where, markdown)
	}
}
