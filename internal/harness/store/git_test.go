package store

//unit:program the remote is a real repository, and only git can say what became of it

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/recorded"
)

// world is a bare repository and its clones, with a separate home directory.
type world struct {
	t            *testing.T
	root, remote string
	env          []string
}

func newWorld(t *testing.T, initArgs ...string) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		recorded.Missing(t, "a branch needs git: %v", err)
	}
	root := t.TempDir()
	w := &world{t: t, root: root, remote: filepath.Join(root, "remote.git")}
	w.env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "GIT_") || strings.HasPrefix(strings.ToLower(v), "http_proxy=")
	}), "HOME="+root, "XDG_CONFIG_HOME="+root, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+root, "LC_ALL=C",
		"no_proxy=*")
	// This is the directory in which scratch repositories are created.
	if err := os.Mkdir(filepath.Join(root, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", filepath.Join(root, "tmp"))
	w.git(root, append([]string{"init", "-q", "--bare", "-b", "main", w.remote}, initArgs...)...)
	w.git(w.remote, "config", "core.fsync", "none")
	return w
}

func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git",
		append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-C", dir}, args...)...)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v, %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(path, content string, mode os.FileMode) {
	w.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), mode),
		os.Chmod(path, mode)); err != nil {
		w.t.Fatal(err)
	}
}

// clone creates a checkout with work in progress: a staged file, a changed
// file, a new file and two branches.
func (w *world) clone(name string, args ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.root, name)
	w.git(w.root, append([]string{"init", "-q", "-b", "topic", dir}, args...)...)
	w.git(dir, "config", "core.fsync", "none")
	w.git(dir, "remote", "add", "origin", w.remote)
	w.write(filepath.Join(dir, "a"), "1", 0o600)
	w.git(dir, "add", "a")
	w.git(dir, "commit", "-q", "-m", "one")
	w.git(dir, "branch", "other")
	w.write(filepath.Join(dir, "staged"), "2", 0o600)
	w.git(dir, "add", "staged")
	w.write(filepath.Join(dir, "a"), "3", 0o600)
	w.write(filepath.Join(dir, "new"), "4", 0o600)
	return dir
}

func (w *world) open(dir, address string) *Store {
	w.t.Helper()
	return open(w.t, address, Options{Dir: dir, Env: w.env, Limit: time.Minute})
}

// snapshot describes every file below a directory by name, mode, modification
// time and content.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprint(&b, path, " ", info.Mode(), " ", info.ModTime())
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(content))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// clean fails the test if a scratch repository or a lock remains.
func (w *world) clean() {
	w.t.Helper()
	if got := names(w.t, filepath.Join(w.root, "tmp")); len(got) > 0 {
		w.t.Errorf("leftover files: %q", got)
	}
	_ = filepath.WalkDir(w.remote, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".lock") {
			w.t.Errorf("leftover file: %s", path)
		}
		return nil
	})
}

// Creating, changing and reading a branch leaves the checkout unchanged,
// including git's own files.
func TestGit(t *testing.T) {
	for name, args := range map[string][]string{"sha1": nil, "sha256": {"--object-format=sha256"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, args...)
			dir := w.clone("clone", args...)
			before := snapshot(t, dir)
			s := w.open(dir, "git:origin/ci/leaks#x/shop app.json")
			if _, err := s.Load(t.Context()); !errors.Is(err, ErrNone) {
				t.Fatalf("without a branch: %v", err)
			}
			for _, content := range []string{"one\n", "two\x00\xff", "two\x00\xff", "three"} {
				if err := s.Update(t.Context(), writing(content)); err != nil {
					t.Fatal(err)
				}
				got, err := s.Load(t.Context())
				if err != nil || len(got) != 1 || string(got[0]) != content {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if got := w.git(w.remote, "log", "--format=%an <%ae> %cn <%ce> %s",
				"ci/leaks"); got != strings.TrimSuffix(
				strings.Repeat(
					"leakgate <leakgate@localhost> leakgate <leakgate@localhost> leakgate: update x/shop app.json\n",
					3), "\n") {
				t.Errorf("commits:\n%s", got)
			}
			if got := w.git(w.remote, "ls-tree", "-r", "--name-only", "ci/leaks"); got != "x/shop app.json" {
				t.Errorf("files: %s", got)
			}
			if got := w.git(w.remote, "for-each-ref", "--format=%(refname)"); got != "refs/heads/ci/leaks" {
				t.Errorf("refs: %s", got)
			}
			w.git(w.remote, "fsck", "--strict")
			if after := snapshot(t, dir); after != before {
				t.Errorf("the checkout changed:\n%s\n%s", before, after)
			}
			w.clean()
		})
	}
}

