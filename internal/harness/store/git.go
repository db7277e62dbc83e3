package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/text"
)

// gitStore keeps a baseline in a file on a branch of a remote. The branch
// contains only baselines: its first commit has no parent. All work is done in
// a scratch repository, so the files, index, branches, objects and depth of the
// checkout do not change.
type gitStore struct {
	Address
	Options
}

// An update fails after maxRejected rejected pushes in a row if the branch has
// not changed in the meantime. One or two rejections may be due to a lock that
// another writer holds; more of them indicate a rule of the server.
const maxRejected = 4

func (g *gitStore) load(ctx context.Context) ([][]byte, error) {
	s, err := newScratch(ctx, g)
	if err != nil {
		return nil, err
	}
	defer s.remove()
	tip, err := s.fetch(ctx)
	if err != nil {
		return nil, err
	}
	contents, err := s.read(ctx, tip)
	if err == nil && len(contents) == 0 {
		return nil, ErrNone
	}
	return contents, err
}

func (g *gitStore) update(ctx context.Context, apply func(old [][]byte) ([]byte, error)) error {
	s, err := newScratch(ctx, g)
	if err != nil {
		return err
	}
	defer s.remove()
	var last attempt
	for try, rejected := 0, 0; ; try++ {
		next, err := s.attempt(ctx, last, apply)
		if err != nil {
			return errors.Join(last.rejection, err)
		}
		if next.rejection == nil {
			return nil
		}
		if rejected++; next.base != last.base {
			rejected = 1
		}
		if rejected == maxRejected || context.Cause(ctx) != nil {
			return next.rejection
		}
		last = next
		g.Say("the push was rejected, probably because of another writer; trying again")
		if err := pause(ctx, try); err != nil {
			return errors.Join(err, last.rejection)
		}
	}
}

// attempt describes one push: the commit of the branch on which it was based
// (empty if there was no branch), the new commit, and the reason if the push
// was rejected.
type attempt struct {
	base, commit string
	rejection    error
}

// attempt tries to update the branch once. The update is complete unless the
// returned attempt has a rejection.
func (s *scratch) attempt(ctx context.Context, last attempt, apply func(old [][]byte) ([]byte, error)) (attempt,
	error) {
	tip, err := s.fetch(ctx)
	if err != nil {
		return attempt{}, err
	}
	if tip != "" && tip == last.commit {
		return attempt{}, nil // the push succeeded, and only the response was lost
	}
	old, err := s.read(ctx, tip)
	if err != nil {
		return attempt{}, err
	}
	content, err := apply(old)
	if err != nil || content == nil {
		return attempt{}, err
	}
	commit, err := s.commit(ctx, tip, content)
	if err != nil {
		return attempt{}, err
	}
	return attempt{base: tip, commit: commit, rejection: s.push(ctx, tip, commit)}, nil
}

func (s *scratch) ref() string { return "refs/heads/" + s.branch }

// fetch fetches the newest commit of the branch and returns its id, which is
// empty if there is no such branch. It does not fetch the history.
func (s *scratch) fetch(ctx context.Context) (string, error) {
	const fetched = "refs/leakgate/fetched"
	fetch := func() error {
		_, err := s.git(ctx, nil, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules",
			"--no-write-fetch-head", s.remote, "+"+s.ref()+":"+fetched)
		return err
	}
	err := fetch()
	if err != nil {
		// git returns the same exit code for a missing branch and for a remote
		// that does not respond.
		exists, lerr := s.exists(ctx)
		switch {
		case lerr != nil:
			err = errors.Join(err, sameless(lerr, err))
		case !exists:
			return "", nil
		default:
			// Another writer may have created the branch in the meantime.
			err = fetch()
		}
	}
	if err != nil {
		return "", fmt.Errorf("fetch branch %s of %s: %w", s.branch, s.remote, err)
	}
	return s.line(ctx, nil, "rev-parse", "--verify", fetched+"^{commit}")
}

// sameless returns err, or nil if err has the same message as other.
func sameless(err, other error) error {
	if err == nil || err.Error() == other.Error() {
		return nil
	}
	return err
}

// exists reports whether the remote has the branch.
func (s *scratch) exists(ctx context.Context) (bool, error) {
	out, err := s.git(ctx, nil, "ls-remote", s.remote, s.ref())
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(out)) {
		// The pattern of git ls-remote also matches the end of longer names.
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == s.ref() {
			return true, nil
		}
	}
	return false, nil
}

