// Package detector judges from samples of memory whether a process leaks.
//
// A [Detector] is one state machine for one process. Its caller feeds it what was
// measured - samples of the fast channel, breakdowns of dumpsys meminfo, restarts,
// gaps, the end of a diagnosis - with the device's own time stamps, and gets back
// the steps it took ([Transition]), what it wants next ([Demand]) and what it knows
// ([Verdict]). The rules are a [Policy]. "robust", the default, looks every five minutes
// while a run goes on and reads all of it again when it ends: docs/detector.md in this
// project tells its rules, their reasons and how often they are wrong. "article" follows
// section 5 of an article on leak detection in Android stress tests, read in one way
// where the article leaves several open: docs/article.md.
//
// The package does no I/O, starts no goroutine, reads no clock and logs nothing: the
// same inputs give the same answers, so a recorded run can be judged again. It never
// sleeps; it asks. It does not find out what a process is, what a restart is or how
// Pss was read, and it mixes no processes. A Detector is not safe for use by several
// goroutines at once.
package detector
