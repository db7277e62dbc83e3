//go:build unix

package hub

import (
	"io/fs"
	"os"
	"syscall"
)

// private reports whether a directory belongs to this user and is accessible to
// nobody else.
func private(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid() && info.Mode().Perm()&0o077 == 0
}
