package aosp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSourceOf(t *testing.T) {
	const targets = `https://a.example/debian-security/ bookworm-security main
https://a.example/debian/ bookworm contrib
https://a.example/debian/ bookworm main
https://b.example/debian/ bookworm main
`
	for codename, want := range map[string]string{
		"bookworm": "https://a.example/debian/", "bookworm-security": "https://a.example/debian-security/",
		"trixie": "",
	} {
		if got, ok := sourceOf([]byte(targets), codename); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", codename, got, ok)
		}
	}
	if got, ok := sourceOf([]byte("$(REPO_URI) x main\n\n"), "x"); ok {
		t.Errorf("address %q was accepted", got)
	}
}

func TestDistribution(t *testing.T) {
	if id, name := distribution([]byte(
		"PRETTY_NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID='debian'\n")); id != "debian" || name != "bookworm" {
		t.Errorf("%q, %q", id, name)
	}
	if id, name := distribution(nil); id != "" || name != "" {
		t.Errorf("%q, %q", id, name)
	}
}

// TestUnpacked checks that Unpacked accepts only a complete directory.
func TestUnpacked(t *testing.T) {
	dir := t.TempDir()
	missing := func(what string) {
		t.Helper()
		if _, err := Unpacked(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("without %s: %v", what, err)
		}
	}
	add := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
			os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	missing("anything")
	add(program, "x")
	missing("a loader")
	add("usr/lib/x-linux-gnu/ld-linux-x.so.2", "x")
	missing("a version")
	add(stamp, "34.0.5-12\n")
	d, err := Unpacked(dir)
	if err != nil || d.Version != "34.0.5-12" {
		t.Fatalf("%+v, %v", d, err)
	}
	want := "/at/usr/lib/x-linux-gnu/ld-linux-x.so.2 --library-path " +
		"/at/usr/lib/x-linux-gnu:/at/usr/lib/x-linux-gnu/android /at/" + program
	if got := strings.Join(d.Command("/at"), " "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	// An existing directory is used unchanged, without apt.
	t.Setenv("PATH", t.TempDir())
	if got, err := Fetch(t.Context(), dir); err != nil || got.Version != d.Version {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWithoutApt checks that if apt is missing, no directory is created, not
// even an incomplete one.
func TestWithoutApt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := filepath.Join(t.TempDir(), "cache", "adbd")
	if _, err := Fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "find apt") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(left) > 0 {
		t.Errorf("files left in the folder: %v, %v", left, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Fetch(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "delete it") {
		t.Errorf("folder with other content: %v", err)
	}
}

// TestKeep checks that keep returns an error if the final path is a directory
// without the daemon.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	part, place := filepath.Join(dir, "part"), filepath.Join(dir, "place")
	for _, path := range []string{part, place} {
		if err := os.MkdirAll(filepath.Join(path, "full"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := keep(part, place); err == nil {
		t.Error("a folder without the daemon was accepted")
	}
}
