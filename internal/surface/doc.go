// Package surface lists the exported API of the module's public packages: one
// line per name, method and field, in the format of Go's own api/go1.txt.
// docs/api.txt contains the list, so that every change is visible in a review.
//
// The list is derived from the syntax of the files for every system and build
// tag, without type checking. Therefore it does not depend on the machine. The
// package contains only tests.
package surface
