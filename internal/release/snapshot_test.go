package release

//unit:program goreleaser builds a release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// version is the tag of the commit that is built.
const version = "v1.2.3"

// TestSnapshot builds a release from a tagged copy of the tree: for one system,
// or for all systems if LEAKGATE_E2E is long.
func TestSnapshot(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		recorded.Missing(t, "linux/amd64 is needed to run the binary of the release")
	}
	touchTree(t)
	s := snapshot{t: t, dir: t.TempDir(), path: tool(t, "goreleaser")}
	s.env = append(os.Environ(), "PATH="+filepath.Dir(s.path)+":"+filepath.Dir(tool(t, "cyclonedx-gomod"))+":"+
		os.Getenv("PATH"),
		"GIT_COMMITTER_DATE=2026-01-02T03:04:05Z", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z")
	s.copyTree()
	targets := []string{"linux_amd64"}
	if recorded.Long() {
		targets = []string{
			"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64", "windows_amd64", "windows_arm64",
		}
	} else {
		s.replace(".goreleaser.yaml", "goos: [linux, darwin, windows]", "goos: [linux]")
		s.replace(".goreleaser.yaml", "goarch: [amd64, arm64]", "goarch: [amd64]")
	}
	s.git("init", "-q")
	s.git("add", "-A")
	s.git("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false", "commit", "-qm",
		"release")
	s.git("tag", version)
	// goreleaser requires a remote, but sends no requests to it.
	s.git("remote", "add", "origin", "https://github.com/leakgate/leakgate")

	s.run(s.path, "check")
	s.run(s.path, "release", "--snapshot", "--clean", "--skip=docker")
	sums := s.checksums()
	var want []string
	for _, target := range targets {
		want = append(want, "leakgate_"+target+".cdx.json", "leakgate_"+target+".tar.gz")
		if strings.HasPrefix(target, "windows") {
			want = append(want, "leakgate_"+target+".zip")
		}
		s.checkArchive(target)
		s.checkContents("leakgate_" + target + ".cdx.json")
	}
	slices.Sort(want)
	if got := sortedNames(sums); !slices.Equal(got, want) {
		t.Errorf("checksums.txt lists %q, want %q", got, want)
	}
	s.checkCask(sums["leakgate_linux_amd64.tar.gz"])
	if recorded.Long() {
		s.run(s.path, "release", "--snapshot", "--clean", "--skip=docker")
		if again := s.checksums(); fmt.Sprint(again) != fmt.Sprint(sums) {
			t.Errorf("two builds of the same commit differ:\n%v\n%v", sums, again)
		}
	}
}

// snapshot is a release that is built but not published.
type snapshot struct {
	t    *testing.T
	dir  string
	path string // the path of the goreleaser program
	env  []string
}

// copyTree copies all files that are committed, or that `git add` would add.
func (s snapshot) copyTree() {
	s.t.Helper()
	list := exec.CommandContext(s.t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		recorded.Missing(s.t, "a git checkout is needed: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, but the removal is not committed yet
		}
		target := filepath.Join(s.dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(target), 0o755)
		}
		if err == nil {
			err = os.WriteFile(target, text, 0o600)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s snapshot) replace(name, old, by string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), old) != 1 {
		s.t.Fatalf("%s must contain exactly one %q: %v", name, old, err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), old, by, 1)), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s snapshot) git(args ...string) { s.t.Helper(); s.run("git", args...) }

func (s snapshot) run(name string, args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), name, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (s snapshot) read(name string) []byte {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "dist", name))
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// checksums verifies the files that checksums.txt lists and returns the
// checksums by file.
func (s snapshot) checksums() map[string]string {
	s.t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(s.read("checksums.txt"))) {
		want, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		got := sha256.Sum256(s.read(name))
		if !ok || hex.EncodeToString(got[:]) != want {
			s.t.Errorf("%s has the checksum %x, want %s", name, got, want)
		}
		sums[name] = want
	}
	return sums
}

func sortedNames(sums map[string]string) []string {
	var names []string
	for name := range sums {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// checkArchive unpacks an archive as the action does, and runs the binary if it
// is for this machine.
func (s snapshot) checkArchive(target string) {
	s.t.Helper()
	program := "leakgate"
	if strings.HasPrefix(target, "windows") {
		program += ".exe"
	}
	files := s.unpack("leakgate_" + target + ".tar.gz")
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"LICENSE", "NOTICE", "README.md", "completions/_leakgate", "completions/leakgate.bash",
		"completions/leakgate.fish", "completions/leakgate.ps1", program,
	}
	if !slices.Equal(names, want) {
		s.t.Errorf("the archive of %s contains %q, want %q", target, names, want)
	}
	for _, name := range want[3:7] {
		if !bytes.Contains(files[name], []byte("leakgate")) {
			s.t.Errorf("%s of %s is not a completion script", name, target)
		}
	}
	if target != "linux_amd64" {
		return
	}
	binary := filepath.Join(s.t.TempDir(), program)
	if err := os.WriteFile(binary, files[program], 0o700); err != nil {
		s.t.Fatal(err)
	}
	if out := s.run(binary, "version"); !strings.HasPrefix(out, "leakgate "+version+" (") {
		s.t.Errorf("the binary of %s prints %q; if that is dirty, add the output of goreleaser to .gitignore", version,
			strings.TrimSpace(out))
	}
	if bytes.Contains(files[program], []byte(s.dir)) {
		s.t.Error("the binary contains the path of the build directory")
	}
}

func (s snapshot) unpack(name string) map[string][]byte {
	s.t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(s.read(name)))
	if err != nil {
		s.t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(z); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			s.t.Fatal(err)
		}
		if h.Mode&0o111 != 0 != (path.Ext(h.Name) == ".exe" || h.Name == "leakgate") || h.Uname != "root" {
			s.t.Errorf("%s: %s has mode %o and belongs to %q", name, h.Name, h.Mode, h.Uname)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			s.t.Fatal(err)
		}
		files[h.Name] = text
	}
}

// checkContents reads the software bill of materials of a binary.
func (s snapshot) checkContents(name string) {
	s.t.Helper()
	var bom struct {
		Format     string `json:"bomFormat"`
		Components []struct {
			Name string `json:"name"`
		} `json:"components"`
		Metadata struct {
			Component struct {
				Name string `json:"name"`
			} `json:"component"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(s.read(name), &bom); err != nil {
		s.t.Fatal(err)
	}
	has := map[string]bool{}
	for _, c := range bom.Components {
		has[c.Name] = true
	}
	if bom.Format != "CycloneDX" || bom.Metadata.Component.Name != "github.com/leakgate/leakgate" ||
		!has["github.com/spf13/cobra"] || !has["std"] {
		s.t.Errorf("%s is a %s of %q with %v", name, bom.Format, bom.Metadata.Component.Name, has)
	}
}

// checkCask checks that Homebrew downloads the archives of the release.
func (s snapshot) checkCask(sum string) {
	s.t.Helper()
	cask := string(s.read("homebrew/Casks/leakgate.rb"))
	url := regexp.MustCompile(`url "(https://[^"]+/leakgate_linux_amd64\.tar\.gz)"\s+sha256 "([0-9a-f]{64})"`).
		FindStringSubmatch(cask)
	if url == nil || url[1] != "https://github.com/leakgate/leakgate/releases/download/"+version+
		"/leakgate_linux_amd64.tar.gz" || url[2] != sum {
		s.t.Errorf("the cask downloads %q, want the archive with checksum %s:\n%s", url, sum, cask)
	}
}
