package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"
)

const (
	// askDiff is the time limit for comparing two commits.
	askDiff = time.Minute
	// maxNames is the maximum total size in bytes of the names of changed
	// files.
	maxNames = 32 << 20
	// maxDiff is the maximum total size in bytes of all hunks. The text of the
	// hunks is read and discarded.
	maxDiff = 1 << 30
	// maxSpans is the maximum number of ranges of added lines.
	maxSpans = 1_000_000
	// maxHeader is the maximum length in bytes of a line in the header of a
	// hunk: a path has up to 4096 bytes, and more if it is quoted.
	maxHeader = 32 << 10
)

// Changes holds the files that a pull request changes and the lines that it
// adds.
type Changes struct {
	files map[string]bool
	added map[string][]span
}

// span is a range of lines, including first and last.
type span struct{ first, last int }

// File reports whether the pull request adds, changes, renames or removes a
// file. path is the slash-separated path relative to the top directory.
func (c Changes) File(path string) bool { return c.files[path] }

// Adds reports whether the pull request adds or changes a line of a Java or
// Kotlin file; if the file is renamed, path is its new path. Line numbers count
// from 1 and are those of head. Lines of other files are unknown.
func (c Changes) Adds(path string, line int) bool {
	spans := c.added[path]
	i := sort.Search(len(spans), func(i int) bool { return spans[i].last >= line })
	return i < len(spans) && spans[i].first <= line
}

// Changed returns the changes of a pull request: the difference between head
// and its merge base with base. Both are commits, branches or tags. The line
// numbers match those that Declaration returns if head is the commit that is
// checked out ("HEAD"). If the history is truncated, the error says what to do.
func (c *Checkout) Changed(ctx context.Context, base, head string) (Changes, error) {
	if c.noGit != nil {
		return Changes{}, fmt.Errorf("find changes: %w", c.noGit)
	}
	from, to, err := c.mergeBase(ctx, base, head)
	if err != nil {
		return Changes{}, fmt.Errorf("find changes: %w", err)
	}
	out := Changes{files: map[string]bool{}, added: map[string][]span{}}
	names, err := c.git(ctx, command{time: askDiff, output: maxNames},
		diffTree(from, to, "--name-only", "-z", "--no-renames")...)
	if err != nil {
		return Changes{}, fmt.Errorf("find changed files: %w", err)
	}
	for name := range strings.SplitSeq(string(names), "\x00") {
		if name != "" {
			out.files[name] = true
		}
	}
	hunks := &hunkReader{added: out.added}
	lines := diffTree(from, to, "--patch", "--text", "--unified=0", "--inter-hunk-context=0", "--find-renames", "-l400",
		"--diff-algorithm=myers",
		"--src-prefix=a/", "--dst-prefix=b/", "--", "*.java", "*.kt")
	if _, err := c.git(ctx, command{time: askDiff, output: maxDiff, to: hunks}, lines...); err != nil {
		return Changes{}, fmt.Errorf("find changed lines: %w", err)
	}
	return out, nil
}

// Base returns the commit with which the pull request in the checkout is
// compared; commit is the head of the pull request. GitHub checks out a merge
// of the pull request's head into the newest base, whereas the event names the
// base of the last push. For such a merge, Base returns the first parent:
// commits that were added to the base branch since the last push are not part
// of the pull request. It returns an error if HEAD does not contain commit, as
// on pull_request_target.
func (c *Checkout) Base(ctx context.Context, base, commit string) (string, error) {
	if c.noGit != nil {
		return "", fmt.Errorf("find base: %w", c.noGit)
	}
	parents, err := c.git(ctx, command{time: askGit, output: 4 << 10}, "rev-list", "--parents", "--max-count=1", "HEAD",
		"--")
	if err != nil {
		return "", fmt.Errorf("find base: %w", err)
	}
	if p := strings.Fields(string(parents)); len(p) == 3 && p[2] == commit {
		base = p[1]
	}
	from, head, err := c.mergeBase(ctx, base, "HEAD")
	if err != nil {
		return "", fmt.Errorf("find base: %w", err)
	}
	if commit, err = c.commit(ctx, commit); err != nil {
		return "", fmt.Errorf("find base: %w", err)
	}
	if ahead, _, err := c.difference(ctx, commit, head); err != nil || ahead > 0 {
		return "", errors.Join(errors.New("find base: HEAD does not contain the pull request's commit"), err)
	}
	return from, nil
}

// diffTree compares two commits. Unlike git diff, it reads no options from the
// configuration; drivers in .gitattributes are disabled here.
func diffTree(from, to string, args ...string) []string {
	return append([]string{
		"diff-tree", "-r", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short",
		"--ignore-submodules=dirty", "--no-relative", from, to,
	}, args...)
}

