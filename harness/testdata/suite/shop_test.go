package suite

import (
	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
)

// shop contains one spec of each kind found in typical suites. Its specs may
// run in any order and in several processes.
var _ = scenario("shop", func() {
	SynchronizedBeforeSuite(launch, func() {})

	Describe("cart", leaks.Check(), func() {
		It("opens the cart", func() { visit("CartActivity") })
		It("opens a product", func() { visit("ProductActivity") })
		It("leaves another screen open", func() { open("CartActivity") })
		It("checks out", func() { visit("CheckoutActivity") })
		It("opens the cart again", func() { visit("CartActivity") })
		It("opens an accepted page",
			leaks.Known(harness.Held("LegacyPage.sInstance"), "SHOP-12", "anna", harness.Until(2999, 1, 1)),
			func() { visit("LegacyActivity") })
		It("checks out after an accepted page",
			leaks.Known(harness.Held("LegacyPage.sInstance"), "SHOP-12", "anna", harness.Until(2999, 1, 1)), func() {
				visit("LegacyActivity")
				visit("CheckoutActivity")
			})
		It("opens a page that was accepted",
			leaks.Known(harness.Held("LegacyPage.sInstance"), "SHOP-11", "anna", harness.Until(2020, 1, 1)),
			func() { visit("CartActivity") })
		It("fails for another reason", func() {
			visit("CheckoutActivity")
			Fail("the total is wrong")
		})
		It("passes on its third attempt", FlakeAttempts(3), func() {
			if attempt() == 1 {
				visit("CheckoutActivity")
			}
			if attempt() < 3 {
				Fail("the network is slow")
			}
		})
		It("is not checked", leaks.Skip("SHOP-13"), func() { visit("CheckoutActivity") })
		It("opens the cart at the end", func() { visit("CartActivity") })

		DescribeTable("item", visit,
			Entry("of the cart", "CartActivity"),
			Entry("that leaks", leaks.Check(harness.Heap()), "CheckoutActivity"))

		Describe("order", Ordered, func() {
			It("is empty", func() { visit("CartActivity") })
			It("is paid", func() { visit("CheckoutActivity") })
			It("is sent", func() { visit("CartActivity") })
		})
		It("is alone", Serial, func() { visit("CartActivity") })
	})
	It("has no check", func() { visit("CartActivity") })
})
