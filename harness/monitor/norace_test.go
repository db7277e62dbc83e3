//go:build !race

package monitor

// racing says whether the race detector makes everything slow.
const racing = false
