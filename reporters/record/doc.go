// Package record is the record of a run, as Go types and as files:
// samples.ndjson, which is appended during the run, and run.json, which is
// written at its end. The program that tests shares only these with those that
// judge, report or publish. docs/formats/run.md describes the formats.
package record
