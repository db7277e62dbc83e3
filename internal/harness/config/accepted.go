package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Accepted is an entry of the reviewed file of accepted leaks: a leak that is
// accepted up to a certain date.
type Accepted struct {
	// Key, Class and Held identify the leak; exactly one of them is set.
	Key, Class, Held string
	Reason, Owner    string
	// Until is the last day on which the leak is accepted.
	Until time.Time
}

// LoadAccepted reads the file of accepted leaks at path
// (docs/formats/accepted.md). If it fails, the error is of type [Errors].
func LoadAccepted(path string) ([]Accepted, error) {
	text, err := read(path)
	if err != nil {
		return nil, Errors{unreadable(path, err)}
	}
	return ParseAccepted(path, text)
}

// acceptedKeys are the keys that an entry may have.
var acceptedKeys = []string{"key", "class", "held", "reason", "owner", "until"}

// ParseAccepted parses the content of a file of accepted leaks. If it fails,
// the error is of type [Errors] and lists all mistakes.
func ParseAccepted(name string, text []byte) ([]Accepted, error) {
	src, problem := newSource(name, text)
	if problem != nil {
		return nil, Errors{*problem}
	}
	if _, err := decode(yaml.NewDecoder(strings.NewReader(src.text))); errors.Is(err, io.EOF) {
		return nil,
			Errors{
				*src.problem(1, 1, "the file is empty: write `version: 1` and, if no leak is accepted, `accepted: []`"),
			}
	}
	root, problem := src.parse()
	if problem != nil {
		return nil, Errors{*problem}
	}
	r := acceptedReading{source: src}
	r.file(root)
	if len(r.errors) > 0 {
		return nil, r.errors
	}
	return r.list, nil
}

type acceptedReading struct {
	source
	list   []Accepted
	errors Errors
}

// refuse records a problem at a node.
func (r *acceptedReading) refuse(at *yaml.Node, path, format string, args ...any) {
	p := Problem{File: r.name, Line: at.Line, Column: at.Column, Path: path, Message: fmt.Sprintf(format, args...)}
	if at.Line > 0 {
		p.Excerpt = r.excerpt(at.Line, at.Column)
	}
	r.errors = append(r.errors, p)
}

// pairs calls a function for each key and value of a mapping. It rejects
// unknown and duplicate keys.
func (r *acceptedReading) pairs(at *yaml.Node, path string, known []string, do func(key string, value *yaml.Node)) {
	if at == nil || at.Kind != yaml.MappingNode {
		if at == nil {
			at = &yaml.Node{}
		}
		r.refuse(at, path, "want keys and values: %s", strings.Join(known, ", "))
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(at.Content); i += 2 {
		key := at.Content[i]
		switch {
		case !slices.Contains(known, key.Value):
			r.refuse(key, path, "unknown key %q: want %s", key.Value, strings.Join(known, ", "))
			if near, ok := Nearest(key.Value, known); ok {
				r.errors[len(r.errors)-1].Suggestion = near
			}
		case seen[key.Value]:
			r.refuse(key, path, "duplicate key %q", key.Value)
		default:
			do(key.Value, at.Content[i+1])
		}
		seen[key.Value] = true
	}
}

func (r *acceptedReading) file(root *yaml.Node) {
	version := false
	r.pairs(root, "", []string{"version", "accepted"}, func(key string, value *yaml.Node) {
		switch {
		case key == "version":
			version = true
			if value.Value != "1" {
				r.refuse(value, key, "invalid value %q: want 1", value.Value)
			}
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null": // not set yet
		case value.Kind != yaml.SequenceNode:
			r.refuse(value, key, "want a list of leaks")
		default:
			for i, entry := range value.Content {
				r.entry(entry, fmt.Sprintf("accepted[%d]", i))
			}
		}
	})
	if !version && len(r.errors) == 0 {
		r.refuse(&yaml.Node{}, "version", "write version: 1")
	}
}

func (r *acceptedReading) entry(at *yaml.Node, path string) {
	var a Accepted
	before := len(r.errors)
	texts := map[string]*string{
		"key": &a.Key, "class": &a.Class, "held": &a.Held, "reason": &a.Reason, "owner": &a.Owner,
	}
	r.pairs(at, path, acceptedKeys, func(key string, value *yaml.Node) {
		if value.Kind != yaml.ScalarNode {
			r.refuse(value, path+"."+key, "want a string")
			return
		}
		if to := texts[key]; to != nil {
			*to = strings.TrimSpace(value.Value)
			return
		}
		day, err := time.ParseInLocation(time.DateOnly, value.Value, time.Local)
		if err != nil {
			r.refuse(value, path+"."+key, "invalid date %q: want the last day, such as 2027-03-31", value.Value)
		}
		a.Until = day
	})
	if len(r.errors) == before {
		r.list = append(r.list, a)
	}
}
