package bisect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// RunsVariable is the name of the environment variable that contains the
// directory in which the leakgate commands create their run directories.
const RunsVariable = "LEAKGATE_RUNS"

// Options configure a search.
type Options struct {
	// Dir is the directory, inside the work tree, in which Command runs.
	Dir string
	// Good is a commit without the leak, and Bad a commit with the leak; Good
	// is an ancestor of Bad.
	Good, Bad string
	// Key is the key of the leak, or at least its first 8 digits.
	Key string
	// Command is a program and its arguments, without a shell. It builds the
	// app and runs leakgate at each commit.
	Command []string
	// Confirm is how many runs of a commit must be good before the commit
	// counts as good, at least 1: an intermittent leak may be absent from a run
	// by chance. A single bad run makes a commit bad.
	Confirm int
	// Runs is the directory in which the runs are kept, with one subdirectory
	// for each run of the command. If it is "", a temporary directory is used,
	// which is removed at the end.
	Runs string
	// Say receives progress messages, one line each. It may be nil.
	Say func(string)
	// Stdout and Stderr receive the output of Command. They may be nil.
	Stdout, Stderr io.Writer
}

// Culprit is the result of a search.
type Culprit struct {
	// First is the commit that introduced the leak. It is nil if commits
	// without a verdict prevent an answer.
	First *Commit
	// Among lists the candidates, newest first: First alone, or all remaining
	// commits.
	Among []Commit
	// Judged lists the commits at which the command ran, in the order of the
	// runs.
	Judged []JudgedCommit
}

// JudgedCommit is a commit with the verdict of its runs.
type JudgedCommit struct {
	Commit
	Outcome CommitResult
	Reason  string
	// Runs is how many times the command ran.
	Runs int
}

// shownCommits is the maximum number of commits that the text of a result
// names.
const shownCommits = 10

// String returns the result in one line.
func (r Culprit) String() string {
	if r.First != nil {
		return "first bad commit: " + r.First.String()
	}
	if len(r.Among) == 0 {
		return "no answer"
	}
	var names []string
	for _, c := range r.Among[:min(len(r.Among), shownCommits)] {
		names = append(names, c.Hash[:min(len(c.Hash), 12)])
	}
	if n := len(r.Among) - shownCommits; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return fmt.Sprintf("one of these %s: %s (the commits in between could not be judged)",
		text.Count(len(r.Among), "commit", "commits"), strings.Join(names, ", "))
}

// grace is the wall-clock time that the command may take to exit after its
// context is done: a run first writes its record.
const grace = 30 * time.Second

// lingering is the wall-clock time for which the output of the command is still
// read after the command has ended, if other processes keep the output open.
const lingering = 2 * time.Second

// search holds the state of one search.
type search struct {
	Options
	repository
	start  position
	result Culprit
	// by is the kind of evidence by which Bad was judged.
	by basis
	// atBad maps keys to the leaks found at Bad.
	atBad map[string]sighting
	// skipped holds the commits that git skips.
	skipped map[string]bool
}

