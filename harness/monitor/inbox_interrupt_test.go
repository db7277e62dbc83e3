package monitor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// If Ctrl-C is pressed before the run has taken a mark, the mark is removed.
// The error does not claim that the run was killed.
func TestSendMarkInterrupted(t *testing.T) {
	dir := t.TempDir()
	box := filepath.Join(dir, inboxName)
	if err := os.Mkdir(box, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := SendMark(ctx, dir, "loop 1", true)
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
	if left, err := os.ReadDir(box); err != nil || len(left) > 0 {
		t.Errorf("files remain in the inbox: %v, %v", left, err)
	}
}
