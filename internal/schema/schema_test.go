package schema

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

var update = flag.Bool("update", false, "update the schemas in docs/formats")

// TestPublished checks that the published schemas match the types. Run the test
// with -update and review the difference.
func TestPublished(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		name, _, _ := strings.Cut(strings.TrimPrefix(name, "heap."), ".")
		page := filepath.Join("..", "..", "docs", "formats", name+".schema.json")
		if *update {
			if err := os.WriteFile(page, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if kept, err := os.ReadFile(page); err != nil || string(kept) != string(text) {
			t.Errorf("%s does not match the types: update it with `go test ./internal/schema -update` (%v)", page, err)
		}
		if _, err := Compile(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sample contains a field of each form that can occur in a file.
type sample struct {
	Base
	Text    string            `json:"text"`
	When    time.Time         `json:"when"`
	Maybe   *int64            `json:"maybe"`
	List    []Base            `json:"list"`
	Left    []string          `json:"left,omitzero"`
	Map     map[string]bool   `json:"map,omitempty"`
	Self    *sample           `json:"self,omitempty"`
	Inline  struct{ A uint8 } `json:"inline"`
	Ignored chan int          `json:"-"`
	hidden  int
}

// Base is embedded, so its fields belong to sample.
type Base struct {
	Rate float64 `json:"rate"`
}

// JSON written by encoding/json must be valid for any values of the fields. A
// document must be invalid if a field is missing or has a different type.
func TestOf(t *testing.T) {
	text, err := Of("test", reflect.TypeFor[sample]())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Compile(text)
	if err != nil {
		t.Fatal(err)
	}
	full := sample{
		Base: Base{1.5}, Text: "x", Maybe: new(int64(7)), List: []Base{{2}}, Left: []string{},
		Map: map[string]bool{"a": true}, Self: &sample{}, hidden: 1,
	}
	for _, v := range []sample{{}, full} {
		doc, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(doc); err != nil {
			t.Errorf("%s: %v", doc, err)
		}
	}
	good, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{
		`"rate":1.5`: `"rate":"1.5"`, `"text":"x",`: "", `"maybe":7`: `"maybe":7.5`,
		`"list":[{"rate":2}]`: `"list":[{}]`, `"a":true`: `"a":1`,
		`"inline":{"A":0}`: `"inline":{"A":-1}`, `"when":"`: `"when":1,"x":"`,
	} {
		bad := strings.Replace(string(good), from, to, 1)
		if bad == string(good) {
			t.Fatalf("%s is missing in %s", from, good)
		}
		if s.Check([]byte(bad)) == nil {
			t.Errorf("%s validates", bad)
		}
	}
}

// An invalid line must be reported, and so must a JSON file without a schema.
func TestCheckRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := record.WriteRun(dir, record.Run{Schema: record.RunSchema}); err != nil {
		t.Fatal(err)
	}
	if n, err := CheckRun(dir); n != 1 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
	write(record.SamplesName, `{"t_s":1,"up_s":2,"device":"S1","event":"mark"}`+"\n"+`{"t_s":1}`+"\n")
	if n, err := CheckRun(dir); n != 3 || err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%d documents, %v", n, err)
	}
	write("other.json", "{}")
	if _, err := CheckRun(dir); err == nil || !strings.Contains(err.Error(), "other.json has no schema") {
		t.Errorf("%v", err)
	}
}
