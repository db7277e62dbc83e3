// Package diagnose collects artifacts about a leak from one process, depending
// on the kind of leak: heap dump, memory maps, threads, buffers, logs. A recipe
// lists the artifacts, each with the methods that some release or build allows.
// An artifact is stored completely or not at all. If it is missing or comes
// from a lesser method, the reason is recorded.
//
// A diagnosis may leave files on the device when the connection breaks during a
// heap dump. Sweep removes them later.
package diagnose
