// Package doctor says what this host and each device can do for a run, and what
// to do about what is missing: the adb program and server, the directory of the
// runs, the state of each device, and how the memory of each process can be read.
//
// It refuses to change anything. It starts no adb server, writes no file here or
// on a device, and sends only commands that read; what it cannot tell that way it
// calls unknown. Every wait has a bound, and devices are examined at the same
// time, so that one that hangs costs no more than its own deadline. It judges
// nothing that a run measures. It is fed by the verb doctor.
package doctor
