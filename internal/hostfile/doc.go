// Package hostfile handles files of this machine. It opens files without
// blocking on a pipe that another account may have created. It also removes
// absolute paths of this machine from messages, because run directories are
// shared.
package hostfile
