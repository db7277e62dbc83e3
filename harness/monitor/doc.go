// Package monitor runs and records a run: one session per device with its
// watched processes, and a workload that exercises the app. It decides when
// each process is read, according to its detector and on the device's clock.
//
// Every sample and event is written to samples.ndjson as it arrives; the
// verdicts are derived from these lines (package ledger).
package monitor
