package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leakgate/leakgate/internal/harness/config"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/spf13/cobra"
)

// defaultFile is what `config init` writes if no file is named.
const defaultFile = "leakgate.yaml"

// fileFlags are the flags of run and config that choose a profile of a file or
// override its values.
type fileFlags struct {
	profile string
	devices []string
	span    time.Duration
	longest time.Duration
	dump    response.Dump
	keep    response.Keep
	logcat  response.Logcat
	texts   bool
	standIn bool
}

func (f *fileFlags) declare(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(word(&f.profile, "NAME"), "profile", "profile of the configuration file to use")
	flags.Var(list{&f.devices, "SERIAL", true}, "device", "device to use; overrides devices.serials (repeatable)")
	flags.Var(durationRange(&f.span, &f.longest), "for",
		"duration of the run, such as 30m, 2h or 12m..30m; overrides that of the file")
	flags.Var(choice(&f.dump, "WHEN", dumpTimes...), "dump", "when to dump heaps; overrides diagnose.dump")
	flags.Var(choice(&f.keep, "WHAT", keptForms...), "keep",
		"form in which to keep heap dumps; overrides diagnose.keep")
	flags.Var(choice(&f.logcat, "WHAT", keptLogs...), "logcat", logcatUsage+"; overrides diagnose.logcat")
	flags.BoolVar(&f.texts, "show-texts", false, textsUsage)
	flags.BoolVar(&f.standIn, "stand-in", false, standInUsage)
	err := cmd.RegisterFlagCompletionFunc("profile",
		func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, path := range args {
				if cfg, err := config.Load(path, nil); err == nil {
					names = append(names, cfg.Profiles()...)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err) // the flag is declared above
	}
}

// load reads a file together with the flags, and records where each value comes
// from. The values of flags pass the same checks as those of the file.
func (f *fileFlags) load(c console, path string) (*config.Config, error) {
	profile := cmp.Or(f.profile, c.variable(profileVariable))
	choices := []config.Choice{
		config.WithProfile(profile), config.WithFlag("--device", "devices.serials", f.devices...),
	}
	lasts := f.span.String()
	if f.longest > 0 {
		lasts += ".." + f.longest.String()
	}
	texts := map[bool]string{true: config.TextsShown}[f.texts]
	for _, flag := range []struct{ name, path, value string }{
		{"--for", "duration", lasts}, {"--dump", "diagnose.dump", string(f.dump)},
		{"--keep", "diagnose.keep", string(f.keep)},
		{"--logcat", "diagnose.logcat", string(f.logcat)}, {"--show-texts", "diagnose.texts", texts},
		{"--stand-in", "devices.stand_in", map[bool]string{true: "true"}[f.standIn]},
	} {
		if flag.value != "" && flag.value != "0s" {
			choices = append(choices, config.WithFlag(flag.name, flag.path, flag.value))
		}
	}
	cfg, err := config.Load(path, c.getenv, choices...)
	c.hide(cfg)
	if err != nil && profile != f.profile {
		c.note("the profile %s comes from the variable %s", text.Printable(profile), profileVariable)
	}
	return cfg, err
}

func configCommand(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "config COMMAND", GroupID: groupRecords, DisableFlagsInUseLine: true,
		Short: "create, check and explain the YAML file of a run",
		Long: `Create, check and explain the YAML file of a run.

An environment variable overrides a key of the file: LEAKGATE_SAMPLE_NORMAL
overrides sample.normal. Flags override both.`,
		Example: `  leakgate config init --package com.shop
  leakgate config verify nightly.yaml
  leakgate config print nightly.yaml --profile pr`,
		Annotations: manual{page: configPage}.annotations(),
		Args:        cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("want %s", alternatives(commandNames(cmd)))
			}
			return unknownCommand(cmd, args[0])
		},
	}
	cmd.AddCommand(configInitCommand(c), configVerifyCommand(c), configPrintCommand(c), configSchemaCommand(c))
	return cmd
}

