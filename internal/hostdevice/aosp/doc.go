// Package aosp fetches the adbd that Debian builds for Linux from Android's own
// source, and unpacks it with all its libraries into one directory.
//
// Debian contains it since trixie, but that build needs a newer C library than
// older releases have. Therefore it is never installed, and is run by the
// loader in its own directory. It is downloaded from the mirror that this
// machine's apt uses. apt verifies its signatures with Debian's keys, and apt's
// own state is not changed. The daemon gives a shell to anyone who can connect
// to it. Therefore only package hostdevice starts it, in a separate network.
package aosp
