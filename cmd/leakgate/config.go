package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/text"
)

// defaultFile is what `config init` writes where no file is named.
const defaultFile = "leakgate.yaml"

// fileFlags choose and replace what stands in a file, for run and for config.
type fileFlags struct {
	profile string
	devices list
	span    span
	dump    string
	keep    string
}

func (f *fileFlags) declare(fs *flag.FlagSet) {
	fs.StringVar(&f.profile, "profile", "", "`NAME` of a profile of the file")
	fs.Var(&f.devices, "device", "`SERIAL` of a device instead of those of the file (repeatable)")
	fs.Var(&f.span, "for", "`TIME` instead of the file's duration, such as 30m or 2h")
	fs.StringVar(&f.dump, "dump", "", "`WHEN` heaps are dumped instead of the file's diagnose.dump: on_leak, at_end or at_marks")
	fs.StringVar(&f.keep, "keep", "", "what stays of a heap dump instead of the file's diagnose.keep: `HOW` is stripped, raw or none")
}

// choices are the flags as the file's reader takes them, so that their values pass
// the same checks and are told with their origin.
func (f *fileFlags) choices(c console) []config.Choice {
	out := []config.Choice{config.WithProfile(f.profile), config.WithFlag(c.named("device"), "devices.serials", f.devices...)}
	if f.span > 0 {
		out = append(out, config.WithFlag(c.named("for"), "duration", time.Duration(f.span).String()))
	}
	if f.dump != "" {
		out = append(out, config.WithFlag(c.named("dump"), "diagnose.dump", f.dump))
	}
	if f.keep != "" {
		out = append(out, config.WithFlag(c.named("keep"), "diagnose.keep", f.keep))
	}
	return out
}

func configVerb() verb {
	return verb{
		name: "config", args: "init [FILE] | verify FILE... | print FILE | schema [flags]",
		summary: "begin, check and explain the file of a run",
		help: `init [FILE]     writes a file to begin with, ` + defaultFile + ` if none is named; it never
                overwrites. --package names the app.
verify FILE...  checks files: all errors of all files and profiles at once, and what in them
                has no effect. Exit 0 or 2.
print FILE      shows every value that a run would use and where it comes from: a flag,
                a variable of the environment, a profile, a line of the file, a default.
                What is printed is a file of the same meaning.
schema          prints the JSON Schema of the file, for editors.

Every value of the file has a variable in the environment that is stronger than the
file: LEAKGATE_SAMPLE_NORMAL for sample.normal. Flags are stronger still. --for and
--device, --dump and --keep do what they do for run.

examples:
  leakgate config init --package com.shop
  leakgate config verify nightly.yaml pr.yaml --json
  LEAKGATE_SAMPLE_NORMAL=10s leakgate config print nightly.yaml --profile pr --for 2h
  leakgate config schema > leakgate.schema.json`,
		example: "leakgate config print examples/nightly/phone.yaml --profile pr",
		flags: func(fs *flag.FlagSet) func(console, []string) int {
			f := configFlags{set: fs}
			fs.StringVar(&f.pkg, "package", "com.example.app", "`ID` of the app, for init")
			fs.BoolVar(&f.asJSON, "json", false, "print JSON, for verify and print")
			fs.BoolVar(&f.origin, "origin", true, "show where each value comes from, for print; --origin=false leaves the file alone")
			f.fileFlags.declare(fs)
			return f.run
		},
	}
}

type configFlags struct {
	fileFlags
	set    *flag.FlagSet
	pkg    string
	asJSON bool
	origin bool
}

// configWord is one of the words behind `config`, with the flags that it takes
// and how many files.
type configWord struct {
	do          func(*configFlags, console, []string) int
	flags       []string
	least, most int
}

func configWords() map[string]configWord {
	const many = 1 << 16
	return map[string]configWord{
		"init":   {(*configFlags).begin, []string{"package"}, 0, 1},
		"verify": {(*configFlags).verify, []string{"json", "profile", "device", "for"}, 1, many},
		"print":  {(*configFlags).print, []string{"json", "origin", "profile", "device", "for"}, 1, 1},
		"schema": {(*configFlags).schema, nil, 0, 0},
	}
}

