package checkout

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestAncestors compares the results with git merge-base --is-ancestor and git
// rev-list --count on a random history.
func TestAncestors(t *testing.T) {
	r := newRepository(t)
	random := rand.New(rand.NewPCG(3, 4))
	// One process creates all commits; commit n is mark n.
	var stream strings.Builder
	parents := make([][]int, 41)
	for i := 1; i <= 40; i++ {
		fmt.Fprintf(&stream, "commit refs/heads/b%d\nmark :%d\ncommitter a <a@example.com> %d +0000\ndata 1\n%d\n", i,
			i, 1_700_000_000+i, i%10)
		for n := range min(i-1, random.IntN(3)) {
			if p := 1 + random.IntN(i-1); !slices.Contains(parents[i], p) {
				parents[i] = append(parents[i], p)
				fmt.Fprintf(&stream, "%s :%d\n", []string{"from", "merge"}[n], p)
			}
		}
		stream.WriteString("\n")
	}
	r.gitWith(stream.String(), "fast-import", "--quiet")
	// Commits with the same time, parents and message are identical.
	commits := make([]string, 41)
	for i := 1; i <= 40; i++ {
		commits[i] = r.git("rev-parse", fmt.Sprintf("b%d", i))
	}
	reached := func(from int) map[string]bool {
		out := map[string]bool{}
		for todo := []int{from}; len(todo) > 0; {
			n := todo[0]
			todo = append(todo[1:], parents[n]...)
			out[commits[n]] = true
		}
		return out
	}
	c := r.open()
	ancestors := 0
	for head := 36; head <= 40; head++ {
		behind, unknown, err := c.Ancestors(t.Context(), fmt.Sprintf("b%d", head), append(commits[1:], commits[1:]...))
		if err != nil || unknown != nil {
			t.Fatal(err, unknown)
		}
		all := reached(head)
		for i := 1; i <= 40; i++ {
			n, found := behind[commits[i]]
			if found != all[commits[i]] {
				t.Errorf("b%d reported as an ancestor of b%d: %v, want %v", i, head, found, all[commits[i]])
			}
			if found {
				ancestors++
				if want := len(all) - len(reached(i)); n != want {
					t.Errorf("b%d is %d commits ahead of b%d, want %d", head, n, i, want)
				}
			}
		}
	}
	if ancestors < 10 {
		t.Errorf("only %d ancestors", ancestors)
	}
	for i := range 8 { // git, too, has recorded the requested parents
		want, _ := c.git(t.Context(), command{time: askGit, output: 100}, "rev-list", "--count", commits[40-i])
		if got := strconv.Itoa(len(reached(40 - i))); got != strings.TrimSpace(string(want)) {
			t.Errorf("b%d has %s commits, want %s as from git", 40-i, got, want)
		}
	}
}

func TestAncestorsUnknown(t *testing.T) {
	r := newRepository(t)
	var commits []string
	for range 6 {
		commits = append(commits, r.commit())
	}
	r.git("checkout", "-q", "-b", "side", commits[0])
	r.git("commit", "-q", "--allow-empty", "-m", "side")
	side := r.git("rev-parse", "HEAD")
	r.git("checkout", "-q", "main")
	r.git("tag", commits[1][:8], commits[2]) // takes precedence over the abbreviation
	hostile := []string{
		"--help", "-h", "HEAD", "main", "", "abc", commits[0] + "\n" + commits[1], commits[0] + "^",
		strings.Repeat("a", 65), commits[1][:8],
	}
	absent := strings.Repeat("0123456789", 4)

	t.Run("whole", func(t *testing.T) {
		asked := append([]string{commits[0], commits[5], commits[4][:7], strings.ToUpper(commits[3]), side, absent},
			hostile...)
		behind, unknown, err := r.open().Ancestors(t.Context(), "main", asked)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{commits[0]: 5, commits[5]: 0, commits[4][:7]: 1, strings.ToUpper(commits[3]): 2}
		if fmt.Sprint(behind) != fmt.Sprint(want) || !slices.Equal(unknown, hostile) {
			t.Errorf("%v, want %v; unknown %q", behind, want, unknown)
		}
	})
	t.Run("shallow", func(t *testing.T) {
		s := repository{t, t.TempDir()}
		s.git("clone", "-q", "--depth=3", "--no-single-branch", "file://"+filepath.ToSlash(r.dir), ".")
		c := s.open()
		behind, unknown, err := c.Ancestors(t.Context(), commits[4],
			[]string{commits[0], commits[3], commits[4], commits[5], side, absent})
		if err != nil {
			t.Fatal(err)
		}
		// The last commit is a descendant. A descendant is not an ancestor,
		// however much of the history is missing.
		want := map[string]int{commits[3]: 1, commits[4]: 0}
		if fmt.Sprint(behind) != fmt.Sprint(want) || !slices.Equal(unknown, []string{commits[0], side, absent}) {
			t.Errorf("%v, want %v; unknown %q", behind, want, unknown)
		}
		for _, base := range []string{commits[0], "origin/side"} {
			if _, err := c.Changed(t.Context(), base, "HEAD"); err == nil ||
				!strings.Contains(err.Error(), "fetch-depth: 0") {
				t.Errorf("changes since %s: %v", base, err)
			}
		}
	})
	for _, head := range []string{"--help", "main..side", "main^{tree}", ":/a", "", "@{u}", "nobody", absent} {
		if _, _, err := r.open().Ancestors(t.Context(), head, commits); err == nil {
			t.Errorf("no error for head %q", head)
		}
		if _, err := r.open().Changed(t.Context(), "main", head); err == nil {
			t.Errorf("no error for changes to head %q", head)
		}
	}
}
