package monitor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxSimilar bounds the number of similar process names that are shown.
	maxSimilar = 3
	// minCommonLength is the minimum length of the substring that similar names
	// have in common; "com." has four characters.
	minCommonLength = 5
	// maxNames bounds the number of names that are compared. Phones run about a
	// thousand processes.
	maxNames = 5000
	// namesTimeout is the wall-clock time within which a device must list its
	// processes.
	namesTimeout = 5 * time.Second
)

// similarNames returns the names of processes on a device that are similar to
// the watched names, the most similar first. They hint at a misspelled name. If
// the device does not respond, the result is empty.
func similarNames(ctx context.Context, dev capture.Device, patterns []capture.Pattern) []string {
	// toolbox, used before Android 8, supports neither -A nor -o.
	a, err := shell.Ask(ctx, dev, namesTimeout, "ps -A -o NAME 2>/dev/null || ps")
	if err != nil {
		return nil
	}
	var names []string
	for line := range strings.Lines(string(a.Stdout)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(names) == maxNames {
			continue
		}
		// Processes of apps are named after a package; all other processes are
		// skipped.
		if name := fields[len(fields)-1]; strings.Contains(name, ".") && !strings.Contains(name, "/") &&
			len(name) <= 255 {
			names = append(names, text.Printable(name))
		}
	}
	return mostSimilar(names, patterns)
}

func mostSimilar(names []string, patterns []capture.Pattern) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	alike := map[string]int{}
	for _, name := range names {
		for _, p := range patterns {
			stem := strings.TrimSuffix(strings.TrimSuffix(string(p), "*"), ":")
			if n := common(stem, name); n >= minCommonLength && 2*n >= len(stem) {
				alike[name] = max(alike[name], n)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return alike[name] == 0 })
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(alike[b], alike[a]), cmp.Compare(len(a), len(b)))
	})
	return names[:min(len(names), maxSimilar)]
}

// common returns the length of the longest common substring of two names, in
// bytes.
func common(a, b string) int {
	longest := 0
	ends := make([]int, len(b)+1) // ends[j] is the length of the common substring that ends at b[j-1]
	for i := range len(a) {
		for j := len(b); j > 0; j-- {
			if a[i] == b[j-1] {
				ends[j] = ends[j-1] + 1
				longest = max(longest, ends[j])
			} else {
				ends[j] = 0
			}
		}
	}
	return longest
}
