// Package instrument reads the output of `am instrument -w -r` while it arrives: which test
// begins and how it ends, in order and at once.
//
// The format is what Android prints: TextStatusReporter of AOSP frameworks/base
// cmds/am/src/com/android/commands/am/Instrument.java writes each bundle as lines of key and
// value and then a code; InstrumentationResultPrinter of androidx.test
// (runner/android_junit_runner/java/androidx/test/internal/runner/listener) fills the bundles,
// and OrchestrationResultPrinter of Android Test Orchestrator writes the same. The page
// docs/formats/instrument.md describes it. What is read is bounded, whatever a device prints.
package instrument
