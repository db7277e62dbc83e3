package diagnose

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// TestFilledLinesInRealShells checks that a substituted process name is one
// word, whatever it contains.
func TestFilledLinesInRealShells(t *testing.T) {
	for _, shell := range shelltest.Shells(t) {
		tr := shelltest.NewTrap(t, shell)
		for line, want := range goodLines {
			for _, name := range shelltest.HostileNames {
				checkFilled(t, tr, line, want, name)
			}
		}
	}
}

func checkFilled(t *testing.T, tr *shelltest.Trap, line, want, name string) {
	t.Helper()
	p := capture.Process{Name: name, User: 10, PID: 7}
	var out bytes.Buffer
	if exit, err := tr.Shell(t.Context(), fill(line, p, capture.Facts{}), &out, io.Discard); exit != 0 || err != nil {
		t.Fatalf("%s with %q: %d, %v", line, name, exit, err)
	}
	want = strings.NewReplacer("N", p.Name, "P", p.Package(), "|", "\x00").Replace(want) + "\x00"
	if out.String() != want {
		t.Errorf("%s with %q prints %q, want %q", line, name, out.String(), want)
	}
	if tr.Triggered() {
		t.Fatalf("%s with %q: the trap was triggered", line, name)
	}
}
