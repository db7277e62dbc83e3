//go:build !linux && !darwin && !windows

package doctor

// What a directory allows is asked in ways that this system does not share.

func freeBytes(string) (int64, bool)         { return 0, false }
func mayWrite(string) (writable, known bool) { return false, false }
