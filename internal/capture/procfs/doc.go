// Package procfs reads what the Linux kernel of a phone prints under
// /proc/PID (smaps, smaps_rollup, status, stat), /proc/uptime, and Android's
// showmap, which is a table made from smaps.
//
// It is pure: text in, values out. It opens nothing, runs nothing and keeps
// nothing. capture feeds it what a phone printed; everything in such a text is
// hostile, so lines, names and warnings have caps.
//
// It refuses to guess. A value that the text does not hold is unknown, never
// zero. One bad field is unknown and named in Warnings, the others stand. The
// last line of a text that was cut may hold the first digits of a longer
// number: a value counts only if what follows it (a blank, the unit, the end
// of the line) proves that it is whole. What a text cannot show, the transport
// must: smaps cut exactly between two mappings looks complete.
//
// Sizes are in kB of 1024 bytes, as printed. Errors are for a whole text that
// is not what it should be; the words that a device says instead (Permission
// denied, No such process) are sorted by package dumpsys.
package procfs
