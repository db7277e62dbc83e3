//go:build linux || darwin

package spool

import "syscall"

// FreeBytes returns the number of bytes that this user may still write to the
// file system of a directory. It returns false if that number is unknown.
func FreeBytes(dir string) (int64, bool) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true //nolint:unconvert // the types differ between the systems
}
