package reporters

import (
	"strings"
	"testing"
)

// What carries the growth and each jump have a line; nothing has none.
func TestTextOfGrowthAndJumps(t *testing.T) {
	text := func(p Process) string {
		t.Helper()
		var out strings.Builder
		if err := WriteText(&out, Run{Processes: []Process{p}}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got := text(Process{
		Process: "com.x", Gate: "leak", Kind: "java_leak",
		Shares: []Share{{"Java Heap", 120, 0.846, 300.04}, {"Native Heap", 21.85, 0.154, 54.6}},
		Jumps:  []Jump{{T: 3720, MB: 250.4, Stayed: true}, {T: 7325, MB: 61}},
	})
	for _, want := range []string{
		"\n  growth   Java Heap 85 % (+120.0 MB, +300.0 MB/h), Native Heap 15 % (+21.9 MB, +54.6 MB/h)\n",
		"\n  jump     +250 MB at 1h2m, and it stayed\n  jump     +61 MB at 2h2m\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if bare := text(Process{Process: "com.x"}); strings.Contains(bare, "growth") || strings.Contains(bare, "jump") {
		t.Errorf("lines about nothing:\n%s", bare)
	}
	if hostile := text(Process{Shares: []Share{{Dimension: "\x1b[2J\n"}}}); strings.Contains(hostile, "\x1b") || strings.Count(hostile, "\n") != 3 {
		t.Errorf("%q", hostile)
	}
}
