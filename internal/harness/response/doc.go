// Package response responds to a leak that a run has found: it collects the
// right artifacts (with package diagnose), analyzes them, keeps heap dumps only
// in the requested form, and writes everything below the run directory, each
// artifact with a short summary beside it.
//
// It does not decide when to respond: package monitor and `leakgate diagnose`
// do. One Responder serves all devices of a run.
package response