func (f *configFlags) run(c console, args []string) int {
	known := configWords()
	all := slices.Sorted(maps.Keys(known))
	if len(args) == 0 {
		return configVerb().wrong(c, fmt.Errorf("want one of %s", strings.Join(all, ", ")))
	}
	word, ok := known[args[0]]
	if !ok {
		return configVerb().wrong(c, fmt.Errorf("unknown word %q%s; want one of %s", args[0], meant(args[0], all, ""), strings.Join(all, ", ")))
	}
	if err := f.fits(c, args[0], word, len(args)-1); err != nil {
		return configVerb().wrong(c, err)
	}
	return word.do(f, c, args[1:])
}

// fits refuses flags and files that the word does not take. A flag that comes from
// the environment is meant for others too.
func (f *configFlags) fits(c console, name string, word configWord, files int) error {
	var stranger string
	f.set.Visit(func(given *flag.Flag) {
		_, fromEnvironment := c.getenv(environmentName(given.Name))
		if !fromEnvironment && !slices.Contains(word.flags, given.Name) {
			stranger = given.Name
		}
	})
	switch {
	case stranger != "" && len(word.flags) == 0:
		return fmt.Errorf("config %s takes no flags, not --%s", name, stranger)
	case stranger != "":
		return fmt.Errorf("config %s does not take --%s, only --%s", name, stranger, strings.Join(word.flags, ", --"))
	case files < word.least:
		return fmt.Errorf("config %s wants a file, such as %s", name, defaultFile)
	case files > word.most && word.most == 0:
		return fmt.Errorf("config %s takes no file", name)
	case files > word.most:
		return fmt.Errorf("config %s takes one file, not %d", name, files)
	}
	return nil
}

// begin writes a file to begin with.
func (f *configFlags) begin(c console, args []string) int {
	path := defaultFile
	if len(args) > 0 {
		path = args[0]
	}
	starter, err := config.Starter(f.pkg)
	if err != nil {
		return configVerb().wrong(c, fmt.Errorf("--package: %w", err))
	}
	if err := writeNew(path, starter); err != nil {
		fmt.Fprintf(c.err, "leakgate config init: %v\n", err)
		return exitUsage
	}
	name := text.Printable(shellWord(path))
	fmt.Fprintf(c.out, "%s is written. Edit app.package and workload in it; then:\n\n", name)
	for _, line := range []string{"config verify " + name, "config print " + name, "run " + name + " --for 45m"} {
		fmt.Fprintf(c.out, "  leakgate %s\n", line)
	}
	return exitOK
}

// writeNew writes a file that must not be there, whole or not at all.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q is there already and is left as it is; name another file", path)
	}
	if err != nil {
		return fmt.Errorf("create %q: %w", path, cause(err))
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		// What is left of it would keep the next attempt away.
		return fmt.Errorf("write %q: %w", path, errors.Join(cause(err), os.Remove(path)))
	}
	return nil
}

// cause is an error of the file system without the path, which is told quoted.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// shellWord is a path as it is typed: quoted where a shell would take it apart.
func shellWord(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:\\-", r)
	}) {
		return text.ShellQuote(path)
	}
	return path
}

// checkedFile is one file in the JSON of verify and print.
type checkedFile struct {
	File     string                 `json:"file"`
	OK       bool                   `json:"ok"`
	Problems []toldProblem          `json:"problems"`
	Profiles []string               `json:"profiles,omitempty"`
	Profile  string                 `json:"profile,omitempty"`
	Values   map[string]toldSetting `json:"values,omitempty"`
	errors   config.Errors          // the problems, for people
	config   *config.Config         // nil where there are problems
}

