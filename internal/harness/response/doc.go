// Package response is what a run does about a leak: it has the right artifacts
// collected (capture does that), says what they show (analysis does that), keeps
// heap dumps only in the form that was asked for, and writes all of it below the
// run directory, each artifact with a short text beside it.
//
// It refuses to decide when: no clock, no detector, no queue. One Responder serves
// a run with all its devices. It is fed by package monitor and by `leakgate
// diagnose`.
package response