// mergeBase returns the merge base of base and head, and the commit that head
// refers to.
func (c *Checkout) mergeBase(ctx context.Context, base, head string) (from, to string, err error) {
	if base, err = c.commit(ctx, base); err != nil {
		return "", "", err
	}
	if to, err = c.commit(ctx, head); err != nil {
		return "", "", err
	}
	out, err := c.git(ctx, command{time: askAncestors, output: 1 << 20}, "merge-base", base, to)
	shallow, failed := c.shallow(ctx)
	switch {
	case failed != nil:
		return "", "", failed
	case exitCode(err) == 1 && shallow:
		return "", "", fmt.Errorf("find merge base: the history of this checkout is truncated; %s", fetchAll)
	case exitCode(err) == 1:
		return "", "", errors.New("find merge base: base and head have no common history")
	case err != nil:
		return "", "", err
	}
	from, _, _ = strings.Cut(string(out), "\n")
	if !hexadecimal.MatchString(from) {
		return "", "", errors.New("find merge base: unexpected output of git")
	}
	return from, to, nil
}

// hunkReader parses the output of git diff --unified=0. It finds the end of a
// hunk by the line counts in the hunk's header, because a line of a hunk may
// look like a header.
type hunkReader struct {
	added map[string][]span

	line    []byte // the beginning of an incomplete line
	long    bool   // the line was longer than the part that was kept
	path    string // the file to which the following hunks belong; empty if it is removed
	removes int    // remaining lines of the hunk
	adds    int
	spans   int
}

func (h *hunkReader) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte{'\n'})
		n := min(len(line), maxHeader-len(h.line))
		h.line = append(h.line, line[:n]...)
		h.long = h.long || n < len(line)
		rest = after
		if !complete {
			break
		}
		if err := h.add(); err != nil {
			return 0, err
		}
		h.line, h.long = h.line[:0], false
	}
	return len(b), nil
}

// add processes a complete line.
func (h *hunkReader) add() error {
	switch {
	case h.removes > 0 && bytes.HasPrefix(h.line, []byte{'-'}):
		h.removes--
		return nil
	case h.adds > 0 && bytes.HasPrefix(h.line, []byte{'+'}):
		h.adds--
		return nil
	case bytes.HasPrefix(h.line, []byte{'\\'}): // "\ No newline at end of file"
		return nil
	case h.removes > 0 || h.adds > 0 || h.long:
		return errors.New("unexpected line in the output of git")
	case bytes.HasPrefix(h.line, []byte("diff --git ")):
		h.path = ""
		return nil
	case bytes.HasPrefix(h.line, []byte("+++ ")):
		return h.startFile(string(h.line[len("+++ "):]))
	case bytes.HasPrefix(h.line, []byte("@@ ")):
		return h.startHunk(string(h.line))
	}
	return nil
}

// startFile parses the path of a file in head.
func (h *hunkReader) startFile(path string) error {
	// Git writes a tab after a path that contains a space, for other parsers of
	// its output.
	path = strings.TrimSuffix(path, "\t")
	if path == "/dev/null" {
		return nil
	}
	if strings.HasPrefix(path, `"`) {
		// Git quotes like C and writes non-ASCII bytes in octal
		// (core.quotePath); Go can parse both.
		unquoted, err := strconv.Unquote(path)
		if err != nil {
			return errors.New("unexpected path in the output of git")
		}
		path = unquoted
	}
	path, ok := strings.CutPrefix(path, "b/")
	if !ok {
		return errors.New("unexpected path in the output of git")
	}
	h.path = path
	return nil
}

// startHunk parses "@@ -first,removes +first,adds @@".
func (h *hunkReader) startHunk(line string) error {
	fields := strings.SplitN(line, " ", 5)
	if len(fields) < 4 || fields[3] != "@@" {
		return errors.New("unexpected hunk in the output of git")
	}
	_, removes, removesOK := rangeOf(fields[1], "-")
	first, adds, addsOK := rangeOf(fields[2], "+")
	if !removesOK || !addsOK {
		return errors.New("unexpected hunk in the output of git")
	}
	h.removes, h.adds = removes, adds
	if adds == 0 || h.path == "" {
		return nil
	}
	if h.spans++; h.spans > maxSpans {
		return errTooLarge
	}
	h.added[h.path] = append(h.added[h.path], span{first, first + adds - 1})
	return nil
}

// rangeOf parses the first line and the number of lines of one side of a hunk.
func rangeOf(s, sign string) (first, count int, ok bool) {
	s, ok = strings.CutPrefix(s, sign)
	if !ok {
		return 0, 0, false
	}
	start, number, several := strings.Cut(s, ",")
	first64, err := strconv.ParseInt(start, 10, 32)
	count64 := int64(1)
	if err == nil && several {
		count64, err = strconv.ParseInt(number, 10, 32)
	}
	return int(first64), int(count64), err == nil && first64 >= 0 && count64 >= 0
}
