//go:build !race

package heap_test

// racing is true under the race detector, which slows everything down.
const racing = false
