// Package comparison is the result of the gate: what a run leaves behind
// compared with earlier runs, the verdict on it, and its reasons. It is written
// as gate.json and read back by the publisher, which may be a job that must not
// trust the one that wrote it.
package comparison
