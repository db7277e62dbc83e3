package config

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// SchemaURL is the address at which editors find the JSON Schema of the
// configuration file; it is also the id of the schema.
const SchemaURL = "https://raw.githubusercontent.com/leakgate/leakgate/main/docs/formats/leakgate.schema.json"

// member is one member of a JSON object. object keeps the order of its members,
// because the schema lists the keys in the order of the file.
type (
	member struct {
		name  string
		value any
	}
	object []member
)

// MarshalJSON writes the members in order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		for _, part := range []any{m.name, m.value} {
			text, err := plainJSON(part)
			if err != nil {
				return nil, err
			}
			b.Write(text)
			b.WriteByte(':')
		}
		b.Truncate(b.Len() - 1)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plainJSON encodes a value as JSON without the escapes that only HTML needs.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// referenceText matches a string that contains a reference or an escaped dollar
// sign. A schema cannot know the value of such a string.
const referenceText = `\$(\$|\{[A-Za-z_][A-Za-z0-9_]*(:[-?][^}]*)?\})`

// JSONSchema returns the JSON Schema of the file, draft 2020-12, derived from
// the table of keys that the reader uses. It accepts every file that the reader
// accepts with an empty environment, and rejects the mistakes that a schema can
// express; the documentation lists the mistakes that only the reader detects.
func JSONSchema() ([]byte, error) {
	keys := schema(defaults())
	profiles, _ := find(keys, "profiles")
	var file, inProfile, defs object
	for _, k := range keys {
		if k.notYet || k.name == "profiles" {
			continue
		}
		defs = append(defs, member{k.name, k.schema()})
		use := member{k.name, object{{"$ref", "#/$defs/" + k.name}}}
		file = append(file, use)
		if !belongsOutside(k.name) {
			inProfile = append(inProfile, use)
		}
	}
	file = append(file, member{"profiles", object{
		{"description", profiles.about},
		{"type", "object"},
		{"propertyNames", object{{"pattern", profileName.String()}}},
		{"maxProperties", mostProfiles},
		{"additionalProperties", object{{"$ref", "#/$defs/profile"}}},
	}})
	defs = append(defs, member{"profile", object{
		{"description", "The values that this profile changes; the workload is replaced as a whole."},
		{"type", "object"},
		{"properties", inProfile},
		{"additionalProperties", false},
	}})
	defs = append(defs, member{"step", stepKey(new(defaultStep())).schema()})
	whole := object{
		{"$schema", "https://json-schema.org/draft/2020-12/schema"},
		{"$id", SchemaURL},
		{"title", "leakgate"},
		{
			"description",
			"A stability run: which app, which devices, what stresses the app, how often to sample, how to judge and " +
				"what to capture when there is a leak.",
		},
		{"type", "object"},
		{"properties", file},
		{"patternProperties", object{{"^x-", true}}},
		{"additionalProperties", false},
		{"required", []string{"version", "app", "workload"}},
		{"allOf", together},
		{"$defs", defs},
	}
	text, err := plainJSON(whole)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, text, "", "  ")
	b.WriteByte('\n')
	return b.Bytes(), err
}

// together lists the rules that involve several keys and that a schema can
// express.
var together = []object{
	{
		{"description", "A package or a list of processes is required."},
		{
			"properties",
			object{
				{
					"app",
					object{
						{"anyOf", []object{{{"required", []string{"package"}}}, {{"required", []string{"processes"}}}}},
					},
				},
			},
		},
	},
	{
		{"description", "The monkey needs a package to send events to."},
		{"if", requires("workload", object{{"type", "object"}, {"required", []string{"monkey"}}})},
		{"then", object{{"properties", object{{"app", object{{"required", []string{"package"}}}}}}}},
	},
	{
		{"description", "Without a workload the duration is required."},
		{"if", requires("workload", object{{"const", "none"}})},
		{"then", object{{"required", []string{"duration"}}}},
	},
}

func requires(name string, value object) object {
	return object{{"required", []string{name}}, {"properties", object{{name, value}}}}
}

// properties returns the schemas of the given keys, by name.
func properties(keys []key) object {
	var out object
	for _, k := range keys {
		if !k.notYet {
			out = append(out, member{k.name, k.schema()})
		}
	}
	return out
}

