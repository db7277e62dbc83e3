package check

import (
	"fmt"
	"slices"
	"strings"
)

// Watched lists the counts of dumpsys meminfo whose growth is examined: objects
// with a life cycle, whose number should return to its old value once their
// screens are closed.
var Watched = []string{"Activities", "AppContexts", "ViewRootImpl", "Views"}

// Rise is a count that has grown.
type Rise struct {
	Name          string
	Before, After int64
}

// Rose returns the watched counts that have grown. A count that is missing from
// either reading has not grown.
func Rose(before, after map[string]int64) []Rise {
	var out []Rise
	for _, name := range Watched {
		b, known := before[name]
		if a, ok := after[name]; known && ok && a > b {
			out = append(out, Rise{name, b, a})
		}
	}
	return out
}

// MayHoldDestroyed reports whether a process that started during the check may
// hold destroyed screens, that is, whether it has more than one Activity, more
// than one window, or an Activity without a window.
func MayHoldDestroyed(after map[string]int64) bool {
	activities, known := after["Activities"]
	return known && (activities > 1 || activities > after["ViewRootImpl"] || after["ViewRootImpl"] > 1)
}

// Windowless returns the number of Activities that have no window; they are
// probably destroyed. It returns 0 if the counts are unknown.
func Windowless(counts map[string]int64) int64 {
	activities, known := counts["Activities"]
	windows, too := counts["ViewRootImpl"]
	if !known || !too {
		return 0
	}
	return activities - windows
}

// Text returns the growth in the form "Activities 1 -> 2, Views 40 -> 75".
func Text(rises []Rise) string {
	words := make([]string, len(rises))
	for i, r := range rises {
		words[i] = fmt.Sprintf("%s %d -> %d", r.Name, r.Before, r.After)
	}
	return strings.Join(words, ", ")
}

// Keep returns only the watched counts, those that a check records.
func Keep(counts map[string]int64) map[string]int64 {
	if counts == nil {
		return nil
	}
	out := map[string]int64{}
	for name, n := range counts {
		if slices.Contains(Watched, name) {
			out[name] = n
		}
	}
	return out
}
