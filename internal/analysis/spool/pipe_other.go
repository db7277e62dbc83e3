//go:build !unix

package spool

// wake does nothing: opening a pipe does not wait here.
func wake(string, <-chan struct{}) {}