// Search finds the first bad commit between Good and Bad with git bisect. It
// first runs the command at both commits, and returns an error if Good is not
// good or Bad is not bad. It rejects a work tree with changes, or with a bisect
// in progress. At the end, even after an error or when ctx is done, it restores
// HEAD and removes the state of the bisect; the command's changes to tracked
// files are reverted. A Culprit that is returned with an error contains the
// commits judged so far.
func Search(ctx context.Context, o Options) (result Culprit, err error) {
	s, good, bad, err := prepare(ctx, o)
	if err != nil {
		return Culprit{}, err
	}
	if s.Runs == "" {
		if s.Runs, err = os.MkdirTemp("", "leakgate-bisect-"); err != nil {
			return Culprit{}, fmt.Errorf("make directory for runs: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(s.Runs)) }()
	} else if err := os.MkdirAll(s.Runs, 0o700); err != nil {
		return Culprit{}, fmt.Errorf("make directory for runs: %w", err)
	}
	defer func() {
		result = s.result
		err = errors.Join(err, s.restore(context.WithoutCancel(ctx)))
	}()
	if _, err := s.git(ctx, "bisect", "start"); err != nil {
		return Culprit{}, err
	}
	if err := s.verify(ctx, good, bad); err != nil {
		return Culprit{}, err
	}
	return Culprit{}, s.run(ctx, good, bad)
}

// prepare validates the options and the state of the repository. It changes
// nothing.
func prepare(ctx context.Context, o Options) (s *search, good, bad Commit, err error) {
	fail := func(err error) (*search, Commit, Commit, error) { return nil, Commit{}, Commit{}, err }
	o.Key = strings.ToLower(o.Key)
	o.Confirm = max(o.Confirm, 1)
	if !keyForm.MatchString(o.Key) {
		return fail(fmt.Errorf("invalid key %s: want 8 to 40 hexadecimal digits", text.Quote(o.Key, 50)))
	}
	if len(o.Command) == 0 || o.Command[0] == "" {
		return fail(errors.New("no command: give one that builds the app and runs leakgate"))
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return fail(fmt.Errorf("find work tree: %w", err))
	}
	s = &search{Options: o, repository: repository{o.Dir}, skipped: map[string]bool{}}
	if s.top, err = s.git(ctx, "rev-parse", "--show-toplevel"); err != nil {
		return fail(fmt.Errorf("find work tree: %w", err))
	}
	if err := s.refuse(ctx); err != nil {
		return fail(err)
	}
	if good, err = s.resolve(ctx, o.Good); err != nil {
		return fail(err)
	}
	if bad, err = s.resolve(ctx, o.Bad); err != nil {
		return fail(err)
	}
	if good.Hash == bad.Hash {
		return fail(fmt.Errorf("the good and the bad commit are the same: %s", good))
	}
	if _, err := s.git(ctx, "merge-base", "--is-ancestor", good.Hash, bad.Hash); err != nil {
		return fail(fmt.Errorf(
			"%s is not an ancestor of %s; give a good commit that is, such as `git merge-base GOOD BAD`",
			text.Quote(o.Good, 50), text.Quote(o.Bad, 50)))
	}
	if s.start, err = s.position(ctx); err != nil {
		return fail(err)
	}
	return s, good, bad, s.keepOut()
}

// refuse returns an error if a bisect is in progress or a tracked file is
// changed, because no other commit can then be checked out safely.
func (s *search) refuse(ctx context.Context) error {
	busy, err := s.bisecting(ctx)
	if err != nil {
		return err
	}
	if busy {
		return errors.New("a bisect is in progress; end it with `git bisect reset`")
	}
	changed, err := s.changes(ctx)
	if err != nil {
		return err
	}
	if len(changed) > 0 {
		return fmt.Errorf("%s changed (%s); commit them or `git stash` them",
			text.Count(len(changed), "tracked file is", "tracked files are"),
			text.Head(strings.Join(changed[:min(len(changed), 3)], ", "), maxReason))
	}
	return nil
}

// keepOut makes Runs absolute, and returns an error if it is inside the work
// tree.
func (s *search) keepOut() error {
	if s.Runs == "" {
		return nil
	}
	var err error
	if s.Runs, err = filepath.Abs(s.Runs); err != nil {
		return fmt.Errorf("find directory for runs: %w", err)
	}
	real := s.Runs
	if parent, err := filepath.EvalSymlinks(filepath.Dir(s.Runs)); err == nil {
		real = filepath.Join(parent, filepath.Base(s.Runs))
	}
	if in, err := filepath.Rel(s.top, real); err == nil && filepath.IsLocal(in) {
		return fmt.Errorf("runs cannot be kept in %s, which is inside the work tree; give a directory outside",
			s.Runs)
	}
	return nil
}

// verify runs the command at Good and at Bad.
func (s *search) verify(ctx context.Context, good, bad Commit) error {
	s.say("judging the good commit %s", good)
	j, err := s.visit(ctx, good)
	if err != nil {
		return err
	}
	if j.CommitResult != Good {
		return fmt.Errorf("the good commit %s is not good: %s; give an older one", good, j.reason)
	}
	before := j
	s.say("judging the bad commit %s", bad)
	if j, err = s.visit(ctx, bad); err != nil {
		return err
	}
	if j.CommitResult != Bad {
		return fmt.Errorf("the bad commit %s is not bad: %s", bad, j.reason)
	}
	s.by, s.atBad = j.basis, j.leaks
	if other := s.renamed(before); other != "" {
		s.say("note: at the good commit, %s; if that is the same leak, a rename changed its key and the leak is older",
			other)
	}
	return nil
}

// renamed describes a leak whose key does not occur at Bad, but whose objects
// have a class of the leak at Bad. The leak must grow, unless Bad was judged by
// presence. The result is "" if there is no such leak. A key changes if the
// classes or fields that hold the leak are renamed.
func (s *search) renamed(j judgment) string {
	var classes []string
	for key, l := range s.atBad {
		if strings.HasPrefix(key, s.Key) {
			classes = append(classes, l.classes...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(j.leaks)) {
		l := j.leaks[key]
		_, atBad := s.atBad[key]
		if atBad || !l.grows && s.by != presence {
			continue
		}
		if i := slices.IndexFunc(l.classes,
			func(class string) bool { return slices.Contains(classes, class) }); i >= 0 {
			return fmt.Sprintf("%s leaks under another key: %s (%s)", text.Head(l.classes[i], maxReason/4),
				text.Head(l.name, maxReason/4), key[:min(len(key), 8)])
		}
	}
	return ""
}

// visit checks a commit out and judges it.
func (s *search) visit(ctx context.Context, c Commit) (judgment, error) {
	if _, err := s.git(ctx, "checkout", "--quiet", "--detach", c.Hash); err != nil {
		return judgment{}, err
	}
	return s.judgeCommit(ctx, c)
}

// run performs the bisect.
func (s *search) run(ctx context.Context, good, bad Commit) error {
	if _, err := s.git(ctx, "bisect", "bad", bad.Hash); err != nil {
		return err
	}
	word, hash := Good, good.Hash
	for {
		// Git exits with code 2 if only skipped commits remain, which is
		// detected below.
		_, gitErr := s.git(ctx, "bisect", string(word), hash)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		left, err := s.remaining(ctx)
		if err != nil {
			return err
		}
		if s.open(left) == 0 {
			return s.conclude(ctx, left)
		}
		at, err := s.git(ctx, "rev-parse", "--verify", "HEAD")
		if err != nil {
			return err
		}
		if !slices.Contains(left[1:], at) || s.skipped[at] {
			return errors.Join(
				fmt.Errorf("git bisect did not choose one of the %s that remain",
					text.Count(len(left), "commit", "commits")), gitErr)
		}
		c, err := s.commit(ctx, at)
		if err != nil {
			return err
		}
		s.say("judging %s, one of %s that remain", c, text.Count(len(left), "commit", "commits"))
		j, err := s.judgeCommit(ctx, c)
		if err != nil {
			return err
		}
		word, hash = j.CommitResult, at
		s.skipped[at] = j.CommitResult == Skip
	}
}

// open returns how many of the remaining commits can still be judged. The first
// one is known to be bad and is not counted.
func (s *search) open(left []string) int {
	n := 0
	for _, hash := range left[min(1, len(left)):] {
		if !s.skipped[hash] {
			n++
		}
	}
	return n
}

// maxAmong is the maximum number of commits in a result.
const maxAmong = 1000

func (s *search) conclude(ctx context.Context, left []string) error {
	if len(left) == 0 || len(left) > maxAmong {
		return fmt.Errorf("no answer: %s could not be judged", text.Count(len(left), "commit", "commits"))
	}
	for _, hash := range left {
		c, err := s.commit(ctx, hash)
		if err != nil {
			return err
		}
		s.result.Among = append(s.result.Among, c)
	}
	if len(left) == 1 {
		s.result.First = &s.result.Among[0]
	}
	return nil
}

// judgeCommit runs the command at the commit that is checked out, up to Confirm
// times. It stops after the first run that is not good.
func (s *search) judgeCommit(ctx context.Context, c Commit) (judgment, error) {
	var j judgment
	leaks := map[string]sighting{}
	runs := 0
	for runs < s.Confirm && (runs == 0 || j.CommitResult == Good) {
		next, err := s.runCommand(ctx, c, runs)
		if err != nil {
			return judgment{}, err
		}
		// A leak found in any run counts as found.
		maps.Copy(leaks, next.leaks)
		if runs == 0 || next.CommitResult != Good || next.basis > j.basis {
			j = next
		}
		runs++
	}
	j.leaks = leaks
	j = s.compare(j)
	s.result.Judged = append(s.result.Judged, JudgedCommit{c, j.CommitResult, j.reason, runs})
	s.say("%s is %s: %s", c.Hash[:12], j.CommitResult, j.reason)
	return j, nil
}

// compare returns the judgment of a commit, or Skip if that judgment cannot be
// compared with the judgment of the bad commit.
func (s *search) compare(j judgment) judgment {
	switch {
	case s.by == growth && j.CommitResult == Bad && j.basis == presence:
		return skipped("%s; the bad commit was judged by growth", j.reason)
	case s.by == presence && j.CommitResult == Good && j.basis == flat:
		return skipped("%s; the bad commit was judged by one heap dump", j.reason)
	case j.CommitResult == Good && j.basis == absence:
		if other := s.renamed(j); other != "" {
			return skipped("%s; it may be the same leak, before a rename", other)
		}
	}
	return j
}

// runCommand runs the command once and judges its runs.
func (s *search) runCommand(ctx context.Context, c Commit, number int) (judgment, error) {
	if err := ctx.Err(); err != nil {
		return judgment{}, context.Cause(ctx)
	}
	dir, err := os.MkdirTemp(s.Runs, fmt.Sprintf("%03d-%s-%d-", len(s.result.Judged)+1, c.Hash[:12], number+1))
	if err != nil {
		return judgment{}, fmt.Errorf("make directory for runs: %w", err)
	}
	failure := s.execute(ctx, dir)
	if ctx.Err() != nil {
		return judgment{}, context.Cause(ctx)
	}
	if err := s.check(ctx, c); err != nil {
		return judgment{}, err
	}
	j := judge(dir, s.Key)
	if failure != "" && (j.CommitResult != Bad || j.basis != growth) {
		if j.CommitResult == Skip {
			failure += "; " + j.reason
		}
		return skipped("%s", text.Head(failure, maxReason)), nil
	}
	return j, nil
}

// execute runs the command. It returns the reason why the run does not count,
// or "" if it counts. A run with a verdict has exit code 0 or 1.
func (s *search) execute(ctx context.Context, dir string) string {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), s.Command[0], s.Command[1:]...)
	groupOf(cmd)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), RunsVariable+"="+dir)
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	cmd.WaitDelay = lingering
	if err := cmd.Start(); err != nil {
		return fmt.Sprintf("the command cannot be started: %v", err)
	}
	err := wait(ctx, cmd)
	var exit *exec.ExitError
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return ""
	case !errors.As(err, &exit):
		return fmt.Sprintf("the command failed: %v", err)
	case exit.ExitCode() == 1:
		return ""
	}
	return "the command ended with " + exit.Error()
}

