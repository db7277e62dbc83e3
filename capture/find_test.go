package capture

import "testing"

// find returns the processes that match the patterns.
func find(t *testing.T, dev Device, patterns ...Pattern) []Process {
	t.Helper()
	found, err := FindProcesses(t.Context(), dev, patterns)
	if err != nil {
		t.Fatal(err)
	}
	return found.Processes
}
