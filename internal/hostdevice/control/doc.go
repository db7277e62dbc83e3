// Package control is the way from the commands of a host device to the device
// itself: a socket in its directory over which a command hands its arguments
// and its open files, and gets its exit code back.
//
// The device works directly on the files of the command, as a system service
// does for `am` and `dumpsys` (Binder shell commands). A command that is killed
// ends its request. Both ends are programs of this project; the socket is
// protected by the directory that it lies in.
package control
