// Package ledger computes the verdicts of a run from its lines. A live run adds
// every line that it writes; report and replay add every line that they read.
// The lines are the only input, so the same lines lead to the same verdicts.
//
// The package uses no goroutine, no clock and no device.
package ledger
