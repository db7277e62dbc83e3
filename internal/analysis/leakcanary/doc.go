// Package leakcanary reads what LeakCanary 2 prints about a heap dump: the text
// of a report, either alone, in the JUnit XML of a test run, or in a logcat.
// The signature of a leak is the fingerprint that leakgate's analysis also
// computes. A report shows what leaks, not what grows. An input without a
// report is an error, because a test that passes does not print one. The format
// is that of shark.HeapAnalysis (HeapAnalysis.kt, LeakTrace.kt); in a logcat,
// its lines are wrapped (LeakTraceWrapper.kt).
package leakcanary
