package config

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// key is one key of the file and what may stand below it: a value or mapping
// that read takes, or else a mapping of keys alone. Where a key has both, read
// does the work and keys tell what it understands.
type key struct {
	name   string
	read   reader
	keys   []key
	notYet bool
}

// take reads the value of the key.
func (k key) take(w *walker, at place) {
	if k.read != nil {
		k.read(w, at)
		return
	}
	w.mapping(at, k.keys)
}

// reader takes the value of a key.
type reader func(w *walker, at place)

// schema is the file as this version understands it, with c to hold the values.
// Ranges are those of the thing itself where it has one (the monkey, Android),
// and otherwise wide enough for every use that makes sense.
func schema(c *Config) []key {
	stress := workloadKeys(&c.Workload)
	return []key{
		{name: "version", read: scalar(new(string), version)},
		{name: "app", keys: []key{
			{name: "package", read: scalar(&c.App.Package, packageName)},
			{name: "processes", read: list(&c.App.Processes, processPattern, distinct)},
			{name: "mapping", notYet: true},
		}},
		{name: "devices", keys: []key{
			{name: "serials", read: list(&c.Devices.Serials, serial, distinct|mayBeEmpty)},
			{name: "min_api", read: scalar(&c.Devices.MinAPI, count(18, 100))},
			{name: "require", read: scalar(&c.Devices.Require, count(1, 1000))},
		}},
		{name: "workload", keys: stress, read: workload(stress)},
		{name: "duration", read: scalar(&c.Duration, such(duration, positive[time.Duration], "more than 0"))},
		{name: "sample", keys: []key{
			{name: "normal", read: scalar(&c.Sample.Normal, interval)},
			{name: "suspicious", read: scalar(&c.Sample.Suspicious, interval)},
			{name: "leaking", read: scalar(&c.Sample.Leaking, interval)},
			{name: "detail", read: scalar(&c.Sample.Detail, interval)},
			{name: "max_system_server", notYet: true},
			{name: "max_app", notYet: true},
		}},
		{name: "detect", keys: []key{
			{name: "policy", read: scalar(&c.Detect.Policy, policy)},
			{name: "assert", read: scalar(&c.Detect.Assert, oneOf("end", "live"))},
			{name: "article", keys: []key{
				{name: "t", read: scalar(&c.Detect.Article.T, such(number, positive[float64], "more than 0"))},
				{name: "r2", read: scalar(&c.Detect.Article.R2,
					such(number, func(v float64) bool { return v > 0 && v < 1 }, "between 0 and 1, both excluded"))},
				{name: "spike", keys: []key{
					{name: "pct", read: scalar(&c.Detect.Article.SpikePercent, such(percent, positive[float64], "more than 0%"))},
					{name: "min", read: scalar(&c.Detect.Article.SpikeMin, such(size, positive[int64], "more than 0"))},
				}},
				{name: "options", read: options(&c.Detect.Article.Options)},
			}},
		}},
		{name: "diagnose", notYet: true},
		{name: "gate", notYet: true},
		{name: "baseline", notYet: true},
		{name: "report", notYet: true},
		{name: "github", notYet: true},
		{name: "profiles", notYet: true},
	}
}

func positive[T int64 | float64 | time.Duration](v T) bool { return v > 0 }

// version parses the version of the file's form.
func version(text string) (string, *fault) {
	if text != "1" {
		return "", &fault{message: "is " + quoted(text) + ", but there is only version 1 of this file: write version: 1"}
	}
	return text, nil
}

// interval parses the time between two samples. Below a second the reading
// itself would be the load; beyond a day there is no series.
var interval = such(duration, func(d time.Duration) bool {
	return d >= time.Second && d <= 24*time.Hour
}, "from 1s to 1d")

// policy parses the name of a policy.
func policy(text string) (string, *fault) {
	if text == "robust" {
		return "", &fault{message: `"robust" is not yet supported: write article`}
	}
	return oneOf("article")(text)
}

// seed parses the seed of the monkey; nil stands for a new one for each run.
func seed(text string) (*int64, *fault) {
	if text == "auto" {
		return nil, nil
	}
	n, f := such(whole, func(n int64) bool { return n >= 0 }, "auto, or 0 or more")(text)
	if f != nil {
		return nil, &fault{message: f.message + "; auto takes a new seed for each run"}
	}
	return &n, nil
}

// count parses a whole number of things.
func count(low, high int64) parser[int] {
	parse := such(whole, func(n int64) bool { return n >= low && n <= high }, fmt.Sprintf("from %d to %d", low, high))
	return func(text string) (int, *fault) {
		n, f := parse(text)
		return int(n), f
	}
}

const workloadChoice = "write none, or exactly one of monkey, command and device_command"

var workloadExamples = map[string]string{
	"none":           "none",
	"monkey":         "{ monkey: { events: 200000 } }",
	"command":        "{ command: [program, argument] }",
	"device_command": `{ device_command: "a line for the shell of the device" }`,
}

