package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// If permission is denied, nothing is written, and the error is never mistaken
// for "none yet".
func TestFileDenied(t *testing.T) {
	dir := t.TempDir()
	closed := filepath.Join(dir, "closed")
	readable := filepath.Join(dir, "readable")
	for path, mode := range map[string]os.FileMode{closed: 0o000, readable: 0o555} {
		if err := errors.Join(os.Mkdir(path, 0o700),
			os.WriteFile(filepath.Join(path, "base.json"), []byte("old"), 0o644), os.Chmod(path, mode),
			os.Chmod(dir, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(path, 0o700) })
	}
	type result struct{ load, update error }
	results := make(chan map[string]result)
	go func() {
		// Root may access every file, but a thread with the file system UID of
		// another user may not (setfsuid(2)). The thread exits with this
		// goroutine.
		runtime.LockOSThread()
		out := map[string]result{}
		defer func() { results <- out }()
		if os.Geteuid() == 0 {
			if err := syscall.Setfsuid(65534); err != nil {
				return
			}
		}
		for _, path := range []string{closed, readable} {
			s := open(t, "file:base.json", Options{Dir: path})
			out[path] = result{second(s.Load(t.Context())), s.Update(t.Context(), writing("new"))}
		}
	}()
	got := <-results
	if r := got[closed]; !errors.Is(r.load, fs.ErrPermission) || errors.Is(r.load, ErrNone) ||
		!errors.Is(r.update, fs.ErrPermission) {
		t.Errorf("closed: %v", r)
	}
	if r := got[readable]; r.load != nil || !errors.Is(r.update, fs.ErrPermission) {
		t.Errorf("readable: %v", r)
	}
	if content, err := os.ReadFile(filepath.Join(readable, "base.json")); err != nil || string(content) != "old" ||
		len(names(t, readable)) != 1 {
		t.Errorf("%q, %v, %q", content, err, names(t, readable))
	}
}

// A named pipe is rejected; opening it would wait for a writer.
func TestFilePipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "base.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, "file:base.json", Options{Dir: dir}).Load(t.Context()); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("named pipe: %v", err)
	}
}
