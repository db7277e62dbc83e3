package recorded

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// ending is a test that records how it ends.
type ending struct {
	testing.TB
	how string
}

func (e *ending) Helper() {}

func (e *ending) Fatalf(format string, args ...any) { e.end("failed: ", format, args) }
func (e *ending) Skipf(format string, args ...any)  { e.end("skipped: ", format, args) }

func (e *ending) end(how, format string, args []any) {
	e.how = how + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// endOf runs f as a separate test and returns how it ended, or "" if f
// returned.
func endOf(f func(testing.TB)) string {
	e := new(ending)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(e)
	}()
	<-done
	return e.how
}

func put(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("LEAKGATE_TESTDATA", dir)
	packed := zipped(t, "packed")
	put(t, filepath.Join(dir, "device", "a.txt"), []byte("plain"))
	put(t, filepath.Join(dir, "device", "b.txt.gz"), packed)
	put(t, filepath.Join(dir, "truncated.gz"), packed[:len(packed)-4])
	put(t, filepath.Join(dir, "not.gz"), []byte("plain"))

	for _, c := range []struct {
		path []string
		want string
	}{
		{[]string{"device", "a.txt"}, "plain"},
		{[]string{"device", "b.txt.gz"}, "packed"},
		{[]string{"device/b.txt.gz"}, "packed"},
	} {
		if got := string(Read(t, c.path...)); got != c.want {
			t.Errorf("%q: %q, want %q", c.path, got, c.want)
		}
	}
	if got, want := Path(t, "device"), filepath.Join(dir, "device"); got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	// A file that exists but is broken does not count as missing.
	for name, says := range map[string]string{"truncated.gz": "decompress", "not.gz": "decompress", "device": "read"} {
		if how := endOf(func(tb testing.TB) { Read(tb, name) }); !strings.HasPrefix(how, "failed: "+says) ||
			!strings.Contains(how, name) {
			t.Errorf("%s: %q", name, how)
		}
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("LEAKGATE_TESTDATA", t.TempDir())
	for require, want := range map[string]string{"": "skipped: ", "some": "skipped: ", "all": "failed: "} {
		t.Setenv("LEAKGATE_REQUIRE", require)
		for name, f := range map[string]func(testing.TB){
			"none.txt":   func(tb testing.TB) { Read(tb, "device", "none.txt") },
			"nowhere":    func(tb testing.TB) { Path(tb, "nowhere") },
			"no adb, 50": func(tb testing.TB) { Missing(tb, "no %s, %d", "adb", 50) },
		} {
			if how := endOf(f); !strings.HasPrefix(how, want) || !strings.Contains(how, name) {
				t.Errorf("LEAKGATE_REQUIRE=%s: %q, want %s...%s", require, how, want, name)
			}
		}
	}
}

// TestRoot looks for the data from a package of a different module.
func TestRoot(t *testing.T) {
	t.Setenv("LEAKGATE_TESTDATA", "")
	dir := t.TempDir()
	module := filepath.Join(dir, "module")
	put(t, filepath.Join(module, "go.mod"), nil)
	put(t, filepath.Join(module, "x", "y", "y.go"), nil)
	put(t, filepath.Join(dir, "shared", "testdata", "a.txt"), []byte("found"))
	for _, wd := range []string{module, filepath.Join(module, "x", "y")} {
		t.Chdir(wd)
		if got := string(Read(t, "a.txt")); got != "found" {
			t.Errorf("from %s: %q", wd, got)
		}
	}
	t.Chdir(filepath.VolumeName(dir) + string(filepath.Separator))
	if how := endOf(func(tb testing.TB) { Path(tb, "a.txt") }); !strings.HasPrefix(how,
		"failed: find the recorded data: no go.mod above") {
		t.Errorf("outside of a module: %q", how)
	}
}
