//go:build !linux

package monitor

// leftRunning returns nil: this system does not show the environment of processes as Linux does.
func leftRunning(string, int) []string { return nil }
