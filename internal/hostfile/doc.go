// Package hostfile handles files of this machine: it opens files that another
// account may have prepared without blocking on a pipe, and removes their
// absolute paths from texts, because run directories are shared.
package hostfile
