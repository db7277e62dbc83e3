package record_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// TestReadRefusesRetiredKeys checks that files from before the first release
// are rejected; otherwise the values of renamed keys would be lost.
func TestReadRefusesRetiredKeys(t *testing.T) {
	const samples = `{"schema":"leakgate.samples/1","started":"2026-01-02T03:04:05Z","devices":[],"plan":null}
{"t_s":1,"up_s":2,"device":"S1","event":"gap","lasted_s":4}
`
	_, err := record.ReadSamples(strings.NewReader(samples), record.Lines{Damaged: func(int, error) {}})
	if err == nil || !strings.Contains(err.Error(), `"lasted_s"`) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("samples: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.json"),
		[]byte(`{"schema":"leakgate.run/1","processes":[{"because":"x"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := record.ReadRun(dir); err == nil || !strings.Contains(err.Error(), `"because"`) {
		t.Errorf("run.json: %v", err)
	}
}
