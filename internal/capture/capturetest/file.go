package capturetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/leakgate/leakgate/internal/text"
)

// roundTrip pushes a file, pulls it and removes it again.
func (s *suite) roundTrip(t *testing.T, name string, content []byte) {
	t.Helper()
	path := s.file(name)
	if err := s.dev.Push(within(t), bytes.NewReader(content), path, 0o644); err != nil {
		t.Errorf("push %d bytes: %v", len(content), err)
		return
	}
	s.holds(t, path, content)
	s.must(t, "rm "+text.ShellQuote(path))
}

// holds checks that Pull returns the given content and its length.
func (s *suite) holds(t *testing.T, path string, content []byte) {
	t.Helper()
	var got bytes.Buffer
	n, err := s.dev.Pull(within(t), path, &got)
	if err != nil || n != int64(len(content)) || !bytes.Equal(got.Bytes(), content) {
		t.Errorf("%s: pulled %d of %d bytes, equal: %v, error: %v", brief(path), n, len(content),
			bytes.Equal(got.Bytes(), content), err)
	}
}

// random returns incompressible binary data.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(b)
	return b
}

func (s *suite) roundTrips(t *testing.T) {
	for _, size := range []int{0, 1, 4095, 65535, 65536, 65537, 200_000} {
		s.roundTrip(t, fmt.Sprint("size ", size), random(size))
	}
	for _, name := range []string{"it's", `a "b"`, "a,b,0644", "$(id)", "-n", "\u00e9\u202e", "new\nline", "*"} {
		s.roundTrip(t, name, []byte(name))
	}
	path := s.file("twice")
	for _, content := range []string{"the first, longer content", "second"} {
		if err := s.dev.Push(within(t), strings.NewReader(content), path, 0o644); err != nil {
			t.Errorf("push: %v", err)
		}
		s.holds(t, path, []byte(content))
	}
	s.must(t, "rm "+text.ShellQuote(path))
}

