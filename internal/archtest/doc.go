// Package archtest checks the tree against its architecture. It reads the rules
// from the page that documents them, docs/architecture.md, and the imports from
// the source files, of all systems and build tags together, so that page and
// tree cannot diverge.
//
// This is test code: the page lists what each package may import, one line
// per package, and this package has the rules that no line can override.
package archtest
