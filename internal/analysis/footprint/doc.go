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
// Mappings are classified like Android's rows of dumpsys meminfo (system/memory
// libmeminfo, androidprocheaps.cpp), so that both can be compared; doc comments
// describe two differences. Names are untrusted; returned ones are short and
// printable.
package footprint