// largeFile transfers a large file through Pull and through the output of a
// command.
func (s *suite) largeFile(t *testing.T) {
	path, content := s.file("large"), random(s.Large)
	if err := s.dev.Push(within(t), bytes.NewReader(content), path, 0o600); err != nil {
		t.Fatalf("push %d bytes: %v", len(content), err)
	}
	s.holds(t, path, content)
	var out bytes.Buffer
	if exit, err := s.dev.Shell(within(t), "cat "+text.ShellQuote(path), &out, nil); exit != 0 || err != nil ||
		!bytes.Equal(out.Bytes(), content) {
		t.Errorf("cat: exit %d, %d of %d bytes, equal: %v, error: %v", exit, out.Len(), len(content),
			bytes.Equal(out.Bytes(), content), err)
	}
	ctx, cancel := context.WithCancel(within(t))
	n, err := s.dev.Pull(ctx, path, writer(func(p []byte) (int, error) { cancel(); return len(p), nil }))
	if s.failed(t, "a canceled pull", err, context.Canceled); n >= int64(len(content)) {
		t.Errorf("a pull that was canceled at its first byte returned all %d bytes", n)
	}
	s.must(t, "rm "+text.ShellQuote(path))
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func (s *suite) pullRefused(t *testing.T) {
	pull := func(path string) error {
		var got bytes.Buffer
		n, err := s.dev.Pull(within(t), path, &got)
		if n != 0 || got.Len() != 0 {
			t.Errorf("pull of %s: got %d bytes, want none", brief(path), n)
		}
		return err
	}
	s.failed(t, "pull of a missing file", pull(s.file("missing")), fs.ErrNotExist)
	s.failed(t, "pull from a missing directory", pull(s.file("no/such")), fs.ErrNotExist)
	s.failed(t, "pull of a directory", pull(s.Dir), nil)
	if s.Unreadable != "" {
		s.failed(t, "pull of an unreadable file", pull(s.Unreadable), fs.ErrPermission)
	}
	own := errors.New("disk full")
	path := s.file("some")
	if err := s.dev.Push(within(t), strings.NewReader("content"), path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.dev.Pull(within(t), path, writer(func([]byte) (int, error) { return 0, own }))
	s.failed(t, "pull to a writer that fails", err, own)
	s.must(t, "rm "+text.ShellQuote(path))
}

// pushRefused checks that a push to an impossible path returns an error, and
// that a push that returns no error has created the file.
func (s *suite) pushRefused(t *testing.T) {
	s.failed(t, "push to a read-only path", s.dev.Push(within(t), strings.NewReader("x"), s.ReadOnly, 0o600), nil)
	s.failed(t, "push over a directory", s.dev.Push(within(t), strings.NewReader("x"), s.Dir, 0o600), nil)
	if r := s.shell(t, "ls "+text.ShellQuote(s.ReadOnly)); r.exit == 0 {
		t.Errorf("%s exists", s.ReadOnly)
	}
	path := s.file("new/deep/file")
	if err := s.dev.Push(within(t), strings.NewReader("content"), path, 0o600); err != nil {
		s.failed(t, "push into a missing directory", err, nil)
		return
	}
	s.holds(t, path, []byte("content"))
	// The directories that a push creates belong to the shell.
	s.must(t, "echo x >"+text.ShellQuote(s.file("new/deep/own"))+" && rm -r "+text.ShellQuote(s.file("new")))
}

// interruptedPush checks that an interrupted push does not leave a file that
// could be mistaken for the complete one.
func (s *suite) interruptedPush(t *testing.T) {
	own := errors.New("disk gone")
	path := s.file("partial")
	begin := func() io.Reader { return io.MultiReader(bytes.NewReader(random(300_000)), iotest.ErrReader(own)) }
	s.failed(t, "push from a reader that fails", s.dev.Push(within(t), begin(), path, 0o600), own)
	ctx, cancel := context.WithCancel(within(t))
	again := io.MultiReader(bytes.NewReader(random(300_000)),
		reader(func([]byte) (int, error) { cancel(); return 0, io.EOF }), endless{})
	s.failed(t, "a canceled push", s.dev.Push(ctx, again, path, 0o600), context.Canceled)
	gone := func() bool { return s.shell(t, "ls "+text.ShellQuote(path)+" >/dev/null 2>&1").exit != 0 }
	eventually(t, "the incomplete file is removed", gone)
	if err := s.dev.Push(within(t), strings.NewReader("whole"), path, 0o600); err != nil {
		t.Fatal(err)
	}
	s.failed(t, "push over a file from a reader that fails", s.dev.Push(within(t), begin(), path, 0o600), own)
	eventually(t, "the incomplete file and the previous one are removed", gone)
}

type reader func(p []byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// nothingLeft checks that every file of the suite is gone. The file of an
// interrupted push may exist for a little longer.
func (s *suite) nothingLeft(t *testing.T) {
	var left string
	eventually(t, s.Dir+" is empty", func() bool {
		left = strings.Trim(s.must(t, "ls -a "+text.ShellQuote(s.Dir)), ".\n")
		return left == ""
	})
	if left != "" {
		t.Errorf("left: %q", left)
	}
}

// mode checks that the owner of a pushed file has the requested permissions.
// The group and others have either the permissions requested for them or the
// permissions of the owner, which is what adbd has always set
// (adb/daemon/file_sync_service.cpp, send_impl).
func (s *suite) mode(t *testing.T) {
	path := s.file("mode")
	for mode, want := range map[fs.FileMode][2]string{
		0o600: {"-rw-------", "-rw-rw-rw-"}, 0o640: {"-rw-r-----", "-rw-rw-rw-"}, 0o755: {"-rwxr-xr-x", "-rwxrwxrwx"},
		0o444: {"-r--r--r--", "-r--r--r--"},
	} {
		if err := s.dev.Push(within(t), strings.NewReader("x"), path, mode); err != nil {
			t.Errorf("push with mode %v: %v", mode, err)
			continue
		}
		if got := s.must(t, "ls -l "+text.ShellQuote(path)); !strings.HasPrefix(got, want[0]) &&
			!strings.HasPrefix(got, want[1]) {
			t.Errorf("mode %v became %q", mode, got)
		}
		s.must(t, "rm -f "+text.ShellQuote(path))
	}
}
