// Package hostfile is about files of this machine: it opens those that another account may have
// prepared without waiting for the writer of a pipe, and takes their absolute paths out of texts,
// because a run directory is given to others.
package hostfile
