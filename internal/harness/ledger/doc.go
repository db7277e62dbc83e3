// Package ledger computes the verdicts of a run from its lines. A live run adds
// every line that it writes, and report and replay add every line that they
// read. This is the only input, so the same lines lead to the same verdicts.
//
// It has no goroutine, no clock and no device.
package ledger
