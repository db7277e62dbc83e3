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

// gone is an output that nobody reads any more.
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
		for name, more := range map[string][]string{"text": nil, "json": {"--json"}} {
			var errOut bytes.Buffer
			c := environment(phone.env, &bytes.Buffer{}, &errOut)
			c.dial, c.out = phone.dial, gone{}
			if code := call(append([]string{"run", "run.yaml", "--out", name}, more...), c); code != exitUsage {
				t.Errorf("%s: exit %d\n%s", name, code, errOut.String())
			}
			if _, err := os.Stat(filepath.Join(name, "gate.json")); err != nil {
				t.Errorf("%s: %v\n%s", name, err, errOut.String())
			}
		}
	})
}
