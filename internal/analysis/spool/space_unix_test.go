//go:build linux || darwin

package spool

//unit:program a limit on file sizes applies to a whole process

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/recorded"
)

// The result of df (POSIX: 1024-byte units, the fourth column) must be between
// two results of FreeBytes, except for what other processes write or remove in
// the meantime.
func TestFreeBytesAsDf(t *testing.T) {
	dir := t.TempDir()
	for range 20 {
		before, known := FreeBytes(dir)
		text, err := exec.CommandContext(t.Context(), "df", "-P", "-k", dir).Output()
		if err != nil {
			recorded.Missing(t, "df is needed: %v", err)
		}
		after, again := FreeBytes(dir)
		if !known || !again || before <= 0 {
			t.Fatalf("%d, %v, %d, %v", before, known, after, again)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		cells := strings.Fields(lines[len(lines)-1])
		kb, err := strconv.ParseInt(cells[3], 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if df := kb << 10; min(before, after)-1024 <= df && df <= max(before, after)+1024 {
			return
		}
	}
	t.Error("df and FreeBytes never report the same free space")
}

func TestFreeBytesOfNothing(t *testing.T) {
	if n, known := FreeBytes(filepath.Join(t.TempDir(), "none")); known {
		t.Errorf("%d bytes", n)
	}
}
