//go:build unix

package monitor

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// A directory prepared by another account cannot harm a run: no file of the
// user is overwritten, and no pipe blocks the run.
func TestRunInPreparedDirectory(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	elsewhere := t.TempDir()
	for name, prepare := range map[string]func(dir string) error{
		"links": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, inboxName), 0o700),
				os.Symlink(victim, filepath.Join(dir, "workload.log")),
				os.Symlink(victim, filepath.Join(dir, inboxName, "reserve")),
				os.Symlink(victim, filepath.Join(dir, "run.json")),
				os.Symlink(victim, filepath.Join(dir, "leaks.csv")),
				os.Symlink(victim, filepath.Join(dir, "junit.xml")))
		},
		"pipes": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, inboxName), 0o700),
				syscall.Mkfifo(filepath.Join(dir, "workload.log"), 0o600),
				syscall.Mkfifo(filepath.Join(dir, inboxName, "reserve"), 0o600),
				syscall.Mkfifo(filepath.Join(dir, inboxName, "a.mark"), 0o600),
				syscall.Mkfifo(filepath.Join(dir, "run.json"), 0o600))
		},
		"inbox is a symbolic link": func(dir string) error {
			return os.Symlink(elsewhere, filepath.Join(dir, inboxName))
		},
		"inbox is a file": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, inboxName), nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				o := options(t, phone("S1", rooted(), healthy("com.shop")))
				if err := errors.Join(os.Mkdir(o.Dir, 0o700), prepare(o.Dir)); err != nil {
					t.Fatal(err)
				}
				o.Duration, o.JUnit = 3*time.Minute, new(true)
				o.Workload = script(func(ctx context.Context, st Env) {
					_, _ = st.Output.Write([]byte("hello"))
					<-ctx.Done()
				})
				perform(t, t.Context(), o)
			})
			if b, err := os.ReadFile(victim); err != nil || string(b) != "mine" {
				t.Errorf("%q, %v", b, err)
			}
			if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
				t.Errorf("%v, %v", left, err)
			}
		})
	}
}

// Anything in the inbox that is not a mark is removed, whatever a workload puts
// there, and a large file is not read.
func TestInboxReadsRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	box, err := openInbox(dir)
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, "secret")
	in := func(name string) string { return filepath.Join(box.dir, name) }
	err = errors.Join(os.WriteFile(secret, []byte("secret"), 0o600), os.Symlink(secret, in("link.mark")),
		syscall.Mkfifo(in("pipe.mark"), 0o600),
		os.Mkdir(in("folder.mark"), 0o700), os.WriteFile(in("large.mark"), []byte("large "), 0o600),
		os.Truncate(in("large.mark"), 200<<20), os.WriteFile(in("empty.mark"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	box.take(func(text string, _ func(markDumps) error) { got = append(got, text) })
	if len(got) != 2 || got[0] != "" || !strings.HasPrefix(got[1], "large") || len(got[1]) > 4*maxMark {
		t.Errorf("marks %.100q", got)
	}
	if left, err := filepath.Glob(in("*.mark")); err != nil || len(left) > 0 {
		t.Errorf("files remain in the inbox: %v, %v", left, err)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("%q, %v", b, err)
	}
	if err := box.close(); err != nil {
		t.Error(err)
	}
}

// A prepared directory neither blocks `leakgate mark` nor makes it write
// elsewhere.
func TestSendMarkToAPreparedDirectory(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(dir, inboxName)); err != nil {
		t.Fatal(err)
	}
	if _, err := SendMark(t.Context(), dir, "x", false); !errors.Is(err, errNoRun) {
		t.Errorf("a link: %v", err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// A record that is a pipe is rejected, because its data may never arrive.
func TestReadRunRejectsPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "run.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := record.ReadRun(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}

// Whatever error occurs on the host, no file of the run contains the path of
// the run directory.
func TestRunRedactsHostPaths(t *testing.T) {
	needShell(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	program := filepath.Join(home, "secret-project", "run.sh")
	if err := errors.Join(os.Mkdir(filepath.Dir(program), 0o700),
		os.WriteFile(filepath.Join(home, "plain.sh"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(home, "lost.sh"), []byte("#!"+home+"/no/such/shell\n"), 0o700),
		os.WriteFile(filepath.Join(home, "fails.sh"), []byte("#!/bin/sh\nexit 7\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for says, work := range map[string]Workload{
		"run workload run.sh: no such file or directory": HostCommand{
			Args: []string{program},
		},
		"run workload plain.sh: permission denied": HostCommand{
			Args: []string{filepath.Join(home, "plain.sh")},
		},
		"run workload lost.sh: no such file or directory": HostCommand{
			Args: []string{filepath.Join(home, "lost.sh")},
		},
		"run workload fails.sh: exit status 7": HostCommand{
			Args: []string{filepath.Join(home, "fails.sh")},
		},
		`run workload no-such-program: executable file not found in $PATH`: HostCommand{
			Args: []string{"no-such-program"},
		},
		"open settings.xml: no such file or directory; write report.txt: no such thing": failing{home},
	} {
		t.Run(says, func(t *testing.T) {
			o := options(t, phone("S1", rooted(), healthy("com.shop")))
			o.Duration, o.Workload, o.JUnit = 0, work, new(true)
			perform(t, t.Context(), o)
			found := false
			err := filepath.WalkDir(o.Dir, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				content, err := os.ReadFile(path)
				for _, dir := range []string{home, filepath.Dir(o.Dir), os.TempDir() + "/"} {
					if bytes.Contains(content, []byte(dir)) {
						t.Errorf("%s has %s:\n%s", filepath.Base(path), dir, content)
					}
				}
				found = found || bytes.Contains(content, []byte(says))
				return err
			})
			if err != nil || !found {
				t.Errorf("no file contains %q, %v", says, err)
			}
		})
	}
}

// failing is a workload that is implemented by another program and fails.
type failing struct{ home string }

func (f failing) Describe() record.Workload { return record.Workload{Kind: "failing"} }
func (f failing) Run(_ context.Context, st Env) (record.Workload, error) {
	_, err := os.Open(filepath.Join(f.home, "settings.xml"))
	st.Record("", record.Event{Event: "workload", Text: "see " + filepath.Join(f.home, "a", "log.txt") + ": it failed"})
	return f.Describe(), errors.Join(joined{err, "; write " + filepath.Join(f.home, "report.txt") + ": no such thing"})
}

type joined struct {
	error
	more string
}

func (j joined) Error() string { return j.error.Error() + j.more }
func (j joined) Unwrap() error { return j.error }