func workloadKeys(w *Workload) []key {
	m := &Monkey{Throttle: DefaultThrottle}
	monkeyKeys := []key{
		{name: "events", read: scalar(&m.Events, count(1, math.MaxInt32))},
		{name: "throttle", read: scalar(&m.Throttle, such(duration, wholeMilliseconds, "whole milliseconds, from 0 to 1h"))},
		{name: "seed", read: scalar(&m.Seed, seed)},
	}
	return []key{
		{name: "monkey", keys: monkeyKeys, read: func(walk *walker, at place) {
			w.Monkey = m
			walk.monkey(at, monkeyKeys)
		}},
		{name: "command", read: command(&w.Command)},
		{name: "device_command", read: scalar(&w.DeviceCommand, line)},
	}
}

// workload makes a reader of the one thing that stresses the app.
func workload(keys []key) reader {
	none := scalar(new(string), func(text string) (string, *fault) {
		if text == "none" {
			return text, nil
		}
		f := &fault{message: quoted(text) + " is no workload: " + workloadChoice}
		if near, ok := Nearest(text, append(names(keys), "none")); ok {
			f.suggestion = workloadExamples[near]
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

// exactlyOne refuses a workload of no kind, and every one after the first.
func (w *walker) exactlyOne(at place, keys []key) {
	if resolved(at.node).Kind != yaml.MappingNode {
		return
	}
	chosen := ""
	for _, p := range w.pairs(at.node) {
		name := p.key.Value
		switch _, known := find(keys, name); {
		case !known:
		case chosen == "":
			chosen = name
		default:
			w.refuse(place{node: p.key, path: join(at.path, name)},
				&fault{message: "a second workload beside " + chosen + ": " + workloadChoice})
		}
	}
	if chosen == "" {
		w.refuse(at, &fault{message: "no workload is chosen: " + workloadChoice})
	}
}

// monkey reads the values of the monkey, which has no default for one.
func (w *walker) monkey(at place, keys []key) {
	w.mapping(at, keys)
	if resolved(at.node).Kind == yaml.MappingNode && !w.wrote(at.path+".events") {
		w.refuse(at, &fault{message: "the key events is missing: write how many to send, such as events: 200000"})
	}
}

func wholeMilliseconds(d time.Duration) bool {
	return d >= 0 && d <= time.Hour && d%time.Millisecond == 0
}

// command reads a program and its arguments.
func command(into *[]string) reader {
	argv := list(into, argument, 0)
	return func(w *walker, at place) {
		if n := resolved(at.node); n.Kind == yaml.ScalarNode && n.Tag != nullTag {
			f := &fault{message: "must be a list: the program and each of its arguments, as no shell takes a line apart"}
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

// optionName is what a policy may call an option.
var optionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]{0,63}$`)

// options reads names and values whose meaning the policy knows.
func options(into *map[string]string) reader {
	return func(w *walker, at place) {
		pairs, ok := w.pairsOf(at)
		if !ok {
			return
		}
		if len(pairs) > mostEntries {
			w.refuse(at, &fault{message: fmt.Sprintf("has %d options, but at most %d are allowed", len(pairs), mostEntries)})
			return
		}
		*into = map[string]string{}
		for _, p := range pairs {
			if !optionName.MatchString(p.key.Value) {
				w.refuse(place{node: p.key, path: at.path}, &fault{message: quoted(p.key.Value) +
					" is not the name of an option: a letter, then letters, digits and . _ -"})
				continue
			}
			var value string
			below := p.below(at)
			scalar(&value, optionValue)(w, below)
			(*into)[p.key.Value] = value
		}
	}
}

// require checks what no key can see alone, and fills in the default that
// depends on another value.
func (w *walker) require(c *Config) {
	top := []struct{ name, example string }{
		{"version", "version: 1"},
		{"app", "app: { package: com.shop }"},
		{"workload", "workload: none, or what stresses the app"},
	}
	for _, k := range top {
		if !w.wrote(k.name) {
			w.refuse(w.root, &fault{message: fmt.Sprintf("the key %s is missing: write %s", k.name, k.example)})
		}
	}
	if w.isMapping("app") && !w.wrote("app.package") && !w.wrote("app.processes") {
		w.refuse(w.written["app"], &fault{message: "neither package nor processes says what to watch: write package: com.shop"})
	}
	if w.wrote("app") && w.wrote("workload.monkey") && !w.wrote("app.package") {
		w.refuse(w.written["workload.monkey"], &fault{message: "the monkey needs a package to send events to: write app.package"})
	}
	if w.accepted("workload") && c.Workload.None() && !w.wrote("duration") {
		w.refuse(w.written["workload"], &fault{message: "nothing ends a run without a workload: write duration, such as duration: 8h"})
	}
	if n := len(c.Devices.Serials); n > 0 && c.Devices.Require > n {
		w.refuse(w.written["devices.require"], &fault{message: fmt.Sprintf(
			"the run requires %d devices, but serials names only %d", c.Devices.Require, n)})
	}
	if len(c.App.Processes) == 0 {
		c.App.Processes = []string{c.App.Package, c.App.Package + ":*"}
	}
}
