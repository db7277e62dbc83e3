package record

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/text"
)

// SamplesSchema names the format of samples.ndjson (docs/formats/run.md).
const SamplesSchema = "leakgate.samples/1"

// Header is the first line of samples.ndjson.
type Header struct {
	Schema  string         `json:"schema"`
	Started time.Time      `json:"started"`
	Devices []HeaderDevice `json:"devices"`
	Plan    *Plan          `json:"plan"`
	// Warnings describes the keys of the header that are unknown, missing,
	// duplicate or invalid.
	Warnings []string `json:"-"`
}

// HeaderDevice describes one device at the beginning of the run.
type HeaderDevice struct {
	Device string `json:"device"`
	Model  string `json:"model"`
	API    int    `json:"api"`
	// StartedUp is the device's clock (seconds since boot) when the run began.
	StartedUp float64 `json:"started_up_s"`
	// TimeScale is the number of device seconds per wall-clock second. It is 1
	// for a real phone.
	TimeScale float64 `json:"time_scale"`
	// ABI is the first ABI that the device supports; Fingerprint is the
	// fingerprint of its Android build; HeapLimit is the growth limit of a Java
	// heap, in MB.
	ABI         string  `json:"abi,omitempty"`
	Fingerprint string  `json:"fingerprint,omitempty"`
	Emulator    bool    `json:"emulator,omitempty"`
	HeapLimit   float64 `json:"heap_limit_mb,omitempty"`
	// MemTotal is the memory of the device in kB, or 0 if unknown. A larger
	// value that is read for a process is a read error.
	MemTotal int64 `json:"mem_total_kb,omitempty"`
}

// decodeHeader decodes the first line of samples.ndjson. It returns a warning
// for an unknown, missing or duplicate key. For a missing key, the default of
// the policy is used.
func decodeHeader(line []byte) (Header, error) {
	var head struct {
		Schema string
		Plan   struct{ Policy json.RawMessage }
	}
	var wrongForm *json.UnmarshalTypeError
	// A value of the wrong type is reported below, with its key.
	if err := json.Unmarshal(line, &head); err != nil && !errors.As(err, &wrongForm) {
		return Header{}, err
	}
	if head.Schema != SamplesSchema {
		return Header{}, fmt.Errorf("schema is %s, not %q", text.Quote(head.Schema, maxQuoted), SamplesSchema)
	}
	if bytes.HasPrefix(head.Plan.Policy, []byte("{")) {
		return Header{}, errors.New("the plan has the format of a leakgate version before the first release, " +
			"which is no longer supported: record the run again")
	}
	h := Header{Plan: &Plan{Assert: AssertEnd}}
	defaults := detector.DefaultPolicy()
	if string(head.Plan.Policy) == `"`+detector.PolicyArticle+`"` {
		defaults = detector.ArticlePolicy()
	}
	h.Plan.SetPolicy(defaults)
	h.Plan.Policy = "" // null is not a name
	var k keys
	if err := k.decode("", line, reflect.ValueOf(&h).Elem()); err != nil {
		return Header{}, err
	}
	for i, d := range h.Devices {
		if !(d.TimeScale >= 1/maxTimeScale && d.TimeScale <= maxTimeScale) {
			h.Devices[i].TimeScale = 1
			k.add("key devices[%d].time_scale is %g, assumed 1", i, d.TimeScale)
		}
	}
	h.Warnings = k.warnings()
	return h, nil
}

// maxTimeScale is the largest time scale that capture accepts; records of old
// versions may have a time scale below 1.
const maxTimeScale = 10000.0

// keys decodes JSON objects into structs and collects the unknown, missing and
// duplicate keys.
type keys struct {
	problems []string
	more     int
}

const (
	// maxProblems bounds the number of reported keys. maxQuoted bounds the
	// length of the quoted part of a key.
	maxProblems, maxQuoted = 20, 60
)

func (k *keys) add(format string, args ...any) {
	if len(k.problems) == maxProblems {
		k.more++
		return
	}
	k.problems = append(k.problems, fmt.Sprintf(format, args...))
}

