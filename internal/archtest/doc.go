// Package archtest checks the tree against its architecture. It reads the rules
// from the page that documents them, docs/architecture.md, and the imports from
// the source files of all systems and build tags together. If the page and the
// tree differ, a test fails.
//
// It contains only test code: the page lists what each package may import, one
// line per package, and this package contains the rules that no line can
// override.
package archtest
