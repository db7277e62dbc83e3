// Package instrument parses the output of `am instrument -w -r` while it
// arrives: which test begins and how it ends, in order and immediately.
//
// The format is that of Android: TextStatusReporter of AOSP frameworks/base
// cmds/am/src/com/android/commands/am/Instrument.java writes each bundle as
// lines of key and value and then a code; InstrumentationResultPrinter of
// androidx.test
// (runner/android_junit_runner/java/androidx/test/internal/runner/listener)
// fills the bundles, and OrchestrationResultPrinter of Android Test
// Orchestrator writes the same. See docs/formats/instrument.md. All input is
// bounded, whatever a device prints.
package instrument
