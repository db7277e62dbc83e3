// Package doctor reports what this host and each device can do for a run, and
// what to do about what is missing: the adb program and server, the directory
// for runs, the state of each device, and how the memory of each process can be
// read.
//
// It changes nothing: it starts no adb server, writes no file here or on a
// device, and sends only commands that read. What cannot be determined that way
// is unknown. Every wait is bounded, and devices are examined concurrently, so
// one that hangs costs only its own deadline.
package doctor
