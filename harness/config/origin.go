package config

import "fmt"

// Layer is where a value comes from. A stronger layer has a higher number.
type Layer uint8

// The layers, weakest first.
const (
	Default Layer = iota
	File
)

// Origin is the place that a value comes from.
type Origin struct {
	Layer Layer
	// File, Line and Column are where the value is written; only for [File].
	File         string
	Line, Column int
	// Variables are the variables of the environment that the value refers to.
	Variables []string
}

// String gives "default" or file:line:column.
func (o Origin) String() string {
	if o.Layer == Default {
		return "default"
	}
	return fmt.Sprintf("%s:%d:%d", o.File, o.Line, o.Column)
}

// Origin tells where the value at a path comes from. Paths are the keys joined
// by dots, such as sample.normal, and app.processes[0] for an entry of a list.
func (c *Config) Origin(path string) Origin { return c.origins[path] }

// Problem makes a problem with the value at a path, for callers who know more
// about a value than this package, such as the names of options. It points to
// the value where the file has one, and to the file as a whole elsewhere.
func (c *Config) Problem(path, message string) Problem {
	p := Problem{File: c.source.name, Path: path, Message: message}
	if o := c.Origin(path); o.Layer == File {
		p.Line, p.Column = o.Line, o.Column
		p.Excerpt = c.source.excerpt(o.Line, o.Column)
	}
	return p
}
