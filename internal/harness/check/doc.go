// Package check judges what a span of a run, such as one spec of a suite, leaks
// in a process: whether counts of objects grew, and which leaks of a heap dump
// are new.
//
// It compares each heap dump with the latest earlier one of the same life, so
// that an old leak is reported once. It applies the exceptions of a suite:
// leaks that are accepted until a date. It has no side effects: package monitor
// counts objects and dumps heaps.
package check
