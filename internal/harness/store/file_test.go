package store

//unit:program two processes use one file, and one of them is killed
//unit:sleep other processes take real time

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, "file:sub/base.json", Options{Dir: dir})
	if _, err := s.Load(t.Context()); !errors.Is(err, ErrNone) {
		t.Fatalf("without a directory: %v", err)
	}
	mistake := errors.New("mistake")
	for name, apply := range map[string]func([][]byte) ([]byte, error){
		"update error":      func([][]byte) ([]byte, error) { return []byte("x"), mistake },
		"nothing":           func([][]byte) ([]byte, error) { return nil, nil },
		"oversized content": func([][]byte) ([]byte, error) { return make([]byte, maxContent+1), nil },
		"no content":        writing(""),
	} {
		err := s.Update(t.Context(), apply)
		if name == "update error" && !errors.Is(err, mistake) || name == "oversized content" && err == nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := names(t, filepath.Join(dir, "sub")); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
	if err := s.Update(t.Context(),
		func(old [][]byte) ([]byte, error) { return []byte("one"), check(len(old) == 0) }); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sub", "base.json")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), func(old [][]byte) ([]byte, error) {
		return []byte("one"), check(len(old) == 1 && string(old[0]) == "one")
	}); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the same content was written again: %v", err)
	}
	if err := s.Update(t.Context(), writing("two")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(t.Context()); err != nil || len(got) != 1 || string(got[0]) != "two" {
		t.Errorf("%q, %v", got, err)
	}
	if got := names(t, filepath.Dir(path)); !slices.Equal(got, []string{"base.json"}) {
		t.Errorf("leftover files: %q", got)
	}
}

func check(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("wrong contents")
}

// A file that is not a baseline is an error, never "none yet".
func TestFileUnreadable(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, size int64) {
		t.Helper()
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	put("large", maxContent+1)
	put("most", maxContent)
	put("file", 1)
	for name, want := range map[string]string{
		"large": "larger than the limit of 16.0 MB", "file/x": "", ".": "not a regular file",
	} {
		s := &Store{name: name, limit: time.Minute, backend: &fileStore{path: filepath.Join(dir, name)}}
		for _, err := range []error{second(s.Load(t.Context())), s.Update(t.Context(), writing("x"))} {
			if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if got, err := open(t, "file:most", Options{Dir: dir}).Load(t.Context()); err != nil || len(got[0]) != maxContent {
		t.Errorf("content of the maximum size: %v", err)
	}
	// An empty file is returned; the reader of the baseline must reject it.
	put("empty", 0)
	if got, err := open(t, "file:empty", Options{Dir: dir}).Load(t.Context()); err != nil || len(got) != 1 ||
		len(got[0]) != 0 {
		t.Errorf("empty: %q, %v", got, err)
	}
}

func TestFileBehindLink(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	target := filepath.Join(other, "real.json")
	link := filepath.Join(dir, "base.json")
	if err := os.Symlink(target, link); err != nil {
		t.Skipf("this system or user cannot create symbolic links: %v", err)
	}
	s := open(t, "file:base.json", Options{Dir: dir})
	if err := s.Update(t.Context(), writing("x")); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("dangling link: %v", err)
	}
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A hostile link has the name of the temporary file.
	victim := filepath.Join(other, "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("safe"), 0o600),
		os.Symlink(victim, filepath.Join(other, ".real.json.new"))); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(t.Context(), writing("new")); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(target)
	safe, _ := os.ReadFile(victim)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 || string(got) != "new" ||
		string(safe) != "safe" {
		t.Errorf("%v, %v, %q, %q", info, err, got, safe)
	}
	if got := names(t, other); !slices.Equal(got, []string{"real.json", "victim"}) {
		t.Errorf("%q", got)
	}
}

// A file that another writer may create at any moment is not mistaken for a
// dangling link.
func TestFileAppearing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "base.json")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for {
			select {
			case <-stop:
				done <- err
				return
			default:
				err = errors.Join(err, os.WriteFile(path, nil, 0o600), os.Remove(path))
			}
		}
	}()
	for range 20_000 {
		if _, err := resolve(path); err != nil {
			t.Error(err)
			break
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Two goroutines, and then two processes, append concurrently: nothing is lost.
func TestFileWriters(t *testing.T) {
	const each = 50
	dir := t.TempDir()
	s := open(t, "file:base.json", Options{Dir: dir, Limit: time.Minute})
	both(t, func(writer int) error {
		for i := range each {
			if err := s.Update(t.Context(), appending(writer*each+i)); err != nil {
				return err
			}
		}
		return nil
	})
	both(t, func(writer int) error {
		from := (2 + writer) * each
		return appendProcess(t.Context(), t, filepath.Join(dir, "base.json"), from, from+each).Run()
	})
	if got := numbers(t, s); !slices.Equal(got, upTo(4*each)) {
		t.Error(got)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"base.json"}) {
		t.Errorf("leftover files: %q", got)
	}
}

func appendProcess(ctx context.Context, t *testing.T, path string, from, to int) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(ctx, testProgram(t), path, strconv.Itoa(from), strconv.Itoa(to))
	cmd.Env, cmd.Stderr = childEnv("append"), os.Stderr
	return cmd
}

// A killed writer leaves a complete file and no lock, and the next update
// removes its temporary file.
func TestFileKilled(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "base.json")
	s := open(t, "file:base.json", Options{Dir: dir})
	last := 0
	for round := range 8 {
		cmd := appendProcess(t.Context(), t, path, round*100_000, (round+1)*100_000)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if content, err := s.Load(t.Context()); err == nil && len(content[0]) > last+20+round*3 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the writer wrote nothing")
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		before := numbers(t, s)
		if err := s.Update(t.Context(), appending(-1-round)); err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, s); !slices.Equal(got, append([]int{-1 - round}, before...)) {
			t.Errorf("got %d numbers after %d", len(got), len(before))
		}
		if got := names(t, dir); !slices.Equal(got, []string{"base.json"}) {
			t.Errorf("leftover files: %q", got)
		}
		content, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		last = len(content[0])
	}
}

// While another process holds the lock, an update waits for the lock, but not
// longer than its time limit.
func TestFileLocked(t *testing.T) {
	dir := t.TempDir()
	unlock, err := lockFolder(t.Context(), dir, "base.json")
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, "file:base.json", Options{Dir: dir, Limit: 50 * time.Millisecond})
	if err := s.Update(t.Context(), writing("x")); !errors.Is(err, os.ErrDeadlineExceeded) ||
		!strings.Contains(err.Error(), "not finished within 50ms") {
		t.Errorf("locked: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Update(ctx, writing("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, "file:base.json", Options{Dir: dir}).Update(t.Context(), writing("x")); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}
