// Package hostfile handles files of this machine: it opens files that another
// account may have prepared without blocking on a pipe, and removes absolute
// paths of this machine from messages, because run directories are shared.
package hostfile
