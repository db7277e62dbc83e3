// Package lease keeps two runs from using one device, or one run directory, at
// the same time. What a run uses it takes by a key; a second run that wants the
// same is refused with the name of the first, or waits.
//
// A lease is an advisory lock of the operating system (flock, LockFileEx) on a
// file whose name is the hash of the key, in a folder of the user. The lock ends
// with the process that holds it, however that ends, so that nothing is ever left
// that blocks. The file holds a note about its holder, which is only told, never
// believed: a file with a note but without a lock is free.
//
// It refuses to guess: a file system without locks is an error, and so is a
// folder that others could write to. It does not protect from runs of another
// user of the machine, from runs of another machine or container that reach the
// same adb server or the same directory over a network, from other programs that
// use the device, nor from somebody who deletes files in the folder. Two users who
// share one phone may share one folder by running leakgate as one user.
//
// It is fed by the verbs that begin a run, with what they will use.
package lease
