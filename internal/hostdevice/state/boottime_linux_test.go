package state

import (
	"os"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// TestHostUptime compares the precise clock with the file that it replaces.
func TestHostUptime(t *testing.T) {
	before, err := HostUptime()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	after, err := HostUptime()
	if err != nil {
		t.Fatal(err)
	}
	file, err := procfs.ParseUptime(text)
	if err != nil || file < before-20*time.Millisecond || file > after {
		t.Errorf("%v, file %v (%v), %v", before, file, err, after)
	}
}
