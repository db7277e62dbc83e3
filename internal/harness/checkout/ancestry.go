package checkout

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// maxCommits is the maximum number of commits that Ancestors examines,
	// because each requires a run of git.
	maxCommits = 500
	// askAncestors is the time limit for examining one commit, whose history
	// may contain a million commits.
	askAncestors = 30 * time.Second
)

// Ancestors returns which of the commits are head or its ancestors. behind maps
// each of them to the number of commits in the history of head that are not in
// its own history: 0 for head itself. In a shallow checkout this number is a
// lower bound. unknown lists the commits for which Ancestors cannot determine
// this: names that are not 7 to 64 hexadecimal digits, abbreviations that match
// no commit or several, and, in a shallow checkout, commits that may be older
// than the oldest commits in it. All other commits are not ancestors. head is a
// commit, branch or tag.
func (c *Checkout) Ancestors(ctx context.Context, head string, commits []string) (behind map[string]int,
	unknown []string, err error) {
	if c.noGit != nil {
		return nil, nil, fmt.Errorf("find ancestors: %w", c.noGit)
	}
	if head, err = c.commit(ctx, head); err != nil {
		return nil, nil, fmt.Errorf("find ancestors: %w", err)
	}
	shallow, err := c.shallow(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("find ancestors: %w", err)
	}
	names := unique(commits)
	found, err := c.present(ctx, names)
	if err != nil {
		return nil, nil, fmt.Errorf("find ancestors: %w", err)
	}
	behind = map[string]int{}
	for _, name := range names {
		id, state := found[name].id, found[name].state
		if state == commitAbsent && !shallow {
			continue // the history of head is complete and does not contain the commit
		}
		if state != commitPresent {
			unknown = append(unknown, name)
			continue
		}
		ahead, n, err := c.difference(ctx, id, head)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("find ancestors: %w", err)
		case ahead == 0:
			behind[name] = n
		case shallow && n > 0: // with n == 0 the commit is a descendant of head
			unknown = append(unknown, name)
		}
	}
	return behind, unknown, nil
}

func unique(list []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

type commitState uint8

const (
	commitUnknown commitState = iota // invalid, ambiguous, or beyond maxCommits
	commitAbsent
	commitPresent
)

type foundCommit struct {
	id    string
	state commitState
}

// present returns those names that refer to commits in the checkout.
func (c *Checkout) present(ctx context.Context, names []string) (map[string]foundCommit, error) {
	var asked []string
	var stdin strings.Builder
	for _, name := range names {
		if len(asked) < maxCommits && hexadecimal.MatchString(name) {
			asked = append(asked, name)
			stdin.WriteString(name + "^{commit}\n")
		}
	}
	found := map[string]foundCommit{}
	if len(asked) == 0 {
		return found, nil
	}
	out, err := c.git(ctx, command{time: askAncestors, output: 1 << 20, stdin: stdin.String()}, "cat-file",
		"--batch-check=%(objectname)")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != len(asked) {
		return nil, fmt.Errorf("look up %d commits: git printed %d lines", len(asked), len(lines))
	}
	for i, name := range asked {
		found[name] = commitOf(name, lines[i])
	}
	return found, nil
}

// commitOf parses a line of git cat-file --batch-check.
func commitOf(name, answer string) foundCommit {
	switch {
	case answer == name+"^{commit} missing":
		return foundCommit{state: commitAbsent}
	// A branch or tag may have the same name as an abbreviated commit, and
	// would take precedence.
	case hexadecimal.MatchString(answer) && strings.HasPrefix(answer, strings.ToLower(name)):
		return foundCommit{answer, commitPresent}
	}
	return foundCommit{}
}

// difference returns how many commits are only in the history of a, and how
// many are only in the history of b.
func (c *Checkout) difference(ctx context.Context, a, b string) (onlyA, onlyB int, err error) {
	out, err := c.git(ctx, command{time: askAncestors, output: 4 << 10}, "rev-list", "--count", "--left-right",
		a+"..."+b, "--")
	if err != nil {
		return 0, 0, err
	}
	left, right, _ := strings.Cut(strings.TrimSpace(string(out)), "\t")
	onlyA, err = strconv.Atoi(left)
	if err == nil {
		onlyB, err = strconv.Atoi(right)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("count commits: %w", err)
	}
	return onlyA, onlyB, nil
}
