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
	// shownSimilar bounds the similar names of processes that are named.
	shownSimilar = 3
	// leastAlike is the least number of characters in a row that similar names share; "com."
	// has four.
	leastAlike = 5
	// maxNames bounds the processes that are compared: phones have a thousand.
	maxNames = 5000
	// askNames is the real time that a device has to list the names of its processes.
	askNames = 5 * time.Second
)

// similarNames returns the names of processes of a device that are like those that are
// watched, the most similar first. It is a hint for who has misspelled a name: without an
// answer there is none.
func similarNames(ctx context.Context, dev capture.Device, patterns []capture.Pattern) []string {
	// toolbox, before Android 8, has no -A and no -o.
	a, err := shell.Ask(ctx, dev, askNames, "ps -A -o NAME 2>/dev/null || ps")
	if err != nil {
		return nil
	}
	var names []string
	for line := range strings.Lines(string(a.Stdout)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(names) == maxNames {
			continue
		}
		// Processes of apps have the name of a package; others are no app's.
		if name := fields[len(fields)-1]; strings.Contains(name, ".") && !strings.Contains(name, "/") && len(name) <= 255 {
			names = append(names, text.Printable(name))
		}
	}
	return mostAlike(names, patterns)
}

func mostAlike(names []string, patterns []capture.Pattern) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	alike := map[string]int{}
	for _, name := range names {
		for _, p := range patterns {
			stem := strings.TrimSuffix(strings.TrimSuffix(string(p), "*"), ":")
			if n := common(stem, name); n >= leastAlike && 2*n >= len(stem) {
				alike[name] = max(alike[name], n)
			}
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return alike[name] == 0 })
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(alike[b], alike[a]), cmp.Compare(len(a), len(b)))
	})
	return names[:min(len(names), shownSimilar)]
}

// common is the length of the longest text that two names share, in bytes.
func common(a, b string) int {
	longest := 0
	ends := make([]int, len(b)+1) // ends[j]: of the shared text that ends at b[j-1]
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
