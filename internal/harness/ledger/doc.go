// Package ledger turns the lines of a run into its verdicts. A live run adds every
// line that it writes, report and replay add every line that they read: the same
// lines lead to the same verdicts, because there is no other way in.
//
// It has no goroutine, no clock and no device.
package ledger
