package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// hostileTexts are hostile values for a string in the file.
var hostileTexts = []string{
	"com.x;reboot", "$(id)", "`id`", "a\nb: c", "a\r\nb", "a\tb", "\x1b[2J\x1b]0;x\x07", "\x00", "\x7f", "\u0085",
	"\u009b31m", "\u00a0",
	"\u200e\u200f", "\u202emoc", "\u2066x\u2069", "\u2028", "\ufeff", "\U000e0041", "\ufffd", "\xff\xfe", "a\xc3",
	"true", "null", "~", "", " ", "<<",
	"version", "profiles", "x-a", "1", "0x1", "1e3", ".inf", "2001-01-01", "no", "y", "- a", "# a", "a # b", "a: b",
	"*a", "&a", "!!str a", "|", ">", "%a",
	"@a", "{a}", "[a]", "'", `"`, `\`, `\x41`, "${X}", "$${X}", "$$", "$", "a$", "${", "日本", "e\u0301", "new == 0",
	"!= leak", "new == 1\u00a0e3", "file:a\nb", "git:a#\u202eb", "command:$(id)", strings.Repeat("a", 300), "--help",
	"../../etc/passwd",
}

// inDoubleQuotes writes text as YAML in double quotes without using the
// program's code; it cannot write bytes that are not UTF-8.
func inDoubleQuotes(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\U%08x`, r)
	}
	return `"` + b.String() + `"`
}

