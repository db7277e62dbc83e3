// Package limit judges how close a process is to a limit that kills it: the
// growth limit of the Java heap, file descriptors, threads, the address space
// of a 32-bit process, and the memory limiter of Android 17 for anonymous
// memory.
//
// A [Watch] records readings and warns by distance (80 % and 95 % of the limit)
// and by time (the limit will be reached within the hour if the growth of the
// last hour continues). A late warning is better than a false one. A warning
// requires a level that lasted for more than one reading; a warning by time
// also requires steady growth that continues. A Java heap that is full just
// before a collection is normal, so its level is the size after collections, or
// the size minus all possible garbage.
//
// The package does no I/O; every reading comes with its time on the device's
// clock. Impossible readings are ignored. A limit that is exceeded cannot be
// the real limit, so no warning is based on it. Package detector finds leaks in
// processes that do not come close to a limit.
package limit
