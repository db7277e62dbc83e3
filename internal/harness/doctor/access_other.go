//go:build !linux && !darwin

package doctor

// mayWrite reports unknown: Windows evaluates access control lists only inside
// the system, and the remaining systems share no call for it.
func mayWrite(string) (writable, known bool) { return false, false }
