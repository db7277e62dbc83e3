//go:build !plain

package suite

import (
	"time"

	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
)

// both contains a spec that leaks and one that does not.
func both() {
	It("leaks", func() { visit("CheckoutActivity") })
	It("is clean", func() { visit("CartActivity") })
}

// nodes contains specs with setup and cleanup nodes of each type, most of which
// restart or stop the app.
var _ = scenario("nodes", func() {
	Describe("started before each", leaks.Check(), func() {
		BeforeEach(func() { stop(); launch() })
		both()
	})
	Describe("stopped after each", leaks.Check(), func() {
		BeforeEach(launch)
		AfterEach(stop)
		both()
	})
	Describe("stopped by a cleanup", leaks.Check(), func() {
		BeforeEach(func() {
			launch()
			DeferCleanup(stop)
		})
		both()
	})
	Describe("stopped by a cleanup of the spec", leaks.Check(), func() {
		BeforeEach(launch)
		It("leaks", func() {
			DeferCleanup(stop)
			visit("CheckoutActivity")
		})
	})
	Describe("started before all", Ordered, ContinueOnFailure, leaks.Check(), func() {
		BeforeAll(func() { stop(); launch() })
		AfterAll(stop)
		both()
	})
	Describe("started once", leaks.Check(), func() {
		BeforeEach(func() { stop(); launch() }, OncePerOrdered)
		AfterEach(stop, OncePerOrdered)
		Describe("ordered container", Ordered, ContinueOnFailure, both)
	})
	Describe("driven just before each", leaks.Check(), func() {
		BeforeEach(launch)
		JustBeforeEach(func() { visit("CheckoutActivity") })
		It("leaks", func() {})
	})
	Describe("driven just after each", leaks.Check(), func() {
		JustAfterEach(func() { visit("CartActivity") })
		It("is clean", func() { visit("ProductActivity") })
	})
	Describe("failed before each", leaks.Check(), func() {
		BeforeEach(func() {
			visit("CheckoutActivity")
			Fail("no network")
		})
		It("leaks", func() {})
	})
	Describe("single spec", func() {
		BeforeEach(launch)
		It("must pass twice and leaks", leaks.Check(), MustPassRepeatedly(2), func() {
			if attempt() == 2 {
				visit("CheckoutActivity")
			}
		})
		It("leaks on its first attempt", leaks.Check(), FlakeAttempts(3), func() {
			visit("CheckoutActivity")
			if attempt() == 1 {
				Fail("the network is slow")
			}
		})
		PIt("is pending", leaks.Check(), func() {})
		It("skips itself", leaks.Check(), func() { Skip("no camera") })
		It("leaks and skips itself", leaks.Check(), func() {
			visit("CheckoutActivity")
			Skip("no camera")
		})
		It("leaks and panics", leaks.Check(), func() {
			visit("CheckoutActivity")
			panic("no camera")
		})
		It("is labeled", Label("slow"), leaks.Check(), func() { visit("CartActivity") })
		It("leaks and takes too long", leaks.Check(), SpecTimeout(2*time.Second), func(ctx SpecContext) {
			visit("CheckoutActivity")
			<-ctx.Done()
		})
		It("leaks in a node that takes too long", leaks.Check(), NodeTimeout(2*time.Second), func(ctx SpecContext) {
			visit("CheckoutActivity")
			<-ctx.Done()
		})
		It("is clean and has a time limit", leaks.Check(), SpecTimeout(20*time.Second),
			func(ctx SpecContext) { visit("CartActivity") })
		It("leaks in a process that is not checked", leaks.Check(harness.Of("com.cart:sync")),
			func() { visit("CheckoutActivity") })
		It("is clean at the end", leaks.Check(), func() { visit("CartActivity") })
	})
	DescribeTable("table", leaks.Check(), visit,
		Entry("leaks", "CheckoutActivity"),
		Entry("is clean", "CartActivity"),
		Entry("leaks an accepted class",
			leaks.Known(harness.Class("CheckoutActivity"), "SHOP-12", "anna", harness.Until(2999, 1, 1)),
			"CheckoutActivity"))
})

// old contains a leaking spec without a check between specs with a check; the
// app has already leaked before them.
var _ = scenario("old", func() {
	BeforeSuite(func() {
		launch()
		visit("CheckoutActivity") // left by an earlier suite
	})
	Describe("app", func() {
		It("is clean at first", leaks.Check(), func() { visit("CartActivity") })
		It("leaks unseen", func() { visit("CheckoutActivity") })
		It("is clean", leaks.Check(), func() { visit("CartActivity") })
		It("is clean too", leaks.Check(), func() { visit("CartActivity") })
	})
})

// chosen contains a spec that is focused in the source.
var _ = inOrder("chosen", func() {
	It("is not chosen", leaks.Check(), func() { visit("CheckoutActivity") })
	FIt("is chosen", leaks.Check(), func() { launch(); visit("CheckoutActivity") })
})
