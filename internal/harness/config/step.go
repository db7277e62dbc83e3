package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	mostSteps       = 20 // steps of one kind
	longestStepName = 40
)

// everyKind is the key of the steps that are added to every recipe.
const everyKind = "all"

// stepKinds are the recipes to which steps can be added.
var stepKinds = []struct{ name, about string }{
	{"java", "Additional steps for leaks of Java objects."},
	{"native", "Additional steps for native memory."},
	{"gpu", "Additional steps for graphics memory."},
	{"thread", "Additional steps for threads."},
	{"unknown", "Additional steps for leaks of unknown kind."},
	{everyKind, "Additional steps for every diagnosis."},
}

// ownSteps lists the names of the files that every diagnosis contains.
var ownSteps = []string{
	"heap", "showmap", "smaps", "maps", "meminfo", "gfxinfo", "surfaceflinger", "gpu", "status", "threads", "logcat",
	"exit_info",
	"summary", "diagnosis", "analysis",
}

// placeholders lists the words that are allowed in braces in a command.
var placeholders = []string{"pid", "process", "package", "user"}

// stepLineText matches non-blank commands in which each opening brace is
// doubled or starts a placeholder.
const (
	stepNameText = `^[a-z0-9_-]{1,40}$`
	bracesText   = `\{(\{|(pid|process|package|user)\})`
	stepLineText = `^\s*([^{\s]|` + bracesText + `)([^{]|` + bracesText + `)*$`
)

var (
	stepNamePattern = regexp.MustCompile(stepNameText)

	stepNameKind = kind[string]{stepName, same, form{
		"a name for the output file: at most 40 lower-case letters, digits, _ and -",
		[]object{
			{
				{"type", []string{"string", "number", "boolean"}}, {"not", object{{"enum", ownSteps}}},
				{"pattern", stepNameText},
			},
		}, false,
	}}
	stepLineKind = kind[string]{stepLine, same, form{
		"a command line; {pid}, {process}, {package} and {user} are substituted, and {{ is a literal brace",
		[]object{freeText(stepLineText)}, false,
	}}
)

func defaultStep() Step { return Step{Limit: DefaultLimit} }

// stepsKey returns the key of the steps of all kinds.
func stepsKey(into *map[string][]Step) key {
	var keys []key
	for _, kind := range stepKinds {
		keys = append(keys, key{name: kind.name, read: steps(into, kind.name), holds: manyMappings,
			hidden:  func() bool { return len((*into)[kind.name]) == 0 },
			entries: func() [][]key { return shownSteps((*into)[kind.name]) },
		}.document(kind.about, `[{ name: battery, command: "dumpsys battery" }]`))
	}
	return key{
		name: "steps", about: "Additional commands whose output is kept with a diagnosis, by kind of leak.",
		keys: keys,
	}
}

// stepKey returns the keys of one step.
func stepKey(into *Step) key {
	return key{
		name: "step", about: "One command whose output is kept with a diagnosis.", needed: []string{"name", "command"},
		keys: []key{
			optional("name", &into.Name, stepNameKind, "").
				document("The output is written to custom_NAME.txt. Required.", "unreachable"),
			optional("command", &into.Command, stepLineKind, "").
				document("A command line for the shell of the device. Required.",
					"dumpsys meminfo --unreachable {pid}"),
			value("limit", &into.Limit, limitKind).document("The timeout, in wall-clock time.", "20s"),
		}}
}

func shownSteps(of []Step) [][]key {
	var out [][]key
	for i := range of {
		out = append(out, stepKey(&of[i]).keys)
	}
	return out
}

