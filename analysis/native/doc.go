// Package native says what grew between two memory maps of one process: by mapping, by
// file with all its segments, and by kind of memory.
//
// What a mapping costs is Pss + SwapPss. Nothing is left out: the rows sum up to the
// kinds, and both to what the whole maps differ by. What has no name is a row of its own,
// and so is what is beyond the cap on names.
//
// Mappings are told apart as Android does in the rows of dumpsys meminfo (system/memory
// libmeminfo, androidprocheaps.cpp), so that both can be compared; two differences are in
// doc comments. Parts of names that are another each time (thread ids, counters, hashes
// of installations) are replaced by a star, so that what grows by many mappings is one row.
//
// It refuses to read texts and to guess: what a phone did not say is in Warnings. It is
// fed with the mappings of smaps or the rows of showmap by whoever captured them. Names
// are hostile; those that it gives back are short and printable.
package native
