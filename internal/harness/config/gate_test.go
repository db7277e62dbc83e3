package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/harness/store"
)

const plainFile = "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\n"

// said formats rules as PATH: TEXT.
func said(rules []gate.Rule) string {
	var out []string
	for _, r := range rules {
		out = append(out, r.String())
	}
	return strings.Join(out, "; ")
}

// Each rule key changes only its own path, in every layer.
func TestRulesOfLayers(t *testing.T) {
	const rest = "; leak.heavier: == 0; leak.wider: == 0; leak.creep: == 0"
	const file = plainFile + `gate:
  leak.per_loop: ["new == 0", "bytes < 512KB"]
profiles:
  count: { gate: { leak.per_loop: "grown <= 1" } }
  none: { gate: { leak.per_loop: [], process.gate: [] } }
  trial: { gate: { informational: true } }
  later: { baseline: { window: 3 } }
`
	const ofFile = "process.gate: != leak; leak.per_loop: new == 0; leak.per_loop: bytes < 512KB" + rest
	for name, c := range map[string]struct {
		env           []string
		choices       []Choice
		rules         string
		path, origin  string
		informational bool
	}{
		"the file":  {nil, nil, ofFile, "gate.leak.per_loop[1]", "run.yaml:6:31", false},
		"a default": {nil, nil, ofFile, "gate.process.gate", "default", false},
		"one rule": {
			nil, []Choice{WithProfile("count")}, "process.gate: != leak; leak.per_loop: grown <= 1" + rest,
			"gate.leak.per_loop", "profile count, run.yaml:8:35", false,
		},
		"two empty paths": {
			nil, []Choice{WithProfile("none")}, "leak.heavier: == 0; leak.wider: == 0; leak.creep: == 0",
			"gate.leak.per_loop", "profile none, run.yaml:9:34", false,
		},
		"only informational": {
			nil, []Choice{WithProfile("trial")}, ofFile, "gate.informational", "profile trial, run.yaml:10:35", true,
		},
		"another section": {
			nil, []Choice{WithProfile("later")}, ofFile, "baseline.window", "profile later, run.yaml:11:32", false,
		},
		"a variable": {
			[]string{"LEAKGATE_GATE_LEAK_PER_LOOP", "new == 0 , grown == 0"}, nil,
			"process.gate: != leak; leak.per_loop: new == 0; leak.per_loop: grown == 0" + rest, "gate.leak.per_loop[1]",
			"LEAKGATE_GATE_LEAK_PER_LOOP", false,
		},
		"one variable for two entries": {
			[]string{"LEAKGATE_GATE_PROCESS_GATE", "!= leak", "LEAKGATE_GATE_INFORMATIONAL", "true"},
			[]Choice{WithProfile("none")}, "process.gate: != leak" + rest, "gate.process.gate",
			"LEAKGATE_GATE_PROCESS_GATE", true,
		},
		"a variable as JSON": {
			[]string{"LEAKGATE_GATE_PROCESS_SLOPE_MB_H", `["rate < 20"]`, "LEAKGATE_GATE_LEAK_CREEP", "[]"},
			[]Choice{WithProfile("count")},
			"process.gate: != leak; process.slope_mb_h: rate < 20; leak.per_loop: grown <= 1; leak.heavier: " +
				"== 0; leak.wider: == 0", "gate.process.slope_mb_h[0]", "LEAKGATE_GATE_PROCESS_SLOPE_MB_H", false,
		},
		"a flag": {
			[]string{"LEAKGATE_GATE_LEAK_PER_LOOP", "new == 0"},
			[]Choice{WithFlag("--rule", "gate.leak.per_loop", "new < 2", "moved == 0")},
			"process.gate: != leak; leak.per_loop: new < 2; leak.per_loop: moved == 0" + rest, "gate.leak.per_loop",
			"--rule", false,
		},
		"flag that empties a list": {
			nil,
			[]Choice{
				WithFlag("--informational", "gate.informational", "true"),
				WithFlag("--rule", "gate.native.per_loop", "grown == 0"),
			}, strings.Replace(ofFile, "leak.creep", "native.per_loop: grown == 0; leak.creep", 1),
			"gate.informational", "--informational", true,
		},
	} {
		cfg, err := Parse("run.yaml", []byte(file), set(c.env...), c.choices...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkConfig(t, cfg)
		if got := said(cfg.Gate.Rules); got != c.rules {
			t.Errorf("%s: rules %s\nwant %s", name, got, c.rules)
		}
		if got := cfg.Origin(c.path).String(); got != c.origin {
			t.Errorf("%s: %s comes from %s, want %s", name, c.path, got, c.origin)
		}
		if cfg.Gate.Informational != c.informational {
			t.Errorf("%s: informational %v", name, cfg.Gate.Informational)
		}
	}
}

// The gate is on if any layer contains one of its sections, even an empty one;
// its defaults are those of package gate.
func TestGated(t *testing.T) {
	for name, c := range map[string]struct {
		more    string
		env     []string
		choices []Choice
		want    bool
	}{
		"neither section":       {"", nil, nil, false},
		"published reports":     {"github: { comment: { key: shop } }\n", nil, nil, false},
		"an empty gate":         {"gate: {}\n", nil, nil, true},
		"an empty baseline":     {"baseline: {}\n", nil, nil, true},
		"a merged gate":         {"x-a: &a {}\ngate: { <<: *a }\n", nil, nil, true},
		"a gate and a baseline": {"gate: { confirm: 1 }\nbaseline: { store: file:b.json }\n", nil, nil, true},
		"another profile":       {"profiles: { p: { gate: {} }, q: {} }\n", nil, []Choice{WithProfile("q")}, false},
		"the chosen profile": {
			"profiles: { p: { baseline: {} }, q: {} }\n", nil, []Choice{WithProfile("p")}, true,
		},
		"a variable":              {"", []string{"LEAKGATE_BASELINE_STORE", "artifact:b"}, nil, true},
		"a variable of a rule":    {"", []string{"LEAKGATE_GATE_LEAK_WIDER", "== 0"}, nil, true},
		"variable without a gate": {"", []string{"LEAKGATE_BASELINE_STORE", ""}, nil, false},
		"a flag":                  {"", nil, []Choice{WithFlag("--confirm", "gate.confirm", "1")}, true},
	} {
		cfg, err := Parse("run.yaml", []byte(plainFile+c.more), set(c.env...), c.choices...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkConfig(t, cfg)
		if cfg.Gated() != c.want {
			t.Errorf("%s: gated %v", name, cfg.Gated())
		}
		if len(c.env) == 0 && !slices.Equal(cfg.Gate.Rules, gate.DefaultRules()) {
			t.Errorf("%s: rules %s", name, said(cfg.Gate.Rules))
		}
		written := string(cfg.YAML(true))
		for _, line := range []string{"gate is not set: no rules are applied ", "baseline is not set: "} {
			if strings.Contains(written, "\n# "+line) == c.want {
				t.Errorf("%s: %q in\n%s", name, line, written)
			}
		}
	}
}

// If there is a gate, all values of the three sections are written, each with
// its default and its origin.
func TestGateIsWritten(t *testing.T) {
	const file = plainFile +
		"gate: { leak.heavier: [], process.deaths: 'any  <= 2', leak.per_loop: ['new == ${N:-0}', \"bytes < 0.5 " +
		"MB\"] }\nbaseline: { match: [] }\n"
	cfg, err := Parse("run.yaml", []byte(file),
		set("LEAKGATE_GITHUB_COMMENT_KEY", "shop", "LEAKGATE_GATE_LEAK_WIDER", "<= 1"))
	if err != nil {
		t.Fatal(err)
	}
	checkConfig(t, cfg)
	_, got, _ := strings.Cut(string(cfg.YAML(true)), "\ngate:\n")
	const want = `  informational: false                       # default
  confirm: 0                                 # default
  abort_on_fail: false                       # default
  # accepted is not set: leaks-accepted.yaml in the current directory, if it exists  # default
  process.gate: ["!= leak"]                  # default
  process.deaths: ["any <= 2"]               # run.yaml:5
  process.slope_mb_h: []                     # default
  leak.per_loop: ["new == 0", "bytes < 0.5 MB"]  # run.yaml:5
  leak.heavier: []                           # run.yaml:5
  leak.wider: ["<= 1"]                       # LEAKGATE_GATE_LEAK_WIDER
  native.per_loop: []                        # default
  leak.creep: ["== 0"]                       # default
baseline:
  # store is not set: file:leak-baseline.json if it exists; otherwise in GitHub Actions artifact:leakgate-baseline; otherwise no base runs  # default
  window: 10                                 # default
  match: []                                  # run.yaml:6
report:
  junit: auto                                # default
github:
  comment:
    key: shop                                # LEAKGATE_GITHUB_COMMENT_KEY
    when: changed || failed                  # default
  check: false                               # default
  sarif: false                               # default
  summary: true                              # default
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	values := map[string]string{}
	for _, s := range cfg.Settings() {
		values[s.Path] = fmt.Sprint(s.Value)
	}
	for path, want := range map[string]string{
		"gate.leak.per_loop": "[new == 0 bytes < 0.5 MB]", "gate.leak.heavier": "[]", "gate.confirm": "0",
		"baseline.match": "[]", "github.summary": "true",
	} {
		if values[path] != want {
			t.Errorf("%s is %s, not %s", path, values[path], want)
		}
	}
}

// A misspelled, partial or misplaced key with a dot is found.
func TestKeysWithDots(t *testing.T) {
	for written, want := range map[string]string{
		"gate: { leak.perloop: 'new == 0' }":                `gate: unknown key "leak.perloop"; did you mean leak.per_loop?`,
		"gate: { leak_per_loop: 'new == 0' }":               `gate: unknown key "leak_per_loop"; did you mean leak.per_loop?`,
		"gate: { process.slope: 'rate < 1' }":               `gate: unknown key "process.slope"; did you mean process.slope_mb_h?`,
		"gate: { heavier: '== 0' }":                         `gate: unknown key "heavier"; did you mean leak.heavier?`,
		"gate: { process.gates: '!= leak' }":                `gate: unknown key "process.gates"; did you mean process.gate?`,
		"gate: { native: { per_loop: 'new == 0' } }":        `gate: unknown key "native"; did you mean native.per_loop?`,
		"gate: { process: { gate: '!= leak' } }":            `gate: unknown key "process": want process.gate, process.deaths or process.slope_mb_h, each as one key`,
		"gate: { leak.new: '== 0' }":                        `gate: unknown key "leak.new": want informational, confirm, abort_on_fail, accepted, process.gate,`,
		"gate: { '': '== 0', '.': '== 0', '_': '== 0' }":    `gate: unknown key "": want`,
		"leak.creep: '== 0'":                                `unknown key "leak.creep" here: it belongs at gate.leak.creep`,
		"gate.leak.creep: '== 0'":                           `unknown key "gate.leak.creep"`,
		"profiles: { p: { leak.creep: '== 0' } }":           `profiles.p: unknown key "leak.creep" here: it belongs at profiles.p.gate.leak.creep`,
		"profiles: { p: { gate: { leak.wide: '= 0' } } }":   `profiles.p.gate.leak.wider: invalid rule "= 0": want an operator, one of ==, !=, <=, >=, <, >`,
		"gate: { window: 3 }":                               `gate: unknown key "window" here: it belongs at baseline.window`,
		"github: { key: shop, comment: { summary: true } }": `github: unknown key "key" here: it belongs at github.comment.key`,
		"gate: { leak.per_loop: { new: 0 } }":               "gate.leak.per_loop: must be a list, not a mapping",
		"gate: { leak.per_loop: }":                          "gate.leak.per_loop: must be a list, not an empty value",
		"gate: { leak.per_loop: [[new == 0]] }": "gate.leak.per_loop[0]: must be a single " +
			"value, not a list",
		"gate: { leak.heavier: '== " + strings.Repeat("0", 200) + "' }": "is too long: a rule has at most 200 bytes",
		"gate: true": "gate: must be a mapping of keys to values, not the single value \"true\"",
	} {
		_, err := Parse("run.yaml", []byte(plainFile+written+"\n"), nil)
		if err == nil {
			t.Errorf("%s: accepted", written)
			continue
		}
		checkErrors(t, []byte(plainFile+written+"\n"), err)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: no %s in\n%v", written, want, err)
		}
	}
	_, err := Parse("run.yaml", []byte(plainFile), set("LEAKGATE_GATE_NATIVE_PER_LOOP", "grown = 0, new == 0"))
	const want = "environment LEAKGATE_GATE_NATIVE_PER_LOOP: gate.native.per_loop[0]: " +
		`invalid rule "grown = 0": want an operator`
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// Every rule path is a documented key, and every documented rule key is a rule
// path.
func TestRuleKeys(t *testing.T) {
	keys := gateKey(defaults()).keys
	for _, path := range gate.RulePaths() {
		if k, ok := find(keys, path); !ok || k.about == "" || k.form.says == "" {
			t.Errorf("%s: %+v", path, k)
		}
	}
	if len(ruleKeys) != len(gate.RulePaths()) {
		t.Errorf("got %d rule keys, want one for each of %d paths", len(ruleKeys), len(gate.RulePaths()))
	}
}

// FuzzRules checks that the reader accepts exactly the rules of package gate,
// that the pattern for editors rejects none of these rules, and that rules are
// kept in the order of their paths.
func FuzzRules(f *testing.F) {
	for _, of := range someRules {
		for _, text := range of.written {
			f.Add(uint8(slices.Index(gate.RulePaths(), of.path)), text)
		}
	}
	for i, text := range append(hostileTexts, "new == 0 == 1", "new => 0", "bytes < 0x1p-2", "new\n==\n0", "= = 0",
		"new == \u00a00") {
		f.Add(uint8(i), text)
	}
	pattern := regexp.MustCompile(ruleText)
	f.Fuzz(func(t *testing.T, which uint8, text string) {
		path := gate.RulePaths()[int(which)%len(gate.RulePaths())]
		want, err := gate.ParseRule(path, text)
		got, fault := rule(path)(text)
		if (fault == nil) != (err == nil && len(text) <= longestRule) {
			t.Fatalf("%q: %v, %v", text, fault, err)
		}
		if fault != nil {
			return
		}
		if !pattern.MatchString(text) {
			t.Errorf("the pattern rejects %q", text)
		}
		if unseen(got) || strings.Contains(got, "\n") {
			t.Errorf("%q is stored as %q", text, got)
		}
		rules := withRules(gate.DefaultRules(), path, []string{got})
		if again, err := gate.ParseRule(path, got); err != nil || again != want || !slices.Contains(rules, want) {
			t.Errorf("%q is stored as %q and parsed as %+v, want %+v", text, got, again, want)
		}
		if len(rulesOf(rules, path)) != 1 || !slices.IsSortedFunc(rules, func(a, b gate.Rule) int {
			return slices.Index(gate.RulePaths(), a.Path) - slices.Index(gate.RulePaths(), b.Path)
		}) {
			t.Errorf("%s", said(rules))
		}
	})
}

func TestStoreAddress(t *testing.T) {
	for text, want := range map[string]string{
		"file:leak-baseline.json": "", "git:leaks#b.json": "", "git:origin/leaks#a/b.json": "",
		"artifact:leakgate-baseline": "", "command:./store.sh --fast": "",
		"flie:b.json": "file:b.json", "FILE:b.json": "file:b.json", "artefact:b": "artifact:b",
		"comand:x y": "command:x y", "gti:leaks#b": "git:leaks#b",
		"b.json": "file:b.json", `C:\leaks\b.json`: `file:C:\leaks\b.json`, "leaks#b.json": "git:leaks#b.json",
		"git:leaks": "git:leaks#leak-baseline.json", "git:leaks#": "git:leaks#leak-baseline.json",
		"https://x/y": "-", "files://x": "-", "s3:x": "-", "": "-", " ": "-", "file:": "-", "file: ": "-", "git:": "-",
		"git:#b": "-", "git: # ": "-", ":": "-", "flie:": "-", "x\x00": "-",
		"file:" + strings.Repeat("a", longestPath): "-",
	} {
		got, fault := storeAddress(text)
		switch {
		case want == "" && (fault != nil || got != text):
			t.Errorf("%q: %v", text, fault)
		case want != "" && (fault == nil || fault.suggestion != strings.Trim(want, "-")):
			t.Errorf("%q: %+v, not %s", text, fault, want)
		}
	}
}

// FuzzStoreAddress compares the reader with the store and with the pattern for
// editors. The store may reject more addresses, but it accepts only addresses
// that a file can contain.
func FuzzStoreAddress(f *testing.F) {
	for _, text := range append(hostileTexts, "file:b", "git:a#b", "git:a/b#c/d", "artifact:x", "command:x y", "fil:b",
		"git:a", "git:##", "file:\n", "C:\\x", "a#b", "ssh://a@b/c") {
		f.Add(text)
	}
	pattern := regexp.MustCompile(storeText)
	f.Fuzz(func(t *testing.T, text string) {
		got, fault := storeAddress(text)
		if _, err := store.Parse(text); err == nil && fault != nil {
			t.Errorf("%q: accepted by the store, but rejected by the reader: %v", text, fault)
		}
		if fault == nil && (got != text || !pattern.MatchString(text)) {
			t.Errorf("%q is parsed as %q; accepted by the pattern: %v", text, got, pattern.MatchString(text))
		}
		// The reader and the pattern differ in which non-ASCII characters they
		// treat as spaces.
		ascii := !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || r == '\v' || r == 0 })
		if ascii && len(text) <= longestPath && pattern.MatchString(text) != (fault == nil) {
			t.Errorf("%q: accepted by the pattern: %v, by the reader: %v", text, pattern.MatchString(text), fault)
		}
		if fault != nil && fault.suggestion != "" {
			if _, again := storeAddress(fault.suggestion); again != nil && len(fault.suggestion) <= longestPath {
				t.Errorf("%q: the suggestion %q is invalid too: %v", text, fault.suggestion, again)
			}
		}
	})
}

// The key of a comment is a word that an HTML comment can contain unchanged.
func TestCommentKey(t *testing.T) {
	plain := regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	for _, text := range append(hostileTexts, "shop", "com.shop_1-a", strings.Repeat("a", 60), strings.Repeat("a", 61),
		"a b", "a-->b") {
		_, fault := commentKey(text)
		if (fault == nil) != (plain.MatchString(text) && len(text) <= 60) {
			t.Errorf("%q: %v", text, fault)
		}
	}
}
