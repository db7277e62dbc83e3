// Package store keeps the baseline of the gate between runs: in a file, on a
// branch of a git repository, with a program that the user provides, or as an
// artifact of GitHub Actions. The store treats a baseline as opaque data of
// limited size.
//
// An update is a function of the stored content. If another writer was faster,
// the function is called again with the newest content, so no writer's changes
// are lost. "No baseline yet" is a valid response of a store; a store that
// cannot be reached or read is an error.
package store
