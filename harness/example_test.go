package harness_test

import (
	"fmt"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness"
)

// A suite declares its watch as a variable of the test package. The phone is
// not needed before the first checked spec. See examples/leakcheck for a
// complete suite.
func ExampleWatch() {
	leaks := harness.Watch("com.shop*",
		harness.Config("nightly.yaml"), // devices, sampling, detection
		harness.Devices("emulator-5554", "emulator-5556"),
		harness.Artifacts("build/leaks"),
		harness.Observe(), // reports everything and never fails a spec
	)
	fmt.Printf("%q", leaks.Dir())
	// Output: ""
}

// A suite that checks all its specs needs no decorators.
func ExampleEverySpec() {
	leaks := harness.Watch("com.shop", harness.EverySpec(harness.Trend(), harness.Live()))
	fmt.Printf("%q", leaks.Device())
	// Output: ""
}

// Decorators are values: a suite may use the same one for all specs that share
// a leak.
func ExampleLeaks_Known() {
	leaks := harness.Watch("com.shop")
	legacy := leaks.Known(harness.Key("32554831"), "SHOP-12: the SDK keeps its screens", "anna",
		harness.Until(2030, time.March, 31))
	fmt.Println(len(legacy))
	// Output: 1
}

func ExampleHaveSlopeBelow() {
	slow := harness.ProcessState{
		Process: "com.shop", PID: 1234, State: detector.Normal, MB: 180,
		Slope: &harness.Slope{MBPerHour: 3, Low: -1, High: 7},
	}
	ok, err := harness.HaveSlopeBelow(20).Match(slow)
	fmt.Println(ok, err)
	_, err = harness.HaveSlopeBelow(20).Match(harness.ProcessState{Process: "com.shop", Because: "3 samples so far"})
	fmt.Println(err)
	// Output:
	// true <nil>
	// judge the slope of com.shop: the rate is still unknown: 3 samples so far
}

func ExampleBeLeaking() {
	state := harness.ProcessState{
		Process: "com.shop", PID: 1234, State: detector.Leaking, MB: 410, Because: "grows by 120 MB/h",
	}
	match := harness.BeLeaking()
	ok, _ := match.Match(state)
	fmt.Println(ok)
	fmt.Println(match.NegatedFailureMessage(state))
	// Output:
	// true
	// com.shop, pid 1234: LEAKING, 410.0 MB, no rate yet: grows by 120 MB/h
	// expected it not to be leaking
}
