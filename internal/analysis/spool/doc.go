// Package spool turns an input named by the user into a file that can be read
// at any offset: heap dumps and allocation logs are read more than once, but
// pipes and packed files can be read only once.
//
// A plain file is used in place. Standard input, FIFOs, devices, and files
// packed with gzip or zstd are first unpacked into a temporary file; gzip may
// have any number of members and zstd any number of frames. The format is
// detected by the first bytes, never by the name.
//
// The temporary file has no name if the system allows that: it disappears with
// its process, however that process ends. On Windows it is removed when the
// File is closed. It may grow up to Options.Cap and use up to 90 % of the free
// space of its disk, so a small input cannot fill a disk. Open returns the File
// only after it has read the entire input, or as much as can be unpacked; in
// the latter case, the File reports where and why the data end.
//
// Inputs that are commonly passed by mistake are refused: archives, programs,
// web pages and error messages of commands. The package does not interpret
// dumps, and unpacks only one level of packing.
package spool
