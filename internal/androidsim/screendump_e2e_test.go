//go:build e2e

package androidsim

import "testing"

// The heap dump contains the leaking instances for all 256 ways to leave four
// screens.
func TestAnalysisNamesAllScreensThatLeak(t *testing.T) {
	for n := range waysToLeave * waysToLeave * waysToLeave * waysToLeave {
		leave(t, [4]int{n % waysToLeave, n / 4 % waysToLeave, n / 16 % waysToLeave, n / 64 % waysToLeave})
	}
}
