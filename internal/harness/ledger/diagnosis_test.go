package ledger

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/reporters/record"
)

// A diagnosis that exceeds the size limit of run.json loses its findings and
// stays in the list.
func TestDiagnosesAreShortened(t *testing.T) {
	var list []record.Diagnosis
	for range 600 {
		list = append(list,
			record.Diagnosis{
				Folder: "artifacts/x/y", Summary: []string{"a"},
				Findings: []record.Finding{{Type: "leak", Trace: []string{strings.Repeat("x", 100<<10)}}},
			})
	}
	small := []record.Diagnosis{list[0], list[1]}
	if kept, cut := shorten(small); cut != 0 || len(kept) != 2 || len(kept[0].Findings) != 1 {
		t.Errorf("%d of 2 diagnoses were shortened, want none", cut)
	}
	n := len(list)
	kept, cut := shorten(list)
	text, err := json.Marshal(kept)
	if err != nil || cut < 100 || cut > 400 || len(text) > maxDiagnosesText+n {
		t.Errorf("%d shortened, %d bytes, %v", cut, len(text), err)
	}
	if len(kept) > n || len(kept) < n-cut {
		t.Errorf("kept %d of %d diagnoses and shortened %d", len(kept), n, cut)
	}
	for i, d := range kept {
		if d.Folder == "" || (len(d.Findings) == 0) != (i >= n-cut) {
			t.Fatalf("diagnosis %d has %d findings", i, len(d.Findings))
		}
	}
	if kept, cut := shorten(nil); kept != nil || cut != 0 {
		t.Errorf("empty list: %v kept, %d shortened", kept, cut)
	}
}

// The steps of many diagnoses alone exceed the limit.
func TestDiagnosesAreOmitted(t *testing.T) {
	list := make([]record.Diagnosis, 20_000)
	for i := range list {
		list[i] = record.Diagnosis{Steps: []record.Collected{{Reasons: []string{strings.Repeat("x", 3000)}}}}
	}
	kept, cut := shorten(list)
	text, err := json.Marshal(kept)
	if err != nil || len(text) > maxDiagnosesText+len(kept)+1 || len(kept) < 10_000 || cut != 20_000-len(kept) {
		t.Errorf("%d kept, %d omitted, %d bytes, %v", len(kept), cut, len(text), err)
	}
}
