package github

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"
)

func TestCreateCheckRun(t *testing.T) {
	for name, c := range map[string]struct {
		annotations int
		wrong       func(int, *http.Request) trouble
		updates     int
		err         error
	}{
		"none":               {},
		"one request":        {annotations: 50},
		"three requests":     {annotations: 101, updates: 2},
		"too many":           {annotations: 1234, updates: 19},
		"lost creation":      {annotations: 3, wrong: nth("POST", "/check-runs", trouble{kind: "lose"})},
		"no creation":        {annotations: 3, wrong: nth("POST", "/check-runs", badGateway)},
		"truncated creation": {annotations: 60, updates: 1, wrong: nth("POST", "/check-runs", trouble{kind: "cut"})},
		"empty creation":     {wrong: nth("POST", "/check-runs", trouble{kind: "empty"})},
		"lost update": {
			annotations: 120, updates: 2,
			wrong: nth("PATCH", "/check-runs", trouble{kind: "lose"}, trouble{kind: "error"}),
		},
		"no update":       {annotations: 120, updates: 2, wrong: nth("PATCH", "/check-runs", badGateway)},
		"limited update":  {annotations: 120, updates: 2, wrong: nth("PATCH", "/check-runs", tooMany)},
		"read-only token": {wrong: always("POST", "/check-runs", readOnly), err: ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFakeGitHub(t)
				w.checks = []map[string]any{
					{"id": 1, "external_id": "check run of another workflow run", "output": map[string]any{}},
				}
				w.faultOf = c.wrong
				s := w.session(Options{})
				run := CheckRun{
					HeadSHA: testSHA, Conclusion: Failure, Title: "1 new leak", Summary: strings.Repeat("é", 40000),
					Text: "x",
				}
				for i := range c.annotations {
					run.Annotations = append(run.Annotations, Annotation{Path: "a.kt", Line: i, Message: fmt.Sprint(i)})
				}
				url, err := s.CreateCheckRun(t.Context(), run)
				if c.err != nil {
					if !errors.Is(err, c.err) || !strings.Contains(err.Error(), "checks: write") ||
						strings.Contains(err.Error(), testToken) {
						t.Fatal(err)
					}
					return
				}
				if err != nil || url != "https://github.test/check" {
					t.Fatal(url, err)
				}
				if len(w.checks) != 2 {
					t.Fatalf("%d check runs", len(w.checks)-1)
				}
				made := w.checks[1]
				if made["name"] != "leakgate" || made["conclusion"] != "failure" || made["status"] != "completed" ||
					made["head_sha"] != testSHA {
					t.Error(made)
				}
				if n := len(made["output"].(map[string]any)["summary"].(string)); n > maxOutput || n < maxOutput-4 {
					t.Errorf("summary of %d bytes", n)
				}
				if n := len(list(made["updates"])); n != c.updates {
					t.Errorf("%d updates, want %d", n, c.updates)
				}
				all := annotationsOf(made)
				if len(all) != min(c.annotations, maxAnnotations) {
					t.Errorf("%d annotations", len(all))
				}
				for i, a := range all {
					if got := a.(map[string]any); got["message"] != fmt.Sprint(i) || got["start_line"].(float64) < 1 {
						t.Fatalf("annotation %d: %v", i, a)
					}
				}
			})
		})
	}
	if _, err := (&Session{}).CreateCheckRun(t.Context(), CheckRun{HeadSHA: "main"}); err == nil {
		t.Error("no error for a branch name instead of a commit")
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add("äöü", 5)
	f.Add("\xff\xfe", 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		if n < 3 || n > 1000 {
			return
		}
		got := truncate(s, n)
		if len(got) > n || !utf8.ValidString(got) {
			t.Errorf("%q of %d", got, n)
		}
		if utf8.ValidString(s) && !strings.HasPrefix(s, strings.TrimSuffix(got, "…")) {
			t.Errorf("%q is not a prefix of %q", got, s)
		}
		if utf8.ValidString(s) && len(s) <= n && got != s {
			t.Errorf("truncated %q", s)
		}
	})
}

func TestUploadSARIF(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		w.faultOf = nth("POST", "/sarifs", trouble{kind: "reset"}, secondaryAfter)
		s := w.session(Options{})
		id, err := s.UploadSARIF(t.Context(), "refs/pull/7/head", testSHA, []byte(`{"runs":[]}`))
		if err != nil || id != "sarif-1" || len(w.sarif) != 1 {
			t.Fatal(id, err)
		}
		packed, err := base64.StdEncoding.DecodeString(w.sarif[0]["sarif"].(string))
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(z); err != nil || string(data) != `{"runs":[]}` ||
			w.sarif[0]["ref"] != "refs/pull/7/head" || w.sarif[0]["commit_sha"] != testSHA {
			t.Error(string(data), err, w.sarif[0])
		}
		w.faultOf = always("POST", "/sarifs", trouble{kind: "refuse", status: 202})
		if id, err := s.UploadSARIF(t.Context(), "refs/heads/main", testSHA, nil); err != nil || id != "" {
			t.Error("202 without a body:", id, err)
		}
		w.faultOf = always("POST", "/sarifs",
			trouble{kind: "refuse", status: 403, body: `{"message":"Advanced Security must be enabled"}`})
		if _, err := s.UploadSARIF(t.Context(), "refs/heads/main", testSHA, nil); !errors.Is(err, ErrReadOnly) ||
			!strings.Contains(err.Error(), "security-events: write") ||
			!strings.Contains(err.Error(), "Advanced Security") {
			t.Error(err)
		}
		noise := make([]byte, 1000)
		rng := rand.NewChaCha8([32]byte{})
		rng.Read(noise)
		if _, err := pack(noise, 1000); !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
		if _, err := s.UploadSARIF(t.Context(), "main", testSHA, nil); err == nil {
			t.Error("no error for a branch name instead of a ref")
		}
	})
}

func TestAppendSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary.md")
	read := func() string {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, md := range []string{"# one\n", "# two"} {
		if err := AppendSummary(path, []byte(md)); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); got != "# one\n\n# two" {
		t.Errorf("%q", got)
	}
	long := strings.Repeat("line é\n", 200000)
	if err := AppendSummary(path, []byte(long)); err != nil {
		t.Fatal(err)
	}
	got := read()
	if len(got) > maxSummary || len(got) < maxSummary-10 || !strings.HasSuffix(got, "line é\n") ||
		strings.Index(got, truncatedSummary) != len("# one\n\n# two\n") {
		t.Errorf("%d bytes", len(got))
	}
	if err := AppendSummary(path, []byte(long)); !errors.Is(err, ErrTooLong) || read() != got {
		t.Error(err)
	}
	if err := AppendSummary("", nil); err == nil || !strings.Contains(err.Error(), "GITHUB_STEP_SUMMARY") {
		t.Error(err)
	}
	if err := AppendSummary(t.TempDir(), nil); err == nil {
		t.Error("no error for writing into a directory")
	}
}
