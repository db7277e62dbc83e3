// Package record is the record of a run, as Go types and as files:
// samples.ndjson, which is appended to during the run, and run.json, which is
// written at its end. It is the only thing that the program that tests shares
// with the programs that judge, report or publish. docs/formats/run.md
// describes the formats.
package record
