package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leakgate/leakgate/internal/analysis/leakcanary"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/harness/hostmemory"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func gateCommand(c *console) *cobra.Command {
	f := &gateFlags{}
	cmd := &cobra.Command{
		Use: "gate --run DIR", GroupID: groupGate,
		Short: "compare a run with earlier ones and fail on regressions",
		Long: `Compare what each loop of a run leaks with the baseline, and fail on a regression: a new
leak, more objects per loop, larger objects, or a new class held by a known reference. Leaks that the baseline already has are reported, but do not fail.

Instead of a run, --dump names heap dumps of one process, each taken after a loop of the
scenario while the app was idle, or --leakcanary names a LeakCanary report (plain text,
JUnit XML or logcat).

gate.json and comment.md are written into the run directory, or into --out.`,
		Example: `  leakgate gate --run leakgate-runs/pr --baseline file:leak-baseline.json
  leakgate gate --dump com.shop=loop1.hprof,loop2.hprof,loop3.hprof
  leakgate gate --leakcanary TEST-results.xml`,
		Annotations: manual{exits: gateExits, page: "docs/formats/gate.md"}.annotations(),
		RunE:        c.run(f.gate),
	}
	flags := cmd.Flags()
	f.declareSource(flags)
	f.declareRules(flags)
	flags.Var(list{to: &f.runs, placeholder: "DIR"}, "run",
		"run directory to judge; a second one of the same build confirms the first (repeatable)")
	flags.Var(word(&f.leakCanary, "FILE"), "leakcanary", "report of LeakCanary to judge instead of a run")
	flags.Var(word(&f.out, "DIR"), "out", "directory for gate.json and comment.md; by default that of the run")
	flags.Var(word(&f.codeQuality, "FILE"), "code-quality", "also write the failures as a GitLab code quality report")
	flags.Var(word(&f.sarif, "FILE"), "sarif", "also write the failures as SARIF")
	flags.BoolVar(&f.asJSON, "json", false, jsonUsage)
	return cmd
}

const gateExits = `0 nothing is worse, or there is no base run to compare with yet
1 a rule is broken
2 the command line, the configuration, the baseline or the run directory is invalid
3 the run had no usable device, or found no process of the app
4 the workload of the run failed, and nothing is worse
5 nothing could be judged, or a heap dump is missing; with --strict: some process could not be judged
6 a heap dump or a report could not be read
130 interrupted`

// sourceFlags name the sources that are judged.
type sourceFlags struct {
	runs       []string
	dumps      []string
	mapping    string
	app        string
	variant    string
	test       string
	inUse      bool
	leakCanary string
}

func (f *sourceFlags) declareSource(fs *pflag.FlagSet) {
	fs.Var(list{to: &f.dumps, placeholder: "PROCESS=FILE,FILE,..."}, "dump",
		"heap dumps of one process in the order of the loops, instead of a run (repeatable)")
	fs.Var(word(&f.mapping, "FILE"), "mapping", mappingUsage)
	fs.Var(word(&f.app, "PACKAGE"), "app",
		"app that --dump or --leakcanary refers to; by default that of the first process")
	fs.Var(word(&f.variant, "NAME"), "variant", "build variant that --dump or --leakcanary refers to")
	fs.Var(word(&f.test, "NAME"), "test", "test or scenario that --dump or --leakcanary refers to")
	fs.BoolVar(&f.inUse, "in-use", false,
		"the app was in use while its heap was dumped: five dumps are needed instead of three")
}

// ruleFlags select the rules, the baseline and the accepted leaks.
type ruleFlags struct {
	config, profile string
	baseline        string
	accepted        string
	checkout        string
	strict          bool
	unjudged        bool
	informational   bool
}

func (f *ruleFlags) declareRules(fs *pflag.FlagSet) {
	fs.Var(word(&f.config, "FILE"), "config",
		"configuration file with the rules (gate), the baseline and the settings for posting (github)")
	fs.Var(word(&f.profile, "NAME"), "profile", "profile of the configuration file")
	f.declareBaseline(fs)
	fs.Var(word(&f.accepted, "FILE"), "accepted", "file of accepted leaks; by default leaks-accepted.yaml if it exists")
	fs.Var(word(&f.checkout, "DIR"), "checkout",
		"checkout of the app, to look up where suspect references are declared; by default the current directory")
	fs.BoolVar(&f.strict, "strict", false,
		"exit with 5 if any process could not be judged, or there is no base run to compare with")
	fs.BoolVar(&f.unjudged, "allow-unjudged", false,
		"exit with 0 even if nothing could be judged or a heap dump is missing")
	fs.BoolVar(&f.informational, "informational", false, "report what is worse, and exit with 0")
}

