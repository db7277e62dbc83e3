package config

import (
	"fmt"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// Layer is one of the sources from which a value can come. A stronger layer,
// which overrides the weaker ones, has a higher number.
type Layer uint8

// The layers, weakest first.
const (
	Default Layer = iota
	File
	Profile
	Environment
	CommandLine
)

var layerNames = [...]string{"default", "file", "profile", "environment", "flag"}

// String returns the name of the layer as used in messages and in JSON.
func (l Layer) String() string { return layerNames[l] }

// Origin describes where a value comes from.
type Origin struct {
	Layer Layer
	// File, Line and Column are the position at which the value is written;
	// they are set only for [File] and [Profile].
	File         string
	Line, Column int
	// Name is the name of the profile, the environment variable or the flag. It
	// is empty for [Default] and [File].
	Name string
	// Variables lists the environment variables that the value refers to.
	Variables []string
	// written is the text of the value in the file, if the text refers to
	// variables.
	written string
}

// String returns "default", file:line:column (preceded by the name of the
// profile, if any), or the name of the variable or flag. The result is
// printable, whatever the name of the file is.
func (o Origin) String() string {
	switch o.Layer {
	case Default:
		return "default"
	case Environment, CommandLine:
		return o.Name
	}
	return o.profile() + fmt.Sprintf("%s:%d:%d", text.Escape(o.File), o.Line, o.Column)
}

func (o Origin) profile() string {
	if o.Layer != Profile {
		return ""
	}
	return "profile " + o.Name + ", "
}

// remark returns the origin as a comment for a printed file.
func (o Origin) remark() string {
	if o.Layer != File && o.Layer != Profile {
		return o.String()
	}
	text := o.profile() + fmt.Sprintf("%s:%d", text.Escape(o.File), o.Line)
	for i, name := range o.Variables {
		text += map[bool]string{true: ", from ", false: " and "}[i == 0] + "${" + name + "}"
	}
	return text
}

// Origin says where the value at a path comes from. A path consists of keys
// joined by dots, such as sample.normal, or app.processes[0] for an entry of a
// list.
func (c *Config) Origin(path string) Origin { return c.origins[path] }

// Profile returns the name of the selected profile, or "" if none is selected.
func (c *Config) Profile() string { return c.profile }

// Profiles returns the names of all profiles in the order of the file.
func (c *Config) Profiles() []string { return c.profiles }

// Problem creates an error message about the value at a path. It is for callers
// that know more about a value than this package does, such as the names of
// options. The problem points to the value in the file, or to the environment
// variable or flag that sets the value. For a default, it points to the file as
// a whole.
func (c *Config) Problem(path, message string) Problem {
	p := Problem{File: c.source.name, Path: path, Message: c.Redact(message)}
	switch o := c.Origin(path); o.Layer {
	case Default:
	case Environment:
		p.File = environmentPlace(o.Name)
	case CommandLine:
		p.File = o.Name
	case Profile:
		p.Path = strings.Join([]string{"profiles", o.Name, path}, ".")
		fallthrough
	case File:
		p.Line, p.Column = o.Line, o.Column
		p.Excerpt = c.source.excerpt(o.Line, o.Column)
	}
	return p
}
