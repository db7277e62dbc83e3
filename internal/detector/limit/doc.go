// Package limit judges how near a process is to a limit at whose end it dies: the
// Java heap against its growth limit, file descriptors, threads, the address
// space of a 32-bit process, and anonymous memory against the memory limiter of Android 17.
//
// A [Watch] hears readings and warns by distance (80 % and 95 % of the limit) and by
// time (the limit comes within the hour if the growth of the last one goes on). A
// warning too late is better than a false one: it wants a level that lasted more
// than one reading, growth that is even and still going on, and for the Java heap what
// is left after collections, since a heap that is full just before one is as it should be,
// or what it has without all that could be garbage.
//
// It does no I/O and has no clock: time is the device's, and comes with the readings.
// It refuses readings that cannot be, never judges by a limit that has been exceeded
// (it is not the limit then), and knows nothing of leaks: what grows for good and ends
// at 70 % of a limit is for package detector. The engine feeds it.
package limit
