// Package footprint compares two snapshots of a process: its memory maps, its
// threads, and its graphics memory. It reports the largest growth first.
//
// Parts of names that change every time (thread ids, counters, addresses,
// hashes of installations) are replaced by a star, so that many small mappings
// that grow together are one row. Rows sum up to the totals: unnamed memory is
// a row of its own, and so is everything beyond the cap on names. Only the
// sources of graphics memory overlap, so they are listed separately and never
// added up.
//
// Mappings are classified like the rows of Android's dumpsys meminfo
// (system/memory libmeminfo, androidprocheaps.cpp), so that the two can be
// compared; doc comments describe two differences. Names in the input are
// untrusted; returned names are short and printable.
package footprint
