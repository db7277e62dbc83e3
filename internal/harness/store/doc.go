// Package store keeps the baseline of the gate between runs: in a file, on a
// branch of a git repository, behind a program of the user, or as an artifact
// of GitHub Actions. To the store, a baseline is a text of bounded size.
//
// An update is a function of the stored content, which is called again with the
// newest content if another writer was faster, so that no writer loses what
// another one wrote. "No baseline yet" is a valid answer of a store; a store
// that cannot be reached or read is an error.
package store
