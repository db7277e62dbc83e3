// Package analysis says what one heap dump holds: the histogram, the dominator
// tree, bitmaps, strings, threads and components, in the form that `leakgate
// analyze --json` prints.
//
// It refuses to open files and to print; it is fed with an io.ReaderAt, by package
// spool in the program. All sizes are in bytes and follow Options.SizeModel.
package analysis
