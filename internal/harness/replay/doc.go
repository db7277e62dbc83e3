// Package replay judges recorded samples again: the samples.ndjson of a run, or
// a table of numbers as CSV. It reads the samples as a stream, uses one
// detector per process, and returns the verdicts. The recording is judged alone
// or compared with a base recording.
//
// A row is skipped and reported if its value cannot be read or is implausible.
package replay
