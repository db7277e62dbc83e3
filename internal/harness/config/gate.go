package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/harness/gate"
	"gopkg.in/yaml.v3"
)

// Requirements is the gate section of the configuration: the rules that a run
// must satisfy to pass.
type Requirements struct {
	// Informational means that failing rules are reported but do not fail the
	// run.
	Informational bool
	// Confirm is the number of times that a failing run is repeated: 0 or 1. If
	// it is 1, only findings that both runs have in common fail the gate.
	Confirm int
	// AbortOnFail means that a run ends as soon as a rule fails.
	AbortOnFail bool
	// Accepted is the path of the file of accepted leaks, as written: a
	// relative path is relative to the directory of this file. It is empty if
	// there is no such file.
	Accepted string
	// Rules contains all rules in the order of [gate.RulePaths]. If a path is
	// missing from the file, its default rules apply. Rules is empty if the
	// file removes all rules.
	Rules []gate.Rule
}

// BaselineSource is the baseline section of the configuration: the earlier runs
// that a run is compared with.
type BaselineSource struct {
	// Store is the address of the baseline, such as file:leak-baseline.json; it
	// is empty if there is none.
	Store string
	// Window is the number of good runs that the baseline keeps for each
	// subject.
	Window int
	// Match lists the optional parts of a subject that must match; it is a
	// subset of [gate.MatchAll].
	Match []string
}

// GitHub is the github section of the configuration: what is published on a
// pull request.
type GitHub struct {
	// CommentKey distinguishes the comments of several gates on one pull
	// request; if it is empty, the app's package name is used.
	CommentKey string
	// CommentWhen determines when a comment is written: always, changed,
	// failed, "changed || failed" or never.
	CommentWhen string
	// Check, SARIF and Summary determine whether a check run, a SARIF file and
	// a job summary are written.
	Check, SARIF, Summary bool
}

// DefaultCommentWhen is the default of github.comment.when.
const DefaultCommentWhen = "changed || failed"

// Gated reports whether the file or any layer over it contains the key gate or
// baseline, even with an empty value. Otherwise, no rules are applied to the
// run.
func (c *Config) Gated() bool { return c.gated }

const (
	longestRule       = 200 // bytes
	longestCommentKey = 60  // characters
	commentKeyText    = `^[A-Za-z0-9._-]{1,60}$`
	// ruleText matches every valid rule: [SUBJECT] OPERATOR VALUE.
	ruleText = `^[^=!<>]*([=!]=|[<>]=?)[^=!<>]+$`
	// storeText matches the scheme of an address and what follows it; for git,
	// a path follows the branch.
	storeText = `^((file|artifact|command):(.|\n)*\S|git:[^#]*[^#\s][^#]*#(.|\n)*\S)`
)

var (
	commentKeyPattern = regexp.MustCompile(commentKeyText)
	// plainRule matches rules that become valid when they are quoted.
	plainRule = regexp.MustCompile(`^!= ?[A-Za-z0-9.]+$`)

	storeKind = kind[string]{storeAddress, same, form{
		"file:PATH, git:BRANCH#PATH, git:REMOTE/BRANCH#PATH, artifact:NAME or command:PROGRAM ARGUMENTS",
		[]object{matching(storeText)}, false,
	}}
	commentKeyKind = kind[string]{
		commentKey, same,
		form{"letters, digits, `.`, `_` and `-`, at most 60", []object{freeText(commentKeyText)}, false},
	}
	matchKind       = words(gate.MatchAll()...)
	commentWhenKind = func() kind[string] {
		k := words("always", "changed", "failed", DefaultCommentWhen, "never")
		k.form.says = "always, changed, failed, never, or `changed || failed`"
		return k
	}()
)

