//go:build !linux && !darwin && !windows

package spool

// FreeBytes always returns false: it does not support this system.
func FreeBytes(string) (int64, bool) { return 0, false }
