// Package surface lists the exported API of the module's public packages: one
// line per name, method and field, in the form of Go's own api/go1.txt.
// docs/api.txt contains the list, so that every change is visible in a review.
//
// It reads syntax, not types, and files of every system and build tag at once:
// the list does not depend on where it is made. The package contains only
// tests.
package surface
