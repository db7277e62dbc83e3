// Package dumpsys reads what Android's system services and shell tools print:
// dumpsys meminfo (Android 4.3 to 16), gfxinfo, gpu and SurfaceFlinger, the
// help of am, and every error text that comes with exit code 0.
//
// It is pure: text in, values out. capture feeds it what a phone printed, and
// everything in such a text is hostile: inputs, names, rows and warnings have
// caps.
//
// It refuses to guess. A value that the text does not hold is unknown, never
// zero; one bad field is unknown and named in Warnings, the others stand. A
// number that ends the text without a line end may be the first digits of a
// longer one: it is unknown unless its unit follows. A text that is not the
// expected one at all is a DeviceError, with the device's own words.
//
// It does not decide by exit codes: dumpsys exits 0 for "No process found" and
// for a dump that ran into its time limit.
package dumpsys
