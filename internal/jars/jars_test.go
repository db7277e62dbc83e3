package jars

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// TestOtherBytes checks that a folder is rejected if one of its files has the
// wrong hash.
func TestOtherBytes(t *testing.T) {
	dir := t.TempDir()
	if _, err := Shark.Installed(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got error %v for an empty directory, want %v", err, fs.ErrNotExist)
	}
	for _, f := range Shark.files {
		if err := os.WriteFile(filepath.Join(dir, f.name+".jar"), []byte("PK"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := Shark.Fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("with different content: %q, %v", path, err)
	}
}

// TestSums checks that each file of the class path has a hash and that no name
// occurs twice.
func TestSums(t *testing.T) {
	for _, s := range []*Set{&Shark, &App} {
		met := map[string]bool{}
		for _, f := range s.files {
			if len(f.sum) != 64 || met[f.name] {
				t.Errorf("%s: %+v", s.Name, f)
			}
			met[f.name] = true
		}
		if len(s.files) < len(s.wanted) {
			t.Errorf("%s: got %d files, want at least one for each of the libraries %q", s.Name, len(s.files), s.wanted)
		}
	}
}

// TestWithoutMaven checks that without mvn no folder is created, not even an
// incomplete one.
func TestWithoutMaven(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "cache", "shark")
	if path, err := Shark.Fetch(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "find mvn") {
		t.Errorf("%q, %v", path, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("a directory was created although Shark could not be fetched")
	}
}

// TestAtOnce checks that each of several goroutines that fetch into one folder
// gets all files.
func TestAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts Maven")
	}
	if _, err := exec.LookPath("mvn"); err != nil {
		recorded.Missing(t, "Shark needs mvn: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "cache", "shark")
	const processes = 2
	results := make(chan error, processes)
	for range processes {
		go func() {
			_, err := Shark.Fetch(t.Context(), dir)
			results <- err
		}()
	}
	for range processes {
		if err := <-results; err != nil {
			recorded.Missing(t, "fetch Shark: %v", err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("%d folders, %v", len(left), err)
	}
}
