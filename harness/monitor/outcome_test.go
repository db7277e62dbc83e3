package monitor

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters"
)

// What goes beyond the bound of run.json loses its findings and stays in the list.
func TestDiagnosesAreShortened(t *testing.T) {
	var list []reporters.Diagnosis
	for range 600 {
		list = append(list, reporters.Diagnosis{Folder: "artifacts/x/y", Summary: []string{"a"}, Findings: []reporters.Finding{{What: "leak", Trace: []string{strings.Repeat("x", 100<<10)}}}})
	}
	small := []reporters.Diagnosis{list[0], list[1]}
	if cut := shorten(small); cut != 0 || len(small[0].Findings) != 1 {
		t.Errorf("%d of two are shortened", cut)
	}
	cut := shorten(list)
	text, err := json.Marshal(list)
	if err != nil || cut < 100 || cut > 400 || len(text) > maxDiagnosesText+(1<<20) {
		t.Errorf("%d shortened, %d bytes, %v", cut, len(text), err)
	}
	for i, d := range list {
		if d.Folder == "" || (len(d.Findings) == 0) != (i >= len(list)-cut) {
			t.Fatalf("diagnosis %d has %d findings", i, len(d.Findings))
		}
	}
}
