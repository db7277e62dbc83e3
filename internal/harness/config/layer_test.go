package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// set returns an environment with the given variables.
func set(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

const layered = `version: 1
app: { package: com.shop }
devices: { serials: [a, b], require: 2 }
workload: { monkey: { events: 5, throttle: 1s, seed: 7 } }
duration: 8h
sample: { normal: 20s, leaking: 2m }
detect: { policy: article, assert: live }
profiles:
  pr:
    duration: 12m
    sample: { normal: 10s }
    workload: { monkey: { events: 9 } }
    devices: { serials: [c], require: "${N:-1}" }
    detect: { assert: end }
  nightly: {}
`

func TestLayers(t *testing.T) {
	env := set("LEAKGATE_SAMPLE_NORMAL", "5s", "LEAKGATE_DEVICES_SERIALS", "d, e", "LEAKGATE_WORKLOAD_MONKEY_SEED",
		"auto",
		"LEAKGATE_SAMPLE_DETAIL", "", "LEAKGATE_NOTHING", "x", "LEAKGATE_DEVICE", "z", "LEAKGATE_FOR", "z",
		"LEAKGATE_VERSION", "7")
	for name, c := range map[string]struct {
		getenv  func(string) (string, bool)
		choices []Choice
		origins map[string]string
		values  map[string]any
	}{
		"the file": {nil, nil, map[string]string{
			"duration": "run.yaml:5:11", "sample.normal": "run.yaml:6:19", "sample.detail": "default",
			"devices.serials": "run.yaml:3:21",
		},
			map[string]any{
				"duration": "8h", "workload.monkey.throttle": "1s", "workload.monkey.seed": json.Number("7"),
			}},
		"a profile": {nil, []Choice{WithProfile("pr")}, map[string]string{
			"duration": "profile pr, run.yaml:10:15", "sample.normal": "profile pr, run.yaml:11:23",
			"sample.leaking":     "run.yaml:6:33",
			"devices.serials[0]": "profile pr, run.yaml:13:26", "detect.assert": "profile pr, run.yaml:14:23",
			"detect.policy": "run.yaml:7:19", "workload.monkey.throttle": "default",
		}, map[string]any{
			"duration": "12m", "sample.leaking": "2m", "devices.serials": []string{"c"}, "detect.policy": "article",
			"workload.monkey.throttle": "300ms", "workload.monkey.seed": "auto",
			"workload.monkey.events": json.Number("9"),
		}},
		"a profile that changes nothing": {
			nil, []Choice{WithProfile("nightly")}, map[string]string{"duration": "run.yaml:5:11"},
			map[string]any{"duration": "8h"},
		},
		"the environment": {env, nil, map[string]string{
			"sample.normal": "LEAKGATE_SAMPLE_NORMAL", "sample.detail": "default",
			"devices.serials[1]": "LEAKGATE_DEVICES_SERIALS",
			"duration":           "run.yaml:5:11", "version": "run.yaml:1:10",
		},
			map[string]any{
				"sample.normal": "5s", "sample.detail": "30s", "devices.serials": []string{"d", "e"}, "duration": "8h",
				"workload.monkey.throttle": "1s", "workload.monkey.seed": "auto"}},
		"all sources": {
			env,
			[]Choice{
				WithProfile("pr"), WithFlag("--device", "devices.serials", "f"),
				WithFlag("--for", "duration", "2h0m0s"), WithFlag("--none", "app.package"),
			},
			map[string]string{
				"duration": "--for", "sample.normal": "LEAKGATE_SAMPLE_NORMAL", "devices.serials": "--device",
				"devices.require": "profile pr, run.yaml:13:39",
				"sample.leaking":  "run.yaml:6:33", "app.package": "run.yaml:2:17",
			}, map[string]any{"duration": "2h", "devices.serials": []string{"f"}, "sample.normal": "5s"}},
	} {
		cfg, err := Parse("run.yaml", []byte(layered), c.getenv, c.choices...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkConfig(t, cfg)
		if got := cfg.Profiles(); !slices.Equal(got, []string{"pr", "nightly"}) {
			t.Errorf("%s: profiles %q", name, got)
		}
		for path, want := range c.origins {
			if got := cfg.Origin(path).String(); got != want {
				t.Errorf("%s: %s comes from %s, want %s", name, path, got, want)
			}
		}
		settings := map[string]any{}
		for _, s := range cfg.Settings() {
			settings[s.Path] = s.Value
		}
		for path, want := range c.values {
			if got := settings[path]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s is %#v, not %#v", name, path, got, want)
			}
		}
	}
}

// The environment and flags can supply values that are missing in the file, and
// a workload of another kind.
func TestEnvironmentCompletes(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		env    []string
		choose Choice
		want   func(*Config) bool
	}{
		"an app": {
			"version: 1\nworkload: none\nduration: 1h\n", []string{"LEAKGATE_APP_PACKAGE", "com.x"}, nil,
			func(c *Config) bool { return c.App.Package == "com.x" && c.App.Processes[1] == "com.x:*" },
		},
		"an empty app": {
			"version: 1\napp: {}\nworkload: none\nduration: 1h\n", []string{"LEAKGATE_APP_PROCESSES", "a.b"}, nil,
			func(c *Config) bool { return c.App.Processes[0] == "a.b" },
		},
		"a duration": {
			"version: 1\napp: { package: a.b }\nworkload: none\n", []string{"LEAKGATE_DURATION", "1h"}, nil,
			func(c *Config) bool { return c.Duration.Hours() == 1 },
		},
		"a flag's duration": {
			"version: 1\napp: { package: a.b }\nworkload: none\n", nil, WithFlag("--for", "duration", "1h0m0s"),
			func(c *Config) bool { return c.Duration.Hours() == 1 },
		},
		"a workload": {
			"version: 1\napp: { package: a.b }\nduration: 1h\n", []string{"LEAKGATE_WORKLOAD", "none"}, nil,
			func(c *Config) bool { return c.Workload.None() },
		},
		"no workload": {
			"version: 1\napp: { package: a.b }\nworkload: { monkey: { events: 4 } }\nduration: 1h\n",
			[]string{"LEAKGATE_WORKLOAD", "none"}, nil,
			func(c *Config) bool { return c.Workload.None() }},
		"another workload": {
			"version: 1\napp: { package: a.b }\nworkload: { monkey: { events: 4 } }\n",
			[]string{"LEAKGATE_WORKLOAD_COMMAND", `["sh", "-c", "a, ${B} $$"]`}, nil,
			func(c *Config) bool {
				return slices.Equal(c.Workload.Command, []string{"sh", "-c", "a, ${B} $$"}) && c.Workload.Monkey == nil
			}},
		"a monkey": {
			"version: 1\napp: { package: a.b }\nworkload: none\n",
			[]string{"LEAKGATE_WORKLOAD_MONKEY_EVENTS", "4", "LEAKGATE_DURATION", "1h"}, nil,
			func(c *Config) bool { return c.Workload.Monkey.Events == 4 }},
		"events": {
			"version: 1\napp: { package: a.b }\nworkload: { monkey: { seed: 3 } }\n",
			[]string{"LEAKGATE_WORKLOAD_MONKEY_EVENTS", "4"}, nil,
			func(c *Config) bool { return c.Workload.Monkey.Events == 4 && *c.Workload.Monkey.Seed == 3 }},
		"classes": {
			"version: 1\napp: { package: a.b }\nworkload: { instrument: a.b/.C }\n",
			[]string{
				"LEAKGATE_WORKLOAD_INSTRUMENT_CLASS", "a.B,a.C#d", "LEAKGATE_WORKLOAD_INSTRUMENT_DELAY_AFTER_TEST",
				"3s",
			}, nil,
			func(c *Config) bool {
				return c.Workload.Instrument.Component == "a.b/.C" && len(c.Workload.Instrument.Classes) == 2 &&
					c.Workload.Instrument.DelayAfterTest == 3*time.Second
			}},
		"a component": {
			"version: 1\napp: { package: a.b }\nworkload: { instrument: { component: x, arguments: { size: small } } " +
				"}\n", []string{"LEAKGATE_WORKLOAD_INSTRUMENT_COMPONENT", "a.b/.D"}, nil,
			func(c *Config) bool {
				return c.Workload.Instrument.Component == "a.b/.D" && c.Workload.Instrument.Arguments["size"] == "small"
			}},
		"windows": {
			"version: 1\napp: { package: a.b }\nworkload: { command: [a], windows: { begin: b, end: e } }\n",
			[]string{"LEAKGATE_WORKLOAD_WINDOWS_END", "x|y"}, nil,
			func(c *Config) bool {
				return *c.Workload.Windows == Windows{"b", "x|y"} && c.Workload.Command[0] == "a"
			}},
		"a monkey instead of tests": {
			"version: 1\napp: { package: a.b }\nworkload: { instrument: a.b/.C }\n",
			[]string{"LEAKGATE_WORKLOAD_MONKEY_EVENTS", "4"}, nil,
			func(c *Config) bool { return c.Workload.Instrument == nil && c.Workload.Monkey.Events == 4 }},
		"an empty list": {
			"version: 1\napp: { package: a.b }\nworkload: none\nduration: 1h\ndevices: { serials: [a] }\n",
			[]string{"LEAKGATE_DEVICES_SERIALS", "[]"}, nil,
			func(c *Config) bool { return c.Devices.Serials == nil }},
		"a serial in brackets": {
			"version: 1\napp: { package: a.b }\nworkload: none\nduration: 1h\n",
			[]string{"LEAKGATE_DEVICES_SERIALS", "[::1]:5555"}, nil,
			func(c *Config) bool { return slices.Equal(c.Devices.Serials, []string{"[::1]:5555"}) }},
	} {
		var choices []Choice
		if c.choose != nil {
			choices = append(choices, c.choose)
		}
		cfg, err := Parse("run.yaml", []byte(c.text), set(c.env...), choices...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkConfig(t, cfg)
		if !c.want(cfg) {
			t.Errorf("%s: %+v", name, cfg)
		}
	}
}

// A mistake in a layer is reported with its source, even if layers contradict
// each other. The file's own mistakes are reported even if a layer overrides
// them.
func TestMistakesInLayers(t *testing.T) {
	const head = "version: 1\napp: { package: com.shop }\n"
	for name, c := range map[string]struct {
		text    string
		env     []string
		choices []Choice
		want    []string
	}{
		"two workloads": {head + "workload: none\nduration: 1h\n",
			[]string{
				"LEAKGATE_WORKLOAD", "none", "LEAKGATE_WORKLOAD_DEVICE_COMMAND", "x", "LEAKGATE_WORKLOAD_MONKEY_SEED",
				"3",
			}, nil,
			[]string{
				"environment LEAKGATE_WORKLOAD_MONKEY_SEED: workload.monkey.seed: a second workload in addition to " +
					"LEAKGATE_WORKLOAD:",
				"environment LEAKGATE_WORKLOAD_DEVICE_COMMAND: workload.device_command: " +
					"a second workload in addition to LEAKGATE_WORKLOAD:"}},
		"two other workloads": {head + "workload: none\nduration: 1h\n",
			[]string{"LEAKGATE_WORKLOAD_COMMAND", "make", "LEAKGATE_WORKLOAD_DEVICE_COMMAND", "x"}, nil,
			[]string{
				"environment LEAKGATE_WORKLOAD_DEVICE_COMMAND: " +
					"workload.device_command: a second workload in addition to command:",
			}},
		"monkey seed without a monkey": {
			head + "workload: none\nduration: 1h\n", []string{"LEAKGATE_WORKLOAD_MONKEY_SEED", "3"}, nil,
			[]string{"environment LEAKGATE_WORKLOAD_MONKEY_SEED: workload.monkey: missing key events"}},
		"overridden invalid value": {
			head + "workload: none\nduration: 8\nsample: { normal: 3 }\n", []string{"LEAKGATE_DURATION", "8h"},
			[]Choice{WithFlag("--normal", "sample.normal", "10s")},
			[]string{`run.yaml:4:11: duration: "8" is not a duration`, `run.yaml:5:19: sample.normal: "3" is not`}},
		"values": {head + "workload: none\nduration: 1h\n",
			[]string{
				"LEAKGATE_DURATION", "${X}", "LEAKGATE_DEVICES_SERIALS", `["a", 1]`, "LEAKGATE_DEVICES_MIN_API", "\xff",
				"LEAKGATE_APP_PROCESSES", "a.b,,a.b", "LEAKGATE_DETECT_ASSERT", "liev",
			}, nil,
			[]string{
				`environment LEAKGATE_DURATION: duration: "${X}" is not a duration`,
				`environment LEAKGATE_DEVICES_SERIALS: devices.serials: "[\"a\", 1]" is not a list:`,
				"environment LEAKGATE_DEVICES_MIN_API: devices.min_api: contains bytes that are not UTF-8",
				"environment LEAKGATE_APP_PROCESSES: app.processes[1]: is empty",
				`environment LEAKGATE_APP_PROCESSES: app.processes[2]: "a.b" is in the list twice`,
				"did you mean live?"}},
		"a contradiction with the file": {
			head + "devices: { require: 3 }\nworkload: none\nduration: 1h\n", []string{"LEAKGATE_DEVICES_SERIALS", "a"},
			[]Choice{WithFlag("--for", "duration", "1s")},
			[]string{
				"run.yaml:3:12: devices.require: the run requires 3 devices, but serials names only 1 (with " +
					"LEAKGATE_DEVICES_SERIALS and --for)",
			}},
		"contradiction between variables": {
			head + "workload: none\nduration: 1h\n",
			[]string{"LEAKGATE_DEVICES_SERIALS", "a", "LEAKGATE_DEVICES_REQUIRE", "2"}, nil,
			[]string{
				"environment LEAKGATE_DEVICES_REQUIRE: devices.require: " +
					"the run requires 2 devices, but serials names only 1",
			}},
		"flag for an unknown key": {
			head + "workload: none\nduration: 1h\n", nil, []Choice{WithFlag("--x", "sample.fast", "1s")},
			[]string{`--x: there is no key "sample.fast"`},
		},
		"a flag's value": {
			head + "workload: none\nduration: 1h\n", nil, []Choice{WithFlag("--for", "duration", "0s")},
			[]string{`--for: duration: is "0s", but must be more than 0`},
		},
		"no profiles": {
			head + "workload: none\nduration: 1h\n", nil, []Choice{WithProfile("pr")},
			[]string{`run.yaml:1:1: there is no profile "pr": this file has none`},
		},
		"profile and environment": {
			head + "workload: none\nduration: 1h\nprofiles: { pr: {} }\n", []string{"LEAKGATE_DURATION", "x"},
			[]Choice{WithProfile("rp")},
			[]string{
				`environment LEAKGATE_DURATION: duration: "x"`,
				`run.yaml:5:1: profiles: there is no profile "rp": this file has pr; did you mean pr?`,
			}},
		"two profiles, one problem": {
			"version: 1\napp: { processes: [a] }\nworkload: none\nduration: 1h\ndevices: { require: 2 }\nprofiles: { " +
				"a: { devices: { serials: [x] } }, b: { devices: { serials: [y] } } }\n", nil,
			[]Choice{WithProfile("a")},
			[]string{
				"run.yaml:5:12: devices.require: the run requires 2 devices, " +
					"but serials names only 1 (with profile a or profile b)",
			}},
		"names of profiles": {
			head +
				"workload: none\nduration: 1h\nprofiles: { \"a b\": {}, 1: {}, ~: {}, \"p\\e[2J\": {}, true: {}, ok: " +
				"[] }\n", nil, nil,
			[]string{
				`profiles: "a b" is not the name of a profile`, `"1" is not the name`, `"~" is not the name`,
				`"p\x1b[2J" is not the name`,
				"profiles.ok: a profile must be a mapping of keys of this file, not a list",
			}},
		"keys that belong to the whole file": {
			head +
				"workload: none\nduration: 1h\nprofiles: { p: { version: 1, profiles: {}, x-a: 1, sampl: { normal: 1 " +
				"} } }\n", nil, nil,
			[]string{
				`profiles.p: the key "version" is not allowed in a profile`, `the key "profiles" is not allowed`,
				`the key "x-a" is not allowed`, `profiles.p: unknown key "sampl"; did you mean sample?`,
				`profiles.p.sample.normal: "1" is not a duration`,
			}},
		"same misspelling in file and profile": {
			head + "workload: none\nduration: 1h\nsampl: { normal: 1s }\nprofiles: { p: { sampl: { normal: 1s } } }\n",
			nil, nil,
			[]string{`run.yaml:5:1: unknown key "sampl"`, `run.yaml:6:18: profiles.p: unknown key "sampl"`}},
	} {
		_, err := Parse("run.yaml", []byte(c.text), set(c.env...), c.choices...)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		if name != "flag for an unknown key" {
			checkErrors(t, []byte(c.text), err)
		}
		problems, _ := errors.AsType[Errors](err)
		if len(problems) != len(c.want) {
			t.Errorf("%s: got %d problems, want %d:\n%v", name, len(problems), len(c.want), err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in\n%v", name, want, err)
			}
		}
	}
}

// An unset variable outside the selected configuration is not a mistake, but an
// invalid reference is.
func TestVariablesOfProfiles(t *testing.T) {
	const text = `version: 1
app: { package: "${APP}" }
workload: none
duration: 1h
profiles:
  a: { app: { package: com.a } }
  b: { devices: { serials: ["${SERIAL:?which}"] }, app: { package: com.b } }
  c: { duration: "${BAD-}" }
`
	for profile, want := range map[string][]string{
		"":  {"the variable APP is not set", "not a reference"},
		"a": {"is not a reference"},
		"b": {"the variable SERIAL is required: which", "is not a reference"},
	} {
		_, err := Parse("run.yaml", []byte(text), nil, WithProfile(profile))
		problems, _ := errors.AsType[Errors](err)
		if len(problems) != len(want) {
			t.Errorf("profile %q: %v", profile, err)
		}
		for i, w := range want {
			if i < len(problems) &&
				(!strings.Contains(problems[i].Message, w) || strings.Contains(problems[i].Message, "(with")) {
				t.Errorf("profile %q: %v, not %s", profile, problems[i], w)
			}
		}
	}
}

// Every key has its own variable, which is used neither by a flag nor for any
// other purpose.
func TestVariablesAreDistinct(t *testing.T) {
	seen := map[string]string{}
	for path, name := range Variables() {
		if other, ok := seen[name]; ok {
			t.Errorf("%s and %s map to the same variable", path, other)
		}
		seen[name] = path
		if slices.Contains(append(notSlips, "PROFILE", "WAIT", "LEASES"), strings.TrimPrefix(name, variablePrefix)) {
			t.Errorf("the variable %s already has another meaning", name)
		}
	}
	if len(seen) < 20 || seen["LEAKGATE_SAMPLE_NORMAL"] != "sample.normal" {
		t.Errorf("variables %v", seen)
	}
}

func TestMisspelled(t *testing.T) {
	got := Misspellings([]string{
		"LEAKGATE_SAMPEL_NORMAL=1", "LEAKGATE_DURATON", "LEAKGATE_DEVICE=x", "LEAKGATE_RUN=x",
		"LEAKGATE_HOSTDEVICE_COMMAND=x",
		"LEAKGATE_SAMPLE_NORMAL=1", "LEAKGATE_SOMETHING_ELSE=1", "SAMPEL_NORMAL=1", "LEAKGATE_E2E=long", "LEAKGATE_=",
		"",
		"LEAKGATE_DUMP=never", "LEAKGATE_WIAT=1", "LEAKGATE_WAIT=1", "LEAKGATE_DEVICES=a", "LEAKGATE_REQUIRE=all",
		"LEAKGATE_TESTDATA=/x", "LEAKGATE_SOAK=1h", "LEAKGATE_HOSTDEVICE=x",
		"LEAKGATE_HOSTDEVICE_FILES=x", "LEAKGATE_TEST_NEST=1", "LEAKGATE_ADB_STRESS=1",
		"LEAKGATE_ACCEPTED=a", "LEAKGATE_BASELINE_BRANCH=main", "LEAKGATE_BASELINE_SHA256=",
		"LEAKGATE_GATE_LEAK_PERLOOP=x"}, "LEAKGATE_WAIT")
	want := []Misspelling{
		{"LEAKGATE_DUMP", "LEAKGATE_DIAGNOSE_DUMP"}, {"LEAKGATE_DURATON", "LEAKGATE_DURATION"},
		{"LEAKGATE_GATE_LEAK_PERLOOP", "LEAKGATE_GATE_LEAK_PER_LOOP"},
		{"LEAKGATE_SAMPEL_NORMAL", "LEAKGATE_SAMPLE_NORMAL"}, {"LEAKGATE_WIAT", "LEAKGATE_WAIT"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// overlay merges entries over other entries as documented, without using the
// reader.
func overlay(base, top []entry, path string) []entry {
	out := slices.Clone(base)
	for _, e := range top {
		i := slices.IndexFunc(out, func(b entry) bool { return b.name == e.name })
		switch {
		case i < 0:
			out = append(out, e)
		case out[i].below != nil && e.below != nil && e.name != "workload":
			out[i].below = overlay(out[i].below, e.below, join(path, e.name))
		case out[i].below != nil && e.text == "{}" && e.name != "workload": // no effect
		default:
			out[i] = e
		}
	}
	return out
}

// some keeps some of the entries, at every depth except inside a workload.
func (w *writer) some(entries []entry) []entry {
	var out []entry
	for _, e := range entries {
		if e.name == "version" || !w.maybe() {
			continue
		}
		if e.below != nil && e.name != "workload" {
			if e.below = w.some(e.below); e.below == nil {
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// TestProfilesAgainstOverlay compares a file with a profile to a file in which
// the test has already applied the profile.
func TestProfilesAgainstOverlay(t *testing.T) {
	w := &writer{rng: rand.New(rand.NewPCG(9, 10))}
	accepted, refused := 0, 0
	for i := range 200 {
		_, base := w.content()
		_, other := w.content()
		change := w.some(other)
		flat := w.text(overlay(base, change, ""))
		p := entry{name: "pr", below: change}
		if change == nil {
			p.text = "{}"
		}
		text := w.text(append(slices.Clone(base), entry{name: "profiles", below: []entry{p}}))
		want, wantErr := Parse("flat.yaml", []byte(flat), nil)
		got, err := Parse("run.yaml", []byte(text), nil, WithProfile("pr"))
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("file %d:\n%s\n%v\nflat:\n%s\n%v", i, text, err, flat, wantErr)
		}
		if err != nil {
			refused++
			checkErrors(t, []byte(text), err)
			continue
		}
		accepted++
		if !reflect.DeepEqual(values(got), values(want)) {
			t.Fatalf("file %d:\n%s\ngot  %+v\nwant %+v", i, text, values(got), values(want))
		}
	}
	if accepted < 100 || refused < 3 {
		t.Errorf("too little variation among the files: %d accepted, %d rejected", accepted, refused)
	}
}

// TestEnvironmentAgainstOverlay makes the same comparison for variables. The
// workload is omitted, because variables do not replace the workload as a
// whole.
func TestEnvironmentAgainstOverlay(t *testing.T) {
	w := &writer{rng: rand.New(rand.NewPCG(11, 12))}
	accepted := 0
	for i := range 150 {
		_, base := w.content()
		_, other := w.content()
		change := slices.DeleteFunc(w.some(other), func(e entry) bool { return e.name == "workload" })
		env := map[string]string{}
		w.variables(t, change, "", env)
		change = withoutOptions(change)
		flat, text := w.text(overlay(base, change, "")), w.text(base)
		getenv := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
		want, wantErr := Parse("flat.yaml", []byte(flat), nil)
		got, err := Parse("run.yaml", []byte(text), getenv)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("file %d:\n%s\n%v\nvariables %q\nflat:\n%s\n%v", i, text, err, env, flat, wantErr)
		}
		if err != nil {
			continue
		}
		accepted++
		if !reflect.DeepEqual(values(got), values(want)) {
			t.Fatalf("file %d:\n%s\n%q\ngot  %+v\nwant %+v", i, text, env, values(got), values(want))
		}
	}
	if accepted < 100 {
		t.Errorf("only %d files are valid, want at least 100", accepted)
	}
}

// variables converts entries to environment variables.
func (w *writer) variables(t *testing.T, entries []entry, path string, env map[string]string) {
	for _, e := range entries {
		here := join(path, e.name)
		if e.below != nil {
			w.variables(t, e.below, here, env)
			continue
		}
		var n yaml.Node
		if err := yaml.Unmarshal([]byte(e.text), &n); err != nil {
			t.Fatal(err)
		}
		v := n.Content[0]
		if v.Kind == yaml.ScalarNode {
			text, _, f := fill(v.Value, set())
			if f != nil {
				t.Fatal(f)
			}
			env[variableOf(here)] = text.text
			continue
		}
		list := []string{}
		for _, entry := range v.Content {
			text, _, f := fill(entry.Value, set())
			if f != nil {
				t.Fatal(f)
			}
			list = append(list, text.text)
		}
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if env[variableOf(here)] = string(text); len(list) > 0 && w.maybe() {
			env[variableOf(here)] = strings.Join(list, pick(w, ",", " , "))
		}
	}
}

func withoutOptions(entries []entry) []entry {
	var out []entry
	for _, e := range entries {
		if e.name == "options" || e.name == "steps" {
			continue
		}
		if e.below != nil {
			if e.below = withoutOptions(e.below); e.below == nil {
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// The number of profiles is limited, so the time for reading a file stays
// bounded.
func TestManyProfiles(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\napp: { package: com.shop }\nworkload: none\nduration: 1h\nprofiles:\n")
	for i := range mostProfiles {
		fmt.Fprintf(&b, "  p%d: { duration: %dm }\n", i, i+1)
	}
	c, err := Parse("run.yaml", []byte(b.String()), nil, WithProfile("p49"))
	if err != nil || c.Duration.Minutes() != 50 || len(c.Profiles()) != mostProfiles {
		t.Fatalf("%+v, %v", c, err)
	}
	b.WriteString("  more: {}\n")
	if _, err := Parse("run.yaml", []byte(b.String()), nil); err == nil ||
		!strings.Contains(err.Error(), "run.yaml:5:1: profiles: has 51 profiles, but at most 50 are allowed") {
		t.Errorf("51 profiles: %v", err)
	}
}
