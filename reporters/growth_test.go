package reporters

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis/growth"
)

// A long way is told by its ends.
func TestGrowthLongWay(t *testing.T) {
	h := func(steps, want int, more string) {
		t.Helper()
		p := growth.Place{}
		for i := range steps {
			p.Path = append(p.Path, growth.Step{Kind: growth.KindInstance, Owner: "a.B", Name: fmt.Sprintf("f%d.", i), Class: "a.B"})
		}
		var b strings.Builder
		tellPlace(&b, &p, 1)
		if got := strings.Count(b.String(), "\n") - 1; got != want || strings.Contains(b.String(), "more") != (more != "") || !strings.Contains(b.String(), more) || !strings.Contains(b.String(), fmt.Sprintf(".f%d. ->", steps-1)) {
			t.Errorf("%d steps: %d lines\n%s", steps, got, b.String())
		}
	}
	h(16, 16, "")
	h(17, 17, "... 1 steps more")
	h(300, 17, "... 284 steps more")
}
