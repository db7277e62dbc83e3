// Package instrument parses the output of `am instrument -w -r` as it arrives.
// It reports immediately when each test begins and how it ends, in order.
//
// The format is that of Android. TextStatusReporter of AOSP frameworks/base
// cmds/am/src/com/android/commands/am/Instrument.java writes each bundle as
// lines of keys and values, followed by a code. InstrumentationResultPrinter of
// androidx.test
// (runner/android_junit_runner/java/androidx/test/internal/runner/listener)
// fills the bundles. OrchestrationResultPrinter of Android Test Orchestrator
// writes the same format. See docs/formats/instrument.md. The size of each
// value is bounded, whatever a device prints.
package instrument
