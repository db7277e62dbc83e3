//go:build !linux

package main

// freeMemory is not known here: 0.
func freeMemory() int64 { return 0 }

// peakMemory is not known here: 0.
func peakMemory() int64 { return 0 }
