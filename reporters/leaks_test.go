package reporters

import (
	"strings"
	"testing"

	"github.com/leakgate/leakgate/analysis"
)

// The report must count the items that are omitted from a list, and use the
// singular for one item.
func TestOmittedCounts(t *testing.T) {
	for n, want := range map[int][2]string{
		0:    {"", ""},
		1:    {"Also retains 1 more leaking object\n", "  and objects of 1 more class\n"},
		2:    {"Also retains 2 more leaking objects\n", "  and objects of 2 more classes\n"},
		1200: {"Also retains 1 200 more leaking objects\n", "  and objects of 1 200 more classes\n"},
	} {
		var also, garbage page
		also.related(make([]analysis.Related, shownLines), shownLines+n)
		garbage.garbage(make([]analysis.Garbage, shownLines+n))
		for i, text := range []string{also.text.String(), garbage.text.String()} {
			if strings.Contains(text, " more ") != (want[i] != "") || !strings.HasSuffix(text, want[i]) {
				t.Errorf("%d: %q", n, text)
			}
		}
	}
}