// places are the positions in a file where a string may be; %s stands for the
// quoted string.
var places = map[string]string{
	"version": "version: %s\napp: { package: com.shop }\nworkload: none\nduration: 1h\n",
	"package": "version: 1\napp: { package: %s }\nworkload: none\nduration: 1h\n",
	"process": "version: 1\napp: { processes: [%s] }\nworkload: none\nduration: 1h\n",
	"serial": "version: 1\napp: { package: com.shop }\ndevices: { serials: [%s] }\nworkload: " +
		"none\nduration: 1h\n",
	"number": "version: 1\napp: { package: com.shop }\ndevices: { min_api: %s }\nworkload: " +
		"none\nduration: 1h\n",
	"workload":       "version: 1\napp: { package: com.shop }\nworkload: %s\nduration: 1h\n",
	"program":        "version: 1\napp: { package: com.shop }\nworkload: { command: [%s] }\n",
	"argument":       "version: 1\napp: { package: com.shop }\nworkload: { command: [x, %s, z] }\n",
	"device command": "version: 1\napp: { package: com.shop }\nworkload: { device_command: %s }\n",
	"duration":       "version: 1\napp: { package: com.shop }\nworkload: none\nduration: %s\n",
	"word": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndetect: { assert: " +
		"%s }\n",
	"mapping": "version: 1\napp: { package: com.shop, mapping: %s }\nworkload: none\nduration: 1h\n",
	"name of a step": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose: { steps: " +
		"{ java: [{ name: %s, command: x }] } }\n",
	"command of a step": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose: { steps: " +
		"{ java: [{ name: x, command: %s }] } }\n",
	"kind of steps": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose: { steps: " +
		"{ %s: [{ name: x, command: y }] } }\n",
	"key of a step": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose: { steps: " +
		"{ java: [{ %s: x, command: y }] } }\n",
	"instead of steps": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose: { steps: " +
		"{ java: %s } }\n",
	"instead of a step": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ndiagnose: { steps: " +
		"{ java: [%s] } }\n",
	"rule": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngate: { " +
		"leak.per_loop: [%s] }\n",
	"instead of rules": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngate: { " +
		"process.gate: %s }\n",
	"key of the gate":   "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngate: { %s: == 0 }\n",
	"instead of a gate": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngate: %s\n",
	"accepted leaks": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngate: { accepted: " +
		"%s }\n",
	"store": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nbaseline: { store: " +
		"%s }\n",
	"key of a comment": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngithub: { comment: " +
		"{ key: %s } }\n",
	"time of a comment": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\ngithub: { comment: " +
		"{ when: %s } }\n",
	"key": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\n%s: a\n",
	"key below": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nsample: { %s: { a: " +
		"b } }\n",
	"key twice": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nx-a: { %[1]s: 1, " +
		"%[1]s: 2 }\n",
	"name of a profile": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nprofiles: { %s: {} }\n",
	"value in a profile": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nprofiles: { p: { " +
		"app: { processes: [%s] } } }\n",
	"key in a profile": "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nprofiles: { p: { %s: " +
		"1 } }\n",
	"instead of a list": "version: 1\napp: { package: com.shop, processes: %s }\nworkload: none\nduration: 1h\n",
	"of a mapping":      "version: 1\napp: %s\nworkload: none\nduration: 1h\n",
	"of a profile":      "version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nprofiles: { p: %s }\n",
	"of the file":       "%s\n",
	"a reason":          "version: 1\napp: { package: \"${NONE:?%s}\" }\nworkload: none\nduration: 1h\n",
}

// Any string at any position is either rejected with a printable message, or
// accepted unchanged and written in a form that yields the same string when it
// is parsed.
func TestHostileTexts(t *testing.T) {
	accepted := 0
	for name, place := range places {
		for _, text := range hostileTexts {
			in := inDoubleQuotes(text)
			if name == "a reason" {
				in = strings.Trim(in, `"`)
			}
			file := fmt.Sprintf(place, in)
			c, err := Parse("run.yaml", []byte(file), nil)
			switch {
			case err != nil && name == "a reason": // the message contains the reason given in the file
				if unseen(err.Error()) || len(err.Error()) > 1000 {
					t.Errorf("%q", err)
				}
			case err != nil:
				checkErrors(t, []byte(file), err)
			default:
				accepted++
				checkConfig(t, c)
			}
			if t.Failed() {
				t.Fatalf("%q as %s", text, name)
			}
		}
	}
	if accepted < 150 {
		t.Errorf("only %d files were accepted, want at least 150", accepted)
	}
}

// Strings from outside the file are also either rejected or accepted unchanged:
// values of environment variables of both kinds, values of flags, and the names
// of the profile and of the file.
func TestHostileTextsFromOutside(t *testing.T) {
	const file = "version: 1\napp: { package: com.shop }\nworkload: { command: [x, \"${X:-a}\"] }\nduration: " +
		"1h\nprofiles: { p: {} }\n"
	for _, text := range hostileTexts {
		check := func(what string, c *Config, err error) {
			t.Helper()
			if err != nil && unseen(err.Error()) {
				t.Errorf("%s %q: %q", what, text, err)
			}
			if err == nil {
				checkConfig(t, c)
			}
			if t.Failed() {
				t.Fatalf("%q as %s", text, what)
			}
		}
		for path, name := range Variables() {
			c, err := Parse("run.yaml", []byte(file), set(name, text))
			check(name, c, err)
			if o := c; o != nil && text != "" && c.Origin(path).Layer != Environment {
				t.Errorf("%s=%q: %s has the origin %v, want layer %v", name, text, path, c.Origin(path), Environment)
			}
		}
		c, err := Parse("run.yaml", []byte(file), set("X", text))
		check("X", c, err)
		c, err = Parse("run.yaml", []byte(file), nil, WithProfile(text))
		check("--profile", c, err)
		c, err = Parse("run.yaml", []byte(file), nil, WithFlag("--device", "devices.serials", text, "z"))
		check("--device", c, err)
		c, err = Parse(text, []byte(file), nil)
		check("file name", c, err)
		c, err = Parse(text, []byte(file+"z: 1\n"), nil)
		check("name of an invalid file", c, err)
		if p := (Problem{File: text, Path: text, Message: text, Suggestion: text}); unseen(p.Error()) {
			t.Errorf("the problem of a caller has unprintable characters: %q", p.Error())
		}
	}
}

// The arguments of a command are executed, so they must be written exactly as
// they are.
func TestWrittenTextIsExact(t *testing.T) {
	for _, text := range hostileTexts {
		file := "version: 1\napp: { package: com.shop }\nworkload: { command: [x, " + inDoubleQuotes(escaped(text)) +
			"] }\n"
		c, err := Parse("run.yaml", []byte(file), nil)
		if err != nil {
			if text == "\x00" {
				continue // no command can contain NUL
			}
			t.Errorf("%q: %v", text, err)
			continue
		}
		if want := string([]rune(text)); c.Workload.Command[1] != want {
			t.Errorf("%q is parsed as %q", text, c.Workload.Command[1])
		}
		again, err := Parse("again.yaml", c.YAML(true), nil)
		if err != nil || !reflect.DeepEqual(again.Workload, c.Workload) {
			t.Errorf("%q: %v, %q", text, err, again.Workload.Command)
		}
	}
}

// FuzzLayers sets arbitrary values in several layers at once: the result must
// be either a valid Config or a list of printable problems, and the time is
// bounded.
func FuzzLayers(f *testing.F) {
	names := variableNames()
	for i, text := range hostileTexts {
		f.Add([]byte(layered), "pr", uint8(i), text, text)
	}
	f.Add([]byte(layered), "nightly", uint8(3), "1h", "a,b")
	f.Fuzz(func(t *testing.T, text []byte, profile string, which uint8, value, serial string) {
		start := time.Now()
		name := names[int(which)%len(names)]
		c, err := Parse("run.yaml", text, set(name, value, "X", value, "N", serial), WithProfile(profile),
			WithFlag("--device", "devices.serials", serial))
		if (c == nil) == (err == nil) {
			t.Fatalf("got %v, %v, want either a Config or an error", c, err)
		}
		if err != nil {
			problems, ok := errors.AsType[Errors](err)
			if !ok || len(problems) == 0 || len(problems) > mostProblems+1 || unseen(err.Error()) {
				t.Errorf("%q", err.Error())
			}
		} else {
			checkConfig(t, c)
		}
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("%d bytes took %v", len(text), d)
		}
	})
}

func variableNames() []string {
	var out []string
	for _, l := range leaves(schema(defaults())) {
		if name, ok := Variables()[l.path]; ok {
			out = append(out, name)
		}
	}
	return out
}
