// Package replay judges recorded samples again: the samples.ndjson of a run, or a
// table of numbers as CSV. It reads them as a stream, drives one detector for each
// process, and gives what each of them says, alone or against a base recording.
//
// It refuses to build a verdict on a value that it cannot read or believe: such a
// row is left out and named. It refuses to measure (monitor does), to judge
// (detector does) and to write a run directory. It is fed by the verb replay.
package replay
