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

// A dump left by a killed diagnosis is stripped by the next diagnosis in the
// same directory; the dumps of a run are stripped only by its report.
func TestDiagnoseAfterKilledDiagnosis(t *testing.T) {
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
		if code != 0 ||
			strings.Contains(errOut, "artifacts/com.shop/untold belongs to an incomplete diagnosis") == run {
			t.Errorf("exit %d\n%s%s", code, out, errOut)
		}
		for _, path := range dumps {
			dump, err := os.ReadFile(path)
			if run {
				if err != nil || !bytes.Contains(dump, []byte("correct horse")) {
					t.Errorf("the dump of the run was changed: %d bytes, %v", len(dump), err)
				}
				continue
			}
			if kept := keptDump(t, path+".zst"); !errors.Is(err, fs.ErrNotExist) ||
				bytes.Contains(kept, []byte("correct horse")) {
				t.Errorf("the dump of %d bytes is not stripped, or the original was kept: %v", len(kept), err)
			}
		}
	}
}
