package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/text"
)

// written returns a comparison as gate.json.
func written(t testing.TB, c *Comparison) []byte {
	t.Helper()
	dir := t.TempDir()
	if err := Write(dir, c); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func read(t testing.TB, data []byte) *Comparison {
	t.Helper()
	c, err := Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRoundTrip checks that gate.json is read back unchanged, and stays the
// same when it is written and read again.
func TestRoundTrip(t *testing.T) {
	for _, s := range scenarios {
		if s.name == "many-5000" {
			continue
		}
		c := s.comparison()
		first := read(t, written(t, c))
		if s.name != "hostile" {
			if want, got := string(written(t, c)), string(written(t, first)); want != got {
				t.Errorf("%s: the file changes when it is read and written again", s.name)
			}
		}
		if again := read(t, written(t, first)); !reflect.DeepEqual(first, again) {
			t.Errorf("%s: the comparison changes when it is written and read again", s.name)
		}
		if first.Schema != Schema || first.Leaks == nil || first.Reasons == nil || first.Warnings == nil ||
			first.Processes == nil || first.Head.Devices == nil {
			t.Errorf("%s: a list is null instead of empty", s.name)
		}
	}
}

// TestWriteKeepsTheFirst checks that leaks are dropped from the end if a
// comparison is too large for its file.
func TestWriteKeepsTheFirst(t *testing.T) {
	c := many(200, 10)
	for i := range c.Leaks {
		c.Leaks[i].Trace = slices.Repeat([]string{strings.Repeat("t", 1000)}, 100)
	}
	data := written(t, c)
	var got struct {
		Leaks        []struct{ Key string }
		LeaksSkipped int `json:"leaks_omitted"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(data) > maxFile || len(got.Leaks)+got.LeaksSkipped != 200 || got.LeaksSkipped == 0 ||
		got.Leaks[0].Key != c.Leaks[0].Key || len(c.Leaks) != 200 {
		t.Errorf("%d bytes, %d leaks, %d skipped", len(data), len(got.Leaks), got.LeaksSkipped)
	}
	c.Leaks = nil
	c.Warnings = []string{strings.Repeat("x", maxFile)}
	if err := Write(t.TempDir(), c); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Error(err)
	}
	if err := Write(filepath.Join(t.TempDir(), "missing"), clean()); err == nil {
		t.Error("no error for a missing directory")
	}
}

// edited returns gate.json with some parts replaced.
func edited(t testing.TB, pairs ...string) string {
	data := string(written(t, worse()))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(data, pairs[i]) {
			t.Fatalf("gate.json has no %q", pairs[i])
		}
		data = strings.Replace(data, pairs[i], pairs[i+1], 1)
	}
	return data
}

func TestReadErrors(t *testing.T) {
	for want, data := range map[string]string{
		"larger than 16.0 MB":                strings.Repeat(" ", maxFile+1),
		"unexpected end":                     "",
		"schema is \"leakgate.gate/2\"":      edited(t, Schema, "leakgate.gate/2"),
		"schema is \"\"":                     "{}",
		"verdict \"maybe\"":                  edited(t, `"verdict": "fail"`, `"verdict": "maybe"`),
		"leaks[0]: unknown status \"worse\"": edited(t, `"status": "new"`, `"status": "worse"`),
		"leaks[0]: unknown unit \"day\"":     edited(t, `"unit": "loop"`, `"unit": "day"`),
		"head_bytes is out of range: -1":     edited(t, `"head_bytes": 1191936`, `"head_bytes": -1`),
		"head_bytes is out of range: 2000000000": edited(t, `"head_bytes": 1191936`,
			`"head_bytes": 2000000000000000000`),
		"head is out of range: 1e+300":             edited(t, `"head": 1`, `"head": 1e300`),
		"cannot unmarshal number 1e400":            edited(t, `"head": 1`, `"head": 1e400`),
		"bytes_each is negative":                   edited(t, `"head": 99328`, `"head": -99328`),
		"line is out of range":                     edited(t, `"line": 12`, `"line": -12`),
		"pull_request is out of range":             edited(t, `"pull_request": 7`, `"pull_request": 7000000000`),
		"exit_code 0 does not match verdict fail":  edited(t, `"exit_code": 1`, `"exit_code": 0`),
		"exit_code 5 does not match verdict fail":  edited(t, `"exit_code": 1`, `"exit_code": 5`),
		"exit_code 1 does not match verdict neutr": edited(t, `"verdict": "fail"`, `"verdict": "neutral"`),
		"verdict pass has 2 reasons":               edited(t, `"verdict": "fail"`, `"verdict": "pass"`),
		"exit_code 1 does not match verdict pass": strings.Replace(string(written(t, clean())), `"exit_code": 0`,
			`"exit_code": 1`, 1),
		"other_runs is out of range: -1": strings.Replace(string(written(t, noMatch())), `"other_runs": 4`,
			`"other_runs": -1`, 1),
		"other_runs is out of range: 2000000000": strings.Replace(string(written(t, noMatch())), `"other_runs": 4`,
			`"other_runs": 2000000000`, 1),
		"exit_code 256":                      edited(t, `"exit_code": 1`, `"exit_code": 256`),
		"started is out of range: year 1970": edited(t, `"started": "2026`, `"started": "1970`),
		"parsing time":                       edited(t, `"started": "2026`, `"started": "x026`),
		"\"verdict\" twice":                  edited(t, `"verdict": "fail"`, `"verdict": "fail", "verdict": "pass"`),
		"\"Verdict\" twice":                  edited(t, `"verdict": "fail"`, `"verdict": "fail", "Verdict": "pass"`),
		"\"ſtatuſ\" twice":                   edited(t, `"status": "new"`, `"status": "new", "ſtatuſ": "known"`),
		"\"a\" twice":                        edited(t, `"verdict"`, `"unknown": {"a": 1, "a": 2}, "verdict"`),
		"crash\" twice":                      edited(t, `"crash": 1`, `"crash": 1, "crash": 2`),
		"deaths is out of range":             edited(t, `"crash": 1`, `"crash": -1`),
		"levels": edited(t, `"verdict"`, `"unknown": `+strings.Repeat("[", 50)+
			strings.Repeat("]", 50)+`, "verdict"`),
		"values in one list": edited(t, `"verdict"`, `"unknown": [0`+strings.Repeat(",0", maxElements)+
			`], "verdict"`),
		"400000 objects": edited(t, `"verdict"`,
			`"unknown": [`+strings.Repeat("["+strings.Repeat("{},", 40_000)+"{}],", 10)+`[]], "verdict"`),
		"after top-level value":   edited(t) + "{}",
		"cannot unmarshal string": edited(t, `"leaks": [`, `"leaks": ["x", `),
	} {
		if _, err := Read(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestReadBounds(t *testing.T) {
	c := many(20, 0)
	c.Text = strings.Repeat("x", 5000)
	c.Leaks[3].Trace = make([]string, 3000)
	c.Leaks[4].HeldBy = "a\u202eb\nc\x1b[2J"
	c.Warnings = make([]string, 300)
	for range 10_050 - 20 {
		c.Leaks = append(c.Leaks, Row{Status: Known, Unit: unitLoop})
	}
	got := read(t, written(t, c))
	if len(got.Leaks) != 10_000 || got.LeaksOmitted != 50 || len(got.Leaks[3].Trace) != maxList ||
		len([]rune(got.Text)) != maxText {
		t.Errorf("%d leaks, %d skipped, %d lines, %d characters", len(got.Leaks), got.LeaksOmitted,
			len(got.Leaks[3].Trace), len([]rune(got.Text)))
	}
	if got.Leaks[4].HeldBy != "a?b?c?[2J" {
		t.Errorf("%q", got.Leaks[4].HeldBy)
	}
	tail := got.Warnings[maxWarnings-4:]
	if len(got.Warnings) != maxWarnings || !strings.Contains(fmt.Sprint(tail), "strings longer than 1000 characters") ||
		!strings.Contains(tail[1], "leaks has more than 10000 entries") ||
		!strings.Contains(tail[3], "warnings has more") {
		t.Errorf("%d warnings, %q", len(got.Warnings), tail)
	}
	got.Leaks = got.Leaks[:100]
	if again := read(t, written(t, got)); !reflect.DeepEqual(got, again) {
		t.Error("the comparison changes when it is written and read again")
	}
}

// TestReadAcceptsFieldsOfLaterVersions checks that an unknown field is ignored.
func TestReadAcceptsFieldsOfLaterVersions(t *testing.T) {
	c := read(t, []byte(edited(t, `"verdict"`, `"later": {"x": [1, null, "y"]}, "verdict"`)))
	if !reflect.DeepEqual(c, read(t, []byte(edited(t)))) {
		t.Error("an unknown field changes the result")
	}
	c = read(t, []byte(`{"schema":"leakgate.gate/1","verdict":"neutral","reasons":null,"leaks":null}`))
	checkPage(t, Markdown(c, MarkdownOptions{}), MarkdownOptions{})
	checkOthers(t, c)
}

// TestReadVerdicts checks that every exit code that the gate writes with a
// verdict is accepted.
func TestReadVerdicts(t *testing.T) {
	for verdict, codes := range map[Result][]int{Pass: {0}, Fail: {1, 130}, Neutral: {0, 3, 4, 5, 6, 130}} {
		for _, code := range codes {
			c := clean()
			if c.Verdict, c.ExitCode = verdict, code; verdict != Pass {
				c.Reasons = worse().Reasons
			}
			if got := read(t, written(t, c)); got.Verdict != verdict || got.ExitCode != code {
				t.Errorf("wrote verdict %s with exit code %d, read %s with %d", verdict, code, got.Verdict,
					got.ExitCode)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	// The comparisons are small, so that the fuzzer does not spend its time on
	// minimizing them.
	for _, make := range []func() *Comparison{one, nightly, firstDay, notJudged} {
		c := make()
		for i := range c.Leaks {
			c.Leaks[i].Trace = nil
		}
		data, err := json.Marshal(c)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"schema":"leakgate.gate/1","verdict":"pass","leaks":[{"status":"new","unit":"loop"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Read(bytes.NewReader(data)); err == nil {
			checkRead(t, data)
		}
	})
}

// FuzzFields sets every field of a comparison to a random value and checks the
// result like FuzzRead, whose random files are mostly rejected early.
func FuzzFields(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		c := &Comparison{}
		random(rand.New(rand.NewPCG(seed, 1)), reflect.ValueOf(c).Elem(), "")
		c.ExitCode = map[Result]int{Pass: 0, Fail: 1, Neutral: 5}[c.Verdict]
		if c.Verdict == Pass {
			c.Reasons = nil
		}
		file, err := c.file()
		if err != nil {
			t.Fatal(err)
		}
		checkRead(t, file)
	})
}

// words are the keywords that Read accepts.
var words = map[string][]string{
	"schema": {Schema}, "verdict": {"pass", "fail", "neutral"}, "unit": {unitLoop, unitEvent, unitHour, unitRun},
	"type": {whatLeak, whatTrend, "native", "threads", "graphics", "other"},
	"status": {
		"new", "grown", "heavier", "wider", "moved", "accepted", "known", "transient", "shrunk", "gone", "present",
	},
	"file": {"app/A.kt", "../x", "", "a b/c.java"},
}

// random sets every field of v.
func random(r *rand.Rand, v reflect.Value, name string) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == timeType {
			v.Set(reflect.ValueOf(at(1 + r.IntN(28))))
			return
		}
		for i := range v.NumField() {
			random(r, v.Field(i), jsonName(v.Type().Field(i)))
		}
	case reflect.Pointer:
		if r.IntN(4) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			random(r, v.Elem(), name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(5), 5))
		for i := range v.Len() {
			random(r, v.Index(i), name)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]int{hostileTexts[r.IntN(len(hostileTexts))]: r.IntN(9)}))
	case reflect.String:
		list := words[name]
		if list == nil {
			list = hostileTexts
		}
		v.SetString(list[r.IntN(len(list))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int:
		v.SetInt(int64(r.IntN(200)))
	case reflect.Int64:
		v.SetInt([]int64{0, 1, r.Int64N(1 << 20), r.Int64N(maxBytes), maxBytes}[r.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{
			0, 1, r.Float64(), r.Float64() * maxBytes, 1e-300, maxBytes, float64(r.IntN(9)),
		}[r.IntN(7)])
	}
}

// checkRead checks everything that Read guarantees.
func checkRead(t *testing.T, data []byte) {
	t.Helper()
	c := read(t, data)
	checkPrintable(t, c)
	page := Markdown(c, options())
	checkPage(t, page, options())
	if len(page) > 60_000 {
		t.Errorf("%d bytes", len(page))
	}
	checkOthers(t, c)
	file, err := c.file()
	if err != nil {
		t.Fatal(err)
	}
	if again := read(t, file); !reflect.DeepEqual(c, again) {
		t.Error("the comparison changes when it is written and read")
	}
}

// checkPrintable checks the JSON form of a comparison, so that no field is
// forgotten.
func checkPrintable(t *testing.T, c *Comparison) {
	t.Helper()
	data, err := encode(c)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		token, err := dec.Token()
		if err != nil {
			return
		}
		if s, ok := token.(string); ok && (text.Printable(s) != s || len([]rune(s)) > maxText) {
			t.Errorf("text %q", s)
		}
	}
}
