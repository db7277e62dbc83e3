package replay

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/reporters/record"
)

// place is a key of a header: the object that contains the key, and the path of
// the key.
type place struct {
	object    map[string]any
	key, path string
}

// places returns all keys of a value, at any depth of objects and lists.
func places(path string, v any) []place {
	var out []place
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			out = append(append(out, place{v, key, below}), places(below, v[key])...)
		}
	case []any:
		for i, element := range v {
			out = append(out, places(fmt.Sprintf("%s[%d]", path, i), element)...)
		}
	}
	return out
}

// If any key of a header is misspelled, removed, added, set to null or set to a
// value of another type, report and replay name the key in an error or in a
// warning of the verdict. Null is valid for keys whose value is optional.
func TestHeaderWithAnyKeyWrong(t *testing.T) {
	h := record.Header{
		Schema:  record.SamplesSchema,
		Devices: []record.HeaderDevice{{Device: "S1", Model: "m", API: 34, StartedUp: 100, TimeScale: 1}},
		Plan: &record.Plan{
			Tool: "t", Assert: record.AssertEnd, Processes: []string{"*"},
			Workload: &record.PlannedWorkload{Kind: "monkey", Seed: new(int64(7)), Events: 5},
		},
	}
	h.Plan.SetPolicy(detector.RobustPolicy())
	clean, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if said := verdictsOf(t, clean); len(said[0])+len(said[1]) > 0 {
		t.Fatalf("valid: %q", said)
	}
	tree := func() (v map[string]any) {
		if err := json.Unmarshal(clean, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	tried := 0
	try := func(v map[string]any, what string, names ...string) {
		tried++
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for i, said := range verdictsOf(t, text) {
			for _, name := range names {
				if !strings.Contains(said, name) {
					t.Errorf("%s, %s: no %q in %q", [...]string{"report", "replay"}[i], what, name, said)
				}
			}
		}
	}
	for i, original := range places("", tree()) {
		at := func() (map[string]any, place) { v := tree(); return v, places("", v)[i] }
		for _, other := range []string{original.key + "x", original.key[1:] + "z", strings.ToUpper(original.key)} {
			v, p := at()
			p.object[other] = p.object[p.key]
			delete(p.object, p.key)
			try(v, "misspelt "+p.path, original.key)
		}
		v, p := at()
		delete(p.object, p.key)
		try(v, "without "+p.path, p.key)
		v, p = at()
		p.object["another"] = p.object[p.key]
		try(v, "additional key next to "+p.path, "another")
		v, p = at()
		p.object[p.key] = []any{[]any{}}
		try(v, "other type of "+p.path, p.key)
		if p.path == "plan.workload" || p.path == "plan.workload.seed" {
			continue
		}
		v, p = at()
		p.object[p.key] = nil
		try(v, "null for "+p.path, p.key)
	}
	// A duplicate key is tested separately: a decoder into a map cannot detect
	// it.
	for _, p := range places("", tree()) {
		twice := strings.Replace(string(clean), `"`+p.key+`":`, `"`+p.key+`":0,"`+p.key+`":`, 1)
		for _, said := range verdictsOf(t, []byte(twice)) {
			if !strings.Contains(said, p.key) {
				t.Errorf("%s twice: %q", p.path, said)
			}
		}
	}
	if tried < 150 {
		t.Errorf("%d headers", tried)
	}
}

// verdictsOf returns what report and replay print about a run with this header:
// the warnings, or the reason why there is no verdict.
func verdictsOf(t *testing.T, header []byte) [2]string {
	t.Helper()
	text := string(header) + "\n"
	for i := range 10 {
		text += fmt.Sprintf(`{"t_s":%d,"up_s":%d,"device":"S1","user":0,"process":"a","pid":1,"start":2,"source":"smaps_rollup","pss_kb":5}`+"\n", 30*i, 100+30*i)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, record.SamplesName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out [2]string
	run, _, err := ledger.Rebuild(dir)
	if err != nil {
		out[0] = err.Error()
	} else {
		out[0] = strings.Join(run.Warnings, "\n")
	}
	result, err := Run(t.Context(), []string{dir}, Options{Policy: detector.RobustPolicy()})
	if err != nil {
		out[1] = err.Error()
	} else {
		out[1] = strings.Join(result.Warnings, "\n")
	}
	return out
}
