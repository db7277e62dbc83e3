//go:build race

package heap_test

// racing is true with the race detector, which makes everything slow.
const racing = true
