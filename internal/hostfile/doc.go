// Package hostfile handles files of this machine. It opens files, which another
// account may have prepared, without blocking on a pipe. It also removes
// absolute paths of this machine from messages, because run directories are
// shared.
package hostfile
