package config

import (
	"cmp"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// key describes one key of the file and what it may contain: a value or a
// mapping that read parses, or a mapping of keys. If both read and keys are
// set, read parses the mapping and keys only document it.
type key struct {
	name   string
	read   reader
	keys   []key
	notYet bool

	holds holding
	form  form   // form of the value, or of each entry of a list
	is    traits // rules for a list
	// shown returns the value in the Config for which the table was made: all
	// strings of a list, the single string of a value, or nothing if there is
	// no value.
	shown func() []string
	// hidden reports whether the mapping is absent; if hidden is nil, the
	// mapping is always present. If unset is not empty, a comment is written in
	// place of an absent mapping.
	hidden func() bool
	// entries returns the keys of each entry of a list of mappings, from the
	// same Config as shown.
	entries func() [][]key
	// pairs returns the keys and values of a mapping whose keys the user
	// chooses.
	pairs func() map[string]string

	about   string   // a description in one sentence
	example string   // a value, as YAML
	unset   string   // the effect of a missing value, if it may be missing
	choice  bool     // exactly one of the keys below is present, apart from keys with beside set
	beside  bool     // the key is allowed beside the chosen key
	brief   string   // if a single value is given instead of the keys below: the key that it sets
	needed  []string // required keys among the keys below
}

// holding says whether a key contains a single value, a list or a mapping.
type holding uint8

const (
	nothing      holding = iota // no value of its own: only keys, or nothing that a user can set
	oneValue                    // a single value
	manyValues                  // a list
	manyMappings                // a list of mappings
	manyPairs                   // a mapping whose keys the user chooses
)

// take reads the value of the key.
func (k key) take(w *walker, at place) {
	if k.read != nil {
		k.read(w, at)
		return
	}
	w.mapping(at, k.keys)
}

// document adds the documentation of a key.
func (k key) document(about, example string) key {
	k.about, k.example = about, example
	return k
}

// reader is a function that reads the value of a key.
type reader func(w *walker, at place)

// value returns a key with one value.
func value[T any](name string, into *T, of kind[T]) key {
	return key{name: name, read: scalar(into, of.parse), holds: oneValue, form: of.form,
		shown: func() []string { return []string{of.write(*into)} }}
}

// optional returns a key with one value that may be absent; the value is then
// the zero value. unset describes the effect of omitting the key.
func optional[T comparable](name string, into *T, of kind[T], unset string) key {
	k := value(name, into, of)
	always, zero := k.shown, *new(T)
	k.unset, k.shown = unset, func() []string {
		if *into == zero {
			return nil
		}
		return always()
	}
	return k
}

// listed returns a key with a list.
func listed(name string, into *[]string, of kind[string], is traits, read reader) key {
	return key{
		name: name, read: read, holds: manyValues, form: of.form, is: is, shown: func() []string { return *into },
	}
}

// schema returns the keys of the file as this version defines them; parsed
// values are stored in c. If monkey or Android defines a range, that range is
// used; other ranges are wide enough for every sensible use. The keys are in
// the order of a written file.
func schema(c *Config) []key {
	one := "1"
	processes := listed("processes", &c.App.Processes, processKind, distinct,
		list(&c.App.Processes, processPattern, distinct)).
		document("The processes to watch. The default is all processes of the package: those named like the package, "+
			"or like the package followed by a colon and a suffix.",
			`["com.shop", "com.shop:*"]`)
	processes.unset = "all processes of the package"
	return []key{
		value("version", &one, versionKind).document("The version of the file format.", "1"),
		{name: "app", about: "What to watch: a package, processes, or both.", keys: []key{
			optional("package", &c.App.Package, packageKind, "only the given processes are watched").
				document("The application ID, to which the monkey sends its events.", "com.shop"),
			processes,
			optional("mapping", &c.App.Mapping, pathKind, "names are shown as they are in the build").
				document("The mapping.txt of an obfuscated build, relative to the directory of this file.",
					"build/mapping.txt"),
			optional("variant", &c.App.Variant, variantKind, "not recorded").
				document("The variant of the tested build, recorded with the run.", "freeDebug"),
		}},
		{name: "devices", about: "The phones to test on.", keys: []key{
			listed("serials", &c.Devices.Serials, serialKind, distinct|mayBeEmpty,
				list(&c.Devices.Serials, serial, distinct|mayBeEmpty)).
				document("The devices to use; an empty list means all attached devices.", "[emulator-5554]"),
			value("min_api", &c.Devices.MinAPI, count(18, 100)).
				document("The minimum Android API level; older devices are skipped.", "26"),
			value("require", &c.Devices.Require, count(1, 1000)).
				document("The minimum number of devices.", "2"),
			value("stand_in", &c.Devices.StandIn, switchKind).
				document("Whether a simulated phone, whose clock runs faster, may be used as a device; `leakgate demo "+
					"--serve` provides one.", "true"),
		}},
		workloadKey(&c.Workload),
		durationKey(c),
		{name: "sample", about: "How often memory is read, in device time.", keys: []key{
			value("normal", &c.Sample.Normal, interval).
				document("Time between two samples in the state NORMAL.", "30s"),
			value("suspicious", &c.Sample.Suspicious, interval).
				document("Time between two samples in the states SUSPICIOUS and CONFIRMING.", "15s"),
			value("leaking", &c.Sample.Leaking, interval).
				document("Time between two samples in the state LEAKING.", "1m"),
			value("detail", &c.Sample.Detail, interval).
				document("Time between two breakdowns (readings of dumpsys meminfo); the processes take turns.",
					"1m30s"),
			value("max_system_server", &c.Sample.MaxSystemServer, costKind).
				document("The maximum cost of sampling in system_server, in percent of one core.", "10%"),
			value("max_app", &c.Sample.MaxApp, costKind).
				document("The maximum cost of sampling in the app, in percent of one core.", "2.5%"),
		}},
		{name: "detect", about: "How the memory of each process is judged.", keys: []key{
			value("policy", &c.Detect.Policy, words(policyRobust, policyArticle)).
				document("The set of rules by which leaks are detected.", "article"),
			value("assert", &c.Detect.Assert, words("end", "live")).
				document("With end, the verdict at the end of the run decides; with live, the run fails if a process "+
					"reaches LEAKING at any time.", "live"),
			optional("must_see", &c.Detect.MustSee, rateKind,
				"a pass can miss leaks slower than the rate in its message").
				document("The slowest leak that a pass must rule out: a process that could hide such a leak is "+
					"inconclusive.", "50MB/h"),
		}},
		value("strict", &c.Strict, switchKind).
			document("Whether the run exits with 5 if any process is inconclusive.", "true"),
		value("allow_unjudged", &c.AllowUnjudged, switchKind).
			document("Whether a run in which nothing could be judged, or a heap dump is missing, exits with 0 "+
				"instead of 5.", "true"),
		{name: "diagnose", about: "What is captured from a leaking process.", keys: []key{
			value("dump", &c.Diagnose.Dump, words("on_leak", "at_end", "at_marks")).
				document("When a heap dump is taken. at_end means at the end of the run; at_end and "+
					"at_marks include on_leak.", "at_marks"),
			value("cooldown", &c.Diagnose.Cooldown, cooldownKind).
				document("The minimum time between two diagnoses of one process, in device time.", "1h"),
			value("keep", &c.Diagnose.Keep, words("stripped", "raw", "none")).
				document("The form in which a heap dump is kept after its analysis; stripped removes the contents of "+
					"primitive arrays, and with them all strings.", "none"),
			value("collect", &c.Diagnose.Collect, words(DefaultCollect, "at_marks", "never")).
				document("When a garbage collection is forced and the remaining objects are counted. auto does so at "+
					"marks between two loops, at most once every 10 s. In runs with a duration of 2 h or more, it "+
					"does so only if they dump at_marks.", "at_marks"),
			value("logcat", &c.Diagnose.Logcat, words(DefaultLogcat, "all", "none")).
				document("Which part of the device's log is kept: app keeps the lines of the app and those that "+
					"the system logs about the app; all also keeps the lines of all other apps.", "none"),
			value("texts", &c.Diagnose.Texts, words(DefaultTexts, TextsShown)).
				document("Whether reports show strings of the app, which may be personal: keys of maps, names of "+
					"threads, titles. If hidden, each string is replaced with a short hash.", "shown"),
			stepsKey(&c.Diagnose.Steps),
		}},
		gateKey(c),
		baselineKey(c),
		{name: "report", about: "The optional reports of the run directory.", keys: []key{
			value("junit", &c.Report.JUnit, junitKind).
				document("Whether junit.xml is written; auto writes it if the run checks tests.", "true"),
			{name: "html", notYet: true},
		}},
		githubKey(&c.GitHub),
		{name: "profiles", read: readProfiles,
			about: "Named sets of changes to this file. Each may have any of the keys above except version; the " +
				"selected profile is applied to the file."},
	}
}

// durationKey returns the key of the duration, whose value is one duration or
// two: the second is the maximum duration of a run that is extended because of
// a suspected leak.
func durationKey(c *Config) key {
	both := span{c.Duration, c.LongestDuration}
	k := optional("duration", &both, spanKind, "the run ends with its workload").
		document("The maximum duration of the run. With 12m..30m the run ends after 12m or, if a suspected "+
			"leak is still undecided at that time, by 30m. Required with the workload none.", "8h")
	read, shown := k.read, k.shown
	k.read = func(w *walker, at place) {
		read(w, at)
		c.Duration, c.LongestDuration = both.least, both.most
	}
	k.shown = func() []string {
		both = span{c.Duration, c.LongestDuration}
		return shown()
	}
	return k
}

const workloadChoice = "write none, or exactly one of monkey, command, device_command and instrument"

var workloadExamples = map[string]string{
	"none":           "none",
	"monkey":         "{ monkey: { events: 200000 } }",
	"command":        "{ command: [program, argument] }",
	"device_command": `{ device_command: "a command line for the shell of the device" }`,
	"instrument":     "{ instrument: com.shop.test/androidx.test.runner.AndroidJUnitRunner }",
}

func workloadKey(w *Workload) key {
	m := w.Monkey
	if m == nil {
		m = &Monkey{Throttle: DefaultThrottle}
	}
	monkeyKeys := []key{
		optional("events", &m.Events, count(1, mostEvents), "").document("The number of events. Required.", "200000"),
		value("throttle", &m.Throttle, pauseKind).document("The pause between two events.", "300ms"),
		value("seed", &m.Seed, seedKind).document("The seed of the random events, which makes runs "+
			"reproducible; auto uses a new seed for each run.", "7"),
	}
	keys := []key{
		{
			name: "monkey", about: "The event generator of Android, restricted to the package.", keys: monkeyKeys,
			needed: []string{"events"},
			hidden: func() bool { return w.Monkey == nil },
			read: func(walk *walker, at place) {
				w.Monkey = m
				walk.monkey(at, monkeyKeys)
			}},
		listed("command", &w.Command, wordKind, 0, command(&w.Command)).
			document("A program on the host with its arguments, without a shell.", "[./gradlew, connectedCheck]"),
		optional("device_command", &w.DeviceCommand, lineKind, "").
			document("A command line for the shell of the device.", "am start -n com.shop/.Main && sleep 600"),
		instrumentKey(&w.Instrument),
		windowsKey(&w.Windows),
	}
	return key{
		name: "workload", keys: keys, read: workload(keys), holds: oneValue, form: words("none").form, choice: true,
		shown: func() []string {
			if w.None() {
				return []string{"none"}
			}
			return nil
		},
		about: "The workload that exercises the app: none, or exactly one of the keys below.", example: "none"}
}

// workload returns a reader for the workload: none, or exactly one of keys.
func workload(keys []key) reader {
	none := scalar(new(string), func(text string) (string, *fault) {
		if text == "none" {
			return text, nil
		}
		f := &fault{message: quoted(text) + " is not a workload: " + workloadChoice}
		if near, ok := Nearest(text, append(names(keys), "none")); ok {
			f.suggestion = cmp.Or(workloadExamples[near], near)
		}
		return "", f
	})
	return func(w *walker, at place) {
		if resolved(at.node).Kind == yaml.ScalarNode {
			none(w, at)
			return
		}
		w.mapping(at, keys)
		w.exactlyOne(at, keys)
	}
}

// exactlyOne rejects a workload without any of the keys, and every key after
// the first one.
func (w *walker) exactlyOne(at place, keys []key) {
	if resolved(at.node).Kind != yaml.MappingNode {
		return
	}
	chosen := ""
	pairs := w.layered(at)
	for _, p := range pairs {
		name := p.key.Value
		k, known := find(keys, name)
		if !known {
			k, known = suggestKey(p, at, keys, pairs)
		}
		switch name = k.name; {
		case !known, k.beside:
		case chosen == "":
			chosen = name
		default:
			w.refuse(place{node: p.key, path: join(at.path, name), from: p.from},
				&fault{message: "a second workload in addition to " + chosen + ": " + workloadChoice})
		}
	}
	if chosen == "" {
		w.refuse(at, &fault{message: "no workload is given: " + workloadChoice})
		return
	}
	if windows, there := w.written[join(at.path, "windows")]; there && chosen != "command" &&
		chosen != "device_command" {
		w.refuse(windows,
			&fault{message: "windows apply to the output of command and device_command, not of " + chosen})
	}
}

// monkey reads the settings of monkey, Android's event generator. The events
// key has no default.
func (w *walker) monkey(at place, keys []key) {
	w.mapping(at, keys)
	if resolved(at.node).Kind == yaml.MappingNode && !w.given(at.path+".events") {
		w.refuse(at, &fault{message: "missing key events: write how many to send, such as events: 200000"})
	}
}

// command reads a program and its arguments.
func command(into *[]string) reader {
	argv := list(into, argument, 0)
	return func(w *walker, at place) {
		if n := resolved(at.node); n.Kind == yaml.ScalarNode && n.Tag != nullTag {
			f := &fault{
				message: "must be a list: the program and each of its arguments, since no shell splits a command line",
			}
			if plainWords(n.Value) {
				f.suggestion = "[" + strings.Join(strings.Fields(n.Value), ", ") + "]"
			}
			w.refuse(at, f)
			return
		}
		argv(w, at)
		if w.accepted(at.path+"[0]") && strings.TrimSpace((*into)[0]) == "" {
			w.refuse(at, &fault{message: "the first entry, which is the program, is blank"})
		}
	}
}

// require checks the conditions that involve several keys, and sets the default
// that depends on another value.
func (w *walker) require(c *Config) {
	top := []struct{ name, example string }{
		{"version", "version: 1"},
		{"app", "app: { package: com.shop }"},
		{"workload", "workload: none, or a way to stress the app"},
	}
	for _, k := range top {
		if !w.given(k.name) {
			w.refuse(w.root, &fault{message: fmt.Sprintf("missing key %s: write %s", k.name, k.example)})
		}
	}
	if w.isMapping("app") && !w.given("app.package") && !w.given("app.processes") {
		w.refuse(w.written["app"],
			&fault{message: "neither package nor processes is given: write package: com.shop"})
	}
	if w.wrote("app") && w.wrote("workload.monkey") && !w.given("app.package") {
		w.refuse(w.written["workload.monkey"],
			&fault{message: "the monkey needs a package to send events to: write app.package"})
	}
	if w.accepted("workload") && c.Workload.None() && !w.given("duration") {
		w.refuse(w.written["workload"],
			&fault{message: "a run without a workload needs a duration: write one such as duration: 8h"})
	}
	if n := len(c.Devices.Serials); n > 0 && c.Devices.Require > n {
		w.refuse(w.written["devices.require"], &fault{message: fmt.Sprintf(
			"the run requires %d devices, but serials names only %d", c.Devices.Require, n)})
	}
	if c.Detect.MustSee > 0 && c.Detect.Policy == policyArticle && w.given("detect.must_see") {
		w.refuse(w.written["detect.must_see"],
			&fault{message: "policy article has no detection limit: use policy robust"})
	}
	w.stepsOfAll(c.Diagnose.Steps)
	if len(c.App.Processes) == 0 {
		c.App.Processes = []string{c.App.Package, c.App.Package + ":*"}
	}
}
