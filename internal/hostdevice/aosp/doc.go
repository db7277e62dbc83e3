// Package aosp fetches the adbd that Debian builds for Linux from Android's own
// source, and unpacks it with all its libraries into one directory.
//
// Debian has contained it since trixie, but that build needs a newer C library
// than older releases provide. Therefore it is never installed; the loader in
// its own directory runs it. It is downloaded from the mirror that this
// machine's apt uses. apt verifies its signatures with Debian's keys, and apt's
// own state is not changed. The daemon provides a shell to anyone who can
// connect to it. Therefore only package hostdevice starts it, in a separate
// network.
package aosp
