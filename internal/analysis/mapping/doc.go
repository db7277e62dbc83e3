// Package mapping reads the mapping.txt of ProGuard and R8 and translates the
// names of an obfuscated build to those of the source: classes, fields, and the
// frames of stack traces, including the frames that were inlined into them.
//
// A mapping is read once, at analysis time; dumps keep their obfuscated names.
// The file may be hundreds of megabytes in size: each name is stored once, and
// the line of a method takes a dozen bytes that are decoded on demand. The file
// is not trusted: the length of lines is limited, and a line that cannot be
// parsed leads to a warning.
//
// The package does not guess. A name that is ambiguous, or that is missing from
// the mapping, is not translated. Fit and Mismatch report whether a mapping and
// a dump belong together; without a mapping, Obfuscated reports whether names
// look obfuscated.
//
// The format is that of R8's doc/retrace.md; where the document is not
// explicit, the package follows R8's retrace. docs/formats/mapping.md lists
// what is supported.
package mapping
