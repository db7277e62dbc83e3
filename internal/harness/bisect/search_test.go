package bisect

//unit:program a real git chooses the commits, and the command is a program

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/reporters/record"
)

// childVariable is the environment variable that makes this test program run as
// the command of a search; its value is the directory for notes.
const childVariable = "LEAKGATE_BISECT_CHILD"

func TestMain(m *testing.M) {
	if notes := os.Getenv(childVariable); notes != "" {
		os.Exit(child(notes, os.Getenv(RunsVariable)))
	}
	os.Exit(m.Run())
}

// child reads the file "plan" in the work tree, does what it requests, and
// returns the exit code.
func child(notes, runs string) int {
	plan, err := os.ReadFile("plan")
	if err != nil {
		return 126
	}
	number, kind, _ := strings.Cut(strings.TrimSpace(string(plan)), " ")
	again := os.Mkdir(filepath.Join(notes, number), 0o700) != nil
	leak := kind == "bad" || kind == "lucky" && again || kind == "dirty bad"
	code := 0
	switch kind {
	case "build fails":
		return 1
	case "not found":
		return 127
	case "no device":
		code = record.ExitNoDevice
	case "interrupt me":
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt)
		_, _ = os.Stdout.WriteString("ready\n") // without this line, the test would not end
		<-interrupted
		_ = os.WriteFile(filepath.Join(notes, "interrupted"), nil, 0o600) // a missing file fails the test
		return 130
	case "dirty", "dirty bad":
		if os.WriteFile("locked", []byte("changed by the build"), 0o600) != nil {
			return 126
		}
	case "moves HEAD":
		if exec.Command("git", "checkout", "-q", "--detach", "HEAD^").Run() != nil {
			return 126
		}
	}
	run := markedRun(leak)
	switch old := series(otherKey, detector.Leak, true, 1, 2, 3); kind {
	case "old name":
		run = runWith(old)
	case "both":
		both := series(theKey, detector.Leak, true, 1, 2, 3)
		both.Leaks = append(both.Leaks, old.Leaks...)
		run = runWith(both)
	}
	run.ExitCode = max(code, run.ExitCode)
	dir := filepath.Join(runs, "20260102T030405.000Z-run")
	if os.Mkdir(dir, 0o700) != nil || record.WriteRun(dir, run) != nil {
		return 126
	}
	return run.ExitCode
}

// sandbox is a repository with one commit for each plan.
type sandbox struct {
	t     *testing.T
	dir   string
	notes string
	hash  []string
}

