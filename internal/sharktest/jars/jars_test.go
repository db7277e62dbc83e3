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

// TestOtherBytes: a folder with a file that is not the one by its hash has no Shark.
func TestOtherBytes(t *testing.T) {
	dir := t.TempDir()
	if _, err := Have(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	for _, name := range order {
		if err := os.WriteFile(filepath.Join(dir, name+".jar"), []byte("PK"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if path, err := Fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("other bytes: %q, %v", path, err)
	}
}

// TestNamesOfSums: each file of the class path has a hash, and no other one.
func TestNamesOfSums(t *testing.T) {
	for _, name := range order {
		if len(sums[name]) != 64 {
			t.Errorf("%s has no SHA-256", name)
		}
	}
	if len(sums) != len(order) {
		t.Errorf("%d hashes for %d files", len(sums), len(order))
	}
}

// TestWithoutMaven: without mvn there is nothing, also no half a folder.
func TestWithoutMaven(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "cache", "shark")
	if path, err := Fetch(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "find mvn") {
		t.Errorf("%q, %v", path, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("a folder without Shark")
	}
}

// TestAtOnce: several fetch into one folder, and all have it whole.
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
			_, err := Fetch(t.Context(), dir)
			results <- err
		}()
	}
	for range processes {
		if err := <-results; err != nil {
			recorded.Missing(t, "Shark cannot be had: %v", err)
		}
	}
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(left) != 1 {
		t.Errorf("%d folders, %v", len(left), err)
	}
}
