// Package record defines the record of a run, as Go types and as files:
// samples.ndjson, to which lines are appended during the run, and run.json,
// which is written at its end. The program that tests and the programs that
// judge, report or publish share nothing but this record. docs/formats/run.md
// describes the formats.
package record
