// Package analysis reports what one heap dump contains: the histogram, the
// dominator tree, bitmaps, strings, threads, components and leaks, in the form
// that `leakgate analyze --json` prints. It also compares dumps and finds what
// grows in a series.
//
// It reads from an io.ReaderAt; package spool opens files for the program. All
// sizes are in bytes and follow Options.SizeModel.
package analysis
