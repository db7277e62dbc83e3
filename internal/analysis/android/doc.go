// Package android interprets the classes of a heap dump: its phone and process,
// its bitmaps, strings, threads, components, finalizers, and how close the
// process was to each way of running out of memory. Dumps of a JVM have the
// topics that do not need Android.
//
// Each topic has a function of its own, and Read answers all of them together:
// the records that the topics need are collected level by level, so that the
// file is read again at most four times, and only where needed.
//
// An Inspector says which objects are needed and which leak, by the contracts
// of Android's classes; Matchers are the references by which Android,
// manufacturers and libraries are known to leak. Package trace finds out what
// holds a leak.
//
// Nothing in a dump is trusted: texts are truncated and made printable, sizes
// in fields lead to no allocation and cannot overflow, and lists are bounded
// and say how many entries they omit. What a dump does not contain is absent or
// unknown, never 0. Doubtful data are in Warnings.
package android
