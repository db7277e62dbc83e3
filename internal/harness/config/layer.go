package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// layer is a mapping that overrides parts of the file: one of its profiles, the
// environment variables that are named after keys, or flags. Variables and
// flags are converted to the same kind of tree as the file, so the same reader
// and the same rules apply to all of them.
type layer struct {
	kind Layer
	name string            // of a profile
	root *yaml.Node        // a mapping
	said map[string]string // the source of a path: "environment NAME" or a flag
	// faults lists mistakes in a variable or flag that are found before its
	// value is read.
	faults Errors
}

// outside reports whether the layer is not part of the file: environment
// variables or flags.
func (l *layer) outside() bool { return l != nil && l.kind >= Environment }

// sourceOf returns where the value at or below a path comes from, for messages.
func (l *layer) sourceOf(path string) string {
	path, _, _ = strings.Cut(path, "[")
	if name, ok := l.said[path]; ok {
		return name
	}
	for _, k := range slices.Sorted(maps.Keys(l.said)) {
		if strings.HasPrefix(k, path+".") {
			return l.said[k]
		}
	}
	return ""
}

// supplies reports whether the layer contains a value at or below a path.
func (l *layer) supplies(path string) bool { return l != nil && l.sourceOf(path) != "" }

// over is the value that a layer supplies for a mapping.
type over struct {
	key, node *yaml.Node // empty for the file as a whole
	from      *layer
}

// flagged is the value that a command-line flag sets for a key.
type flagged struct {
	flag, path string
	values     []string
}

// variablePrefix is the prefix of the names of leakgate's own environment
// variables.
const variablePrefix = "LEAKGATE_"

// variableOf returns the name of the environment variable for a key.
func variableOf(path string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

func environmentPlace(variable string) string { return "environment " + variable }

// leaf is a key that contains a value. names lists the keys on the way to it;
// they are needed because a key with a dot in its name cannot be found by its
// path alone.
type leaf struct {
	path  string
	key   key
	names []string
}

// leaves returns the keys that contain a value or a list, in the order of the
// file.
func leaves(keys []key, above ...string) []leaf {
	var out []leaf
	for _, k := range keys {
		names := append(slices.Clone(above), k.name)
		if k.holds != nothing {
			out = append(out, leaf{strings.Join(names, "."), k, names})
		}
		out = append(out, leaves(k.keys, names...)...)
	}
	return out
}

// knownLeaves returns the leaves of a file. They are needed whenever a file is
// read, so they are created only once; no values are stored in them.
var knownLeaves = sync.OnceValue(func() []leaf { return leaves(schema(defaults())) })

// variable returns the name of the environment variable for the key, or "" if
// it has none.
func (l leaf) variable() string {
	if l.path == "version" || l.key.holds == manyMappings || l.key.holds == manyPairs {
		return ""
	}
	if l.path == "devices.stand_in" {
		return StandInVariable
	}
	return variableOf(l.path)
}

// StandInVariable is the environment variable for devices.stand_in. Commands
// and programs without a configuration file read this variable too, so its name
// is not derived from the key.
const StandInVariable = variablePrefix + "STAND_IN"

// Variables returns a map from the path of each key that can be set by an
// environment variable to the name of that variable. Three keys have no
// variable: the version of the file format, the steps, and the arguments of
// instrumented tests, which do not fit in one string.
func Variables() map[string]string {
	out := map[string]string{}
	for _, l := range knownLeaves() {
		if name := l.variable(); name != "" {
			out[l.path] = name
		}
	}
	return out
}

// environmentLayer returns a layer with the variables that are set and not
// empty. Empty variables are ignored because CI systems pass an empty string
// for an unset input.
func environmentLayer(getenv func(string) (string, bool)) *layer {
	l := &layer{kind: Environment, root: newMapping(), said: map[string]string{}}
	for _, leaf := range knownLeaves() {
		name := leaf.variable()
		if name == "" {
			continue
		}
		text, set := getenv(name)
		if !set || text == "" {
			continue
		}
		if leaf.key.form.says == switchKind.form.says {
			text = cmp.Or(map[string]string{"1": "true", "0": "false"}[text], text) // the spelling that scripts use
		}
		if leaf.key.holds != manyValues {
			l.add(leaf, environmentPlace(name), newText(text))
			continue
		}
		list, f := entries(text)
		if f != nil {
			l.refuse(environmentPlace(name), leaf.path, f)
			continue
		}
		l.add(leaf, environmentPlace(name), newList(list))
	}
	return l
}

// flagLayer returns a layer with the flags. A flag without a key is a bug in
// the program, but it is reported as well.
func flagLayer(flags []flagged) *layer {
	l := &layer{kind: CommandLine, root: newMapping(), said: map[string]string{}}
	known := knownLeaves()
	for _, f := range flags {
		i := slices.IndexFunc(known, func(l leaf) bool { return l.path == f.path })
		switch {
		case i < 0:
			l.refuse(f.flag, "", &fault{message: "there is no key " + quoted(f.path)})
		case known[i].key.holds == manyValues:
			l.add(known[i], f.flag, newList(f.values))
		default:
			l.add(known[i], f.flag, newText(f.values[len(f.values)-1]))
		}
	}
	return l
}

func (l *layer) refuse(place, path string, f *fault) {
	l.faults = append(l.faults, Problem{File: place, Path: path, Message: f.message, Suggestion: f.suggestion})
}

// add inserts a value into the tree.
func (l *layer) add(at leaf, place string, value *yaml.Node) {
	node, path := l.root, ""
	last := len(at.names) - 1
	for _, name := range at.names[:last] {
		path = join(path, name)
		if other, ok := l.said[path]; ok {
			// workload is the only key that may contain either a value or keys.
			l.refuse(place, at.path,
				&fault{
					message: "a second workload in addition to " + strings.TrimPrefix(other, environmentPlace("")) +
						": " +
						workloadChoice,
				})
			return
		}
		node = childMapping(node, name)
	}
	l.said[at.path] = place
	node.Content = append(node.Content, newText(at.names[last]), value)
}

// childMapping returns the mapping below a key, creating it if necessary.
func childMapping(node *yaml.Node, name string) *yaml.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return node.Content[i+1]
		}
	}
	child := newMapping()
	node.Content = append(node.Content, newText(name), child)
	return child
}

func newMapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func newText(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func newList(texts []string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, text := range texts {
		list.Content = append(list.Content, newText(text))
	}
	return list
}

// listStart matches the beginning of a JSON list. A name never begins like
// this.
var listStart = regexp.MustCompile(`^\[\s*["\]]`)

// entries splits the value of a variable for a list. The value consists of
// comma-separated names. It may also be a JSON list, in case entries contain
// commas or spaces.
func entries(text string) ([]string, *fault) {
	var list []string
	if !listStart.MatchString(text) {
		for entry := range strings.SplitSeq(text, ",") {
			list = append(list, strings.TrimSpace(entry))
		}
		return list, nil
	}
	if json.Unmarshal([]byte(text), &list) != nil {
		return nil,
			&fault{
				message: quoted(text) + ` is not a list: write comma-separated entries, or strings as in ["a", "b, c"]`,
			}
	}
	return list, nil
}

// Misspelling is an environment variable whose name resembles that of a known
// variable.
type Misspelling struct{ Written, Meant string }

// notSlips lists variables that are not misspellings: leakgate sets them for
// its workloads and for programs that store a baseline, or they are read by
// suites and by leakgate's own tests.
var notSlips = []string{"ACCEPTED", "BASELINE_BRANCH", "BASELINE_SHA256", "DEVICES", "REQUIRE", "RUN"}

// Misspellings returns the variables in environ, a list of NAME=value, that
// were probably meant for a key, or for one of the other variables that
// leakgate reads. The name of such a variable is either misspelled, or only the
// end of a known name, such as DUMP for DIAGNOSE_DUMP.
func Misspellings(environ []string, others ...string) []Misspelling {
	known := slices.Sorted(maps.Values(Variables()))
	known = append(known, others...)
	for i, name := range known {
		known[i] = strings.TrimPrefix(name, variablePrefix)
	}
	var out []Misspelling
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		word, ours := strings.CutPrefix(name, variablePrefix)
		if !ours || slices.Contains(known, word) || slices.Contains(notSlips, word) {
			continue
		}
		near, ok := Nearest(word, known)
		if i := slices.IndexFunc(known, func(k string) bool { return strings.HasSuffix(k, "_"+word) }); !ok && i >= 0 {
			near, ok = known[i], true
		}
		if ok {
			out = append(out, Misspelling{name, variablePrefix + near})
		}
	}
	slices.SortFunc(out, func(a, b Misspelling) int { return strings.Compare(a.Written, b.Written) })
	return out
}
