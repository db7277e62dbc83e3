// Package revision determines which commit, branch and pull request a run
// tests. It reads the variables of the CI system; outside of CI it uses git.
package revision
