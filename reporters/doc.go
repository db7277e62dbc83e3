// Package reporters keeps the record of one run and tells it to people and
// machines. A run is a directory: samples.ndjson is appended while the run goes
// on, run.json is written at its end. Nothing else is shared between the
// process that tests and the one that judges or publishes.
//
// It reads and writes files and text. It refuses to judge: every verdict in a
// Run was computed by the detector and is only told here. It is fed by
// harness/monitor while a run goes on, and by the report verbs afterwards.
package reporters