const configPage = "docs/formats/config.md"

func configInitCommand(c *console) *cobra.Command {
	app := "com.example.app"
	cmd := &cobra.Command{
		Use:     "init [FILE]",
		Short:   "write a starter file",
		Long:    "Write a starter file: FILE, or " + defaultFile + ". An existing file is never overwritten.",
		Example: "  leakgate config init --package com.shop\n  leakgate config init nightly.yaml --package com.shop",
		Annotations: manual{
			exits: "0 the file was written\n2 the command line is invalid, or the file exists or cannot be written",
			page:  configPage,
		}.annotations(),
		RunE: c.run(func(c console, args []string) int { return initConfig(c, app, args) }),
	}
	cmd.Flags().Var(word(&app, "ID"), "package", "package name of the app")
	return cmd
}

func configVerifyCommand(c *console) *cobra.Command {
	var f configFlags
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "report all errors in configuration files, and values that have no effect",
		Long: `Check files with all their profiles. All errors are reported together, and so are
values that have no effect. A run that cannot reach a verdict, because it is too short for
a trend, is a warning, or an error with strict.`,
		Example: `  leakgate config verify nightly.yaml
  leakgate config verify nightly.yaml pr.yaml --json`,
		Annotations: manual{
			exits: "0 no file has an error\n2 a file has an error, or the command line is invalid", page: configPage,
		}.annotations(),
		ValidArgsFunction: completeFiles("yaml", "yml"),
		RunE:              c.run(f.verify),
	}
	f.declare(cmd)
	return cmd
}

func configPrintCommand(c *console) *cobra.Command {
	var f configFlags
	cmd := &cobra.Command{
		Use:   "print FILE",
		Short: "show each value that a run would use, and its origin",
		Long: `Show each value that a run would use and where it comes from: a flag, a variable, a
profile, a line of the file, or the default. A value that refers to variables is shown
unexpanded, because it may be a secret; --reveal expands it. The output is itself a valid
file with the same meaning.`,
		Example: `  leakgate config print nightly.yaml --profile pr
  LEAKGATE_SAMPLE_NORMAL=10s leakgate config print nightly.yaml --for 2h
  leakgate config print nightly.yaml --origin=false > resolved.yaml`,
		Annotations: manual{
			exits: "0 the values were printed\n2 the file has an error, or the command line is invalid",
			page:  configPage,
		}.annotations(),
		ValidArgsFunction: completeFiles("yaml", "yml"),
		RunE:              c.run(f.print),
	}
	f.declare(cmd)
	cmd.Flags().BoolVar(&f.origin, "origin", true, "show where each value comes from; turn it off with --origin=false")
	cmd.Flags().BoolVar(&f.reveal, "reveal", false, "show the values of variables that the file refers to as ${VAR}")
	return cmd
}

func configSchemaCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "print the JSON Schema of the file, for editors",
		Long:    "Print the JSON Schema of the file; editors use it to complete and check the file.",
		Example: "  leakgate config schema\n  leakgate config schema > leakgate.schema.json",
		Annotations: manual{
			exits: "0 the schema was printed\n2 the command line is invalid", page: configPage,
		}.annotations(),
		RunE: c.run(printSchema),
	}
}

// configFlags are the flags of config verify and config print.
type configFlags struct {
	fileFlags
	asJSON bool
	origin bool
	reveal bool
}

func (f *configFlags) declare(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.asJSON, "json", false, jsonUsage)
	f.fileFlags.declare(cmd)
}

// initConfig writes a starter file.
func initConfig(c console, app string, args []string) int {
	path := defaultFile
	switch len(args) {
	case 0:
	case 1:
		path = args[0]
	default:
		return c.usage(fmt.Errorf("want one YAML file, got %d", len(args)))
	}
	starter, err := config.Starter(app)
	if err != nil {
		return c.usage(fmt.Errorf("--package: %w", err))
	}
	if err := writeNew(path, starter); err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	name := text.Printable(shellWord(path))
	fmt.Fprintf(c.out, "Wrote %s. Edit app.package and workload in it; then:\n\n", name)
	for _, line := range []string{"config verify " + name, "config print " + name, "run " + name + " --for 45m"} {
		fmt.Fprintf(c.out, "  leakgate %s\n", line)
	}
	return exitOK
}

