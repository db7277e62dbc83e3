//go:build unix && realtime && e2e

package main

import (
	"path/filepath"
	"testing"
)

// A run with a workload on the host is as private as one without.
func TestRunOfHostWorkloadIsPrivate(t *testing.T) {
	for name, umask := range map[string]int{"umask 022": 0o022, "umask 077": 0o077} {
		t.Run(name, func(t *testing.T) {
			h := newPrivateHost(t)
			dir := filepath.Join(h.home, "runs", "tonight")
			h.run(t, umask, dir, hostWork)
			h.assertPrivateRun(t, dir, 0)
		})
	}
}
