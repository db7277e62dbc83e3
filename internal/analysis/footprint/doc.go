// Package footprint compares what a process has at two moments: its memory maps, its
// threads, and its graphics memory. It reports what grew most first.
//
// Parts of names that change every time (thread ids, counters, addresses, hashes of
// installations) are replaced by a star, so that what grows by many is one row. Rows sum
// up to the totals: what has no name is a row of its own, and so is what is beyond the cap
// on names. Only graphics is different: its sources overlap, so they stand side by side
// and are never added up.
//
// Mappings are told apart as Android does in the rows of dumpsys meminfo (system/memory
// libmeminfo, androidprocheaps.cpp), so that both can be compared; two differences are in
// doc comments. Names are hostile; those that are returned are short and printable.
package footprint
