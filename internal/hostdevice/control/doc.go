// Package control connects the commands of a host device to the device: through
// a socket in the device's directory, a command sends its arguments and open
// files and receives its exit code.
//
// The device works directly on the command's files, as an Android system
// service does for `am` and `dumpsys` (Binder shell commands). If a command is
// killed, its request ends. The permissions of the socket's directory control
// access to it.
package control