// wait waits until the command has ended. If ctx is done first, the command is
// interrupted; after its grace period it is killed together with all its child
// processes. Processes that outlive the command, such as the daemon of a build
// system, are not killed.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		interruptGroup(cmd)
		select {
		case <-time.After(grace):
		case <-ended:
		}
		endGroup(cmd)
	})
	err := cmd.Wait()
	close(ended)
	watch.Wait()
	return err
}

// check returns an error if the command has checked out another commit;
// otherwise, it reverts the command's changes to tracked files.
func (s *search) check(ctx context.Context, c Commit) error {
	at, err := s.position(ctx)
	if err != nil {
		return err
	}
	if at != (position{hash: c.Hash}) {
		return fmt.Errorf("the command checked out a commit other than %s; it must not move HEAD", c)
	}
	n, err := s.clean(ctx)
	if n > 0 {
		s.say("reverted what the command changed in %s", text.Count(n, "tracked file", "tracked files"))
	}
	return err
}

// restore ends the bisect and checks out the original position.
func (s *search) restore(ctx context.Context) error {
	busy, err := s.bisecting(ctx)
	if err == nil && busy {
		if _, err = s.clean(ctx); err == nil {
			_, err = s.git(ctx, "bisect", "reset")
		}
	}
	if err == nil {
		var at position
		if at, err = s.position(ctx); err == nil && at != s.start {
			err = errors.New("HEAD has moved")
		}
	}
	if err != nil {
		return fmt.Errorf("restore the work tree: %w; run `git bisect reset`, then `git checkout %s`", err,
			text.ShellQuote(s.start.name()))
	}
	return nil
}

// name returns the branch or commit to check out to restore the position.
func (p position) name() string {
	if branch, ok := strings.CutPrefix(p.branch, "refs/heads/"); ok {
		return branch
	}
	return p.hash
}

func (s *search) say(format string, args ...any) {
	if s.Say != nil {
		s.Say(fmt.Sprintf(format, args...))
	}
}
