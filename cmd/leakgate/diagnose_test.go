package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// What a diagnosis that crashed has left on the phone goes with the next one, and nothing
// of anybody else does.
func TestDiagnoseSweeps(t *testing.T) {
	t.Parallel()
	phone := shop("phone-a")
	const left, other = "/data/local/tmp/leakgate-abc-def.hprof", "/data/local/tmp/mine.hprof"
	for _, name := range []string{left, other} {
		w, err := phone.Create(name, 0o644)
		if err == nil {
			_, err = io.WriteString(w, "x")
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	code, out, errOut := typed(t, serve(t, phone), "diagnose", "--process", "com.shop", "--kind", "thread", "--out", filepath.Join(t.TempDir(), "now"))
	if code != exitOK || !strings.Contains(errOut, left) || strings.Contains(errOut, other) || !strings.Contains(out, "threads: ") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if r, err := phone.Open(left); err == nil {
		t.Error("still there", r.Close())
	}
	r, err := phone.Open(other)
	if err != nil {
		t.Fatal("gone, too:", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
