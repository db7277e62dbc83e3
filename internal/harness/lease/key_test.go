package lease

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/leakgate/leakgate/internal/recorded"
)

func TestDeviceKeys(t *testing.T) {
	same := []string{"127.0.0.1:5037", "localhost:5037", "LOCALHOST:5037", "[::1]:5037", "127.0.0.2:5037", ":5037"}
	for _, server := range same {
		if DeviceKey(server, "S1").path("x") != DeviceKey(same[0], "S1").path("x") {
			t.Errorf("%s is treated as a different server", server)
		}
	}
	seen := map[string]string{}
	for _, k := range []Key{
		DeviceKey("127.0.0.1:5037", "S1"), DeviceKey("127.0.0.1:5037", "S2"), DeviceKey("127.0.0.1:5038", "S1"),
		DeviceKey("farm:5037", "S1"),
		DeviceKey("/run/adb.sock", "S1"), DeviceKey("127.0.0.1:5037", ""), DeviceKey("a\x00b", "c"),
		DeviceKey("a", "bc"), {"directory", "a\x00bc", "a"},
	} {
		if other, ok := seen[k.path("x")]; ok {
			t.Errorf("%v is %s", k, other)
		}
		seen[k.path("x")] = k.String()
	}
}

func FuzzHostileSerial(f *testing.F) {
	for _, s := range []string{
		"../../etc/passwd", "a\x00b", "", "\x1b[2J", "\u202e", "\xff", strings.Repeat("x", 1<<20), "con", "$(id)",
		"a\nb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, serial string) {
		k := DeviceKey("127.0.0.1:5037", serial)
		name := filepath.Base(k.path("folder"))
		if k.path("folder") != filepath.Join("folder", name) ||
			strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || len(name) > 60 {
			t.Errorf("invalid file name %q", name)
		}
		text := HeldError{k, Holder{Verb: serial, PID: 1, User: serial, Dir: serial}}.Error()
		for _, r := range text {
			if !unicode.IsPrint(r) {
				t.Fatalf("%U in %q", r, text)
			}
		}
	})
}

func TestDirectoryKeys(t *testing.T) {
	root := t.TempDir()
	real := filepath.Join(root, "real")
	if err := os.Mkdir(real, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(root, "link")); err != nil {
		recorded.Missing(t, "needs symbolic links: %v", err)
	}
	t.Chdir(root)
	key := func(dir string) string {
		k, err := DirectoryKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		if want := "directory " + strconv.Quote(dir); k.String() != want {
			t.Errorf("%v, want %s", k, want)
		}
		return k.path("x")
	}
	before := key("real/new/run")
	for _, dir := range []string{
		"link/new/run", "./real//new/run/", "real/new/other/../run", filepath.Join(root, "link", "new", "run"),
	} {
		if key(dir) != before {
			t.Errorf("%s is treated as a different directory", dir)
		}
	}
	for _, dir := range []string{"real/new", "real/new/run2", "new/run", "."} {
		if key(dir) == before {
			t.Errorf("%s is treated as the same directory", dir)
		}
	}
	// The key stays the same when the directory is created.
	if err := os.MkdirAll("link/new/run", 0o700); err != nil {
		t.Fatal(err)
	}
	if key("real/new/run") != before || key("link/new/run") != before {
		t.Error("the key changed when the directory was created")
	}
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := DirectoryKey("file/run"); err == nil && os.PathSeparator == '/' {
		t.Error("no error for a directory below a file")
	}
}
