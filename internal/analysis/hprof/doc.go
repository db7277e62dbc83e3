// Package hprof reads and strips the bytes of heap dumps: JAVA PROFILE 1.0.1,
// 1.0.2 and 1.0.3, as HotSpot, the JVM's old hprof agent, Dalvik, ART and
// hprof-conv write them.
//
// Reading has two steps. Open walks the records of a file from head to head and
// skips the heap itself: it gives the names, the loaded classes, the stack traces
// and where the heap's segments are. A Scanner then reads segments one record at a
// time through a small buffer; scanners of different segments are independent, so
// that as many can run as there are cores. The file is never in memory.
//
// It refuses to say what records mean: which references count, how large an object
// is, who holds it. That is package heap's. It keeps the order of the file, follows
// no reference and resolves no class, so it accepts any order of records.
//
// What a file declares is not believed: no length in it leads to an allocation, and
// each record must fit into what holds it. A file that ends early is truncated,
// which is data; a record that cannot be is a *DamageError with its offset.
//
// It is fed by an io.ReaderAt, and by package hproftest in tests.
package hprof
