// Package record is the record of a run, as Go types and as files: samples.ndjson,
// which is appended while the run lasts, and run.json, which is written at its end.
// It is the only thing that the program that tests shares with those that judge,
// report or publish. The formats are described in docs/formats/run.md.
package record