func (f *ruleFlags) declareBaseline(fs *pflag.FlagSet) {
	fs.Var(word(&f.baseline, "STORE"), "baseline",
		"address of the baseline: file:PATH, git:BRANCH#PATH, artifact:NAME or command:PROGRAM")
}

type gateFlags struct {
	sourceFlags
	ruleFlags
	out, codeQuality, sarif string
	asJSON                  bool
}

// acceptedName is the default name of the file of accepted leaks, which need
// not exist.
const acceptedName = "leaks-accepted.yaml"

func (f *gateFlags) gate(c console, args []string) int {
	if err := cmp.Or(withoutRun(args), f.sourceFlags.check()); err != nil {
		return c.usage(err)
	}
	ctx, stop := untilInterrupt()
	defer stop()
	s, err := f.settings(c)
	if err != nil {
		return f.failed(c, ctx, err)
	}
	defer s.close()
	result, err := f.judge(ctx, c, s)
	if err != nil {
		return f.failed(c, ctx, err)
	}
	return f.report(c, s, result)
}

// check rejects flags that name no source, or sources that cannot be used
// together.
func (f *sourceFlags) check() error {
	sources := 0
	for _, given := range []bool{len(f.runs) > 0, len(f.dumps) > 0, f.leakCanary != ""} {
		if given {
			sources++
		}
	}
	switch {
	case sources == 0:
		return errors.New("nothing to judge: add --run DIR, --dump PROCESS=FILE,FILE,FILE or --leakcanary FILE")
	case sources > 1:
		return errors.New("--run, --dump and --leakcanary cannot be used together: use one of them")
	case len(f.runs) > 0 && (f.mapping != "" || f.app != "" || f.variant != "" || f.test != "" || f.inUse):
		return errors.New("--mapping, --app, --variant, --test and --in-use are only for --dump and --leakcanary: " +
			"the record of a run has these values (app.mapping and app.variant of the YAML file)")
	case len(f.runs) > 2:
		return fmt.Errorf("got %d runs, want one or two: the second confirms the first", len(f.runs))
	}
	return nil
}

// withoutRun rejects a run directory that is given as a positional argument.
func withoutRun(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unexpected argument %q: name a run directory with --run %s", args[0], shellWord(args[0]))
}

// printableError returns the message of an error. It may have several lines,
// such as those of a file with errors.
func printableError(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = text.Printable(line)
	}
	return strings.Join(lines, "\n")
}

// failed reports why nothing was judged.
func (f *gateFlags) failed(c console, ctx context.Context, err error) int {
	if ctx.Err() != nil {
		c.problem("interrupted; nothing was judged")
		return record.ExitInterrupted
	}
	c.problem("%s", printableError(err))
	if dump, ok := errors.AsType[*evidence.DumpError](err); ok {
		if errors.Is(dump, fs.ErrNotExist) || errors.Is(dump, fs.ErrPermission) || errors.Is(dump, evidence.ErrOrder) {
			return exitUsage
		}
		return exitUnread
	}
	if errors.As(err, new(unreadReport)) {
		return exitUnread
	}
	return exitUsage
}

// unreadReport is the error for a LeakCanary report that could not be read.
type unreadReport struct{ error }

func (u unreadReport) Unwrap() error { return u.error }

// judge reads the sources and compares them.
func (f *gateFlags) judge(ctx context.Context, c console, s *gateSettings) (*comparison.Comparison, error) {
	all, err := f.read(ctx, c)
	if err != nil {
		return nil, err
	}
	if len(all) == 2 {
		if err := confirmable(all[0], all[1]); err != nil {
			return nil, err
		}
	}
	var result *comparison.Comparison
	for i, ev := range all {
		again, err := s.compare(ctx, c, ev)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			result = again
		} else {
			result = gate.Confirm(result, again)
		}
	}
	return result, nil
}

