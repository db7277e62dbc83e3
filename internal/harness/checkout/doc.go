// Package checkout extracts the data that the gate needs from a git checkout of
// the app under test: where a field is declared, what a pull request changes,
// who owns a file, and which commits are ancestors.
//
// All content of the checkout is treated as hostile, because a pull request may
// contain anything. Only files inside its top directory are read, git does not
// run programs named by the checkout and has no network access, and sizes,
// counts and times are bounded. Facts that cannot be determined are reported as
// unknown, with a reason.
package checkout
