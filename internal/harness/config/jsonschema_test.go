package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	schemas "github.com/leakgate/leakgate/internal/schema"
	"gopkg.in/yaml.v3"
)

// compiled returns the schema as compiled by an independent library.
func compiled(t *testing.T) *schemas.Schema {
	t.Helper()
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schemas.Compile(text) // also checks the schema against the metaschema
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The published copy is up to date.
func TestPublishedSchema(t *testing.T) {
	text, err := JSONSchema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../../../docs/formats/leakgate.schema.json", string(text))
}

// asJSON returns a file as an editor parses it: decoded by the library, with
// merges and aliases resolved.
func asJSON(text []byte) (any, error) {
	documents := yaml.NewDecoder(bytes.NewReader(text))
	var first any
	if err := documents.Decode(&first); err != nil {
		return nil, err
	}
	for {
		err := documents.Decode(new(any))
		if errors.Is(err, io.EOF) {
			return plainValue(first), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func plainValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = plainValue(e)
		}
		return out
	case map[any]any:
		out := map[string]any{}
		for k, e := range v {
			out[fmt.Sprint(k)] = plainValue(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainValue(e)
		}
		return out
	case time.Time:
		// Editors have no date type: they parse a date as a string.
		if v.Equal(v.Truncate(24 * time.Hour)) {
			return v.Format(time.DateOnly)
		}
		return v.Format(time.RFC3339)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
		return json.Number(fmt.Sprint(v))
	case int, int64, uint64:
		return json.Number(fmt.Sprint(v))
	}
	return v
}

// readerOnly lists the messages about mistakes that only the reader can detect,
// each with the reason why a schema cannot.
var readerOnly = []struct {
	message *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`a second document`), "an editor validates each document of a file separately"},
	{regexp.MustCompile(`duplicate key`),
		"an editor's YAML parser rejects duplicate keys; a schema sees only one of them"},
	{regexp.MustCompile(`^a tag such as`), "a schema sees the value, not its tag"},
	{regexp.MustCompile(`is not a regular expression`),
		"a schema cannot compile a regular expression of another dialect"},
	{regexp.MustCompile(`^the argument (delay_msec|class) `),
		"a schema allows any argument name, even those that have their own keys"},
	{regexp.MustCompile(`<<`), "merges are resolved before a schema sees the file"},
	{regexp.MustCompile(`nested more than|^a key must be a word`), "a schema does not check values that no key of the file uses"},
	{regexp.MustCompile(`variable|\$\{|filled in from`), "a schema cannot read environment variables"},
	{regexp.MustCompile(`is in the list twice`), "leakgate compares the entries as strings, but a schema treats 1 and 1.0 as equal"},
	{regexp.MustCompile(`serials names only|only \d|is the name of two steps`),
		"a schema cannot compare two values of a file"},
	{regexp.MustCompile(`^is "[^"]*[a-zµμ%B]+", but must be`),
		"a schema cannot parse a quantity with a unit, so its range is unknown"},
	{regexp.MustCompile(`^is "\+?[0-9._]+", but must be`),
		"a schema sees a string, so the range is unknown"},
	{regexp.MustCompile(`is not a (whole )?number|is not a percentage|is "[^"]*", but the only version of this file`),
		"YAML has many notations for a number; a schema sees only the number"},
	{regexp.MustCompile(`has .* as character|begins with a hyphen|begins or ends with a space`),
		"a schema sees a number if YAML parses the name as one"},
	{regexp.MustCompile(`is too (long|large)|has \d+ bytes|has a NUL`),
		"lengths and sizes are checked after substitution"},
	{regexp.MustCompile(`which is the program, is blank`),
		"the first entry of the list is checked after substitution"},
	{regexp.MustCompile(`\(with `), "a schema does not apply a profile to the file"},
	{regexp.MustCompile(`is not a placeholder|^"\{" is not closed`),
		"the braces of a command are checked after substitution"},
	{regexp.MustCompile(`^invalid rule `), "the words and numbers of a rule are parsed after substitution"},
	{regexp.MustCompile(`a star alone`), "the schema's pattern for names also allows an empty prefix"},
}

