//go:build !linux && !darwin

package doctor

// mayWrite cannot be told without making a file: on Windows the lists of rights are
// read by the system alone, and other systems do not share a way to ask.
func mayWrite(string) (writable, known bool) { return false, false }
