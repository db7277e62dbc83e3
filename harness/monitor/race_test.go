//go:build race

package monitor

// racing reports whether the race detector, which makes everything slow, is
// enabled.
const racing = true