// writeNew writes a file that must not exist yet. It writes the entire file or
// nothing.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q exists and is not overwritten; name another file", path)
	}
	if err != nil {
		return fmt.Errorf("create %q: %w", path, cause(err))
	}
	_, err = f.Write(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		// Remove the incomplete file: writeNew rejects an existing file, so the
		// next attempt would fail.
		return fmt.Errorf("write %q: %w", path, errors.Join(cause(err), os.Remove(path)))
	}
	return nil
}

// cause removes the path from a file system error, because the message that
// wraps the error already contains the path.
func cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// shellWord returns a path for use in a shell: quoted if the shell would split
// or expand it.
func shellWord(path string) string {
	if strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:\\-", r)
	}) {
		return text.ShellQuote(path)
	}
	return path
}

// checkedFile is one file in the JSON output of the verify and print commands.
type checkedFile struct {
	File     string                 `json:"file"`
	OK       bool                   `json:"ok"`
	Problems []checkedProblem       `json:"problems"`
	Profiles []string               `json:"profiles,omitempty"`
	Profile  string                 `json:"profile,omitempty"`
	Values   map[string]jsonSetting `json:"values,omitempty"`
	Warnings []checkedProblem       `json:"warnings,omitempty"`
	errors   config.Errors          // the problems, for the text output
	warnings config.Errors          // the warnings, for the text output
	config   *config.Config         // nil if there are problems
}

