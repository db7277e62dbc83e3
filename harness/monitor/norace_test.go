//go:build !race

package monitor

// racing says that the race detector makes everything slow.
const racing = false
