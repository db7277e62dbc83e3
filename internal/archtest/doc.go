// Package archtest checks the tree against its architecture. It reads the rules
// from the page that documents them, docs/architecture.md, and the imports from
// the source files of all systems and build tags together. If the page and the
// tree differ, a test fails.
//
// Package archtest contains only test code. The page lists what each package
// may import, one line per package; archtest contains the rules that no line of
// the page can override.
package archtest