func newSandbox(t *testing.T, plans []string) *sandbox {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		recorded.Missing(t, "a bisect needs git: %v", err)
	}
	s := &sandbox{t: t, dir: t.TempDir(), notes: t.TempDir()}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv(childVariable, s.notes)
	s.git("init", "-q", "-b", "trunk")
	var stream strings.Builder
	file := func(name, content string) {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
	}
	for i, plan := range plans {
		subject := fmt.Sprintf("Change %d \x1b[2J<b>|x", i)
		fmt.Fprintf(&stream,
			"commit refs/heads/trunk\nauthor A <a@example.org> %d +0000\ncommitter A <a@example.org> %d +0000\ndata "+
				"%d\n%s\n", 1600000000+i*86400, 1600000000+i*86400, len(subject), subject)
		file("plan", fmt.Sprintf("%d %s\n", i, plan))
		file("locked", "as committed\n")
	}
	cmd := exec.CommandContext(t.Context(), "git", "-C", s.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.git("checkout", "-q", "trunk")
	s.hash = strings.Fields(s.git("rev-list", "--reverse", "trunk"))
	if err := os.WriteFile(filepath.Join(s.dir, "untracked"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sandbox) git(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", s.dir}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// state returns everything that a search must restore.
func (s *sandbox) state() string {
	s.t.Helper()
	head, err := os.ReadFile(filepath.Join(s.dir, ".git", "HEAD"))
	if err != nil {
		s.t.Fatal(err)
	}
	out := string(head) + s.git("status", "--porcelain") + s.git("for-each-ref")
	for _, name := range []string{"plan", "locked", "untracked"} {
		content, err := os.ReadFile(filepath.Join(s.dir, name))
		out += fmt.Sprintf("%s: %q %v\n", name, content, err)
	}
	for _, pattern := range []string{"BISECT*", "index.lock"} {
		list, err := filepath.Glob(filepath.Join(s.dir, ".git", pattern))
		out += fmt.Sprint(list, err)
	}
	return out
}

// search runs a search and checks that the search restores everything.
func (s *sandbox) search(o Options) (Culprit, error) {
	s.t.Helper()
	return s.searchIn(s.t.Context(), o)
}

func (s *sandbox) searchIn(ctx context.Context, o Options) (Culprit, error) {
	s.t.Helper()
	o.Dir, o.Key = s.dir, theKey
	if o.Command == nil {
		o.Command = []string{os.Args[0]}
	}
	if o.Good == "" {
		o.Good, o.Bad = s.hash[0], "trunk"
	}
	before := s.state()
	result, err := Search(ctx, o)
	if after := s.state(); after != before {
		s.t.Fatalf("the repository was\n%s\nand is now\n%s", before, after)
	}
	return result, err
}

// Whichever commit introduced the leak, and whichever commits cannot be judged,
// the search yields the same result as if every commit were examined.
func TestSearch(t *testing.T) {
	const commits = 30
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		first := 1 + r.IntN(commits-1)
		plans := make([]string, commits)
		for i := range plans {
			plans[i] = []string{"good", "dirty"}[min(r.IntN(5), 1)]
			if i >= first {
				plans[i] = []string{"bad", "lucky", "dirty bad"}[r.IntN(3)]
			}
			if i > 0 && i < commits-1 && r.IntN(int(3+seed)) == 0 {
				plans[i] = []string{"build fails", "not found", "no device"}[r.IntN(3)]
			}
		}
		plans[commits-1] = "bad"
		judged := func(i int) bool {
			return !slices.Contains([]string{"build fails", "not found", "no device"}, plans[i])
		}
		from, to := first-1, first
		for !judged(from) {
			from--
		}
		for !judged(to) {
			to++
		}
		s := newSandbox(t, plans)
		if seed%2 == 1 {
			s.git("checkout", "-q", "--detach", s.hash[r.IntN(commits)])
		}
		kept := filepath.Join(t.TempDir(), "runs")
		said := []string{}
		result, err := s.search(Options{Confirm: 2, Runs: kept, Say: func(line string) { said = append(said, line) }})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := slices.Clone(s.hash[from+1 : to+1])
		slices.Reverse(want)
		var got []string
		for _, c := range result.Among {
			got = append(got, c.Hash)
		}
		if !slices.Equal(got, want) || (result.First != nil) != (len(want) == 1) || result.First != nil &&
			result.First.Hash != want[0] {
			t.Fatalf("seed %d: %v, want %v of %q: %v", seed, result, want, plans, said)
		}
		checkJudged(t, result, plans, s.hash)
		if len(result.Judged) > 2+commits {
			t.Errorf("got %d judged commits", len(result.Judged))
		}
		if dirs, err := os.ReadDir(kept); err != nil || len(dirs) < len(result.Judged) {
			t.Errorf("got %d run directories, %v", len(dirs), err)
		}
		for _, line := range append(said, result.String()) {
			if strings.ContainsAny(line, "\x1b\n") {
				t.Errorf("%q", line)
			}
		}
		if c := result.Among[0]; c.Date.Unix() != 1600000000+int64(slices.Index(s.hash, c.Hash))*86400 ||
			c.Subject != fmt.Sprintf("Change %d ?[2J<b>|x", slices.Index(s.hash, c.Hash)) {
			t.Errorf("%+v", c)
		}
	}
}

// checkJudged compares each judged commit with its plan.
func checkJudged(t *testing.T, result Culprit, plans, hashes []string) {
	t.Helper()
	for _, j := range result.Judged {
		plan := plans[slices.Index(hashes, j.Hash)]
		want, runs := Skip, 1
		switch plan {
		case "good", "dirty":
			want, runs = Good, 2
		case "bad", "dirty bad":
			want = Bad
		case "lucky":
			want, runs = Bad, 2
		}
		if j.Outcome != want || j.Runs != runs || j.Reason == "" {
			t.Errorf("%s: %+v", plan, j)
		}
	}
}

// A rename changes the key of a leak, but does not introduce the leak: commits
// with the leak under its old key have no verdict. If the bad commit also has a
// leak of this class under the old key, the leak was not renamed.
func TestSearchRenamed(t *testing.T) {
	for name, c := range map[string]struct {
		plans []string
		among []int
		note  bool
	}{
		"introduced, then renamed": {
			[]string{"good", "good", "old name", "old name", "bad", "bad"}, []int{4, 3, 2}, false,
		},
		"leak older than the good commit": {[]string{"old name", "old name", "bad", "bad"}, []int{2, 1}, true},
		"another leak in the same run":    {[]string{"old name", "old name", "both", "both"}, []int{2}, false},
	} {
		s := newSandbox(t, c.plans)
		var said strings.Builder
		result, err := s.search(Options{Say: func(line string) { said.WriteString(line + "\n") }})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []int
		for _, commit := range result.Among {
			got = append(got, slices.Index(s.hash, commit.Hash))
		}
		if !slices.Equal(got, c.among) || strings.Contains(said.String(), "a rename changed its key") != c.note {
			t.Errorf("%s: %v, want %v\n%s", name, got, c.among, said.String())
		}
	}
}

// If two branches were merged, the search finds the commit that introduced the
// leak on one of them.
func TestSearchMerged(t *testing.T) {
	s := newSandbox(t, []string{"good", "good", "good", "good"})
	s.git("config", "user.name", "a")
	s.git("config", "user.email", "a@example.org")
	commit := func(number int, plan string) string {
		if err := os.WriteFile(filepath.Join(s.dir, "plan"), fmt.Appendf(nil, "%d %s\n", number, plan),
			0o600); err != nil {
			t.Fatal(err)
		}
		s.git("commit", "-q", "-a", "-m", plan)
		return s.git("rev-parse", "HEAD")
	}
	s.git("checkout", "-q", "-b", "side", s.hash[1])
	commit(10, "good")
	want := commit(11, "bad")
	commit(12, "bad")
	s.git("checkout", "-q", "trunk")
	s.git("merge", "-q", "-X", "theirs", "-m", "merge", "side")
	commit(13, "bad")
	result, err := s.search(Options{})
	if err != nil || result.First == nil || result.First.Hash != want {
		t.Errorf("%v, %v, want %s", result, err, want)
	}
}

func TestSearchRefuses(t *testing.T) {
	plans := []string{"good", "good", "bad", "bad"}
	shared := newSandbox(t, plans)
	for name, c := range map[string]struct {
		plans  []string
		change func(s *sandbox, o *Options)
		want   string
	}{
		"leak in the good commit": {
			[]string{"bad", "bad", "bad"}, nil,
			"is not good: com.shop.CartActivity, held by Tracker.screens: 1, 2, 3 objects at marks",
		},
		"no leak in the bad commit":       {[]string{"good", "good", "good"}, nil, "is not bad: not in 3 heap dumps"},
		"good commit that does not build": {[]string{"build fails", "good", "bad"}, nil, "no run directory"},
		"bad commit without a device":     {[]string{"good", "good", "no device"}, nil, "no usable device"},
		"a command that moves HEAD":       {[]string{"good", "moves HEAD", "bad"}, nil, "must not move HEAD"},
		"a command that does not exist": {
			plans, func(_ *sandbox, o *Options) { o.Command = []string{"leakgate-no-such-program"} },
			"cannot be started",
		},
		"no command": {plans, func(_ *sandbox, o *Options) { o.Command = []string{} }, "no command"},
		"unknown commit": {
			plans, func(_ *sandbox, o *Options) { o.Good, o.Bad = "nowhere", "trunk" }, `find commit "nowhere"`,
		},
		"option as a commit": {
			plans, func(_ *sandbox, o *Options) { o.Good, o.Bad = "--all", "trunk" }, "invalid commit",
		},
		"commits in the wrong order": {
			plans, func(s *sandbox, o *Options) { o.Good, o.Bad = "trunk", s.hash[0] }, "is not an ancestor",
		},
		"good and bad commit are the same": {
			plans, func(_ *sandbox, o *Options) { o.Good, o.Bad = "trunk", "trunk" }, "are the same",
		},
		"runs inside the work tree": {
			plans, func(s *sandbox, o *Options) { o.Runs = filepath.Join(s.dir, "runs") }, "give a directory outside",
		},
		"changes": {
			plans, func(s *sandbox, _ *Options) { s.write("locked", "mine") },
			"1 tracked file is changed (M locked); commit them or `git stash` them",
		},
		"a bisect in progress": {
			plans, func(s *sandbox, _ *Options) { s.git("bisect", "start") }, "`git bisect reset`",
		},
		"untracked file that git would overwrite": {
			[]string{"good", "good", "bad"}, func(s *sandbox, _ *Options) { s.hide() }, "untracked",
		},
	} {
		s := shared
		if &c.plans[0] != &plans[0] || c.want == "`git bisect reset`" || strings.HasPrefix(c.want, "1 tracked file") {
			s = newSandbox(t, c.plans)
		}
		o := Options{}
		if c.change != nil {
			c.change(s, &o)
		}
		result, err := s.search(o)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(result.Among) > 0 {
			t.Errorf("%s: %v, %v, want %q", name, result, err, c.want)
		}
	}
	if _, err := Search(t.Context(), Options{Dir: t.TempDir(), Key: theKey, Command: []string{"x"}}); err == nil {
		t.Error("no error without a repository")
	}
	if _, err := Search(t.Context(), Options{Key: "xyz", Command: []string{"x"}}); err == nil {
		t.Error("no error without a key")
	}
}

func (s *sandbox) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// hide removes a file from version control in a new commit, and replaces it
// with an untracked file of the user.
func (s *sandbox) hide() {
	s.t.Helper()
	s.git("rm", "-q", "--cached", "locked")
	s.git("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "now untracked")
	s.write("locked", "an untracked file of the user")
	s.hash = append(s.hash, s.git("rev-parse", "HEAD"))
}

// If a search is canceled at the beginning, in the middle or at the end, it
// interrupts the command and restores everything.
func TestSearchCancelled(t *testing.T) {
	// If there are two commits in the middle, git tests the second one.
	for _, at := range []int{0, 2, 3} {
		plans := []string{"good", "good", "good", "bad"}
		plans[at] = "interrupt me"
		s := newSandbox(t, plans)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.searchIn(ctx, Options{Stdout: writer(func(b []byte) {
			if strings.Contains(string(b), "ready") {
				cancel()
			}
		})})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("at %d: %v", at, err)
		}
		if _, err := os.Stat(filepath.Join(s.notes, "interrupted")); err != nil {
			t.Errorf("run %d: the command was not interrupted: %v", at, err)
		}
	}
	s := newSandbox(t, []string{"good", "bad"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.searchIn(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before the start: got error %v, want %v", err, context.Canceled)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

// A file system monitor configured in the repository is not run, but its hooks
// are.
func TestSearchPrograms(t *testing.T) {
	s := newSandbox(t, []string{"good", "good", "bad"})
	trap, hook := filepath.Join(s.notes, "monitor"), filepath.Join(s.notes, "hook")
	s.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch '"+hook+"'\n")
	if err := os.Chmod(filepath.Join(s.dir, ".git/hooks/post-checkout"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := s.state()
	s.git("config", "core.fsmonitor", "touch '"+trap+"'; true")
	result, err := Search(t.Context(),
		Options{Dir: s.dir, Good: s.hash[0], Bad: s.hash[2], Key: theKey, Command: []string{os.Args[0]}})
	if err != nil || result.First == nil || result.First.Hash != s.hash[2] {
		t.Errorf("%v, %v", result, err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("the fsmonitor hook was run")
	}
	if _, err := os.Stat(hook); err != nil {
		t.Errorf("the hook was not run: %v", err)
	}
	s.git("config", "--unset", "core.fsmonitor")
	if after := s.state(); after != before {
		t.Errorf("%s\n%s", before, after)
	}
}
