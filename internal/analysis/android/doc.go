// Package android interprets the classes in a heap dump: the phone and process,
// bitmaps, strings, threads, components and finalizers, and how close the
// process was to each way of running out of memory. For dumps of a JVM, it
// supports the topics that do not need Android.
//
// Each topic has its own function, and Read combines all of them. It collects,
// level by level, the records that the topics need, so it rereads the file at
// most four times, and only where needed.
//
// An Inspector determines which objects are needed and which leak, according to
// the contracts of Android's classes. Matchers describe the references through
// which Android, manufacturers and libraries are known to leak. Package trace
// determines what holds a leak.
//
// Dumps are not trusted: strings are truncated and made printable, sizes in
// fields neither cause allocations nor overflow, and lists are bounded and come
// with the number of omitted entries. A value that the dump does not contain is
// absent or unknown, never 0. Implausible data is reported in Warnings.
package android
