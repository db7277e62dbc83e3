// Package hprof reads and strips the bytes of heap dumps: JAVA PROFILE 1.0.1,
// 1.0.2 and 1.0.3, as written by HotSpot, the JVM's old hprof agent, Dalvik,
// ART and hprof-conv.
//
// Reading has two steps. Open walks the records of a file from head to head and
// skips the heap itself: it returns the names, the loaded classes, the stack
// traces and the positions of the heap's segments. A Scanner then reads
// segments one record at a time through a small buffer. Scanners of different
// segments are independent, so that as many can run as there are cores. The
// file is never in memory as a whole.
//
// The package does not interpret records: which references count, how large an
// object is and what holds it is up to package heap. It follows no reference
// and resolves no class, so it accepts records in any order.
//
// It does not trust what a file declares: no length in it leads to an
// allocation, and each record must fit into its container. A file that ends
// early is truncated, which is not an error; an impossible record is a
// *DamageError with its offset.
package hprof
