package reporters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/analysis/growth"
)

// If a dump has no date, the report states this.
func TestGrowthDate(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var b strings.Builder
	WriteGrowth(&b,
		&analysis.Growth{Dumps: []analysis.GrowthDump{{Name: "one", Objects: 7}, {Name: "two", Objects: 8, Time: &at}}})
	want := "dump 1: one, 7 objects, 0.0 kB reachable, no date\ndump 2: two, 8 objects, 0.0 kB reachable, 2026-01-02 " +
		"03:04:05\n"
	if !strings.HasPrefix(b.String(), want) {
		t.Error(b.String())
	}
}

// Only the beginning and the end of a long path are shown.
func TestGrowthLongPath(t *testing.T) {
	h := func(steps, want int, more string) {
		t.Helper()
		p := growth.Place{}
		for i := range steps {
			p.Path = append(p.Path,
				growth.PathEdge{Kind: growth.KindInstance, Owner: "a.B", Name: fmt.Sprintf("f%d.", i), Class: "a.B"})
		}
		var out page
		out.place(&p, 1)
		written := out.text.String()
		if got := strings.Count(written, "\n") - 1; got != want || strings.Contains(written, "more") != (more != "") ||
			!strings.Contains(written, more) || !strings.Contains(written, fmt.Sprintf(".f%d. ->", steps-1)) {
			t.Errorf("%d steps: %d lines\n%s", steps, got, written)
		}
	}
	h(16, 16, "")
	h(17, 17, "... 1 step more")
	h(300, 17, "... 284 steps more")
}
