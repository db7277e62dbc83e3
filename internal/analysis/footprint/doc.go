// Package footprint compares two snapshots of a process: its memory maps, its
// threads, and its graphics memory. It reports the largest growth first.
//
// Variable parts of names (thread IDs, counters, addresses, installation
// hashes) are replaced by an asterisk. Many small mappings that grow together
// then form one row. The rows add up to the totals: unnamed memory has its own
// row, and all names beyond the cap share one row. Only the sources of graphics
// memory overlap, so they are listed separately and never added up.
//
// Mappings are classified like the rows of Android's dumpsys meminfo
// (system/memory libmeminfo, androidprocheaps.cpp), so the rows can be compared
// with its output; the comment of Map.bss describes two differences. Names in
// the input are untrusted; returned names are short and printable.
package footprint
