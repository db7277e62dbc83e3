// Package diagnose collects what the kind of a leak calls for from one process: heap
// dump, memory maps, threads, buffers, logs. A recipe lists the artifacts, each with the
// ways to get it that some release or build allows. An artifact is stored whole or not
// at all, with the reason where it could not be had or only by a lesser way.
//
// What a diagnosis may leave on the device, when the connection breaks in the middle of
// a heap dump, Sweep removes later.
package diagnose
