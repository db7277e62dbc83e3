// Package leakcheck is a test suite with leak checks. It runs on the phone that
//
//	leakgate demo --serve --port 5999
//
// serves, whose app com.cart has screens that leak and screens that do not:
//
//	ANDROID_ADB_SERVER_PORT=5999 go test ./examples/leakcheck
package leakcheck

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func TestLeakcheck(t *testing.T) {
	if os.Getenv("ANDROID_ADB_SERVER_PORT") == "" {
		t.Skip("no phone: start one with `leakgate demo --serve --port 5999`, and set ANDROID_ADB_SERVER_PORT=5999")
	}
	RegisterFailHandler(Fail)
	RunSpecs(t, "Leakcheck")
}

// leaks watches the app while the suite runs. The first checked spec needs the phone.
var leaks = harness.Watch("com.cart", harness.Processes("com.cart:sync"))

var _ = BeforeSuite(func(ctx SpecContext) {
	Expect(leaks.Start(ctx)).To(Succeed())
	open(ctx, "MainActivity")
})

// open opens a screen of the app, back closes it.
func open(ctx context.Context, screen string) {
	GinkgoHelper()
	Expect(leaks.Exec(ctx, "am start -W -n com.cart/."+screen)).Error().NotTo(HaveOccurred())
}

func back(ctx context.Context) {
	GinkgoHelper()
	Expect(leaks.Exec(ctx, "input keyevent BACK")).Error().NotTo(HaveOccurred())
}

var _ = Describe("the cart", leaks.Check(), func() {
	It("opens and closes", func(ctx SpecContext) {
		open(ctx, "CartActivity")
		back(ctx)
	})

	It("ends on a screen that is in use", func(ctx SpecContext) {
		open(ctx, "CartActivity")
		DeferCleanup(back)
	})

	It("releases a product a moment later", func(ctx SpecContext) {
		open(ctx, "ProductActivity")
		back(ctx)
	})

	// Checkout leaks. Without Known this spec fails, and says who holds the screen.
	It("checks out", leaks.Known(harness.Held("ScreenTracker.sScreens"), "CART-7: checkout is being rewritten", "anna", harness.Until(2030, 12, 31)), func(ctx SpecContext) {
		open(ctx, "CheckoutActivity")
		back(ctx)
	})

	DescribeTable("shows each kind of item", func(ctx SpecContext, screen string) {
		open(ctx, screen)
		back(ctx)
	},
		Entry("a product", "ProductActivity"),
		Entry("a cart, with a heap dump in any case", leaks.Check(harness.Heap()), "CartActivity"),
	)
})

var _ = Describe("all day", func() {
	It("shows the cart again and again", func(ctx SpecContext) {
		Expect(leaks.RoundTrip(ctx, "com.cart", func(ctx context.Context) {
			open(ctx, "CartActivity")
			back(ctx)
		})).NotTo(harness.HaveGrowingObjects())
	})

	It("survives monkey", leaks.Check(), func(ctx SpecContext) {
		monkey := leaks.Monkey(ctx, "com.cart", harness.Events(200), harness.Seed(7))
		Consistently(ctx, leaks.Process("com.cart")).WithTimeout(time.Second).ShouldNot(harness.BeLeaking())
		Expect(monkey.Wait()).To(Succeed())
	})

	It("passes the tests in Kotlin", leaks.Known(harness.Class("com.cart.CheckoutActivity"), "CART-7: checkout is being rewritten", "anna", harness.Until(2030, 12, 31)), func(ctx SpecContext) {
		tests, err := leaks.Instrument(ctx, "com.cart.test/androidx.test.runner.AndroidJUnitRunner")
		Expect(err).NotTo(HaveOccurred())
		Expect(tests.Tests).To(HaveLen(5))
	})
})
