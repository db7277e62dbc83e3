// Package spool turns an input named by the user into something that can be
// read at any offset: heap dumps and allocation logs are read more than once,
// and pipes and packed files can be read only once.
//
// A plain file is used in place. Standard input, FIFOs, devices, and files
// packed with gzip or zstd are unpacked into a temporary file first; gzip may
// have any number of members and zstd any number of frames. The format is
// detected by the first bytes, never by the name.
//
// The temporary file has no name if the system allows that: it disappears with
// its process, however that ends. On Windows it is removed when the File is
// closed. It may grow to Options.Cap and to 90 % of the free space of its disk,
// so that a small input cannot fill a disk. It is returned only after the input
// was read to its end, or as far as the packed data can be: then the File says
// where and why they end.
//
// Inputs that are commonly passed by mistake are refused: archives, programs,
// web pages, the error message of a command. The package does not know what a
// dump is, and unpacks nothing twice.
package spool
