// Package harness checks an app for leaks while a Ginkgo suite, or a plain go
// test, drives it.
//
// A suite adds one variable:
//
//	var leaks = harness.Watch("com.shop*")
//
// and decorates the specs to check with leaks.Check(). A checked spec fails if
// it leaves behind an object that should be gone but is still held, such as a
// destroyed Activity. The failure shows what holds the object. See the examples
// of [Watch] and [Leaks.RoundTrip].
//
// Everything else, such as choosing a phone, sampling, heap dumps and the run
// directory, works as in the leakgate program: the suite's run is a run of
// package harness/monitor.
package harness