// steps returns a reader of the steps of a kind.
func steps(into *map[string][]Step, kind string) reader {
	return func(w *walker, at place) {
		n := resolved(at.node)
		if n.Kind != yaml.SequenceNode {
			w.refuse(at, &fault{message: "must be a list of steps, each with name and command, not " + kindOf(n)})
			return
		}
		if w.tooLong(at, mostSteps) {
			return
		}
		w.accept(at, nil)
		var out []Step
		for i, entry := range n.Content {
			s := defaultStep()
			below := at.entry(i, entry)
			w.step(below, stepKey(&s))
			name := join(below.path, "name")
			if w.accepted(name) && slices.ContainsFunc(out, s.namedAlike) {
				w.refuseValue(w.written[name],
					&fault{message: quoted(s.Name) + " is the name of two steps: each step needs its own file"})
			}
			out = append(out, s)
		}
		if len(out) > 0 {
			if *into == nil {
				*into = map[string][]Step{}
			}
			(*into)[kind] = out
		}
	}
}

func (s Step) namedAlike(other Step) bool { return s.Name == other.Name }

// step reads one step. Its name and command have no default.
func (w *walker) step(at place, of key) {
	w.mapping(at, of.keys)
	if resolved(at.node).Kind != yaml.MappingNode {
		return
	}
	for _, k := range of.keys {
		if slices.Contains(of.needed, k.name) && !w.wrote(join(at.path, k.name)) {
			w.refuse(at,
				&fault{
					message: fmt.Sprintf("missing key %s: write one such as %s: %s", k.name, k.name, k.example),
				})
		}
	}
}

// stepsOfAll rejects a step of kind all if its name is also used by a step of
// another kind.
func (w *walker) stepsOfAll(of map[string][]Step) {
	for _, kind := range stepKinds {
		for i, s := range of[kind.name] {
			name := fmt.Sprintf("diagnose.steps.%s[%d].name", kind.name, i)
			if kind.name != everyKind && w.accepted(name) && slices.ContainsFunc(of[everyKind], s.namedAlike) {
				w.refuseValue(w.written[name], &fault{message: quoted(s.Name) +
					" is the name of two steps: steps under all are added to every kind, and each needs its own file"})
			}
		}
	}
}

// stepName parses the name of a step, which is used as a file name.
func stepName(text string) (string, *fault) {
	if text == "" {
		return "", &fault{message: "is empty: write a name for the step's file"}
	}
	if f := checkText("the name of a step", text, "_-", longestStepName); f != nil {
		return "", f
	}
	if lower := strings.ToLower(text); !stepNamePattern.MatchString(text) {
		i := strings.IndexFunc(text, func(r rune) bool { return r >= 'A' && r <= 'Z' })
		return "", &fault{suggestion: lower, message: fmt.Sprintf(
			"%s has %q as character %d: the name of a step is lower-case, since some systems ignore case in file names",
			quoted(text), text[i], i+1)}
	}
	if slices.Contains(ownSteps, text) {
		return "",
			&fault{
				message:    quoted(text) + " is the name of one of leakgate's own steps: choose another",
				suggestion: "my_" + text,
			}
	}
	return text, nil
}

// stepLine parses a command with placeholders.
func stepLine(text string) (string, *fault) {
	if _, f := line(text); f != nil {
		return "", f
	}
	for rest := text; ; {
		i := strings.IndexByte(rest, '{')
		if i < 0 {
			return text, nil
		}
		if rest = rest[i:]; strings.HasPrefix(rest, "{{") {
			rest = rest[2:]
			continue
		}
		name, after, closed := strings.Cut(rest[1:], "}")
		if !closed || !slices.Contains(placeholders, name) {
			return "", unknownPlaceholder(name, closed)
		}
		rest = after
	}
}

// unknownPlaceholder describes what is wrong with a brace and the text after
// it.
func unknownPlaceholder(name string, closed bool) *fault {
	const forms = ": write {pid}, {process}, {package} or {user}, or {{ for a literal brace"
	if !closed {
		return &fault{message: `"{" is not closed` + forms, part: "{" + name}
	}
	f := &fault{message: quoted("{"+name+"}") + " is not a placeholder" + forms, part: "{" + name + "}"}
	if near, ok := Nearest(strings.TrimSpace(name), placeholders); ok {
		f.suggestion = "{" + near + "}"
	}
	return f
}
