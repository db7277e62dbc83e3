//go:build !linux && !darwin

package doctor

// mayWrite returns unknown: on Windows only the system can evaluate access
// control lists, and the other systems have no common call for this check.
func mayWrite(string) (writable, known bool) { return false, false }
