// Package release tests how users install leakgate and how they run it in CI:
// the action (action.yml), the configuration of goreleaser, the image, and the
// workflows of examples/prgate and examples/nightly.
//
// actionlint and shellcheck check the workflows. The steps of the action run as
// bash scripts against a local server with its own release. Goreleaser builds a
// snapshot from a copy of the tree.
package release
