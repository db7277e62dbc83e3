// Package aosp fetches the adbd of Android's own source, which Debian builds for
// Linux, and unpacks it with all the libraries that it needs into one folder.
//
// Debian has it since trixie, built for a newer C library than older releases
// have; so it is never installed, and runs through the loader of its own folder.
// It comes from the mirror that this machine's apt is set up with, and apt checks
// its signatures by the keys of Debian; nothing of apt's own state is touched. It
// refuses machines that are no Debian, and never starts the daemon, which gives
// whoever reaches it a shell: package hostdevice does, in a network of its own.
package aosp
