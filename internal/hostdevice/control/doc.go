// Package control connects the commands of a host device with the device: over
// a socket in its directory, a command passes its arguments and open files, and
// receives its exit code.
//
// The device works directly on the files of the command, like an Android system
// service for `am` and `dumpsys` (Binder shell commands). Killing a command
// ends its request. Access to the socket is controlled by its directory.
package control
