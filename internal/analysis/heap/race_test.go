//go:build race

package heap_test

// racing says that the race detector makes everything slow.
const racing = true
