package leakcheck

import (
	"testing"

	"github.com/leakgate/leakgate/harness"
)

// TestPlain is a leak check without Ginkgo.
func TestPlain(t *testing.T) {
	needPhone(t)
	leaks := harness.ForTest(t, "com.cart", harness.Heap(), harness.Wait(), harness.Strict())
	for _, command := range []string{
		"am start -W -n com.cart/.MainActivity", "am start -W -n com.cart/.CartActivity", "input keyevent BACK",
	} {
		if _, err := leaks.Exec(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
}
