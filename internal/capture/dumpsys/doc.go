// Package dumpsys parses the output of Android's system services and shell
// tools: dumpsys meminfo (Android 4.3 to 16), gfxinfo, gpu and SurfaceFlinger,
// the help of am, and all error messages that are printed with exit code 0. It
// has no side effects.
//
// The output of devices is untrusted: the length of inputs and names and the
// number of rows and warnings are limited. A value that is absent from the
// output is unknown, never zero. An invalid field is unknown and named in
// Warnings; the other fields are valid. A number at the very end of the output,
// without a newline, may be the beginning of a longer number: it is unknown
// unless its unit follows. If the output is not what the command normally
// prints, the error is a DeviceError, which contains the device's own words.
//
// Exit codes are ignored: dumpsys exits with 0 both for "No process found" and
// for a dump that reached its timeout.
package dumpsys
