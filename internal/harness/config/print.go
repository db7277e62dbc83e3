package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/text"
)

// remarkColumn is the column at which the comments with the origins are
// aligned, unless a value is longer.
const remarkColumn = 44

// YAML writes the Config as a file with the same meaning. The file contains
// every value, in the order of the documentation, and no references to
// variables. It contains no profiles, because the selected one is already
// applied. If origins is set, each value has a comment with its origin.
func (c *Config) YAML(origins bool) []byte {
	var b bytes.Buffer
	for _, r := range c.rows(schema(c), "", "") {
		b.WriteString(r.line)
		if origins && r.path != "" {
			pad := max(1, remarkColumn-text.Columns(r.line)) + 1
			b.WriteString(strings.Repeat(" ", pad) + "# " + c.Origin(r.path).remark())
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// Setting is one value of a Config with its origin.
type Setting struct {
	Path string
	// Value is the JSON value: a string with its unit, a number if the value
	// has no unit in the file, a list of strings, or nil if there is no value.
	Value  any
	Origin Origin
}

// Settings returns all values in the order of the documentation. The settings
// of a workload are included only if it is selected.
func (c *Config) Settings() []Setting {
	var out []Setting
	for _, r := range c.rows(schema(c), "", "") {
		if r.path != "" {
			out = append(out, Setting{r.path, r.value, c.Origin(r.path)})
		}
	}
	return out
}

// row is one line of a written Config.
type row struct {
	line  string
	path  string // path of the value; empty for a key with keys below it
	value any    // the same as in a Setting
}

// rows returns the rows of the given keys and of all keys below them.
func (c *Config) rows(keys []key, path, indent string) []row {
	var out []row
	for _, k := range keys {
		if k.notYet {
			continue
		}
		here, begin := join(path, k.name), indent+k.name+": "
		notSet := row{indent + "# " + k.name + " is not set: " + k.unset, here, nil}
		if k.hidden != nil && k.hidden() {
			if k.unset != "" {
				out = append(out, notSet)
			}
			continue
		}
		shown := k.texts()
		if c.masked {
			if hidden := c.hidden(k, here, indent); hidden != nil {
				out = append(out, *hidden)
				continue
			}
		}
		switch {
		case k.holds == manyValues && (len(shown) > 0 || k.is&mayBeEmpty != 0):
			out = append(out, row{begin + yamlTexts(shown), here, append([]string{}, shown...)})
		case k.holds == oneValue && len(shown) > 0:
			out = append(out, row{begin + k.yaml(shown[0]), here, k.json(shown[0])})
		case k.holds == manyPairs:
			out = append(out, row{begin + yamlPairs(k.pairs()), here, k.pairs()})
		case k.holds == manyMappings:
			out = append(out, row{line: indent + k.name + ":"})
			for i, keys := range k.entries() {
				entry := c.rows(keys, fmt.Sprintf("%s[%d]", here, i), indent+"    ")
				entry[0].line = indent + "  - " + strings.TrimPrefix(entry[0].line, indent+"    ")
				out = append(out, entry...)
			}
		case k.keys != nil:
			below := c.rows(k.keys, here, indent+"  ")
			if len(below) == 0 {
				out = append(out, row{begin + "{}", here, map[string]string{}})
				continue
			}
			out = append(append(out, row{line: indent + k.name + ":"}), below...)
		case k.unset != "":
			out = append(out, notSet)
		}
	}
	return out
}

// hidden returns the row of a key whose value refers to variables, with the
// references in place of their values; it returns nil for other keys.
func (c *Config) hidden(k key, path, indent string) *row {
	begin := indent + k.name + ": "
	if text, ok := c.reference(path); ok {
		if k.holds == manyValues { // a single value as the short form of a list
			return &row{begin + "[" + yamlReference(text) + "]", path, []string{text}}
		}
		return &row{begin + yamlReference(text), path, text}
	}
	switch k.holds {
	case manyValues:
		texts := k.texts()
		written, words, any := make([]string, len(texts)), slices.Clone(texts), false
		for i, t := range texts {
			written[i] = yamlText(t)
			if text, ok := c.listReference(path, i); ok {
				written[i], words[i], any = yamlReference(text), text, true
			}
		}
		if any {
			return &row{begin + "[" + strings.Join(written, ", ") + "]", path, words}
		}
	case manyPairs:
		pairs, written, any := maps.Clone(k.pairs()), []string(nil), false
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			value := yamlText(pairs[name])
			if text, ok := c.reference(path + "." + name); ok {
				value, pairs[name], any = yamlReference(text), text, true
			}
			written = append(written, yamlText(name)+": "+value)
		}
		if any {
			return &row{begin + "{ " + strings.Join(written, ", ") + " }", path, pairs}
		}
	}
	return nil
}

// listReference returns the reference in an entry of a list. The default of
// app.processes is derived from app.package, and contains the same reference.
func (c *Config) listReference(path string, i int) (string, bool) {
	if path != "app.processes" || c.Origin(path).Layer != Default {
		return c.reference(fmt.Sprintf("%s[%d]", path, i))
	}
	text, ok := c.reference("app.package")
	return text + []string{"", ":*"}[min(i, 1)], ok
}

// yamlReference writes a string with references, which are resolved when the
// string is parsed again.
func yamlReference(written string) string { return text.Quote(written, len(written)) }

// texts returns the result of shown, or nil if shown is nil.
func (k key) texts() []string {
	if k.shown == nil {
		return nil
	}
	return k.shown()
}

// yaml returns the text of a value as written in a file.
func (k key) yaml(text string) string {
	if k.form.plain {
		return text
	}
	return yamlText(text)
}

var jsonNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// json returns a value as a JSON number, boolean or string.
func (k key) json(text string) any {
	switch {
	case k.form.plain && jsonNumber.MatchString(text):
		return json.Number(text)
	case k.form.plain && (text == "true" || text == "false"):
		return text == "true"
	}
	return text
}

// Starter returns an initial file for an application ID. Its comments describe
// what can be set. It returns an error if the application ID is invalid.
func Starter(pkg string) ([]byte, error) {
	if _, f := packageName(pkg); f != nil {
		return nil, fmt.Errorf("%s", text.Escape(f.message))
	}
	return fmt.Appendf(nil, starter, SchemaURL, pkg), nil
}

const starter = `# yaml-language-server: $schema=%s
# How leakgate tests an app under stress. Values that are missing here have a
# default; leakgate config print shows all values with their origin.
version: 1

# The app. By default all processes of the package are watched; processes lists
# others, or only some of them.
app:
  package: %s
  # processes: ["com.shop", "com.shop:push"]

# All attached phones, or only those in serials.
devices:
  # serials: [emulator-5554]
  require: 1

# What stresses the app: exactly one of these, or none.
workload:
  monkey: { events: 200000, throttle: 300ms, seed: auto }
  # command: [./gradlew, connectedCheck]     # on this machine
  # device_command: "am start -n com.shop/.Main && sleep 600"
  # instrument: com.shop.test/androidx.test.runner.AndroidJUnitRunner    # each test is checked

# The maximum duration.
duration: 8h

# How often memory is read, and what that may cost in percent of one core.
# sample: { normal: 30s, suspicious: 15s, leaking: 1m, detail: 30s, max_system_server: 25%%, max_app: 5%% }

# When a heap dump is taken (on_leak, at_end of the run or at_marks), the minimum time
# between two, and what is kept: stripped of its strings, raw or none.
# diagnose: { dump: on_leak, cooldown: 30m, keep: stripped }

# The rules that the run must satisfy in comparison with earlier runs. By default: no new leak, no
# leak that grew, no leak that became heavier.
# gate: { accepted: leaks-accepted.yaml, leak.per_loop: ["new == 0", "grown == 0"] }
# baseline: { store: file:leak-baseline.json }

# Variants of the above, chosen by leakgate run FILE --profile NAME. In less than half
# an hour, only loops with marks can be judged; a longer run detects slower leaks.
profiles:
  pr: { duration: 45m }
  nightly: {}
`