// reasonFor returns the reason why a schema cannot detect a problem, or "" if
// it can.
func reasonFor(p Problem) string {
	for _, r := range readerOnly {
		if r.message.MatchString(p.Message) {
			return r.reason
		}
	}
	if strings.HasPrefix(p.Path, "profiles.") && strings.Contains(p.Message, "the monkey needs a package") {
		return "a schema does not apply a profile to the file"
	}
	if p.Line == 0 || strings.HasPrefix(p.Message, "there is no profile") {
		return "the problem is not in the file"
	}
	return ""
}

// agreement compares the reader and the schema on one file. The schema must
// accept every file that the reader accepts. It must also reject every file
// that the reader rejects, unless a schema cannot detect any of the problems in
// it.
func agreement(t *testing.T, s *schemas.Schema, name string, text []byte, getenv func(string) (string, bool),
	choices ...Choice) string {
	t.Helper()
	_, err := Parse(name, text, getenv, choices...)
	doc, broken := asJSON(text)
	if broken != nil {
		// An anchor below x- may contain itself, because the reader reads only
		// the referenced values below x-.
		if err == nil &&
			!(strings.Contains(broken.Error(), "contains itself") && bytes.Contains(text, []byte("\nx-"))) {
			t.Errorf("%s: accepted, but it cannot be converted to JSON: %v\n%s", name, broken, text)
		}
		return "invalid YAML"
	}
	refused := s.Validate(doc)
	if err == nil {
		if refused != nil {
			t.Errorf("%s: the reader accepts, the schema rejects: %v\n%s", name, refused, text)
		}
		return "both accept"
	}
	if refused != nil {
		return "both reject"
	}
	problems, _ := errors.AsType[Errors](err)
	for _, p := range problems {
		if reasonFor(p) == "" {
			t.Errorf("%s: the schema could also reject this: %v\n%s", name, p, text)
		}
	}
	return "only the reader rejects"
}

// onlyReader lists the files of the corpus that only the reader rejects,
// because a schema cannot detect the mistakes in them. The schema rejects every
// other file that is valid YAML.
var onlyReader = map[string]bool{
	"07_number_in_another_notation.yaml": true,
	"22_more_devices_than_serials.yaml":  true,
	"23_variable_not_set.yaml":           true,
	"27_profile_that_does_not_fit.yaml":  true,
	"28_profile_of_another_name.yaml":    true,
	"29_variable_for_a_key.yaml":         true,
	"30_flag_for_a_key.yaml":             true,
	"deep.yaml":                          true,
	"tags.yaml":                          true,
}

func TestSchemaOnCorpus(t *testing.T) {
	s := compiled(t)
	count := map[string]int{}
	for _, file := range badFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, line := filepath.Base(file), commandOf(t, file, text)
		got := agreement(t, s, name, text, line.getenv, line.choices...)
		count[got]++
		if (got == "only the reader rejects") != onlyReader[name] || got == "both accept" {
			t.Errorf("%s: %s", name, got)
		}
	}
	t.Log(count)
}

