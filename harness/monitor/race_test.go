//go:build race

package monitor

// racing reports whether the race detector is enabled, which makes everything
// slow.
const racing = true
