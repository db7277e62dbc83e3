package checkout

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

var (
	// hexadecimal matches the full or abbreviated name of a commit in a
	// baseline or an event.
	hexadecimal = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)
	// reference matches the name of a commit, branch or tag. It does not match
	// options or ranges.
	reference = regexp.MustCompile(`^[0-9A-Za-z_][0-9A-Za-z_./-]{0,254}$`)
)

const fetchAll = "fetch the complete history (`fetch-depth: 0` of actions/checkout, or `git fetch --unshallow`)"

// commit returns the full name of a commit in the checkout.
func (c *Checkout) commit(ctx context.Context, name string) (string, error) {
	if !reference.MatchString(name) || strings.Contains(name, "..") {
		return "", fmt.Errorf("invalid commit %s: want a hexadecimal hash, a branch or a tag",
			text.Quote(name, maxName))
	}
	out, err := c.git(ctx, command{time: askGit, output: 4 << 10}, "rev-parse", "--verify", "--quiet", name+"^{commit}")
	if exitCode(err) == 1 {
		return "", fmt.Errorf("find commit %s: not in this checkout; %s", text.Quote(name, maxName), fetchAll)
	}
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if !hexadecimal.MatchString(id) {
		return "", fmt.Errorf("find commit %s: unexpected output of git: %s",
			text.Quote(name, maxName), text.Quote(id, maxName))
	}
	return id, nil
}

// shallow reports whether the history of the checkout is truncated.
func (c *Checkout) shallow(ctx context.Context) (bool, error) {
	out, err := c.git(ctx, command{time: askGit, output: 4 << 10}, "rev-parse", "--is-shallow-repository")
	return strings.TrimSpace(string(out)) == "true", err
}
