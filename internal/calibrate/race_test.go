//go:build race

package main

// racing reports whether the race detector is on, which makes everything slow.
const racing = true