// Every example that is presented to users as valid is also valid for an
// editor.
func TestSchemaOnExamples(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("../../../examples/nightly/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find the examples: %d, %v", len(files), err)
	}
	starter, err := Starter("com.shop")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{"starter": starter, "full": []byte(full)}
	for _, file := range files {
		if texts[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range texts {
		if got := agreement(t, s, name, text, nil); got != "both accept" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Each key accepts its own examples and its own default in the table of keys.
func TestSchemaExamples(t *testing.T) {
	s := compiled(t)
	for _, l := range leaves(schema(defaults())) {
		if l.key.about == "" || l.key.example == "" {
			t.Errorf("%s is not documented", l.path)
			continue
		}
		for _, example := range []string{l.key.example, defaultOf(l.key)} {
			if example == "" {
				continue
			}
			lines, indent := []string{}, ""
			words := l.names
			for _, word := range words[:len(words)-1] {
				lines, indent = append(lines, indent+word+":"), indent+"  "
			}
			lines = append(lines, indent+words[len(words)-1]+": "+example)
			if strings.HasPrefix(l.path, "workload.monkey.") && !strings.HasSuffix(l.path, "events") {
				lines = append(lines, indent+"events: 5")
			}
			if strings.HasPrefix(l.path, "workload.instrument.") && !strings.HasSuffix(l.path, "component") {
				lines = append(lines, indent+"component: a.b")
			}
			if other, ok := strings.CutPrefix(l.path, "workload.windows."); ok {
				lines = append(lines, indent+map[string]string{"begin": "end", "end": "begin"}[other]+": x",
					"  device_command: input")
			}
			if l.path == "app.mapping" || l.path == "app.variant" {
				lines = append(lines, indent+"package: com.shop")
			}
			text := strings.Join(lines, "\n") + "\n"
			for _, rest := range []string{
				"version: 1\n", "app: { package: com.shop }\n", "workload: none\n", "duration: 1h\n",
			} {
				if key, _, _ := strings.Cut(rest, ":"); key != words[0] {
					text += rest
				}
			}
			if strings.HasPrefix(text, "devices:\n  require") {
				text = strings.Replace(text, "devices:\n", "devices:\n  serials: [a, b]\n", 1)
			}
			if got := agreement(t, s, l.path, []byte(text), nil); got != "both accept" {
				_, err := Parse("example.yaml", []byte(text), nil)
				t.Errorf("%s: %s\n%s\n%v", l.path, got, text, err)
			}
		}
	}
}

// TestSchemaAgrees writes random files, corrupts the values, keys and lines of
// most of them, and checks that the reader and the schema agree.
func TestSchemaAgrees(t *testing.T) {
	s := compiled(t)
	w := &writer{rng: rand.New(rand.NewPCG(7, 8))}
	count := map[string]int{}
	for i := range 700 {
		_, text := w.random()
		if i%4 != 0 {
			text = w.breakValue(text)
		}
		count[agreement(t, s, fmt.Sprintf("random %d", i), []byte(text), environment)]++
		if t.Failed() {
			return
		}
	}
	for i, text := range mutations(full, 200) {
		count[agreement(t, s, fmt.Sprintf("mutated %d", i), []byte(text), environment)]++
		if t.Failed() {
			return
		}
	}
	t.Log(count)
	if count["both accept"] < 150 || count["both reject"] < 150 || count["only the reader rejects"] < 10 {
		t.Errorf("too little variation among the files: %v", count)
	}
}

// breakValue corrupts one value or key.
func (w *writer) breakValue(text string) string {
	spots := regexp.MustCompile(`[^\s{}\[\],:"'#$]+`).FindAllStringIndex(text, -1)
	at := spots[w.rng.IntN(len(spots))]
	was := text[at[0]:at[1]]
	if strings.HasPrefix(text[at[1]:], ":") {
		return text[:at[0]] + pick(w, "speed", "x", "version", "monkey", "nromal", "true", "1", "package") +
			text[at[1]:]
	}
	if regexp.MustCompile(`[0-9](s|m|h|d)$`).MatchString(was) {
		return text[:at[0]] + pick(w, "1ms", "0s", "500d", "2000h", "1ns") + text[at[1]:]
	}
	return text[:at[0]] +
		pick(w, "0", "-1", "1", "30", "17", "1e3", "0.5", "2.5", "101", "true", "~", "none", "live", "auto", "8h",
			"-8h", "500ms", "2d",
			"25%", "-5%", "2000%", "200MB", "1.5 GiB", "com.shop", "shop", `"1"`, `"30"`, `"07"`, `"${SHOP}"`, `"$${"`,
			"[a]", "{ a: b }", "[]", "{}", "2001-01-01", ".inf", "0x10", "1_000", "99999999999", "heap", "at_end",
			"stripped", "{pid}",
			`"== 0"`, "new == 0", `"!= leak"`, "bytes < 1 GB", "file:x", "git:x", "changed || failed", "model") +
		text[at[1]:]
}
