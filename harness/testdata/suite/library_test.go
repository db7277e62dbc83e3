//go:build !plain

package suite

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// background contains specs that start a background load, which ends with its
// spec.
var _ = inOrder("background", func() {
	BeforeEach(launch)
	It("runs monkey", leaks.Check(), func(ctx SpecContext) {
		leaks.Monkey(ctx, "com.cart", harness.Throttle(time.Second), harness.Seed(7))
		time.Sleep(300 * time.Millisecond)
	})
	// The only shell that is running is the one that runs ps.
	It("has no monkey", func() { Expect(strings.Count(shell("ps -A")+"\n", " sh\n")).To(Equal(1)) })
	It("runs a command", leaks.Check(), func(ctx SpecContext) {
		leaks.Shell(ctx, "sleep 100000")
		time.Sleep(300 * time.Millisecond)
	})
	It("has a command that fails", leaks.Check(), func(ctx SpecContext) {
		Expect(leaks.Shell(ctx, "exit 3").Wait()).To(MatchError(ContainSubstring("3")))
		Expect(leaks.Shell(ctx, "true").Wait()).To(Succeed())
	})
})

// tests contains specs that run the tests of the app.
var _ = inOrder("tests", func() {
	It("runs tests", func(ctx SpecContext) {
		run, err := leaks.Instrument(ctx,
			"com.cart.test/androidx.test.runner.AndroidJUnitRunner",
			harness.DelayAfterTest(2*time.Minute))
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Tests).To(HaveLen(5))
	})
	It("runs tests that are clean", func(ctx SpecContext) {
		run, err := leaks.Instrument(ctx,
			"com.cart.test/androidx.test.runner.AndroidJUnitRunner",
			harness.Classes("com.cart.CartTest"), harness.DelayAfterTest(2*time.Minute))
		Expect(err).NotTo(HaveOccurred())
		Expect(run.Tests).To(HaveLen(2))
	})
})

// matchers contains specs that match the state of a process.
var _ = inOrder("matchers", func() {
	BeforeEach(launch)
	It("is steady", func(ctx SpecContext) {
		Expect(leaks.Start(ctx)).To(Succeed())
		process := leaks.Process("com.cart")
		Eventually(ctx, process).WithTimeout(10 * time.Second).Should(harness.HaveState(detector.Normal))
		Consistently(ctx, process).WithTimeout(time.Second).ShouldNot(harness.BeLeaking())
		Expect(process).NotTo(harness.BeLeaking())
	})
	It("detects the leaked screen", func(ctx SpecContext) {
		before, err := leaks.Snapshot(ctx, "com.cart")
		Expect(err).NotTo(HaveOccurred())
		Expect(leaks.Process("com.cart")).NotTo(harness.HaveLeaked(before))
		visit("CheckoutActivity")
		Expect(leaks.Process("com.cart")).To(harness.HaveLeaked(before))
		dump, err := leaks.Dump(ctx, "com.cart")
		Expect(err).NotTo(HaveOccurred())
		Expect(dump).To(harness.HaveLeaks())
		Expect(dump).To(harness.HaveRetainedBelow("com.cart.CheckoutActivity", 1<<30))
		Expect(dump).NotTo(harness.HaveRetainedBelow("com.cart.CheckoutActivity", 1000))
	})
	It("fails with the message of the matcher", func(ctx SpecContext) {
		dump, err := leaks.Dump(ctx, "com.cart")
		Expect(err).NotTo(HaveOccurred())
		Expect(dump).NotTo(harness.HaveLeaks())
	})
	It("requests a process that does not exist", func(ctx SpecContext) {
		Eventually(ctx, leaks.Process("com.nothing")).WithTimeout(500 * time.Millisecond).ShouldNot(harness.BeLeaking())
	})
	It("requests several processes", func(ctx SpecContext) {
		Eventually(ctx, leaks.Process("com.cart*")).WithTimeout(30 * time.Second).ShouldNot(harness.BeLeaking())
	})
	It("grows slowly", func(ctx SpecContext) {
		Eventually(ctx, leaks.Process("com.cart")).WithTimeout(40 * time.Second).Should(harness.HaveSlopeBelow(50))
	})
})

// many contains three specs, which are repeated. Each of them drives the phone
// for ten seconds.
var _ = inOrder("many", func() {
	BeforeEach(launch)
	rounds, _ := strconv.Atoi(os.Getenv("SUITE_ROUNDS"))
	for range rounds {
		for _, screen := range []string{"CheckoutActivity", "CartActivity"} {
			It("closes "+screen, leaks.Check(),
				func() { shell("am start -W -n com.cart/." + screen + "; sleep 10; input keyevent BACK") })
		}
		It("leaves CartActivity open", leaks.Check(),
			func() { shell("am start -W -n com.cart/.CartActivity; sleep 10") })
	}
})

// The following are plain Go tests, without Ginkgo.
func TestPlainLeak(t *testing.T) {
	start(t)
	harness.ForTest(t, "com.cart")
	drive(t, "am start -W -n com.cart/.CheckoutActivity; input keyevent BACK")
}

func TestPlainClean(t *testing.T) {
	start(t)
	harness.ForTest(t, "com.cart", harness.Heap(), harness.Strict())
	drive(t, "am start -W -n com.cart/.CartActivity; input keyevent BACK")
}

func TestPlainFailure(t *testing.T) {
	start(t)
	harness.ForTest(t, "com.cart")
	drive(t, "am start -W -n com.cart/.CheckoutActivity; input keyevent BACK")
	t.Error("the total is wrong")
}

// start starts the app in a run of plain tests.
func start(t *testing.T) {
	t.Helper()
	if os.Getenv("SUITE") != "plain" {
		t.Skip("this run is for the Ginkgo tests")
	}
	drive(t, "am start -W -n com.cart/.MainActivity")
}

func drive(t *testing.T, command string) {
	t.Helper()
	if out, err := try(context.Background(), command); err != nil {
		t.Fatal(err, out)
	}
}
