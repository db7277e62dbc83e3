package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// leastSecret is the minimum length in bytes of a variable's value that is
// replaced in other strings. Shorter values are words such as 8h and true,
// which occur everywhere.
const leastSecret = 6

// secrets maps the value of a variable to the name of a variable with this
// value.
type secrets map[string]string

func (s secrets) add(list []secret) {
	for _, one := range list {
		if len(one.value) >= leastSecret {
			s[one.value] = one.name
		}
	}
}

// redact replaces the values of variables with references to them.
func (s secrets) redact(text string) string {
	values := make([]string, 0, len(s))
	for v := range s {
		values = append(values, v)
	}
	// The longest values are replaced first, because one value may contain
	// another.
	slices.SortFunc(values, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for _, v := range values {
		text = strings.ReplaceAll(text, v, "${"+s[v]+"}")
	}
	return text
}

// isPublic reports whether the value at a path is a name that appears on
// devices, in comments and in records. If such a name were hidden, messages
// could not identify the app, process or device.
func isPublic(path string) bool {
	path, _, _ = strings.Cut(path, "[")
	return slices.Contains([]string{
		"app.package", "app.processes", "app.variant", "devices.serials", "github.comment.key",
	}, path)
}

// Redact replaces the values of variables with the references that the file
// contains in their place. Use it for messages such as an error about the use
// of the Config. Names of devices, packages and processes are kept.
func (c *Config) Redact(text string) string { return c.secrets.redact(text) }

// Masked returns a Config that is written with the same references to variables
// as the file. The Config itself still contains the values.
func (c *Config) Masked() *Config {
	masked := *c
	masked.masked = true
	return &masked
}

// reference returns a value as written in the file if it refers to variables,
// unless the value is public.
func (c *Config) reference(path string) (text string, hidden bool) {
	o := c.origins[path]
	return o.written, c.masked && len(o.Variables) > 0
}

// hide returns a message about a value. If the value comes from a variable, the
// message does not contain the value.
func (f *fault) hide(t filled, want string) *fault {
	if len(t.secrets) == 0 {
		return f.from(t.names)
	}
	words := make([]string, len(t.secrets))
	for i, s := range t.secrets {
		words[i] = fmt.Sprintf("${%s} (%d characters)", s.name, utf8.RuneCountInString(s.value))
	}
	message := "invalid value from " + joinList(words, "and")
	if want != "" {
		message += ": want " + want
	}
	return &fault{message: message}
}

// wanted describes the allowed values of a key. It returns "" if the table of
// keys does not describe the values of the key.
func wanted(path string) string {
	path, _, _ = strings.Cut(path, "[")
	for _, l := range knownLeaves() {
		if l.path != path || l.key.form.says == "" {
			continue
		}
		if l.key.holds == oneValue && l.key.example != "" {
			return l.key.form.says + ", such as " + l.key.example
		}
		return l.key.form.says
	}
	return ""
}
