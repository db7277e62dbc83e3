// Package check judges what a span of a run, such as one spec of a suite,
// leaves behind in a process: whether counts of objects grew, and which leaks
// of a heap dump are new.
//
// It compares with the latest heap dump of the same incarnation, so that an old
// leak is reported once, and applies the exceptions of a suite: leaks that are
// accepted until a date. It is pure: package monitor counts and dumps.
package check
