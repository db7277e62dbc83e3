// Package checkout extracts the data that the gate needs from a git checkout of
// the app under test: where a field is declared, what a pull request changes,
// who owns a file, and which commits are ancestors.
//
// All content of the checkout is hostile, because a pull request wrote it. Only
// files inside its top directory are read, git runs no program that the
// checkout names and has no network access, and sizes, counts and times are
// bounded. Facts that cannot be determined are unknown, with a reason.
package checkout