// confirmable rejects two runs that cannot confirm each other, because they are
// the same run or runs of different tests.
func confirmable(first, again *evidence.Evidence) error {
	for _, a := range first.Observations {
		for _, b := range again.Observations {
			if a.Started.Equal(b.Started) {
				return errors.New("--run: both directories hold the same run: a run cannot confirm itself")
			}
			if d := a.Subject.Differences(b.Subject, gate.MatchAll()); len(d) > 0 && len(first.Observations) == 1 &&
				len(again.Observations) == 1 {
				return fmt.Errorf("--run: the two runs cannot confirm each other: different %s",
					strings.Join(d, ", different "))
			}
		}
	}
	return nil
}

// read returns the evidence of each run, or of the source that replaces it.
func (f *sourceFlags) read(ctx context.Context, c console) ([]*evidence.Evidence, error) {
	switch {
	case len(f.dumps) > 0:
		ev, err := f.readDumps(ctx, c)
		return []*evidence.Evidence{ev}, err
	case f.leakCanary != "":
		ev, err := f.readLeakCanary()
		return []*evidence.Evidence{ev}, err
	}
	var out []*evidence.Evidence
	for _, dir := range f.runs {
		ev, err := readRun(ctx, dir)
		if err != nil {
			return nil, err
		}
		out = append(out, ev)
	}
	return out, nil
}

func readRun(ctx context.Context, dir string) (*evidence.Evidence, error) {
	ev, err := evidence.FromRun(ctx, dir)
	if info, serr := os.Stat(dir); err != nil && serr == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, not a run directory; give heap dumps with --dump PROCESS=FILE,FILE,FILE",
			text.Printable(dir))
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return ev, err
	}
	if _, serr := os.Stat(filepath.Join(dir, record.SamplesName)); serr == nil {
		return nil, fmt.Errorf("%w; `leakgate report %s` finishes a run that was killed", err, shellWord(dir))
	}
	return nil, fmt.Errorf("%w; name a directory written by `leakgate run`, `watch` or a suite", err)
}

func (f *sourceFlags) readDumps(ctx context.Context, c console) (*evidence.Evidence, error) {
	o := evidence.DumpOptions{
		App: f.app, Variant: f.variant, Test: f.test, InUse: f.inUse,
		Progress: func(file string) { c.detail("reading %s", text.Printable(file)) },
	}
	o.Analysis.Top, o.Analysis.Memory = defaultTop, hostmemory.Free()
	if f.mapping != "" {
		m, err := readMapping(f.mapping)
		if err != nil {
			return nil, err
		}
		o.Analysis.Mapping = m
	}
	var scenarios []evidence.Scenario
	for _, given := range f.dumps {
		process, files, ok := strings.Cut(given, "=")
		s := evidence.Scenario{Process: strings.TrimSpace(process), Files: strings.Split(files, ",")}
		if !ok || s.Process == "" || slices.Contains(s.Files, "") {
			return nil, fmt.Errorf("--dump: %w",
				invalid(given, "PROCESS=FILE,FILE,... such as com.shop=loop1.hprof,loop2.hprof,loop3.hprof"))
		}
		if slices.ContainsFunc(scenarios, func(x evidence.Scenario) bool { return x.Process == s.Process }) {
			return nil, fmt.Errorf("--dump: duplicate process %s: "+
				"name all its dumps in one flag, in the order of the loops", s.Process)
		}
		if err := checkFiles(s.Files...); err != nil {
			return nil, err
		}
		for i, file := range s.Files {
			if slices.ContainsFunc(s.Files[:i], func(other string) bool { return sameFile(file, other) }) {
				return nil, fmt.Errorf("--dump: duplicate file %s: name one dump per loop", file)
			}
		}
		scenarios = append(scenarios, s)
	}
	o.App = cmp.Or(o.App, appOfProcess(scenarios[0].Process))
	ev, err := evidence.FromDumps(ctx, scenarios, o)
	if err != nil {
		return nil, err
	}
	if o := &ev.Observations[0]; o.Started.IsZero() {
		o.Started = time.Now().UTC()
	}
	return ev, nil
}

// appOfProcess returns the package of a process whose name follows Android's
// convention.
func appOfProcess(process string) string {
	app, _, _ := strings.Cut(process, ":")
	return app
}

