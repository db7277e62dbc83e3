// Package comparison contains the result of the gate: the leaks of a run
// compared with those of earlier runs, the verdict on the run, and the reasons.
// The result is written to gate.json. The publisher reads this file, possibly
// in another job, which must not trust the job that wrote it.
package comparison
