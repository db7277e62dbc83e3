// Package schema generates JSON Schemas for the files of a run directory from
// the Go types of their content, and checks files against schemas. It uses the
// library santhosh-tekuri/jsonschema.
package schema

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// draft identifies the version of JSON Schema that all schemas use.
const draft = "https://json-schema.org/draft/2020-12/schema"

// Of returns the schema of the JSON that encoding/json writes for a type.
// Fields are required unless their tag contains omitempty or omitzero.
// Additional fields are allowed, because new versions may add some.
func Of(title string, t reflect.Type) ([]byte, error) {
	m := maker{defs: map[string]any{}}
	root := m.of(t)
	root["$schema"], root["title"], root["$defs"] = draft, title, m.defs
	return encode(root)
}

// OneOf returns the schema of a line whose content has one of several types.
func OneOf(title string, types ...reflect.Type) ([]byte, error) {
	m := maker{defs: map[string]any{}}
	var choices []any
	for _, t := range types {
		choices = append(choices, m.of(t))
	}
	return encode(map[string]any{"$schema": draft, "title": title, "anyOf": choices, "$defs": m.defs})
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // maps are written in the order of their keys
		return nil, fmt.Errorf("encode schema: %w", err)
	}
	return b.Bytes(), nil
}

// maker generates the schema of a type. defs maps the name of each struct to
// its definition.
type maker struct{ defs map[string]any }

var (
	marshalsText = reflect.TypeFor[encoding.TextMarshaler]()
	marshalsJSON = reflect.TypeFor[json.Marshaler]()
	timeType     = reflect.TypeFor[time.Time]()
)

func (m maker) of(t reflect.Type) map[string]any {
	switch {
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Pointer:
		return map[string]any{"anyOf": []any{m.of(t.Elem()), map[string]any{"type": "null"}}}
	case t.Implements(marshalsText):
		return map[string]any{"type": "string"}
	case t.Implements(marshalsJSON):
		return map[string]any{} // any value is allowed: such types encode themselves
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Slice, reflect.Array:
		// A nil list is encoded as null.
		return map[string]any{"type": []string{"array", "null"}, "items": m.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": m.of(t.Elem())}
	case reflect.Struct:
		return m.reference(t)
	}
	return map[string]any{}
}

func (m maker) reference(t reflect.Type) map[string]any {
	if t.Name() == "" {
		return m.object(t)
	}
	name := path.Base(t.PkgPath()) + "." + t.Name()
	if _, known := m.defs[name]; !known {
		m.defs[name] = nil // a struct may contain itself
		m.defs[name] = m.object(t)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

func (m maker) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	m.fields(t, properties, &required)
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// fields adds the fields of a struct and of the structs embedded in it.
func (m maker) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			m.fields(f.Type, properties, required)
			continue
		case name == "":
			name = f.Name
		}
		properties[name] = m.of(f.Type)
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// Schema is a JSON Schema that is ready to check documents.
type Schema struct{ compiled *jsonschema.Schema }

// Compile parses a JSON Schema and prepares it for checking documents.
func Compile(text []byte) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return &Schema{compiled}, nil
}

// Validate returns an error if a document violates the schema. The document
// must have been decoded by encoding/json or a YAML library.
func (s *Schema) Validate(doc any) error { return s.compiled.Validate(doc) }

// Check decodes a JSON document and returns an error if it violates the schema.
func (s *Schema) Check(text []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	return s.Validate(doc)
}
