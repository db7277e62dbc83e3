// Package thread says which threads of a process became more between two moments: in
// groups by the pattern of their names, with what their stacks cost.
//
// Names that differ only in numbers are one group. A number that is the same in all names
// of a group stays in its pattern: pool-3-thread-* is one pool that grows, and
// pool-*-thread-1 is a pool made again and again. Where several numbers differ, as with
// several pools, the group also says which part of it grew most.
//
// The kernel cuts names: see Compare. A thread that ended and whose id another one of the
// same group has looks like one thread that stayed.
//
// It refuses to read texts. It is fed with the ids and names below /proc/PID/task of both
// moments by whoever read them. Names are hostile; patterns are short and printable.
package thread
