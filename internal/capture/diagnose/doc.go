// Package diagnose collects artifacts about a leak from one process, depending
// on the kind of leak: heap dump, memory maps, threads, buffers, logs. A recipe
// lists the artifacts, and for each artifact the methods that work on some
// release or build. An artifact is stored completely or not at all. If it is
// missing or comes from a lesser method, the reason is recorded.
//
// If the connection breaks during a heap dump, files may remain on the device.
// Sweep removes them later.
package diagnose
