// Package monitor is the engine: one session per device with its processes,
// their detectors and the two channels of capture, beside a workload that
// stresses the app. It owns time: it decides when a channel is read, by what the
// detectors demand, on the clock that the device tells.
//
// It records every sample and event as it arrives and writes run.json at the
// end. It refuses to judge (detector does), to parse (capture does) and to
// depend on a test framework. It is fed by the verbs run, watch and demo.
package monitor
