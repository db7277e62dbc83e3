package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/leakgate/leakgate/internal/androidsim"
)

// gone is an output whose reader has exited.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// A run is judged even if its verdict cannot be printed.
func TestRunGatedUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inFolder(t)
		if err := os.WriteFile("run.yaml", []byte(gated("")), 0o600); err != nil {
			t.Fatal(err)
		}
		phone := attach(t, androidsim.ServedDemo(60, 1))
		push(t, phone, "CheckoutActivity", "/data/local/tmp/screens")
		var errOut bytes.Buffer
		c := environment(phone.env, &bytes.Buffer{}, &errOut)
		c.dial, c.out = phone.dial, gone{}
		if code := call([]string{"run", "run.yaml", "--out", "run"}, c); code != exitUsage {
			t.Errorf("exit %d\n%s", code, errOut.String())
		}
		if _, err := os.Stat(filepath.Join("run", "gate.json")); err != nil {
			t.Errorf("%v\n%s", err, errOut.String())
		}
	})
}
