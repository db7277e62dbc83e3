//go:build race

package main

// racing reports that the race detector makes everything slow.
const racing = true
