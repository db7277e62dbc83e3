// Package aosp fetches the adbd of Android's own source, which Debian builds
// for Linux, and unpacks it with all its libraries into one folder.
//
// Debian has it since trixie, built for a newer C library than older releases
// have. Therefore it is never installed, and runs through the loader in its own
// folder. It comes from the mirror that this machine's apt uses; apt verifies
// its signatures with Debian's keys, and apt's own state is not touched. The
// daemon gives anyone who reaches it a shell: only package hostdevice starts
// it, in a network of its own.
package aosp
