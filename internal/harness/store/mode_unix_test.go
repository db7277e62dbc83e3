//go:build unix

package store

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A new baseline gets the permissions of the user's umask, and an existing one
// keeps its own.
func TestFileKeepsPermissions(t *testing.T) {
	for _, c := range []struct {
		umask     int
		had, want os.FileMode
	}{{0o022, 0, 0o644}, {0o077, 0, 0o600}, {0o002, 0, 0o664}, {0o022, 0o600, 0o600}, {0o077, 0o664, 0o664}} {
		dir := t.TempDir()
		path := filepath.Join(dir, "base.json")
		if c.had != 0 {
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, c.had); err != nil {
				t.Fatal(err)
			}
		}
		before := syscall.Umask(c.umask)
		err := open(t, "file:base.json", Options{Dir: dir}).Update(t.Context(), writing("new"))
		syscall.Umask(before)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || info.Mode().Perm() != c.want {
			t.Errorf("umask %03o, had %v: %v, %v, %v, want %v", c.umask, c.had, info, err, serr, c.want)
		}
	}
}
