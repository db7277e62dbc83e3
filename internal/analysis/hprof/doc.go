// Package hprof reads and strips the bytes of heap dumps: JAVA PROFILE 1.0.1,
// 1.0.2 and 1.0.3, as written by HotSpot, the JVM's old hprof agent, Dalvik,
// ART and hprof-conv.
//
// Reading has two steps. Open reads the headers of a file's records and skips
// the heap itself: it returns the names, the loaded classes, the stack traces
// and the positions of the heap's segments. A Scanner then reads segments one
// record at a time through a small buffer. Scanners of different segments are
// independent, so one can run on each core. The whole file is never in memory
// at once.
//
// The package does not interpret records: package heap decides which references
// count, how large an object is and what holds it. Package hprof does not
// follow references or resolve classes, so it accepts records in any order.
//
// It does not trust the lengths in a file: they never determine how much memory
// is allocated, and each record must fit into its container. A file that ends
// early is truncated, which is not an error; an impossible record is a
// *DamageError that includes its offset.
package hprof
