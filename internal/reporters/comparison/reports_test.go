package comparison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// checkSARIF checks a file against the parts of SARIF 2.1.0 that GitHub
// requires.
func checkSARIF(t *testing.T, c *Comparison) sarifLog {
	t.Helper()
	var out bytes.Buffer
	if err := WriteSARIF(&out, c, ""); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 10_000_000 {
		t.Errorf("%d bytes", out.Len())
	}
	var log sarifLog
	dec := json.NewDecoder(bytes.NewReader(out.Bytes()))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 {
		t.Fatalf("version %q, %d runs", log.Version, len(log.Runs))
	}
	rules := log.Runs[0].Tool.Driver.Rules
	for _, r := range rules {
		if r.ID == "" || r.Short.Text == "" || r.Full.Text == "" || r.Help.Text == "" || r.Default.Level == "" {
			t.Errorf("incomplete rule %+v", r)
		}
	}
	if len(log.Runs[0].Results) > 5000 {
		t.Errorf("%d results", len(log.Runs[0].Results))
	}
	for i, raw := range log.Runs[0].Results {
		if i < 20 || i%100 == 0 {
			checkResult(t, raw, rules)
		}
	}
	return log
}

func checkResult(t *testing.T, raw json.RawMessage, rules []sarifRule) {
	t.Helper()
	var r sarifResult
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if r.RuleIndex >= len(rules) || rules[r.RuleIndex].ID != r.RuleID ||
		!slices.Contains([]string{"error", "warning", "note"}, r.Level) || r.Message.Text == "" ||
		strings.Contains(r.Message.Text, "](") || strings.ContainsAny(r.Message.Text, "{}") {
		t.Errorf("result %s", raw)
	}
	if _, ok := r.Prints["leakgateKey/v1"]; !ok || len(r.Locations) != 1 {
		t.Errorf("result %s", raw)
	}
	locations := slices.Clone(r.Locations)
	for _, flow := range r.CodeFlows {
		if len(flow.ThreadFlows) != 1 || len(flow.ThreadFlows[0].Locations) == 0 {
			t.Errorf("empty code flow: %s", raw)
		}
		for _, l := range flow.ThreadFlows[0].Locations {
			locations = append(locations, l.Location)
		}
	}
	for _, l := range locations {
		file, err := url.PathUnescape(l.Physical.Artifact.URI)
		if err != nil || repositoryPath(file) == "" || l.Physical.Artifact.URIBase != "%SRCROOT%" ||
			l.Physical.Region.StartLine < 1 {
			t.Errorf("location %+v", l)
		}
	}
}

func TestSARIF(t *testing.T) {
	var out bytes.Buffer
	if err := WriteSARIF(&out, worse(), ""); err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "worse.sarif", indented.Bytes())
	if log := checkSARIF(t, worse()); len(log.Runs[0].Results) != 2 {
		t.Errorf("got %d results, want 2: the new leak and the heavier one", len(log.Runs[0].Results))
	}
	if log := checkSARIF(t, clean()); log.Runs[0].Results == nil || len(log.Runs[0].Results) != 0 {
		t.Error("a clean run needs an empty list: otherwise its alerts remain open")
	}
	if log := checkSARIF(t, many(5010, 5010)); len(log.Runs[0].Results) != 5000 ||
		fmt.Sprint(log.Runs[0].Properties["skippedResults"]) != "10" {
		t.Errorf("%d results, %v", len(log.Runs[0].Results), log.Runs[0].Properties)
	}
	large := many(3000, 3000)
	for i := range large.Leaks {
		large.Leaks[i].Suspects = slices.Repeat(large.Leaks[i].Suspects, 20)
	}
	if log := checkSARIF(t, large); len(log.Runs[0].Results) == 3000 {
		t.Error("no results are dropped from an oversized file")
	}
}

// checkCodeQuality checks a report against GitLab's documentation of the
// format.
func checkCodeQuality(t *testing.T, c *Comparison) []codeQualityIssue {
	t.Helper()
	var out bytes.Buffer
	if err := WriteCodeQuality(&out, c, ""); err != nil {
		t.Fatal(err)
	}
	var issues []codeQualityIssue
	dec := json.NewDecoder(&out)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&issues); err != nil || issues == nil {
		t.Fatal("not a list: ", err)
	}
	seen := map[string]bool{}
	for _, i := range issues {
		if i.Description == "" || i.CheckName == "" || len(i.Fingerprint) != 40 || seen[i.Fingerprint] ||
			i.Severity != "major" || repositoryPath(i.Location.Path) == "" || i.Location.Lines.Begin < 1 {
			t.Errorf("entry %+v", i)
		}
		seen[i.Fingerprint] = true
	}
	return issues
}