func (k *keys) warnings() []string {
	if k.more > 0 {
		return append(k.problems, text.Plural(k.more, "more unknown or missing key", "more unknown or missing keys"))
	}
	return k.problems
}

// decode decodes the value at a path. A null or missing value leaves the target
// unchanged.
func (k *keys) decode(path string, raw []byte, into reflect.Value) error {
	pointer := into.Kind() == reflect.Pointer
	switch {
	case bytes.Equal(raw, []byte("null")) && pointer:
		into.SetZero()
		return nil
	case bytes.Equal(raw, []byte("null")):
		k.add("key %s is null%s", path, assumed(into))
		return nil
	case pointer:
		if into.IsNil() {
			into.Set(reflect.New(into.Type().Elem()))
		}
		return k.decode(path, raw, into.Elem())
	case into.Kind() == reflect.Struct && !into.Addr().Type().Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return k.object(path, raw, into)
	case into.Kind() == reflect.Slice && into.Type().Elem().Kind() == reflect.Struct:
		return k.list(path, raw, into)
	}
	if err := json.Unmarshal(raw, into.Addr().Interface()); err != nil {
		return fmt.Errorf("key %s: %w", path, err)
	}
	return nil
}

func (k *keys) list(path string, raw []byte, into reflect.Value) error {
	var elements []json.RawMessage
	if err := json.Unmarshal(raw, &elements); err != nil {
		return fmt.Errorf("key %s: %w", path, err)
	}
	into.Set(reflect.MakeSlice(into.Type(), len(elements), len(elements)))
	for i, element := range elements {
		if d, ok := into.Index(i).Addr().Interface().(*HeaderDevice); ok {
			d.TimeScale = 1 // as on a real phone, unless stated otherwise
		}
		if err := k.decode(fmt.Sprintf("%s[%d]", path, i), element, into.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (k *keys) object(path string, raw []byte, into reflect.Value) error {
	if path != "" {
		path += "."
	}
	values, err := k.members(path, raw)
	if err != nil {
		return err
	}
	for field, value := range into.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if member, ok := values.take(name); !ok && options == "omitempty" {
			continue
		} else if !ok {
			k.add("missing key %s%s", path+name, assumed(value))
			if value.Kind() == reflect.Pointer {
				value.SetZero()
			}
		} else if err := k.decode(path+name, member, value); err != nil {
			return err
		}
	}
	for _, m := range values {
		k.add("unknown key %s", text.Quote(path+m.name, maxQuoted))
	}
	return nil
}

// assumed returns the value that is used instead of a missing one.
func assumed(value reflect.Value) string {
	switch value.Kind() {
	case reflect.Bool, reflect.Int, reflect.Float64:
	case reflect.Pointer:
		return ""
	default:
		if value.IsZero() {
			return ""
		}
	}
	text, _ := json.Marshal(value.Interface()) // plain values
	return fmt.Sprintf(", assumed %s", text)
}

type member struct {
	name  string
	value json.RawMessage
}

type members []member

func (m *members) take(name string) (json.RawMessage, bool) {
	for i, x := range *m {
		if x.name == name {
			*m = append((*m)[:i], (*m)[i+1:]...)
			return x.value, true
		}
	}
	return nil, false
}

// members returns the members of an object in their order. If a key occurs more
// than once, its last value is used.
func (k *keys) members(path string, raw []byte) (members, error) {
	in := json.NewDecoder(bytes.NewReader(raw))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return nil, fmt.Errorf("key %s: want an object, not %s",
			strings.TrimSuffix(path, "."), text.Head(string(raw), maxQuoted))
	}
	var out members
	at := map[string]int{} // a hostile header may have very many keys
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)} // JSON syntax
		if err := in.Decode(&m.value); err != nil {
			return nil, err
		}
		if i, twice := at[m.name]; twice {
			k.add("duplicate key %s, the last one is used", text.Quote(path+m.name, maxQuoted))
			out[i] = m
			continue
		}
		at[m.name] = len(out)
		out = append(out, m)
	}
	return out, nil
}