func (f *sourceFlags) readLeakCanary() (*evidence.Evidence, error) {
	if isFolder(f.leakCanary) {
		return nil, fmt.Errorf("%s is a directory: name the LeakCanary report in it", f.leakCanary)
	}
	file, err := os.Open(f.leakCanary)
	if err != nil {
		return nil, fmt.Errorf("open report: %w", err)
	}
	defer file.Close()
	report, err := leakcanary.Read(file, leakcanary.Auto)
	switch {
	case errors.Is(err, leakcanary.ErrNoReport) && identify(f.leakCanary) != "" && identify(f.leakCanary) != "empty":
		return nil,
			unreadReport{fmt.Errorf("%s: not a LeakCanary report: it is %s", f.leakCanary, identify(f.leakCanary))}
	case errors.Is(err, leakcanary.ErrNoReport):
		// Passing tests print no report, and tests without LeakCanary do not
		// print one either.
		report = leakcanary.Report{Failures: []string{err.Error()}}
	case err != nil:
		return nil, unreadReport{fmt.Errorf("%s: %w", f.leakCanary, err)}
	}
	ev := evidence.FromLeakCanary(report, evidence.DumpOptions{App: f.app, Variant: f.variant, Test: f.test})
	ev.Observations[0].Started = time.Now().UTC()
	return ev, nil
}

// reportRun reports the result of a run. With --json, only run.json is written
// to standard output.
func (f *gateFlags) reportRun(c console, s *gateSettings, result *comparison.Comparison) int {
	if !f.asJSON {
		fmt.Fprintln(c.out)
		return f.report(c, s, result)
	}
	if err := f.write(c, s, result); err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	c.problem("%s: %s", result.Verdict, text.Printable(result.Text))
	return result.ExitCode
}

// report writes and prints a comparison and returns its exit code.
func (f *gateFlags) report(c console, s *gateSettings, result *comparison.Comparison) int {
	if err := f.write(c, s, result); err != nil {
		c.problem("%v", err)
		return exitUsage
	}
	var err error
	if f.asJSON {
		err = printJSON(c.out, result)
	} else {
		shown := *result
		if len(f.runs) > 0 {
			shown.Head.Run = f.runs[len(f.runs)-1] // for the user to type; gate.json contains no paths of the host
		}
		err = comparison.WriteText(c.out, &shown)
	}
	if err != nil {
		c.problem("print the verdict: %v", err)
		return exitUsage
	}
	return result.ExitCode
}

// write writes the files of a comparison.
func (f *gateFlags) write(c console, s *gateSettings, result *comparison.Comparison) error {
	dir := f.out
	if dir == "" && len(f.runs) > 0 {
		dir = f.runs[len(f.runs)-1]
	}
	if dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "run.json")); err == nil &&
			!slices.ContainsFunc(f.runs, func(run string) bool { return sameFile(run, dir) }) {
			return fmt.Errorf("write %s: %s is the directory of another run: choose another --out", comparison.FileName,
				text.Printable(dir))
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return fmt.Errorf("write %s: %w", comparison.FileName, err)
		}
		if err := writeComparison(dir, result, s.markdown(c, result)); err != nil {
			return err
		}
	}
	for path, write := range map[string]func(io.Writer, *comparison.Comparison, string) error{
		f.codeQuality: comparison.WriteCodeQuality, f.sarif: comparison.WriteSARIF,
	} {
		if path == "" {
			continue
		}
		if !result.Judged {
			// An empty report closes every finding of earlier reports on
			// GitHub.
			c.note("no verdict: %s not written", text.Printable(path))
			continue
		}
		if err := writeFile(path, func(w io.Writer) error { return write(w, result, f.config) }); err != nil {
			return err
		}
	}
	return nil
}

// commentName is the name of the file in a run directory that contains the
// comment.
const commentName = "comment.md"

func writeComparison(dir string, result *comparison.Comparison, o comparison.MarkdownOptions) error {
	if err := comparison.Write(dir, result); err != nil {
		return err
	}
	return record.WriteFileAtomic(filepath.Join(dir, commentName), []byte(comparison.Markdown(result, o)))
}

func writeFile(path string, write func(io.Writer) error) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// acceptedLeaks reads the file of accepted leaks; a file with the default name
// need not exist.
func acceptedLeaks(path string) ([]config.Accepted, error) {
	list, err := config.LoadAccepted(cmp.Or(path, acceptedName))
	if path == "" && err != nil {
		if _, serr := os.Stat(acceptedName); errors.Is(serr, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return list, err
}
