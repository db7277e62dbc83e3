// Package monitor executes and records a run: it has one session per device for
// the watched processes, and a workload that exercises the app. A process is
// read whenever its detector demands it; the schedule follows the device's
// clock.
//
// Every sample and event is written to samples.ndjson as it arrives; the
// verdicts are derived from these lines (package ledger).
package monitor