func (k key) schema() object {
	o := object{{"description", k.description()}}
	switch {
	case k.choice, k.brief != "":
		return append(append(o, member{"anyOf", append(k.form.alternatives(), mappingOf(k))}), k.annotations()...)
	case k.holds == manyPairs:
		return append(o, object{
			{"type", "object"},
			{"propertyNames", object{{"pattern", argumentKeyText}}},
			{"maxProperties", mostArguments},
			{"additionalProperties", freeText("")},
			{"default", object{}},
		}...)
	case k.keys != nil:
		return append(o, mappingOf(k)...)
	case k.holds == manyMappings:
		return append(o, object{
			{"type", "array"},
			{"items", object{{"$ref", "#/$defs/step"}}},
			{"maxItems", mostSteps},
			{"default", []string{}},
		}...)
	case k.holds == manyValues && k.is&mayBeSingle != 0:
		many := object{{"type", "array"}, {"items", k.form.schema()}, {"maxItems", mostEntries}}
		o = append(o, member{"anyOf", append(k.form.alternatives(), many)})
	case k.holds == manyValues:
		o = append(o, member{"type", "array"}, member{"items", k.form.schema()}, member{"maxItems", mostEntries})
		if k.is&mayBeEmpty == 0 {
			o = append(o, member{"minItems", 1})
		}
	default:
		o = append(o, k.form.schema()...)
	}
	return append(o, k.annotations()...)
}

// description returns the text that an editor shows for a key.
func (k key) description() string {
	if k.holds == nothing || k.holds == manyMappings || k.holds == manyPairs || k.choice {
		return k.about
	}
	each := map[bool]string{true: "Each entry: ", false: "Value: "}[k.holds == manyValues]
	return k.about + " " + each + k.form.says + "."
}

// mappingOf returns the schema of a mapping that contains the keys below k.
func mappingOf(k key) object {
	o := object{{"type", "object"}, {"properties", properties(k.keys)}, {"additionalProperties", false}}
	switch {
	case k.choice:
		o = append(o, choiceOf(k)...)
	case k.needed != nil:
		o = append(o, member{"required", k.needed})
	}
	return o
}

// choiceOf returns the rules for a mapping that must have exactly one key,
// apart from keys that are allowed beside it.
func choiceOf(k key) object {
	var one []object
	var last string
	for _, below := range k.keys {
		if below.beside {
			last = below.name
			continue
		}
		one = append(one, object{{"required", []string{below.name}}})
	}
	return object{
		{"oneOf", one},
		{
			"dependentSchemas",
			object{
				{
					last,
					object{
						{
							"anyOf",
							[]object{{{"required", []string{"command"}}}, {{"required", []string{"device_command"}}}},
						},
					},
				},
			},
		},
	}
}

// annotations returns the default and the example of a key.
func (k key) annotations() object {
	var o object
	switch shown := k.texts(); {
	case k.name == "version" || k.choice || k.brief != "":
	case k.holds == manyValues && k.is&mayBeEmpty != 0:
		o = append(o, member{"default", append([]string{}, shown...)})
	case k.holds == oneValue && len(shown) > 0:
		o = append(o, member{"default", k.json(shown[0])})
	}
	if k.example == "" || k.brief != "" {
		return o
	}
	if list, isList := strings.CutPrefix(k.example, "["); isList {
		var entries []string
		for entry := range strings.SplitSeq(strings.TrimSuffix(list, "]"), ", ") {
			entries = append(entries, strings.Trim(entry, `"`))
		}
		return append(o, member{"examples", [][]string{entries}})
	}
	return append(o, member{"examples", []any{k.json(k.example)}})
}

// alternatives returns the possible forms of a single value, including a string
// that contains a reference.
func (f form) alternatives() []object {
	out := slices.Clone(f.accepts)
	return append(out,
		object{{"description", "filled in from the environment"}, {"type", "string"}, {"pattern", referenceText}})
}

// schema returns the shortest schema of a single value.
func (f form) schema() object {
	if only := f.accepts[0]; len(f.accepts) == 1 && only[0].name == "type" {
		if last := len(only) - 1; only[last].name == "pattern" {
			pattern, _ := only[last].value.(string)
			return append(slices.Clone(only[:last]), member{"pattern", pattern + "|" + referenceText})
		}
		return only
	}
	return object{{"anyOf", f.alternatives()}}
}
