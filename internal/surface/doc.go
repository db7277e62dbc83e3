// Package surface lists the exported API of the module's public packages: one line
// for each name, method and field, in the form of Go's own api/go1.txt. docs/api.txt
// holds the list, so that a review sees every change of it.
//
// It reads syntax, not types, and files of every system and build tag at once: the
// list is the same wherever it is made. All of it is test code.
package surface
