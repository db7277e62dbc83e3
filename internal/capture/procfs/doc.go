// Package procfs parses the files of a phone under /proc/PID (smaps,
// smaps_rollup, status, stat, limits), /proc/uptime, and the output of
// Android's showmap, which is a table derived from smaps. It has no side
// effects.
//
// The input is untrusted, so the length of lines and names and the number of
// warnings are limited. A value that the input does not contain is unknown,
// never zero. An invalid field is unknown and named in Warnings; the other
// fields are valid. The last line of truncated input may contain the first
// digits of a longer number: a value counts only if what follows it (a space,
// the unit, the end of the line) proves that it is complete. An smaps file that
// is truncated exactly between two mappings looks complete; only the transport
// can detect this.
//
// Sizes are in kB of 1024 bytes, as printed. For any other input an error is
// returned; package dumpsys classifies error messages (Permission denied, No
// such process).
package procfs
