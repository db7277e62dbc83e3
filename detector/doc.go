// Package detector judges from memory samples whether a process leaks.
//
// A [Detector] is a state machine for one process. Its caller adds what was
// measured: samples of the fast channel, breakdowns of dumpsys meminfo,
// restarts, gaps and finished diagnoses, with the device's own timestamps. The
// Detector returns the resulting transitions ([Transition]), the data that it
// needs next ([Demand]) and the present verdict ([Verdict]). The rules are a
// [Policy]. "robust", the default, evaluates the data every five minutes during
// a run and everything again at the end; docs/detector.md describes its rules,
// their reasons and their error rates. "article" follows section 5 of an
// article on leak detection in Android stress tests, with one interpretation
// where the article allows several; see docs/article.md.
//
// The package does no I/O, starts no goroutine, reads no clock and logs
// nothing. The same inputs produce the same verdict, so a recorded run can be
// judged again. A Detector judges one process and is not safe for concurrent
// use.
package detector