// ruleKeys describes the rules of each path.
var ruleKeys = map[string]struct{ about, says, example string }{
	gate.RuleGate: {
		"The verdict on the memory trend of each process; without a baseline, also on the leaks in its heap dumps.",
		"`==` or `!=` and one of leak, pass, settled, inconclusive", `["!= leak"]`},
	gate.RuleDeaths: {
		"The number of deaths of each process, by cause. Deaths are excused up to the number in the worst base run.",
		"memory, crash, native_crash, anr, kill, exit or any, then a comparison with a number",
		`["memory == 0", "crash == 0"]`},
	gate.RuleSlope: {
		"Memory growth of each process in MB/h: the estimated rate, or a bound of its 95 % confidence interval.",
		"rate, lower95 or upper95, then a comparison with a number", `["lower95 < 20"]`},
	gate.RulePerLoop: {
		"The number of new, grown or moved leaks, or the objects or bytes that each loop adds to a leak.",
		"new, grown, moved, objects or bytes, then a comparison with a number; a number of bytes ends in B, KB or MB",
		`["new == 0", "grown == 0"]`},
	gate.RuleHeavier: {"The number of leaks whose objects each retain more memory than in every base run.",
		"a comparison with a number", `["== 0"]`},
	gate.RuleWider: {"The number of known leaks whose holder now also holds objects of a new class.",
		"a comparison with a number", `["== 0"]`},
	gate.RuleNative: {"The number of libraries and kinds of graphics memory that grow more than in the base runs.",
		"grown, then a comparison with a number", `["grown == 0"]`},
	gate.RuleCreep: {"The number of leaks that are worse than in the pinned release. Never fails a pull request.",
		"a comparison with a number", `["== 0"]`},
}

// gateKey returns the key of the gate section.
func gateKey(c *Config) key {
	keys := []key{
		value("informational", &c.Gate.Informational, switchKind).
			document("Whether failing rules are only reported.", "true"),
		value("confirm", &c.Gate.Confirm, count(0, 1)).
			document("How many times a failing run is repeated; with 1, the gate fails only if both runs show the "+
				"same problem.", "1"),
		value("abort_on_fail", &c.Gate.AbortOnFail, switchKind).
			document("Whether the run ends as soon as a rule fails: rules are evaluated after each heap dump at a "+
				"mark and after each death of a process.", "true"),
		optional("accepted", &c.Gate.Accepted, pathKind, "leaks-accepted.yaml in the current directory, if it exists").
			document("The file of accepted leaks, relative to the directory of this file.", "leaks-accepted.yaml"),
	}
	for _, path := range gate.RulePaths() {
		keys = append(keys, rulesKey(&c.Gate.Rules, path))
	}
	return key{name: "gate", keys: keys, read: switchedOn(keys, "write {} for the default rules"),
		about:  "What the run must satisfy. Each rule has a default of its own; an empty list removes the rule.",
		hidden: func() bool { return !c.gated }, unset: "no rules are applied"}
}

// baselineKey returns the key of the baseline section.
func baselineKey(c *Config) key {
	b := &c.Baseline
	keys := []key{
		optional("store", &b.Store, storeKind, "file:leak-baseline.json if it exists; otherwise in GitHub Actions "+
			"artifact:leakgate-baseline; otherwise no base runs").
			document("Where the base runs are stored.", "file:leak-baseline.json"),
		value("window", &b.Window, count(1, 100)).
			document("The number of good runs that the baseline keeps for each app, test and device.", "20"),
		listed("match", &b.Match, matchKind, distinct|mayBeEmpty, list(&b.Match, matchKind.parse, distinct|mayBeEmpty)).
			document("What two runs must have in common to be compared, besides the app, the test and the "+
				"workload.",
				"[variant, api]"),
	}
	return key{
		name: "baseline", keys: keys, read: switchedOn(keys, "write store: file:leak-baseline.json below it, or {}"),
		about:  "The earlier runs with which this run is compared.",
		hidden: func() bool { return !c.gated }, unset: "the run is not compared with earlier ones"}
}

// githubKey returns the key of the github section.
func githubKey(g *GitHub) key {
	return key{name: "github", about: "What is published on a pull request.", keys: []key{
		{name: "comment", about: "The comment on the pull request.", keys: []key{
			optional("key", &g.CommentKey, commentKeyKind, "the package of the app").
				document("Distinguishes the comments of several gates on one pull request.", "shop"),
			value("when", &g.CommentWhen, commentWhenKind).
				document("When a comment is created. changed means if a leak is new, grown, heavier, wider or moved; "+
					"failed means if the gate fails. An existing comment is always updated, "+
					"except with never.", "failed"),
		}},
		value("check", &g.Check, switchKind).document("Whether a check run with annotations is created.", "true"),
		value("sarif", &g.SARIF, switchKind).document("Whether a SARIF file is written.", "true"),
		value("summary", &g.Summary, switchKind).document("Whether the job summary is written.", "false"),
	}}
}

