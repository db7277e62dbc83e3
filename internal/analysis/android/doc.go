// Package android interprets the classes in a heap dump: the phone and process,
// bitmaps, strings, threads, components and finalizers, and how close the
// process was to each way of running out of memory. For dumps of a JVM, it
// supports the topics that do not need Android.
//
// Each topic has a function of its own, and Read combines all of them: the
// records that the topics need are collected level by level, so the file is
// read again at most four times, and only where needed.
//
// An Inspector determines which objects are needed and which leak, by the
// contracts of Android's classes. Matchers are the references through which
// Android, manufacturers and libraries are known to leak. Package trace finds
// out what holds a leak.
//
// Dumps are not trusted: strings are truncated and made printable, sizes in
// fields neither cause allocations nor overflow, and lists are bounded, with
// the number of omitted entries. A value that the dump does not contain is
// absent or unknown, never 0. Doubtful data result in Warnings.
package android
