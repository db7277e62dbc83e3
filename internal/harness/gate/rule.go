package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/leakgate/leakgate/internal/text"
)

// Rule is a condition that must hold, such as "new == 0" for leak.per_loop.
type Rule struct {
	// Path is the key in the configuration; Text is the rule as it was written.
	Path, Text string

	subject string
	op      string
	number  float64
	word    string
}

// The paths of rules.
const (
	RuleGate    = "process.gate"
	RuleDeaths  = "process.deaths"
	RuleSlope   = "process.slope_mb_h"
	RulePerLoop = "leak.per_loop"
	RuleHeavier = "leak.heavier"
	RuleWider   = "leak.wider"
	RuleNative  = "native.per_loop"
	RuleCreep   = "leak.creep"
)

// RulePaths returns all paths in the order of a configuration.
func RulePaths() []string {
	return []string{RuleGate, RuleDeaths, RuleSlope, RulePerLoop, RuleHeavier, RuleWider, RuleNative, RuleCreep}
}

// DefaultRules returns the rules that apply if a configuration contains none.
func DefaultRules() []Rule {
	var out []Rule
	for _, r := range [][2]string{
		{RuleGate, "!= leak"}, {RulePerLoop, "new == 0"}, {RulePerLoop, "grown == 0"}, {RuleHeavier, "== 0"},
		{RuleWider, "== 0"}, {RuleCreep, "== 0"},
	} {
		rule, err := ParseRule(r[0], r[1])
		if err != nil {
			panic(err) // the rules are constants, and a test checks them
		}
		out = append(out, rule)
	}
	return out
}

// subjects maps a path to the allowed subjects of its rules; "" stands for a
// rule that begins with its operator.
var subjects = map[string][]string{
	RuleGate: {""}, RuleHeavier: {""}, RuleWider: {""}, RuleCreep: {""},
	RuleDeaths:  {"memory", "crash", "native_crash", "anr", "kill", "exit", "any"},
	RuleSlope:   {"rate", "lower95", "upper95"},
	RulePerLoop: {"new", "grown", "moved", "objects", "bytes"},
	RuleNative:  {"grown"}, // two counts cannot show whether something is new
}

// operators lists the operators in such an order that none is a prefix of a
// later one.
var operators = []string{"==", "!=", "<=", ">=", "<", ">"}

// gates lists the words that are allowed in process.gate.
var gates = []string{"leak", "pass", "settled", "inconclusive"}

// ParseRule parses a rule for a path: [SUBJECT] OPERATOR VALUE.
func ParseRule(path, written string) (Rule, error) {
	known, ok := subjects[path]
	if !ok {
		return Rule{}, fmt.Errorf("unknown rule %s: want %s", text.Quote(path, 40), strings.Join(RulePaths(), ", "))
	}
	r := Rule{Path: path, Text: strings.Join(strings.Fields(written), " ")}
	at := strings.IndexFunc(written, func(c rune) bool { return strings.ContainsRune("=!<>", c) })
	if at < 0 {
		return r, fmt.Errorf("invalid rule %s: want %s", text.Quote(written, 80), example(path))
	}
	r.subject = strings.TrimSpace(written[:at])
	rest := written[at:]
	for _, op := range operators {
		if value, found := strings.CutPrefix(rest, op); found {
			r.op, rest = op, strings.TrimSpace(value)
			break
		}
	}
	switch {
	case !slices.Contains(known, r.subject) && known[0] == "":
		return r, fmt.Errorf("invalid rule %s: want %s", text.Quote(written, 80), example(path))
	case !slices.Contains(known, r.subject):
		return r, fmt.Errorf("invalid rule %s: %s is not one of %s",
			text.Quote(written, 80), text.Quote(r.subject, 40), strings.Join(known, ", "))
	case r.op == "":
		return r, fmt.Errorf("invalid rule %s: want an operator, one of %s",
			text.Quote(written, 80), strings.Join(operators, ", "))
	}
	return r, r.value(rest)
}

func example(path string) string {
	return map[string]string{
		RuleGate: `"!= leak"`, RuleDeaths: `"memory == 0"`, RuleSlope: `"lower95 < 20"`,
		RulePerLoop: `"new == 0" or "bytes < 512KB"`,
		RuleHeavier: `"== 0"`, RuleWider: `"== 0"`, RuleNative: `"grown == 0"`, RuleCreep: `"== 0"`,
	}[path]
}

// value parses the value that the rule compares with.
func (r *Rule) value(word string) error {
	if r.Path == RuleGate {
		if !slices.Contains(gates, word) || r.op != "==" && r.op != "!=" {
			return fmt.Errorf("invalid rule %s: want == or != and one of %s", text.Quote(r.Text, 80),
				strings.Join(gates, ", "))
		}
		if word == "inconclusive" && r.op == "!=" {
			return fmt.Errorf("invalid rule %s: it never fails, because an inconclusive verdict violates no rule; "+
				"write strict: true", text.Quote(r.Text, 80))
		}
		r.word = word
		return nil
	}
	digits := strings.TrimRightFunc(word, func(c rune) bool { return unicode.IsLetter(c) || c == ' ' || c == '/' })
	unit := strings.TrimSpace(word[len(digits):])
	n, err := strconv.ParseFloat(digits, 64)
	scale, fits := scaleOf(r, unit)
	if err != nil || n < 0 || n > 1e15 || !fits {
		return fmt.Errorf("invalid rule %s: %s is not a number%s", text.Quote(r.Text, 80), text.Quote(word, 40),
			units(r))
	}
	r.number = n * scale
	return nil
}

// scaleOf returns the factor for a unit in a rule.
func scaleOf(r *Rule, unit string) (float64, bool) {
	if unit == "" {
		return 1, true
	}
	switch {
	case r.Path == RuleSlope:
		return 1, unit == "MB/h"
	case r.subject == "bytes":
		scale := map[string]float64{"B": 1, "KB": 1 << 10, "kB": 1 << 10, "MB": 1 << 20}[unit]
		return scale, scale > 0
	}
	return 0, false
}

func units(r *Rule) string {
	switch {
	case r.Path == RuleSlope:
		return " of MB/h"
	case r.subject == "bytes":
		return " with B, KB or MB"
	}
	return ""
}

// holds reports whether a number satisfies the rule.
func (r *Rule) holds(n float64) bool {
	switch c := cmp.Compare(n, r.number); r.op {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	default:
		return c >= 0
	}
}

// allows reports whether the rule holds for a verdict in process.gate.
func (r *Rule) allows(gate string) bool { return (gate == r.word) == (r.op == "==") }

// String returns the rule as it is printed in a reason.
func (r *Rule) String() string { return r.Path + ": " + r.Text }