// switchedOn reads a section that has an effect even if it is empty. A section
// without a value is rejected, because its author may not expect any effect.
func switchedOn(keys []key, instead string) reader {
	return func(w *walker, at place) {
		if n := resolved(at.node); n.Kind == yaml.ScalarNode && n.Tag == nullTag {
			w.refuse(at, &fault{message: "has no value: " + instead})
			return
		}
		w.mapping(at, keys)
	}
}

// rulesKey returns the key of the rules with a path, which replace its default
// rules.
func rulesKey(into *[]gate.Rule, path string) key {
	const is = distinct | mayBeEmpty | mayBeSingle
	said := ruleKeys[path]
	return key{name: path, holds: manyValues, is: is, form: form{said.says, []object{matching(ruleText)}, false},
		shown: func() []string { return rulesOf(*into, path) },
		read: func(w *walker, at place) {
			texts := rulesOf(*into, path)
			list(&texts, rule(path), is)(w, at)
			*into = withRules(*into, path, texts)
		}}.document(said.about, said.example)
}

// rulesOf returns the rules with the given path as strings.
func rulesOf(rules []gate.Rule, path string) []string {
	var out []string
	for _, r := range rules {
		if r.Path == path {
			out = append(out, r.Text)
		}
	}
	return out
}

// withRules replaces the rules of one path and keeps the order of the paths. It
// skips invalid rules, which the reader has already rejected.
func withRules(rules []gate.Rule, path string, texts []string) []gate.Rule {
	out := slices.DeleteFunc(slices.Clone(rules), func(r gate.Rule) bool { return r.Path == path })
	for _, text := range texts {
		if r, err := gate.ParseRule(path, text); err == nil {
			out = append(out, r)
		}
	}
	order := gate.RulePaths()
	slices.SortStableFunc(out,
		func(a, b gate.Rule) int { return slices.Index(order, a.Path) - slices.Index(order, b.Path) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// rule returns a parser of one rule with the given path.
func rule(path string) parser[string] {
	return func(text string) (string, *fault) {
		if len(text) > longestRule {
			return "",
				&fault{message: fmt.Sprintf("%s is too long: a rule has at most %d bytes", quoted(text), longestRule)}
		}
		r, err := gate.ParseRule(path, text)
		if err != nil {
			return "", &fault{message: err.Error()}
		}
		return r.Text, nil
	}
}

// stores are the schemes that the address of a baseline may have.
var stores = []string{"file", "git", "artifact", "command"}

// storeAddress checks that the address of a baseline consists of a known scheme
// and a nonempty rest; for git, the rest must contain a branch and a path. The
// store checks everything else.
func storeAddress(text string) (string, *fault) {
	if _, f := hostPath(text); f != nil && strings.TrimSpace(text) != "" {
		return "", f
	}
	scheme, rest, found := strings.Cut(text, ":")
	f := &fault{
		message: "invalid value " + quoted(text) +
			": want file:PATH, git:BRANCH#PATH, git:REMOTE/BRANCH#PATH, artifact:NAME or command:PROGRAM ARGUMENTS",
	}
	if !found || !slices.Contains(stores, scheme) {
		f.suggestion = suggestStore(text)
		return "", f
	}
	branch, path, _ := strings.Cut(rest, "#")
	switch {
	case strings.TrimSpace(rest) == "":
		return "", f
	case scheme == "git" && strings.TrimSpace(branch) == "":
		return "", f
	case scheme == "git" && strings.TrimSpace(path) == "":
		f.suggestion = "git:" + branch + "#leak-baseline.json"
		return "", f
	}
	return text, nil
}

// suggestStore suggests an address for a value without a known scheme, or
// returns "" if it has no suggestion.
func suggestStore(text string) string {
	scheme, rest, found := strings.Cut(text, ":")
	switch near, ok := Nearest(scheme, stores); {
	case strings.TrimSpace(text) == "" || strings.HasPrefix(rest, "//"):
		return ""
	case found && ok:
		scheme = near
	case !found && strings.Contains(text, "#"):
		scheme, rest = "git", text
	case !found || len(scheme) == 1: // a Windows drive
		scheme, rest = "file", text
	default:
		return ""
	}
	address := scheme + ":" + rest
	if _, f := storeAddress(address); f != nil {
		return ""
	}
	return address
}

// commentKey parses the key of a comment on a pull request.
func commentKey(text string) (string, *fault) {
	if !commentKeyPattern.MatchString(text) {
		return "",
			&fault{
				message: fmt.Sprintf("invalid key %s: want letters, digits, ., _ and -, at most %d", quoted(text),
					longestCommentKey),
			}
	}
	return text, nil
}
