// Package spool turns what a user names into something that can be read at any
// offset: heap dumps and allocation logs are walked more than once, and what comes
// through a pipe or is packed can be walked only once.
//
// A plain file is used where it is. Standard input, a FIFO, a device, and what is
// packed with gzip or zstd go to a temporary file first; gzip may have any number of
// members and zstd any number of frames. How an input is packed is told by its first
// bytes, never by its name.
//
// The temporary file has no name where the system allows that: it ends with the
// process that made it, however that ends. On Windows it goes when the File is
// closed. It grows to Options.Cap and to 90 % of what was free on its disk, and no
// further, so that a small input cannot fill a disk, and it is given out only when
// the input was read to its end, or as far as the packed data can be: then the File
// says where and why they end.
//
// It refuses what is no dump in a way that people get wrong: archives, programs,
// web pages, the error message of a command. It does not know what a dump is; that
// is for package hprof and those beside it. It unpacks nothing twice.
//
// It is fed by the verbs, with a path or "-" from the command line.
package spool
