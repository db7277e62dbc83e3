//go:build race

package monitor

// racing is true if the race detector makes everything slow.
const racing = true