type checkedProblem struct {
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Path       string `json:"path"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
	// Place is the environment variable or the flag that has the problem, if
	// the problem is not in the file.
	Place string `json:"place,omitempty"`
}

type jsonSetting struct {
	Value  any        `json:"value"`
	Origin jsonOrigin `json:"origin"`
}

type jsonOrigin struct {
	Layer     string   `json:"layer"`
	File      string   `json:"file,omitempty"`
	Line      int      `json:"line,omitempty"`
	Column    int      `json:"column,omitempty"`
	Name      string   `json:"name,omitempty"`
	Variables []string `json:"variables,omitempty"`
}

// check reads a file and validates the policy that the file and each of its
// profiles describe.
func (f *configFlags) check(c console, path string) checkedFile {
	out := checkedFile{File: text.Printable(path)}
	cfg, err := f.load(c, path)
	if err == nil {
		out.config, out.Profiles, out.Profile = cfg, cfg.Profiles(), cfg.Profile()
		readings := readingsOf(c, path, cfg)
		err = checkPolicies(path, readings)
		out.warnings = unjudgeable(readings)
	}
	if err != nil {
		out.config = nil
		out.errors = problemsOf(path, err)
	}
	out.OK = out.config != nil
	out.Problems = out.listed(out.errors)
	if len(out.warnings) > 0 {
		out.Warnings = out.listed(out.warnings)
	}
	return out
}

// listed returns problems in their JSON form.
func (f *checkedFile) listed(problems config.Errors) []checkedProblem {
	out := []checkedProblem{}
	for _, p := range problems {
		p = p.Printable()
		one := checkedProblem{
			Line: p.Line, Column: p.Column, Path: p.Path, Message: p.Message, Suggestion: p.Suggestion,
		}
		if p.File != f.File {
			one.Place = p.File
		}
		out = append(out, one)
	}
	return out
}

// readingsOf returns the configurations that can result from a file: with the
// chosen profile, without a profile, and with each of its profiles. Profiles
// that cannot be read are omitted: at this point, the only possible reason is a
// variable that is not set.
func readingsOf(c console, path string, chosen *config.Config) []*config.Config {
	out := []*config.Config{chosen}
	for _, name := range append([]string{""}, chosen.Profiles()...) {
		if cfg, err := config.Load(path, c.getenv, config.WithProfile(name)); err == nil {
			out = append(out, cfg)
		}
	}
	return out
}

// checkPolicies returns the problems that would prevent a run. The
// configurations are readings of one file, with different profiles; a problem
// that several of them share is returned once.
func checkPolicies(path string, readings []*config.Config) error {
	var problems config.Errors
	for _, cfg := range readings {
		_, err := plans.DetectorPolicy(cfg)
		for _, p := range append(problemsOf(path, err), problemsOf(path, plans.Refused(cfg))...) {
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

// unjudgeable returns a warning about each configuration whose runs cannot
// reach a verdict.
func unjudgeable(readings []*config.Config) config.Errors {
	var warnings config.Errors
	for _, cfg := range readings {
		why := plans.FileCannotJudge(cfg)
		if why == "" || cfg.Strict { // with strict: true, it is an error, not a warning
			continue
		}
		if w := cfg.Problem("duration", why); !slices.Contains(warnings, w) {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// problemsOf returns the list of problems that an error contains, or nil if
// there is no error. An error that is not a list of problems is one problem of
// the entire file.
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
	if len(args) == 0 {
		return c.usage(errors.New("no file to verify: name one, such as " + defaultFile))
	}
	c.warnOfVariables()
	code := exitOK
	files := make([]checkedFile, len(args))
	for i, path := range args {
		files[i] = f.check(c, path)
		if !files[i].OK {
			code = exitUsage
		}
	}
	if f.asJSON {
		return writeChecked(c, files, code)
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
		for _, w := range file.warnings {
			fmt.Fprintf(c.err, "warning: %v\n", config.Errors{w})
		}
		fmt.Fprintf(c.out, "%s: ok%s\n", file.File, profiles)
	}
	return code
}

// print shows the values that a run would use.
func (f *configFlags) print(c console, args []string) int {
	if len(args) != 1 {
		return c.usage(fmt.Errorf("want one YAML file, got %d", len(args)))
	}
	c.warnOfVariables()
	file := f.check(c, args[0])
	if file.OK && !f.reveal {
		file.config = file.config.Masked()
	}
	switch {
	case f.asJSON && file.OK:
		file.Values = valuesOf(file.config)
		return writeChecked(c, []checkedFile{file}, exitOK)
	case f.asJSON:
		return writeChecked(c, []checkedFile{file}, exitUsage)
	case !file.OK:
		fmt.Fprintln(c.err, file.errors)
		return exitUsage
	}
	for _, w := range file.warnings {
		fmt.Fprintf(c.err, "warning: %v\n", config.Errors{w})
	}
	return written(c, file.config.YAML(f.origin))
}

func valuesOf(cfg *config.Config) map[string]jsonSetting {
	out := map[string]jsonSetting{}
	for _, s := range cfg.Settings() {
		o := s.Origin
		out[s.Path] = jsonSetting{s.Value, jsonOrigin{
			Layer: o.Layer.String(), File: text.Printable(o.File), Line: o.Line, Column: o.Column, Name: o.Name,
			Variables: o.Variables,
		}}
	}
	return out
}

// writeChecked prints the JSON output of the verify and print commands.
func writeChecked(c console, files []checkedFile, code int) int {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Schema string        `json:"schema"`
		Files  []checkedFile `json:"files"`
	}{"leakgate.config/1", files})
	if err != nil {
		c.problem("print: %v", err)
		return exitUsage
	}
	return code
}

func printSchema(c console, args []string) int {
	if err := withoutArguments(args, ""); err != nil {
		return c.usage(err)
	}
	text, err := config.JSONSchema()
	if err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	return written(c, text)
}

func written(c console, text []byte) int {
	if _, err := c.out.Write(text); err != nil {
		c.problem("print: %v", err)
		return exitUsage
	}
	return exitOK
}
