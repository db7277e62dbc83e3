// Package lease prevents two runs from using one device, or one run directory,
// at the same time. A run takes each resource by a key; a second run that needs
// the same key fails with the name of the first run, or waits.
//
// A lease is an advisory lock of the operating system (flock, LockFileEx) on a
// file in a folder of the user; the file name is the hash of the key. The lock
// ends with the process that holds it, even if that crashes, so no stale lock
// can block later runs. The file contains a note about its holder, which is
// used only in messages: a file with a note but without a lock is free.
//
// A file system without locks is an error, and so is a folder that others may
// write to. Leases do not exclude runs of another user, runs on another machine
// or in a container that use the same adb server or a network directory, other
// programs, or someone who deletes files in the folder. Two users who share one
// phone can share one folder by running leakgate as the same user.
package lease
