package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// A dump that a diagnosis has left when it was killed does not stay as it is once there is
// another in the same directory; those of a run are for its report.
func TestDiagnoseAfterOneThatWasKilled(t *testing.T) {
	t.Parallel()
	env := serve(t, shop("phone-a"))
	for _, run := range []bool{false, true} {
		dir, dumps := killedRun(t, "stripped")
		if !run {
			if err := os.Remove(filepath.Join(dir, record.SamplesName)); err != nil {
				t.Fatal(err)
			}
		}
		code, out, errOut := typed(t, env, "diagnose", "--process", "com.shop", "--kind", "thread", "--out", dir)
		if code != 0 || strings.Contains(errOut, "artifacts/com.shop/untold is of a diagnosis that did not") == run {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		for _, path := range dumps {
			if dump, err := os.ReadFile(path); err != nil || bytes.Contains(dump, []byte("correct horse")) != run {
				t.Errorf("of a run: %v: a dump of %d bytes, %v", run, len(dump), err)
			}
		}
	}
}