// read returns the content of the baseline file in a commit. The result is
// empty if the commit or the file does not exist.
func (s *scratch) read(ctx context.Context, commit string) ([][]byte, error) {
	if commit == "" {
		return nil, nil
	}
	file, err := s.entry(ctx, commit, s.path)
	if err != nil {
		return nil, err
	}
	if file == (treeEntry{}) {
		return nil, s.checkFolders(ctx, commit)
	}
	if !file.regular() {
		return nil, s.inTheWay(s.path)
	}
	size, err := strconv.ParseInt(file.size, 10, 64)
	if err == nil {
		err = checkSize(size)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", quoted(s.path), err)
	}
	content, err := s.git(ctx, nil, "cat-file", "blob", file.id)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", quoted(s.path), err)
	}
	return [][]byte{content}, nil
}

// checkFolders rejects a path if one of its parents is not a directory: writing
// to such a path would remove the file with the parent's name.
func (s *scratch) checkFolders(ctx context.Context, commit string) error {
	for i, r := range s.path {
		if r != '/' {
			continue
		}
		folder, err := s.entry(ctx, commit, s.path[:i])
		if err != nil || folder == (treeEntry{}) {
			return err
		}
		if folder.kind != "tree" {
			return s.inTheWay(s.path[:i])
		}
	}
	return nil
}

func (s *scratch) inTheWay(name string) error {
	return fmt.Errorf("find %s: %s on branch %s is in the way; choose another path", quoted(s.path), quoted(name),
		s.branch)
}

// treeEntry is the entry of a commit at a path: mode, type, id and size in
// git's notation. It is zero if there is no entry.
type treeEntry struct{ mode, kind, id, size string }

// regular reports whether the entry is a regular file, and not a directory, a
// symbolic link or a submodule.
func (e treeEntry) regular() bool { return e.kind == "blob" && e.mode != "120000" }

func (s *scratch) entry(ctx context.Context, commit, path string) (treeEntry, error) {
	out, err := s.git(ctx, nil, "ls-tree", "-z", "-l", "--full-tree", commit, "--", path)
	if err != nil {
		return treeEntry{}, fmt.Errorf("list branch %s: %w", s.branch, err)
	}
	// MODE TYPE ID SIZE<tab>NAME<NUL>, git-ls-tree(1)
	about, _, _ := strings.Cut(string(out), "\t")
	fields := strings.Fields(about)
	if len(fields) == 0 {
		return treeEntry{}, nil
	}
	if len(fields) != 4 {
		return treeEntry{},
			fmt.Errorf("list branch %s: cannot parse %s in the output of git ls-tree", s.branch, quoted(about))
	}
	return treeEntry{mode: fields[0], kind: fields[1], id: fields[2], size: fields[3]}, nil
}

// commit creates a commit that differs from its parent only in the file;
// without a parent, the commit contains only the file. It returns the id of the
// commit.
func (s *scratch) commit(ctx context.Context, parent string, content []byte) (string, error) {
	// GitLab and others skip the pipeline for a commit with this message. A
	// baseline needs no pipeline.
	message := "leakgate: update " + s.path + "\n\n[skip ci]\n"
	var stream bytes.Buffer
	fmt.Fprintf(&stream, "commit refs/leakgate/next\nmark :1\ncommitter %s %d +0000\ndata %d\n%s\n", s.committer,
		time.Now().Unix(), len(message), message)
	if parent != "" {
		fmt.Fprintf(&stream, "from %s\n", parent)
	}
	fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n", s.path, len(content))
	stream.Write(content)
	stream.WriteString("\n\nget-mark :1\ndone\n")
	id, err := s.line(ctx, stream.Bytes(), "fast-import", "--quiet", "--force", "--done")
	if err != nil {
		return "", fmt.Errorf("make commit: %w", err)
	}
	return id, nil
}

// push moves the branch to a commit if the branch is still at the expected
// commit, or still missing. The server checks this lease atomically with the
// change. The scratch repository has no hooks, and --no-verify makes this
// explicit: a pre-push hook of the checkout is meant for its source, which is
// not pushed, and could block a CI job.
func (s *scratch) push(ctx context.Context, expected, commit string) error {
	_, err := s.git(ctx, nil, "push", "--porcelain", "--no-verify", "--force-with-lease="+s.ref()+":"+expected,
		s.remote, commit+":"+s.ref())
	if err == nil {
		return nil
	}
	var exit *exitError
	if errors.As(err, &exit) {
		for line := range strings.Lines(string(exit.output)) {
			// FLAG<tab>FROM:TO<tab>SUMMARY (REASON), git-push(1)
			if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 3 && fields[0] == "!" {
				return fmt.Errorf("push branch %s to %s: %s%s; the job needs permission to write to it", s.branch,
					s.remote, text.Head(text.Printable(redact(fields[2])), maxSaid), remarks(exit.messages))
			}
		}
	}
	return fmt.Errorf("push branch %s to %s: %w", s.branch, s.remote, err)
}

func remarks(messages string) string {
	if messages == "" {
		return ""
	}
	return ": " + messages
}
