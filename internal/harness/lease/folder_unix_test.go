//go:build unix

package lease

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestFolder(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", filepath.Join(home, "tmp"))
	folder, err := Folder("")
	if err != nil || !strings.HasPrefix(folder, home) || !strings.HasSuffix(folder, "/leakgate/leases") {
		t.Errorf("%s, %v", folder, err)
	}
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	asked := filepath.Join(home, "a", "b")
	if folder, err := Folder(asked); err != nil || folder != asked {
		t.Errorf("%s, %v", folder, err)
	}
	// If there is no home folder, or if it is not writable, the temporary
	// folder is used.
	for _, nowhere := range []string{"", filepath.Join(home, "file")} {
		if err := os.WriteFile(filepath.Join(home, "file"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("HOME", nowhere)
		if folder, err := Folder(""); err != nil || folder != fmt.Sprintf("%s/tmp/leakgate-%d", home, os.Getuid()) {
			t.Errorf("home %q: %s, %v", nowhere, folder, err)
		}
	}
}

func TestFolderOfOthersIsRefused(t *testing.T) {
	root := t.TempDir()
	dir := func(name string, mode os.FileMode) string {
		path := filepath.Join(root, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(dir("good", 0o755), link); err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		dir("group", 0o770): "is writable by others", dir("world", 0o777|os.ModeSticky): "is writable by others",
		link: "is not a directory",
	}
	if os.Getuid() == 0 {
		foreign := dir("foreign", 0o755)
		if err := os.Chown(foreign, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		cases[foreign] = "belongs to user 12345"
	}
	for path, why := range cases {
		if _, err := Folder(path); err == nil || !strings.Contains(err.Error(), why) ||
			!strings.Contains(err.Error(), FolderVariable) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Folder(filepath.Join(root, "good")); err != nil {
		t.Error(err)
	}
}

// A named pipe in place of a lock file neither blocks nor counts as a lease.
func TestPipeForALockFile(t *testing.T) {
	folder := t.TempDir()
	path := devices("S1")[0].path(folder)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if text := readNote(path); text != "" {
		t.Errorf("%q", text)
	}
	if l, err := Take(t.Context(), mine(folder, "S1")); err == nil {
		t.Error("a pipe was accepted as a lease file", l.Release())
	}
}
