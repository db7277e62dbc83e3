// Package lease prevents two runs from using one device, or one run directory,
// at the same time. A run takes a lease on each resource, which is identified
// by a key. A second run that needs the same key waits, or fails with an error
// that names the first run.
//
// A lease is an advisory lock of the operating system (flock, LockFileEx) on a
// file in a folder of the user; the file name is the hash of the key. The lock
// ends with the process that holds it, even if that process crashes, so no
// stale lock can block later runs. The file contains a note about its holder,
// which is used only in messages: a file with a note but without a lock is
// free.
//
// It is an error if the file system does not support locks or if others may
// write to the folder. Leases do not exclude other programs or other users.
// They do not exclude runs on another machine, or in a container, that use the
// same adb server or network directory. Leases do not work if someone deletes
// files in the folder. Two users who share one phone can share one folder by
// running leakgate as the same user.
package lease
