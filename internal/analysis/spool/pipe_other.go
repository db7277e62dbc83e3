//go:build !unix

package spool

// wake does nothing: opening a pipe does not block on this system.
func wake(string, <-chan struct{}) {}
