// Package mapping reads the mapping.txt of ProGuard and R8 and translates the
// names of an obfuscated build to those of the source: classes, fields, and the
// frames of stack traces with what was inlined into them.
//
// A mapping is read once, at analysis time; dumps keep their obfuscated names.
// It may be hundreds of megabytes large and comes from outside, so it is not
// trusted: lines are bounded, a name is stored once, a method's line becomes a
// dozen bytes that are decoded on demand, and a line that cannot be parsed
// leads to a warning.
//
// The package does not guess. A name that is ambiguous, or that the mapping
// lacks, is not translated. Fit and Doubt report whether mapping and dump
// belong together, and Obfuscated reports that names look obfuscated when there
// is no mapping.
//
// The format is that of R8's doc/retrace.md; where the document is not
// explicit, the package follows R8's retrace. docs/formats/mapping.md lists
// what is supported.
package mapping
