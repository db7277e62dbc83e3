// Package checkout answers what the gate asks of a git checkout of the app under test: where a
// field is declared, what a pull request changes, who owns a file, which commits are ancestors.
//
// Everything in the checkout is hostile, because a pull request wrote it. Files are read inside
// its top folder only, git runs no program that the checkout names and contacts nobody, and
// sizes, counts and times are bounded. What cannot be determined is unknown, with the reason.
package checkout