type toldProblem struct {
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Path       string `json:"path"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
	// Place is the variable of the environment or the flag, where it is not the file.
	Place string `json:"place,omitempty"`
}

type toldSetting struct {
	Value  any        `json:"value"`
	Origin toldOrigin `json:"origin"`
}

type toldOrigin struct {
	Layer     string   `json:"layer"`
	File      string   `json:"file,omitempty"`
	Line      int      `json:"line,omitempty"`
	Column    int      `json:"column,omitempty"`
	Name      string   `json:"name,omitempty"`
	Variables []string `json:"variables,omitempty"`
}

// check reads a file and validates the policy that it and each of its profiles
// describe.
func (f *configFlags) check(c console, path string) checkedFile {
	out := checkedFile{File: text.Printable(path)}
	cfg, err := config.Load(path, c.getenv, f.choices(c)...)
	if err == nil {
		out.config, out.Profiles, out.Profile = cfg, cfg.Profiles(), cfg.Profile()
		err = checkPolicies(path, readingsOf(c, path, cfg))
	}
	if err != nil {
		out.config = nil
		out.errors = problemsOf(path, err)
	}
	out.OK = out.config != nil
	out.Problems = out.told(out.errors)
	return out
}

// told is problems as JSON has them.
func (f *checkedFile) told(problems config.Errors) []toldProblem {
	out := []toldProblem{}
	for _, p := range problems {
		p = p.Printable()
		told := toldProblem{Line: p.Line, Column: p.Column, Path: p.Path, Message: p.Message, Suggestion: p.Suggestion}
		if p.File != f.File {
			told.Place = p.File
		}
		out = append(out, told)
	}
	return out
}

// readingsOf is what is chosen, the file alone and the file with each profile. A
// profile that cannot be read here is one whose variables are not set.
func readingsOf(c console, path string, chosen *config.Config) []*config.Config {
	out := []*config.Config{chosen}
	for _, name := range append([]string{""}, chosen.Profiles()...) {
		if cfg, err := config.Load(path, c.getenv, config.WithProfile(name)); err == nil {
			out = append(out, cfg)
		}
	}
	return out
}

// checkPolicies makes the policy of each reading of a file.
func checkPolicies(path string, readings []*config.Config) error {
	var problems config.Errors
	for _, cfg := range readings {
		_, err := policyOf(cfg)
		for _, p := range problemsOf(path, err) {
			if !slices.Contains(problems, p) {
				problems = append(problems, p)
			}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// problemsOf are the problems of an error; one that is no list of problems is of
// the file as a whole.
func problemsOf(path string, err error) config.Errors {
	if err == nil {
		return nil
	}
	if problems, ok := errors.AsType[config.Errors](err); ok {
		return problems
	}
	return config.Errors{{File: path, Message: err.Error()}}
}

// verify checks files.
func (f *configFlags) verify(c console, args []string) int {
	code := exitOK
	files := make([]checkedFile, len(args))
	for i, path := range args {
		files[i] = f.check(c, path)
		if !files[i].OK {
			code = exitUsage
		}
	}
	if f.asJSON {
		return told(c, files, code)
	}
	for _, file := range files {
		if !file.OK {
			fmt.Fprintln(c.err, file.errors)
			continue
		}
		profiles := ""
		if len(file.Profiles) > 0 {
			profiles = ", also with its profiles " + strings.Join(file.Profiles, ", ")
		}
		fmt.Fprintf(c.out, "%s: ok%s\n", file.File, profiles)
	}
	return code
}

// print shows what a run would use.
func (f *configFlags) print(c console, args []string) int {
	file := f.check(c, args[0])
	for _, name := range config.Misspelled(os.Environ()) {
		fmt.Fprintf(c.err, "leakgate config print: the variable %s is no key of the file; did you mean %s?\n", text.Printable(name.Written), name.Meant)
	}
	switch {
	case f.asJSON && file.OK:
		file.Values = valuesOf(file.config)
		return told(c, []checkedFile{file}, exitOK)
	case f.asJSON:
		return told(c, []checkedFile{file}, exitUsage)
	case !file.OK:
		fmt.Fprintln(c.err, file.errors)
		return exitUsage
	}
	return written(c, file.config.YAML(f.origin))
}

func valuesOf(cfg *config.Config) map[string]toldSetting {
	out := map[string]toldSetting{}
	for _, s := range cfg.Settings() {
		o := s.Origin
		out[s.Path] = toldSetting{s.Value, toldOrigin{
			Layer: o.Layer.String(), File: text.Printable(o.File), Line: o.Line, Column: o.Column, Name: o.Name, Variables: o.Variables,
		}}
	}
	return out
}

// told writes the JSON of verify and print.
func told(c console, files []checkedFile, code int) int {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Schema string        `json:"schema"`
		Files  []checkedFile `json:"files"`
	}{"leakgate.config/1", files})
	if err != nil {
		fmt.Fprintf(c.err, "leakgate config: print: %v\n", err)
		return exitUsage
	}
	return code
}

func (f *configFlags) schema(c console, _ []string) int {
	text, err := config.JSONSchema()
	if err != nil {
		fmt.Fprintf(c.err, "leakgate config schema: %v\n", err)
		return exitUsage
	}
	return written(c, text)
}

func written(c console, text []byte) int {
	if _, err := c.out.Write(text); err != nil {
		fmt.Fprintf(c.err, "leakgate config: print: %v\n", err)
		return exitUsage
	}
	return exitOK
}
