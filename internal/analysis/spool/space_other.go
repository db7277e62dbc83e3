//go:build !linux && !darwin && !windows

package spool

// FreeBytes returns false: this system is not supported.
func FreeBytes(string) (int64, bool) { return 0, false }
