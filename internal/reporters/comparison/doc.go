// Package comparison holds the result of the gate: what a run leaves behind
// compared with earlier runs, the verdict on the run, and the reasons. The
// result is written as gate.json and read back by the publisher, which may be a
// job that must not trust the job that wrote it.
package comparison
