package ledger

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/leakgate/leakgate/reporters/record"
)

// diagnoses returns the diagnoses of all processes in time order.
func (p *Part) diagnoses() []record.Diagnosis {
	var out []record.Diagnosis
	for _, a := range p.accounts {
		out = append(out, a.diagnoses...)
	}
	slices.SortStableFunc(out, func(a, b record.Diagnosis) int { return cmp.Compare(a.T, b.T) })
	return out
}

// missingEvidence returns the missing evidence of all processes in time order.
func (p *Part) missingEvidence() []record.MissingEvidence {
	out := slices.Clone(p.missing)
	for _, a := range p.accounts {
		out = append(out, a.missing...)
	}
	slices.SortStableFunc(out, func(a, b record.MissingEvidence) int { return cmp.Compare(a.T, b.T) })
	return out
}

// maxDiagnosesText is the maximum total size in bytes of the diagnoses in
// run.json, because run.json must remain readable (see record.ReadRun).
const maxDiagnosesText = 32 << 20

// shorten removes what exceeds the maximum size: first the findings of
// diagnoses, then entire diagnoses. It returns the number of affected
// diagnoses.
func shorten(list []record.Diagnosis) (kept []record.Diagnosis, cut int) {
	kept = list[:0:0]
	total := 0
	fits := func(d *record.Diagnosis) bool {
		text, err := json.Marshal(d)
		if err != nil || total+len(text) > maxDiagnosesText {
			return false
		}
		total += len(text)
		return true
	}
	for _, d := range list {
		if fits(&d) {
			kept = append(kept, d)
			continue
		}
		cut++
		d.Findings, d.Summary = []record.Finding{}, []string{}
		if fits(&d) {
			kept = append(kept, d)
		}
	}
	return kept, cut
}