// Other files on the branch do not change. A baseline path that conflicts with
// such a file is rejected.
func TestGitOtherFiles(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	w.git(dir, "checkout", "-q", "-f", "--orphan", "leaks")
	w.git(dir, "rm", "-q", "-r", "-f", ".")
	for name, mode := range map[string]os.FileMode{
		"README": 0o644, "app/run.sh": 0o755, "app/base.json": 0o755, "deep/er/x": 0o644,
	} {
		w.write(filepath.Join(dir, name), name, mode)
	}
	if err := os.Symlink("README", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	w.git(dir, "add", "-A")
	w.git(dir, "commit", "-q", "-m", "files")
	w.git(dir, "push", "-q", "origin", "leaks", "leaks:main")
	tip := w.git(w.remote, "rev-parse", "leaks")
	list := func() []string { return strings.Split(w.git(w.remote, "ls-tree", "-r", "leaks"), "\n") }
	before := list()
	s := w.open(dir, "git:leaks#app/base.json")
	if err := s.Update(t.Context(), func(old [][]byte) ([]byte, error) {
		return []byte("new"), check(len(old) == 1 && string(old[0]) == "app/base.json")
	}); err != nil {
		t.Fatal(err)
	}
	other := func(line string) bool { return strings.HasSuffix(line, "\tapp/base.json") }
	after := list()
	if len(before) != len(after) || !slices.Equal(slices.DeleteFunc(before, other), slices.DeleteFunc(after, other)) {
		t.Errorf("before %q, after %q", before, after)
	}
	if got := w.git(w.remote, "rev-parse", "leaks^"); got != tip || w.git(w.remote, "rev-parse", "main") != tip {
		t.Errorf("parent %s, want %s", got, tip)
	}
	if _, err := w.open(dir, "git:leaks#app/none.json").Load(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("without a file: %v", err)
	}
	for _, path := range []string{"README/x", "README/x/y", "deep", "deep/er", "link", "link/x"} {
		s := w.open(dir, "git:leaks#"+path)
		for _, err := range []error{second(s.Load(t.Context())), s.Update(t.Context(), writing("x"))} {
			if err == nil || errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "choose another path") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if got := w.git(w.remote, "rev-list", "--count", "leaks"); got != "2" {
		t.Errorf("%s commits", got)
	}
	w.write(filepath.Join(dir, "large"), strings.Repeat("x", maxContent+1), 0o600)
	w.git(dir, "add", "large")
	w.git(dir, "commit", "-q", "-m", "large")
	w.git(dir, "push", "-q", "-f", "origin", "HEAD:leaks")
	if _, err := w.open(dir, "git:leaks#large").Load(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "larger than") {
		t.Errorf("oversized content: %v", err)
	}
	w.clean()
}

// Two writers, each with its own clone, append concurrently to the same file:
// nothing is lost.
func TestGitWriters(t *testing.T) {
	each := 12
	if recorded.Long() {
		each = 50
	}
	w := newWorld(t)
	stores := []*Store{w.open(w.clone("one"), "git:leaks#shop.json"), w.open(w.clone("two"), "git:leaks#shop.json")}
	for _, s := range stores {
		s.limit = 10 * time.Minute
	}
	both(t, func(writer int) error {
		for i := range each {
			if err := stores[writer].Update(t.Context(), appending(writer*each+i)); err != nil {
				return err
			}
		}
		return nil
	})
	if got := numbers(t, stores[0]); !slices.Equal(got, upTo(2*each)) {
		t.Error(got)
	}
	if got := w.git(w.remote, "rev-list", "--count", "leaks"); got != fmt.Sprint(2*each) {
		t.Errorf("%s commits", got)
	}
	w.clean()
}

// Only the newest commit of the branch is fetched, however long the history of
// the branch is.
func TestGitDepth(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	a, err := Parse("git:leaks#shop.json")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := w.open(dir, a.String()).Update(t.Context(), appending(n)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := newScratch(t.Context(), &gitStore{Address: a, Options: Options{Dir: dir, Env: w.env}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	tip, err := s.fetch(t.Context())
	if err != nil || tip != w.git(w.remote, "rev-parse", "leaks") {
		t.Fatalf("%s, %v", tip, err)
	}
	if got, err := s.line(t.Context(), nil, "rev-list", "--count", tip); err != nil || got != "1" {
		t.Errorf("%s commits fetched, %v", got, err)
	}
}

// A concurrent write is detected: apply is called again with the new content.
func TestGitConcurrentWriter(t *testing.T) {
	w := newWorld(t)
	one, two := w.open(w.clone("one"), "git:leaks#shop.json"), w.open(w.clone("two"), "git:leaks#shop.json")
	for round, first := range []string{"", "[0,100]"} {
		calls := 0
		err := one.Update(t.Context(), func(old [][]byte) ([]byte, error) {
			if calls++; calls == 1 {
				if got := string(slices.Concat(old...)); got != first {
					t.Errorf("first %s, want %s", got, first)
				}
				if err := two.Update(t.Context(), appending(round)); err != nil {
					return nil, err
				}
			}
			return appending(100 + round)(old)
		})
		if err != nil || calls != 2 {
			t.Fatalf("%d calls, %v", calls, err)
		}
	}
	if got := numbers(t, one); !slices.Equal(got, []int{0, 1, 100, 101}) {
		t.Error(got)
	}
}

// If a branch is missing when it is fetched, but another writer creates it
// before its existence is checked, it must be fetched again.
func TestGitBranchAppears(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	if err := w.open(dir, "git:made#shop.json").Update(t.Context(), appending(1)); err != nil {
		t.Fatal(err)
	}
	s := w.open(dir, "git:leaks#shop.json")
	w.wrap("ls-remote", "GIT --git-dir='"+w.remote+"' branch leaks made >/dev/null")
	if err := s.Update(t.Context(), appending(2)); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, s); !slices.Equal(got, []int{1, 2}) {
		t.Error(got)
	}
}

// If the remote cannot be reached, for whatever reason, the result is an error
// that contains no credentials.
func TestGitUnreachable(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	for name, url := range map[string]string{
		"missing repository": filepath.Join(w.root, "missing.git"),
		"refused":            "http://me:hunter2@127.0.0.1:1/x.git?private_token=hunter2",
		"unknown transport":  "nowhere://me:hunter2@host/x",
		"forbidden":          "ext::sh -c true://hunter2@x",
	} {
		w.git(dir, "remote", "set-url", "origin", url)
		s := w.open(dir, "git:leaks#shop.json")
		for _, err := range []error{second(s.Load(t.Context())), s.Update(t.Context(), writing("x"))} {
			if err == nil || errors.Is(err, ErrNone) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if _, err := w.open(dir, "git:ci/leaks#shop.json").Load(t.Context()); err == nil || errors.Is(err, ErrNone) ||
		!strings.Contains(err.Error(), "write git:origin/ci/leaks#shop.json") {
		t.Errorf("unknown remote: %v", err)
	}
	if _, err := w.open(t.TempDir(), "git:leaks#shop.json").Load(t.Context()); err == nil || errors.Is(err, ErrNone) ||
		!strings.Contains(err.Error(), "in a checkout") {
		t.Errorf("without a checkout: %v", err)
	}
	w.clean()
}

// The remote is found as in the checkout: by a relative path, from a
// subdirectory, and with settings that apply only to this checkout, such as
// those with the token of a CI job.
func TestGitConfiguration(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	sub := filepath.Join(dir, "sub", "folder")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	w.git(dir, "remote", "set-url", "origin", "../remote.git")
	if err := w.open(sub, "git:leaks#shop.json").Update(t.Context(), writing("one")); err != nil {
		t.Fatalf("relative path: %v", err)
	}
	included := filepath.Join(w.root, "included")
	w.write(included,
		fmt.Sprintf("[url %q]\n\tinsteadOf = short:\n[user]\n\tname = Kim <x>\n\temail = kim@example.org\n",
			w.root+"/"), 0o600)
	w.git(dir, "config", "includeIf.gitdir:"+dir+"/.git.path", included)
	w.git(dir, "remote", "set-url", "origin", "short:remote.git")
	w.git(dir, "config", "remote.origin.mirror", "true")
	w.git(dir, "config", "core.worktree", dir)
	w.git(dir, "config", "push.gpgSign", "false")
	if err := w.open(dir, "git:leaks#shop.json").Update(t.Context(), writing("two")); err != nil {
		t.Fatalf("included setting: %v", err)
	}
	if got := w.git(w.remote, "log", "-1", "--format=%an <%ae>", "leaks"); got != "Kim x <kim@example.org>" {
		t.Errorf("by %s", got)
	}
	// These are the variables that a hook of another repository would set.
	other := w.clone("other")
	w.env = append(w.env, "GIT_DIR="+filepath.Join(other, ".git"), "GIT_INDEX_FILE="+filepath.Join(other, "index"),
		"GIT_WORK_TREE="+other)
	before := snapshot(t, other)
	s := w.open(dir, "git:leaks#shop.json")
	if err := s.Update(t.Context(), writing("three")); err != nil {
		t.Fatalf("in a hook: %v", err)
	}
	if got, err := s.Load(t.Context()); err != nil || string(got[0]) != "three" || snapshot(t, other) != before {
		t.Errorf("%q, %v", got, err)
	}
}

// No hook of the user is run, whether it comes from the checkout or from the
// user's settings.
func TestGitHooks(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	trap := filepath.Join(w.root, "trapped")
	script := "#!/bin/sh\necho $0 >>'" + trap + "'\nexit 1\n"
	for _, hook := range []string{
		"pre-push", "reference-transaction", "pre-commit", "post-checkout", "pre-auto-gc", "update",
	} {
		w.write(filepath.Join(dir, ".git", "hooks", hook), script, 0o755)
		w.write(filepath.Join(w.root, "hooks", hook), script, 0o755)
	}
	s := w.open(dir, "git:leaks#shop.json")
	if err := s.Update(t.Context(), writing("one")); err != nil {
		t.Error(err)
	}
	w.git(dir, "config", "core.hooksPath", filepath.Join(w.root, "hooks"))
	w.write(filepath.Join(w.root, ".gitconfig"), "[core]\n\thooksPath = "+filepath.Join(w.root, "hooks")+
		"\n\tfsmonitor = touch "+trap+"\n", 0o600)
	// The remote is also on this machine and has its own settings.
	w.git(w.remote, "config", "core.hooksPath", filepath.Join(w.remote, "hooks"))
	if err := s.Update(t.Context(), writing("two")); err != nil {
		t.Error(err)
	}
	if by, err := os.ReadFile(trap); err == nil {
		t.Errorf("hooks ran: %s", by)
	}
}

// If a rule of the server rejects the update, the error contains the server's
// message, without terminal control sequences.
func TestGitRejected(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	w.write(filepath.Join(w.remote, "hooks", "pre-receive"),
		"#!/bin/sh\nprintf 'protected by \\033[2Jpolicy https://a:hunter2@b/\\n' >&2\nexit 1\n", 0o755)
	calls := 0
	err := w.open(dir, "git:leaks#shop.json").
		Update(t.Context(), func([][]byte) ([]byte, error) { calls++; return []byte("x"), nil })
	if err == nil || !strings.Contains(err.Error(), "pre-receive hook declined") ||
		!strings.Contains(err.Error(), "policy https://***@b/") || strings.ContainsAny(err.Error(), "\x1b\n") ||
		calls != maxRejected {
		t.Errorf("%d calls, %v", calls, err)
	}
	w.clean()
}

// wrap adds to the PATH a git that runs a script before the first call of a
// subcommand. In the script, GIT is the real git.
func (w *world) wrap(subcommand, script string) {
	w.t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		w.t.Fatal(err)
	}
	bin := filepath.Join(w.root, "bin")
	w.write(filepath.Join(bin, "git"), "#!/bin/sh\nif [ \"$1\" = "+subcommand+" ] && mkdir '"+bin+
		"/once' 2>/dev/null; then\n"+strings.ReplaceAll(script, "GIT", git)+"\nfi\nexec "+git+" \"$@\"\n", 0o755)
	w.t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// A push is not repeated if it succeeded and only its response was lost. A push
// that did not reach the remote is repeated.
func TestGitResponseLost(t *testing.T) {
	for name, script := range map[string]string{
		"push arrives, reply is lost": "GIT \"$@\" >/dev/null 2>&1; exit 128", "push is lost": "exit 128",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			dir := w.clone("clone")
			s := w.open(dir, "git:leaks#shop.json")
			w.wrap("push", script)
			if err := s.Update(t.Context(), func(old [][]byte) ([]byte, error) {
				return append(slices.Concat(old...), 'x'), nil
			}); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Load(t.Context()); err != nil || string(got[0]) != "x" {
				t.Errorf("%q, %v", got, err)
			}
			if got := w.git(w.remote, "rev-list", "--count", "leaks"); got != "1" {
				t.Errorf("%s commits", got)
			}
		})
	}
}

// If an update is canceled at any time, either the old or the new baseline
// remains, and no other files.
func TestGitCanceled(t *testing.T) {
	w := newWorld(t)
	dir := w.clone("clone")
	s := w.open(dir, "git:leaks#shop.json")
	start := time.Now()
	if err := s.Update(t.Context(), writing("0")); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	before := snapshot(t, dir)
	old := "0"
	const rounds = 6
	for round := range rounds {
		ctx, cancel := context.WithTimeout(t.Context(), took*time.Duration(round)/rounds)
		fresh := strings.Repeat("x", round+1)
		err := s.Update(ctx, writing(fresh))
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("round %d: %v", round, err)
		}
		got, lerr := s.Load(t.Context())
		if lerr != nil || string(got[0]) != fresh && (err == nil || string(got[0]) != old) {
			t.Fatalf("round %d: %q, %v, %v", round, got, err, lerr)
		}
		old = string(got[0])
	}
	w.git(w.remote, "fsck", "--strict")
	if snapshot(t, dir) != before {
		t.Error("the checkout changed")
	}
	w.clean()
}

func TestGitVersion(t *testing.T) {
	for line, ok := range map[string]bool{
		"git version 2.31.9": false, "git version 1.99.0": false, "git version 2.32.0": true, "git version 3.0": true,
		"git version 2.50.1 (Apple Git-155)": true, "unknown": true,
	} {
		w := newWorld(t)
		bin := filepath.Join(w.root, "old")
		w.write(filepath.Join(bin, "git"), "#!/bin/sh\necho '"+line+"'\n", 0o755)
		t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		err := (&scratch{env: w.env}).checkVersion(t.Context())
		if (err == nil) != ok {
			t.Errorf("%s: %v", line, err)
		}
		if err := os.RemoveAll(bin); err != nil {
			t.Fatal(err)
		}
	}
}
