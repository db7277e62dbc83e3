//go:build !plain

package suite

import (
	"context"
	"os"
	"time"

	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The app is a Java virtual machine that runs one loop of its scenario at each
// signal.
var _ = inOrder("jvm", func() {
	It("is at rest after each loop", func(ctx SpecContext) {
		process := os.Getenv("SUITE_WATCHES")
		Expect(leaks.RoundTrip(ctx, process, func(ctx context.Context) {
			Expect(leaks.Exec(ctx, "kill -28 $(pidof "+process+")")).Error().NotTo(HaveOccurred())
			time.Sleep(50 * time.Millisecond)
		})).NotTo(harness.HaveGrowingObjects())
	})
	It("is checked", leaks.Check(harness.Heap()), func() {})
})
