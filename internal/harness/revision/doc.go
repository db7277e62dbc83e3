// Package revision finds out which commit, branch and pull request a run tests, by what the CI
// system says or else by git.
package revision
