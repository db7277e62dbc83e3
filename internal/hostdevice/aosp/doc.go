// Package aosp fetches the adbd that Debian builds for Linux from Android's own
// source, and unpacks it with all its libraries into one directory.
//
// Debian has contained adbd since trixie, but that build needs a newer C
// library than older releases provide. Therefore adbd is never installed; it is
// started by the loader that was unpacked with it. The packages are downloaded
// from the mirror that this machine's apt uses. apt verifies the signatures
// with Debian's keys, and the state of this machine's apt is not changed. The
// daemon provides a shell to anyone who can connect to it. Therefore only
// package hostdevice starts it, in a separate network.
package aosp
