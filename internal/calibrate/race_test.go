//go:build race

package main

// racing says that the race detector makes everything slow.
const racing = true
