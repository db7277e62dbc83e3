// Package revision determines which commit, branch and pull request a run
// tests, from the variables of the CI system or else from git.
package revision
