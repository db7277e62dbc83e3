// Package store keeps the baseline of the gate between runs: in a file, on a branch of a git
// repository, behind a program of the user, or as an artifact of GitHub Actions. To it a baseline
// is a text of bounded size.
//
// An update is a function of what is stored, which is called again with the newest content if
// somebody else was faster, so that no writer loses what another one wrote. "No baseline yet" is an
// answer of the store; a store that cannot be reached or read is an error, never that.
package store
