package record

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// jsonNames adds the names of all fields of a type, including nested ones, to
// names.
func jsonNames(of reflect.Type, names map[string]bool) {
	for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[Run]().PkgPath() {
		return
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names[name] = true
		}
		jsonNames(f.Type, names)
	}
}

// The documentation page of the format must list every field of a run, of its
// lines and of diagnosis.json. The fields of a diagnosis are in a separate
// section.
func TestRunPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/formats/run.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	section := func(heading string) string {
		_, part, ok := strings.Cut(page, "\n## "+heading+"\n")
		if !ok {
			t.Fatalf("no section %s", heading)
		}
		part, _, _ = strings.Cut(part, "\n## ")
		return part
	}
	for _, c := range []struct {
		text string
		of   any
		most int
	}{
		{section("A diagnosis"), Diagnosis{}, 25},
		{section("samples.ndjson"), Headroom{}, 11},
		{section("samples.ndjson"), Event{}, 20},
		{section("run.json"), LimitWarning{}, 7},
		{section("run.json"), Standing{}, 8},
		{page, Run{}, 80},
		{page, Sample{}, 15},
		{page, Header{}, 12},
	} {
		names := map[string]bool{}
		jsonNames(reflect.TypeOf(c.of), names)
		switch c.of.(type) {
		case Event, Sample: // nested fields are in another section
			names = ownNames(reflect.TypeOf(c.of))
		}
		delete(names, "schema") // the page documents its value
		for name := range names {
			if !strings.Contains(c.text, "`"+name+"`") && !strings.Contains(c.text, "`"+name+"[]`") &&
				!strings.Contains(c.text, `"`+name+`":`) {
				t.Errorf("%T: no field %s", c.of, name)
			}
		}
		if len(names) < c.most {
			t.Errorf("%T has %d fields", c.of, len(names))
		}
	}
	for _, schema := range []string{RunSchema, SamplesSchema, DiagnosisSchema} {
		if !strings.Contains(page, "`"+schema+"`") {
			t.Errorf("no schema %s", schema)
		}
	}
}

// ownNames returns the names of the fields of a type, without nested ones.
func ownNames(of reflect.Type) map[string]bool {
	names := map[string]bool{}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}
