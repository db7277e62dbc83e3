// Package archtest holds the tree to the law of its architecture. It reads the
// law from the page that tells it, docs/architecture.md, and the imports from
// the source files, of all systems and build tags at once, so that the page and
// the tree cannot part.
//
// It refuses to be configured elsewhere: what a package may import is said in
// the page, one line a package, and the rules that no line can lift are in this
// package. It does not build anything. Its only user is its own test.
package archtest
