//go:build !linux

package monitor

// leftRunning returns nil: this system does not expose the environment of
// processes.
func leftRunning(string, int) []string { return nil }
