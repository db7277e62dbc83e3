package main

import (
	"bytes"
	"errors"
	"io/fs"
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
			dump, err := os.ReadFile(path)
			if run {
				if err != nil || !bytes.Contains(dump, []byte("correct horse")) {
					t.Errorf("of a run: a dump of %d bytes, %v", len(dump), err)
				}
				continue
			}
			if kept := keptDump(t, path+".zst"); !errors.Is(err, fs.ErrNotExist) || bytes.Contains(kept, []byte("correct horse")) {
				t.Errorf("a dump of %d bytes, and one that is not packed: %v", len(kept), err)
			}
		}
	}
}
