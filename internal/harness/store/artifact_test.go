package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// uploads lists the artifacts of a repository, newest first. Empty content
// stands for an artifact without the file.
type uploads struct {
	contents []string
	expired  map[int]bool
	list     error
	download error
}

func (u uploads) List(_ context.Context, name, branch string, n int) ([]Upload, error) {
	if name != "base" || branch != "main" {
		return nil, fmt.Errorf("unexpected request for %s of %s", name, branch)
	}
	var out []Upload
	for i := range u.contents {
		out = append(out, Upload{ID: int64(i), Expired: u.expired[i]})
	}
	return out[:min(n, len(out))], u.list
}

func (u uploads) Download(_ context.Context, id int64, file string, limit int64) ([]byte, error) {
	content := u.contents[id]
	if u.download != nil || u.expired[int(id)] || file != "leak-baseline.json" || limit != maxContent {
		return nil, errors.Join(u.download, errors.New("cannot be downloaded"))
	}
	if content == "" {
		return nil, fs.ErrNotExist
	}
	return []byte(content), nil
}

func TestArtifactLoad(t *testing.T) {
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		uploads
		want []string
		none bool
	}{
		"several":                           {uploads{contents: []string{"a", "b"}}, []string{"a", "b"}, false},
		"one artifact without the file":     {uploads{contents: []string{"", "b"}}, []string{"b"}, false},
		"only an artifact without the file": {uploads{contents: []string{"", ""}}, nil, false},
		"no artifact":                       {uploads{}, nil, true},
		"all expired": {
			uploads{contents: []string{"a"}, expired: map[int]bool{0: true}}, nil, true,
		},
		"one expired": {
			uploads{contents: []string{"a", "b"}, expired: map[int]bool{0: true}}, []string{"b"}, false,
		},
		"many":           {uploads{contents: many}, many[:maxUploads], false},
		"list fails":     {uploads{contents: []string{"a"}, list: errors.New("no response")}, nil, false},
		"download fails": {uploads{contents: []string{"a"}, download: errors.New("reset")}, nil, false},
		"too large":      {uploads{contents: []string{strings.Repeat("x", maxContent+1)}}, nil, false},
	} {
		s := open(t, "artifact:base", Options{Dir: t.TempDir(), Artifacts: c.uploads, Branch: "main"})
		contents, err := s.Load(t.Context())
		var got []string
		for _, content := range contents {
			got = append(got, string(content))
		}
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil) || errors.Is(err, ErrNone) != c.none {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// If one of several artifacts is not a baseline, the error names it.
func TestArtifactDamaged(t *testing.T) {
	damaged := errors.New("damaged")
	s := open(t, "artifact:base",
		Options{
			Dir: t.TempDir(), Artifacts: uploads{contents: []string{"a", "b", "x", "c"}}, Branch: "main",
			Check: func(content []byte) error {
				if string(content) == "x" {
					return damaged
				}
				return nil
			}})
	if _, err := s.Load(t.Context()); !errors.Is(err, damaged) ||
		!strings.Contains(err.Error(), "artifact 2: damaged") {
		t.Error(err)
	}
	if err := s.Update(t.Context(), writing("y")); !errors.Is(err, damaged) {
		t.Error(err)
	}
}

// An update writes the file that the job uploads. The new content is computed
// from all earlier uploads and from what the same job has already written to
// the file.
func TestArtifactUpdate(t *testing.T) {
	dir := t.TempDir()
	s := open(t, "artifact:base", Options{Dir: dir, Artifacts: uploads{contents: []string{"b", "c"}}, Branch: "main"})
	path := filepath.Join(dir, "leak-baseline", "leak-baseline.json")
	join := func(with string) func(old [][]byte) ([]byte, error) {
		return func(old [][]byte) ([]byte, error) {
			out := with
			for _, o := range old {
				out += string(o)
			}
			return []byte(out), nil
		}
	}
	for _, step := range []struct {
		apply func([][]byte) ([]byte, error)
		want  string
	}{{writing("b"), ""}, {join("x"), "xbc"}, {join("y"), "yxbcbc"}, {writing("yxbcbc"), "yxbcbc"}} {
		if err := s.Update(t.Context(), step.apply); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
	if got, err := s.Load(t.Context()); err != nil || len(got) != 2 {
		t.Errorf("loaded a file that was not uploaded: %q, %v", got, err)
	}
	broken := open(t, "artifact:base",
		Options{Dir: dir, Artifacts: uploads{list: errors.New("no response")}, Branch: "main"})
	if err := broken.Update(t.Context(), writing("z")); err == nil {
		t.Error("no error for an update without the earlier content")
	}
}

func TestArtifactNeeds(t *testing.T) {
	a, err := Parse("artifact:base")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(a, Options{Branch: "main"}); err == nil || !strings.Contains(err.Error(), "GITHUB_TOKEN") {
		t.Error(err)
	}
	if _, err := Open(a, Options{Artifacts: uploads{}}); err == nil || !strings.Contains(err.Error(), "branch") {
		t.Error(err)
	}
	if _, err := Open(Address{}, Options{}); err == nil {
		t.Error("no error without an address")
	}
}