func TestCodeQuality(t *testing.T) {
	var out bytes.Buffer
	if err := WriteCodeQuality(&out, worse(), ""); err != nil {
		t.Fatal(err)
	}
	golden(t, "worse.codequality.json", out.Bytes())
	first := checkCodeQuality(t, worse())
	if len(first) != 2 || first[0].Location.Path != "app/src/main/java/com/shop/WishScreen.java" ||
		first[0].Location.Lines.Begin != 12 {
		t.Errorf("%+v", first)
	}
	// A leak keeps its fingerprint if its numbers change, but not if its
	// process changes.
	c := worse()
	c.Leaks[0].HeadBytes, c.Leaks[0].Evidence, c.Leaks[1].Process = 1, "other", "com.shop:push"
	second := checkCodeQuality(t, c)
	if first[0].Fingerprint != second[0].Fingerprint || first[1].Fingerprint == second[1].Fingerprint {
		t.Error("fingerprints do not depend on key and process")
	}
	c.Leaks = append(c.Leaks, c.Leaks[0])
	c.Leaks[len(c.Leaks)-1].Device = "other"
	if n := len(checkCodeQuality(t, c)); n != 2 {
		t.Errorf("got %d entries for two leaks, one of them on two devices, want 2", n)
	}
	c.Leaks[0].Suspects = nil
	if got := checkCodeQuality(t, c)[0].Location; got.Path != "leakgate.yaml" || got.Lines.Begin != 1 {
		t.Errorf("%+v", got)
	}
	out.Reset()
	if err := WriteCodeQuality(&out, c, "ci/leaks.yaml"); err != nil ||
		!strings.Contains(out.String(), `"ci/leaks.yaml"`) {
		t.Error("the fallback file is not used", err)
	}
	if n := len(checkCodeQuality(t, many(6000, 6000))); n != maxCodeQuality {
		t.Errorf("%d entries", n)
	}
	if n := len(checkCodeQuality(t, clean())); n != 0 {
		t.Errorf("got %d entries for a clean run, want none", n)
	}
}

func TestAnnotations(t *testing.T) {
	got := Annotations(worse())
	if len(got) != 2 || got[0].Path != "app/src/main/java/com/shop/WishScreen.java" || got[0].Line != 12 ||
		got[0].Level != "failure" || got[0].Title != "new leak: WishScreen" {
		t.Errorf("%+v", got)
	}
	c := worse()
	c.Leaks[0].Fails = false
	if got := Annotations(c); len(got) != 2 || got[0].Level != "failure" || got[1].Level != "warning" ||
		got[1].Title != "new leak: WishScreen" {
		t.Errorf("failing leaks are not first: %+v", got)
	}
	if got := Annotations(informational()); len(got) != 2 || got[0].Level != "notice" {
		t.Errorf("%+v", got)
	}
	if got := Annotations(many(2000, 2000)); len(got) != maxAnnotations {
		t.Errorf("%d annotations", len(got))
	}
	if got := Annotations(fixed()); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestPlace checks where a leak is reported: preferably at a suspect that the
// change adds, otherwise at a suspect in a changed file, otherwise at the
// suspect nearest to the GC root.
func TestPlace(t *testing.T) {
	known := Suspect{File: "a/Known.kt", Line: 1, Changed: new(false), Added: new(false)}
	changed := Suspect{File: "a/Changed.kt", Line: 2, Changed: new(true), Added: new(false)}
	added := Suspect{File: "a/Added.kt", Line: 3, Changed: new(true), Added: new(true)}
	for _, test := range []struct {
		suspects []Suspect
		file     string
		line     int
	}{
		{nil, "f.yaml", 1},
		{[]Suspect{{Class: "a.B", Field: "x"}, {File: "../out.kt", Line: 9}}, "f.yaml", 1},
		{[]Suspect{known}, "a/Known.kt", 1},
		{[]Suspect{known, changed}, "a/Changed.kt", 2},
		{[]Suspect{known, changed, added}, "a/Added.kt", 3},
		{[]Suspect{{File: "a/NoLine.kt"}, known}, "a/NoLine.kt", 1},
	} {
		r := Row{Suspects: test.suspects}
		if file, line := r.place("f.yaml"); file != test.file || line != test.line {
			t.Errorf("%+v: %s:%d, want %s:%d", test.suspects, file, line, test.file, test.line)
		}
	}
}
