// Package mapping reads the mapping.txt of ProGuard and R8 and tells the names of
// the source for those of an obfuscated build: classes, fields, and the frames of
// stack traces with what was inlined into them.
//
// A mapping is read at analysis time, once: dumps keep the names that they have. It
// may be hundreds of megabytes large and comes from outside, so that it is believed
// in nothing: a line has a cap, a name is kept once, a method's line becomes a dozen
// bytes that are decoded when a frame asks for them, and a line that means nothing is
// a warning.
//
// It refuses to guess. A name that the mapping does not hold, or that it holds for two
// things, stays as it is; whether mapping and dump belong together is said by Fit and
// Doubt, and that names look obfuscated where no mapping was given by Obfuscated.
//
// The format is R8's doc/retrace.md, what that leaves open was asked of R8's retrace;
// docs/formats/mapping.md says what is honoured. It is fed by an io.Reader.
package mapping
