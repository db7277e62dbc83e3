// Package archtest checks the tree against its documented architecture. It
// reads the rules from docs/architecture.md, and the imports from the source
// files for all operating systems and build tags together. If the page and the
// tree differ, a test fails.
//
// Package archtest contains only test code. The page lists what each package
// may import, one line per package; archtest contains the rules that no line of
// the page can override.
package archtest
