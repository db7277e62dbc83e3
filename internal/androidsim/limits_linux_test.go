package androidsim

import (
	"os"
	"strings"
	"testing"
)

// TestLimitsAreThoseOfTheKernel checks that names, units and columns are the
// same as in the host's kernel.
func TestLimitsAreThoseOfTheKernel(t *testing.T) {
	real, err := os.ReadFile("/proc/self/limits")
	if err != nil {
		t.Fatal(err)
	}
	var v view
	ours := strings.Split(v.limitsText(34), "\n")
	theirs := strings.Split(string(real), "\n")
	if len(ours) != len(theirs) {
		t.Fatalf("%d lines, the kernel prints %d", len(ours), len(theirs))
	}
	// The test compares everything except the two columns of numbers, whose
	// width is fixed.
	const from, to = 26, 26 + 2*21
	for i, line := range theirs {
		if len(line) != len(ours[i]) || len(line) >= to &&
			(line[:from] != ours[i][:from] || line[to:] != ours[i][to:]) {
			t.Errorf("%q, the kernel prints %q", ours[i], line)
		}
	}
}
