// Package comparison holds the result of the gate: the leaks of a run compared
// with those of earlier runs, the verdict on the run, and the reasons. The
// result is written as gate.json. The publisher reads it, possibly in another
// job, which must not trust the job that wrote the file.
package comparison
