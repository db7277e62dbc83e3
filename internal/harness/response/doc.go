// Package response is the response of a run to a leak: it collects the right
// artifacts (with package diagnose), analyses them, keeps heap dumps only in
// the requested form, and writes everything below the run directory, each
// artifact with a short text beside it.
//
// It does not decide when to respond: package monitor and `leakgate diagnose`
// do. One Responder serves a run with all its devices.
package response
