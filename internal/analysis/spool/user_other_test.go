//go:build unix && !linux

package spool

import (
	"os"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// asOther runs f without root privileges, because root may read everything.
func asOther(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		recorded.Missing(t, "a user other than root is needed")
	}
	f()
}
