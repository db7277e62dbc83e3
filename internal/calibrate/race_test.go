//go:build race

package main

// racing reports that the race detector is on, which makes everything slow.
const racing = true
