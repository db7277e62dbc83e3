// Package doctor reports whether this host and each device are ready for a run,
// and how to fix what is missing. It examines the adb program and server, the
// directory for runs, the state of each device, and how the memory of each
// process can be read.
//
// It changes nothing: it starts no adb server, writes no file on the host or on
// a device, and sends only commands that read. A value that cannot be
// determined without changing anything is unknown. Every wait is bounded, and
// devices are examined concurrently, so a device that hangs delays only its own
// result.
package doctor
