// Package harness checks an app for leaks while a Ginkgo suite, or a plain go test, drives it.
//
// A suite adds one variable:
//
//	var leaks = harness.Watch("com.shop*")
//
// and decorates the specs that are to be checked with leaks.Check(). A checked spec fails if it
// leaves behind an object that is over and still held, such as a destroyed Activity, and says
// what holds it. See the examples of [Watch] and [Leaks.RoundTrip].
//
// Everything else, such as choosing a phone, sampling, heap dumps and the run directory, is that
// of the program leakgate: the suite's run is one of harness/monitor.
package harness
