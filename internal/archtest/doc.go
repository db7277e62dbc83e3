// Package archtest holds the tree to the law of its architecture. It reads the
// law from the page that tells it, docs/architecture.md, and the imports from
// the source files, of all systems and build tags at once, so that the page and
// the tree cannot part.
//
// All of it is test code: what a package may import is in the page, one line a
// package, and the rules that no line can lift are in this package.
package archtest
