//go:build !plain

package suite

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/leakgate/leakgate/harness"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// before contains a BeforeSuite that performs the action named in SUITE_BEFORE.
var _ = scenario("before", func() {
	BeforeSuite(func() {
		switch os.Getenv("SUITE_BEFORE") {
		case "fail":
			Fail("the shop is closed")
		case "skip":
			Skip("no device")
		case "start":
			ctx, done := context.WithTimeout(context.Background(), time.Minute)
			defer done()
			Expect(leaks.Start(ctx)).To(Succeed())
			Expect(leaks.Dir()).NotTo(BeEmpty())
		}
	})
	Describe("app", func() {
		It("is clean", leaks.Check(), func() { launch(); visit("CartActivity") })
		It("is clean too", leaks.Check(), func() { visit("CartActivity") })
	})
})

// simple contains two specs, of which the second leaks.
var _ = scenario("simple", func() {
	BeforeSuite(launch)
	Describe("app", func() {
		It("is clean", leaks.Check(), func() { visit("CartActivity") })
		It("leaks", leaks.Check(), func() { visit("CheckoutActivity") })
	})
})

// clean contains specs without leaks or failures.
var _ = scenario("clean", func() {
	SynchronizedBeforeSuite(launch, func() {})
	for _, name := range []string{"a", "b", "c", "d"} {
		It("is clean "+name, leaks.Check(), func() { visit("CartActivity") })
	}
})

// unchecked contains specs without a check.
var _ = scenario("unchecked", func() {
	It("has no check", func() {})
})

// paused contains a spec that leaks, and pauses halfway until the test releases
// it.
var _ = inOrder("paused", func() {
	BeforeEach(launch)
	It("waits", leaks.Check(), func(ctx SpecContext) {
		visit("CheckoutActivity")
		pause(ctx, "waits")
	})
	It("is clean", leaks.Check(), func() { visit("CartActivity") })
})

// holding contains a spec that occupies the device and leaks nothing.
var _ = inOrder("holding", func() {
	It("waits", leaks.Check(), func(ctx SpecContext) {
		launch()
		pause(ctx, "waits")
	})
})

// cleaned contains a spec whose cleanup waits until the test releases it.
var _ = inOrder("cleaned", func() {
	BeforeEach(launch)
	It("waits", leaks.Check(), func(ctx SpecContext) {
		DeferCleanup(func(ctx SpecContext) { pause(ctx, "cleanup") })
		visit("CheckoutActivity")
		pause(ctx, "waits")
	})
})

// held contains specs that occupy the device, each in its own process.
var _ = scenario("held", func() {
	SynchronizedBeforeSuite(launch, func() {})
	for _, name := range []string{"one", "two", "three"} {
		It("holds "+name, leaks.Check(), func(ctx SpecContext) {
			if GinkgoParallelProcess() == 3 {
				pause(ctx, "third")
			}
			time.Sleep(300 * time.Millisecond)
			visit("CartActivity")
		})
	}
})

// crashes contains specs in which the app dies.
var _ = inOrder("crashes", func() {
	BeforeEach(launch)
	It("is clean", leaks.Check(), func() { visit("CartActivity") })
	It("crashes", leaks.Check(), func() { shell("am start -W -n com.cart/.CrashActivity") })
	It("is clean after it", leaks.Check(), func() { visit("CartActivity") })
	It("blocks", leaks.Check(), func() {
		shell("am start -n com.cart/.StuckActivity")
		shell("input tap 100 100")
		time.Sleep(time.Second) // a minute on the phone's clock
	})
	It("is clean at the end", leaks.Check(), func() { visit("CartActivity") })
})

// gone contains a spec during which the app ends, and one that runs without the
// app.
var _ = inOrder("gone", func() {
	It("is clean", leaks.Check(), func() { launch(); visit("CartActivity") })
	It("has no app", leaks.Check(), func() { shell("am force-stop com.cart"); time.Sleep(100 * time.Millisecond) })
	It("has no app at all", leaks.Check(), func() {})
})

// pool contains specs that report which device they drive.
var _ = inOrder("pool", func() {
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		It("drives "+name, leaks.Check(), func() {
			serial := os.Getenv("ANDROID_SERIAL")
			Expect(serial).NotTo(BeEmpty())
			Expect(serial).To(Equal(leaks.Device()))
			AddReportEntry("serial", serial)
			launch()
			visit("CartActivity")
			time.Sleep(200 * time.Millisecond)
			if name == "c" {
				visit("CheckoutActivity")
			}
		})
	}
	AfterEach(func() { Expect(os.Getenv("ANDROID_SERIAL")).To(Equal(leaks.Device())) })
})

// trends contains specs that take five minutes or an hour and a half of phone
// time.
var _ = inOrder("trends", func() {
	It("is short", leaks.Check(harness.Trend()), func() { shell("sleep 300") })
	It("is long", leaks.Check(harness.Trend()), func() { shell("sleep 5400") })
	It("is LEAKING", leaks.Check(harness.Live()), func() { shell("sleep 5400") })
})

// entries contains specs whose checks are not known before their nodes run.
var _ = scenario("entries", func() {
	DescribeTable("table", func(screen string) {
		Expect(os.Getenv("ANDROID_SERIAL")).NotTo(BeEmpty())
		Expect(os.Getenv("ANDROID_SERIAL")).To(Equal(leaks.Device()))
		launch()
		visit(screen)
		time.Sleep(300 * time.Millisecond)
	},
		Entry("a", leaks.Check(), "CartActivity"), Entry("b", leaks.Check(), "CartActivity"),
		Entry("c", leaks.Check(), "CartActivity"), Entry("d", leaks.Check(), "CheckoutActivity"))
})

// loud contains specs that print a lot.
var _ = scenario("loud", func() {
	BeforeSuite(launch)
	line := strings.Repeat("x", 1<<10-1) + "\n"
	for n := range 12 {
		It(fmt.Sprintf("prints %d", n), leaks.Check(), func() {
			for range 8 << 10 {
				fmt.Fprint(GinkgoWriter, line)
			}
		})
	}
})

// trips contains specs that repeat an action with RoundTrip.
var _ = inOrder("trips", func() {
	BeforeEach(launch)
	repeat := func(screen string) func(SpecContext) {
		return func(ctx SpecContext) {
			Expect(leaks.RoundTrip(ctx, "com.cart", func(context.Context) { visit(screen) })).
				NotTo(harness.HaveGrowingObjects())
		}
	}
	It("is steady", repeat("CartActivity"))
	It("leaks", repeat("CheckoutActivity"))
	It("leaks native memory", repeat("SearchActivity"))
	It("restarts", func(ctx SpecContext) {
		_, err := leaks.RoundTrip(ctx, "com.cart", func(context.Context) {
			stop()
			launch()
		})
		Expect(err).To(MatchError(ContainSubstring("restarted")))
	})
})
