package gate

import (
	"slices"
	"strings"
	"testing"
)

func TestParseRule(t *testing.T) {
	for _, c := range []struct{ path, rule, err string }{
		{RuleGate, "!= leak", ""},
		{RuleGate, "!=leak", ""},
		{RuleGate, "!= green", "want == or != and one of leak, pass, settled, inconclusive"},
		{RuleGate, "< leak", "want == or !="},
		{RuleGate, "!= inconclusive", "it never fails"},
		{RuleNative, "grown == 0", ""},
		{RuleNative, "new == 0", `"new" is not one of grown`},
		{RuleGate, "leak", `want "!= leak"`},
		{RuleDeaths, "memory == 0", ""},
		{RuleDeaths, "sadness == 0", `"sadness" is not one of memory, crash`},
		{RuleDeaths, "memory = 0", "want an operator"},
		{RuleDeaths, "memory == -1", "is not a number"},
		{RuleSlope, "lower95 < 20", ""},
		{RuleSlope, "lower95 < 20 MB/h", ""},
		{RuleSlope, "lower95 < 20 KB", "is not a number of MB/h"},
		{RulePerLoop, "bytes < 512KB", ""},
		{RulePerLoop, "bytes < 0.5 MB", ""},
		{RulePerLoop, "bytes < 5 GB", "with B, KB or MB"},
		{RulePerLoop, "new == 0", ""},
		{RulePerLoop, "new == NaN", "is not a number"},
		{RulePerLoop, "", "want"},
		{RuleHeavier, "== 0", ""},
		{RuleHeavier, "new == 0", `want "== 0"`},
		{"leak.sideways", "== 0", "unknown rule"},
	} {
		r, err := ParseRule(c.path, c.rule)
		switch {
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s %q: %v, want %q", c.path, c.rule, err, c.err)
		case err == nil && r.String() != c.path+": "+strings.Join(strings.Fields(c.rule), " "):
			t.Errorf("%q", r.String())
		}
	}
	if len(DefaultRules()) != 6 {
		t.Error(DefaultRules())
	}
}

// A parsed rule holds for a number if and only if the comparison that it states
// is true.
func FuzzParseRule(f *testing.F) {
	for _, path := range RulePaths() {
		f.Add(path, strings.Trim(example(path), `"`))
	}
	f.Fuzz(func(t *testing.T, path, rule string) {
		r, err := ParseRule(path, rule)
		if err != nil {
			return
		}
		if !slices.Contains(operators, r.op) || !strings.Contains(r.Text, r.op) {
			t.Fatalf("%+v", r)
		}
		if r.Path == RuleGate {
			if r.allows("leak") == r.allows("pass") && r.word != "settled" && r.word != "inconclusive" {
				t.Errorf("%+v", r)
			}
			return
		}
		below, at, above := r.holds(r.number-1), r.holds(r.number), r.holds(r.number+1)
		want := map[string][3]bool{
			"==": {false, true, false}, "!=": {true, false, true}, "<": {true, false, false}, "<=": {true, true, false},
			">": {false, false, true}, ">=": {false, true, true},
		}[r.op]
		if r.number < 1<<52 && [3]bool{below, at, above} != want {
			t.Errorf("%+v: %v", r, [3]bool{below, at, above})
		}
	})
}
