//go:build linux && realtime && e2e

package harness_test

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proxyVersion is the version of the module that the proxy serves.
const proxyVersion = "v0.0.1"

// serveModule writes the files of a module proxy that serves this module as it
// is in the working tree (https://go.dev/ref/mod#goproxy-protocol).
func serveModule(t *testing.T) (proxy string) {
	t.Helper()
	const module = "github.com/leakgate/leakgate"
	proxy = t.TempDir()
	folder := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": proxyVersion + "\n", proxyVersion + ".mod": string(mod),
		proxyVersion + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-02T03:04:05Z"}`, proxyVersion),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-co", "--exclude-standard")
	list.Dir = ".."
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(folder, proxyVersion+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	z := zip.NewWriter(archive)
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		if strings.HasPrefix(name, "tools/") { // a separate module
			continue
		}
		if err := addFile(z, module+"@"+proxyVersion+"/"+name, filepath.Join("..", name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return proxy
}

func addFile(z *zip.Writer, name, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	w, err := z.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// TestHarnessPageFromEmptyDirectory checks that a newcomer who starts in an
// empty directory, without a phone, gets a failing check within five minutes by
// using only the lines of docs/harness.md.
func TestHarnessPageFromEmptyDirectory(t *testing.T) {
	page, err := os.ReadFile("../docs/harness.md")
	if err != nil {
		t.Fatal(err)
	}
	_, suite, _ := strings.Cut(string(page), "## Try it without a phone\n")
	_, suite, _ = strings.Cut(suite, "```go\n")
	suite, rest, _ := strings.Cut(suite, "```\n")
	_, lines, _ := strings.Cut(rest, "and type\n\n")
	lines, _, _ = strings.Cut(lines, "\n\n")
	if !strings.HasPrefix(suite, "package cart\n") || strings.Count(lines, "\n") < 5 {
		t.Fatalf("%q\n%q", suite, lines)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cart_test.go"), []byte(suite), 0o600); err != nil {
		t.Fatal(err)
	}
	upstream, err := exec.CommandContext(t.Context(), "go", "env", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", lines)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOPROXY=file://"+serveModule(t)+","+strings.TrimSpace(string(upstream)),
		"GONOSUMDB=github.com/leakgate/*", "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOMODCACHE="+filepath.Join(t.TempDir(), "mod"), "LEAKGATE_LEASES="+t.TempDir(), "LEAKGATE_STAND_IN=1")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	console := string(out)
	for _, want := range []string{
		"leak: com.cart: leaks 1 x CheckoutActivity, held by ScreenTracker.sScreens (2.0 MB retained); " +
			"Activities 0 -> 1", "static ScreenTracker.sScreens", "cart_test.go:27",
	} {
		if !strings.Contains(console, want) {
			t.Errorf("no %q", want)
		}
	}
	pgrep := exec.CommandContext(t.Context(), "pgrep", "-f", "leakgate demo --serve --port 5999")
	if left, err := pgrep.Output(); err == nil {
		t.Errorf("the served phone is still running: %s", left)
	}
	if took := time.Since(began); took > 5*time.Minute {
		t.Errorf("the journey took %v", took)
	} else {
		t.Logf("%v until a check failed, starting in an empty directory", took.Round(time.Second))
	}
	if t.Failed() {
		t.Logf("%v\n%s", err, console)
	}
}
