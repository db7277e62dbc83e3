package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/internal/harness/store"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func baselineCommand(c *console) *cobra.Command {
	cmd := &cobra.Command{
		Use: "baseline", GroupID: groupGate,
		Short: "record and show the runs that later runs are compared with",
		Long: `A baseline contains the newest runs of the base branch (ten for each app, variant, workload
and kind of device) and where each leak was first seen. A job on the base branch adds its run;
` + "`leakgate gate`" + ` compares the runs of pull requests with it.`,
		Example: `  leakgate baseline update --run leakgate-runs/main
  leakgate baseline show --baseline git:leak-baseline#shop.json`,
		Annotations: manual{page: "docs/formats/baseline.md"}.annotations(),
		Args:        cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			writeHelp(c.err, cmd)
			return exitCode(exitUsage)
		},
	}
	cmd.AddCommand(baselineUpdateCommand(c), baselineShowCommand(c), baselinePinCommand(c))
	return cmd
}

const baselineExits = `2 the command line, the configuration, the baseline or the run directory is invalid
6 a heap dump could not be read
130 interrupted; the baseline is as before, or complete`

func baselineUpdateCommand(c *console) *cobra.Command {
	f := &baselineFlags{}
	cmd := &cobra.Command{
		Use:   "update --run DIR",
		Short: "add a run of the base branch",
		Long: `Add a run to the baseline. A run that is worse than the previous runs is kept as observed:
its regressions are not blamed on pull requests. A run that could not be judged, was
interrupted or tests a pull request is rejected.

On GitHub Actions the baseline is an artifact: this command writes
leak-baseline/leak-baseline.json, for actions/upload-artifact to upload as leakgate-baseline.`,
		Example: `  leakgate baseline update --run main --baseline file:leak-baseline.json
  leakgate baseline update --dump com.shop=1.hprof,2.hprof,3.hprof`,
		Annotations: manual{
			exits: "0 the run was added\n" + baselineExits + "\n5 the run could not be judged and was not added",
			page:  "docs/formats/baseline.md",
		}.annotations(),
		RunE: c.run(f.update),
	}
	flags := cmd.Flags()
	f.declareSource(flags)
	f.declareRules(flags)
	flags.Var(list{to: &f.runs, placeholder: "DIR"}, "run", "run directory to add")
	flags.Var(word(&f.leakCanary, "FILE"), "leakcanary", "report of LeakCanary to add")
	flags.BoolVar(&f.pullRequest, "allow-pull-request", false, "also add a run that tests a pull request")
	return cmd
}

type baselineFlags struct {
	sourceFlags
	ruleFlags
	pullRequest bool
	asJSON      bool
}

func (f *baselineFlags) update(c console, args []string) int {
	err := cmp.Or(withoutRun(args), f.sourceFlags.check())
	if err == nil && len(f.runs) > 1 {
		err = errors.New("add one run at a time")
	}
	if err != nil {
		return c.usage(err)
	}
	ctx, stop := untilInterrupt()
	defer stop()
	if err := f.add(ctx, c); err != nil {
		if refused, ok := errors.AsType[notJudged](err); ok {
			c.problem("%v", refused)
			return record.ExitInconclusive
		}
		return (&gateFlags{}).failed(c, ctx, err)
	}
	return exitOK
}

// notJudged is the error for a run that cannot be added to the baseline.
type notJudged struct{ error }

// add adds the run to the baseline.
func (f *baselineFlags) add(ctx context.Context, c console) error {
	s, err := f.openSettings(c)
	if err != nil {
		return err
	}
	defer s.close()
	all, err := f.read(ctx, c)
	if err != nil {
		return err
	}
	ev := all[0]
	s.fillHead(c, ev)
	if n := ev.Head.PullRequest; n > 0 && !f.pullRequest {
		return fmt.Errorf("this run tests pull request %d, but a baseline is for the base branch: update it in a job "+
			"on push, or add --allow-pull-request", n)
	}
	// The pull request's number is unknown if it is from a fork or the event
	// file is missing.
	if ci := s.ci; ci != nil && (ci.Fork || strings.HasPrefix(ci.Name, "pull_request")) && !f.pullRequest {
		return errors.New("this job tests a pull request, but a baseline is for the base branch: update it in a job " +
			"on push, or add --allow-pull-request")
	}
	if err := f.checkRun(s, ev); err != nil {
		return err
	}
	added, failed, became := 0, false, gate.Appended
	err = s.store.Update(ctx, func(old [][]byte) ([]byte, error) {
		b, err := s.merge(old)
		if err != nil {
			return nil, err
		}
		result := gate.Compare(s.input(ev, b))
		if err := judgedForBaseline(ev, result); err != nil {
			return nil, notJudged{err}
		}
		failed = len(result.Reasons) > 0 // even if the rules are informational
		for _, o := range ev.Observations {
			o.Failed = failed
			became = b.Add(o, s.window)
		}
		if became == gate.TooOld {
			return nil, fmt.Errorf("the baseline already has %d newer runs, which is its limit: this run is from %s",
				s.window, ev.Observations[0].Started.Format(time.DateTime))
		}
		added = gate.CountRuns(b.Runs)
		return b.Encode()
	})
	if err != nil {
		return err
	}
	what := map[gate.Added]string{gate.Appended: "added", gate.Replaced: "replaced its earlier copy"}[became]
	c.note("the run %s; the baseline in %s has %s", what, s.store, text.Count(added, "run", "runs"))
	if failed {
		c.problem("the run breaks a rule: it is kept as observed, and its regressions are not blamed on pull requests")
	}
	if strings.HasPrefix(s.store.String(), "artifact:") {
		c.note("upload %s as an artifact of that name", store.UploadFile)
	}
	return nil
}

// clockSlack is how far in the future the start of a run may be: the clocks of
// two computers differ.
const clockSlack = 24 * time.Hour

// checkRun rejects a run that started in the future: only the newest runs are
// compared, and this one would remain among the newest for too long. It also
// rejects a run that was judged with a different baseline.
func (f *baselineFlags) checkRun(s *gateSettings, ev *evidence.Evidence) error {
	for _, o := range ev.Observations {
		if o.Started.After(time.Now().Add(clockSlack)) {
			return fmt.Errorf("this run started on %s, which is in the future: correct the clock (for heap dumps, "+
				"that of the device) and repeat the run", o.Started.Format(time.DateTime))
		}
	}
	if len(f.runs) == 0 || f.baseline != "" || f.config != "" {
		return nil
	}
	result, err := readComparison(f.runs[0])
	if err != nil || result.Base.Store == "" || result.Base.Store == publicStore(s.store.String()) {
		return nil // it was judged without a baseline, or with this one
	}
	return fmt.Errorf("this run was judged with the baseline in %s, not %s: choose the baseline with "+
		"--baseline or --config", result.Base.Store, publicStore(s.store.String()))
}

// openSettings returns the settings of a command that needs a baseline.
func (f *baselineFlags) openSettings(c console) (*gateSettings, error) {
	s, err := f.settings(c)
	if err == nil && s.store == nil {
		err = s.open(c, fileStore)
	}
	return s, err
}

func baselineShowCommand(c *console) *cobra.Command {
	f := &baselineFlags{}
	cmd := &cobra.Command{
		Use:   "show",
		Short: "list the runs of the baseline",
		Long:  "List the runs of the baseline, newest first, with the leaks of each process.",
		Example: `  leakgate baseline show
  leakgate baseline show --baseline git:leak-baseline#shop.json --json`,
		Annotations: manual{
			exits: "0 the baseline was listed, even if it is empty\n" + baselineExits, page: "docs/formats/baseline.md",
		}.annotations(),
		RunE: c.run(f.show),
	}
	f.declareBaseline(cmd.Flags())
	cmd.Flags().Var(word(&f.config, "FILE"), "config", "configuration file that names the baseline")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, jsonUsage)
	return cmd
}

func (f *baselineFlags) show(c console, args []string) int {
	if err := withoutArguments(args, ""); err != nil {
		return c.usage(err)
	}
	ctx, stop := untilInterrupt()
	defer stop()
	s, err := f.openSettings(c)
	if err != nil {
		return (&gateFlags{}).failed(c, ctx, err)
	}
	defer s.close()
	b, err := s.load(ctx)
	if err != nil {
		return (&gateFlags{}).failed(c, ctx, err)
	}
	if f.asJSON {
		var raw []byte
		if raw, err = b.Encode(); err == nil {
			_, err = c.out.Write(raw)
		}
	} else {
		err = writeBaseline(c, s, b)
	}
	if err != nil {
		c.problem("print the baseline: %v", err)
		return exitUsage
	}
	return exitOK
}

// writeBaseline prints a list of the runs of a baseline.
func writeBaseline(c console, s *gateSettings, b *gate.Baseline) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %s\n", s.store, text.Count(gate.CountRuns(b.Runs), "run", "runs"))
	for _, o := range b.Runs {
		writeBaseRun(&out, &o)
	}
	if len(b.Pinned) > 0 {
		fmt.Fprintf(&out, "\npinned as %s: %s\n", text.Printable(b.PinnedName),
			text.Count(gate.CountRuns(b.Pinned), "run", "runs"))
		for _, o := range b.Pinned {
			writeBaseRun(&out, &o)
		}
	}
	if len(b.Runs) == 0 {
		out.WriteString("add one with `leakgate baseline update --run DIR`\n")
	}
	_, err := fmt.Fprint(c.out, out.String())
	return err
}

func writeBaseRun(out *strings.Builder, o *gate.Observation) {
	s := o.Subject
	on := strings.Join(strings.Fields(
		fmt.Sprintf("%s %s %s", s.Model, map[bool]string{true: fmt.Sprintf("API %d", s.API)}[s.API > 0], s.ABI)), " ")
	fmt.Fprintf(out, "\n%s  %s  %s", o.Started.UTC().Format(time.DateTime), text.Printable(text.Head(o.Commit, 12)),
		text.Printable(strings.TrimSpace(s.App+" "+s.Variant+" "+s.Test)))
	if on != "" {
		fmt.Fprintf(out, " on %s", text.Printable(on))
	}
	if o.Failed {
		out.WriteString("  (observed: worse than the previous runs)")
	}
	out.WriteString("\n")
	for i := range o.Processes {
		p := &o.Processes[i]
		fmt.Fprintf(out, "  %s: %s, %s\n", text.Printable(p.Process),
			text.Count(len(p.Heap.Exposure), "heap dump", "heap dumps"), text.Count(len(p.Places), "leak", "leaks"))
		for k := range p.Places {
			l := &p.Places[k]
			if l.Library {
				continue
			}
			name := l.Class
			if l.HeldBy != "" {
				name += ", held by " + l.HeldBy
			}
			fmt.Fprintf(out, "    %s  %s: %s\n", shortKey(l.Key), text.Printable(name), text.Series(l.Counts))
		}
	}
}

func baselinePinCommand(c *console) *cobra.Command {
	f := &baselineFlags{}
	cmd := &cobra.Command{
		Use:   "pin NAME",
		Short: "keep the current runs under the name of a release",
		Long: `Keep the current good runs of the baseline under the name of a release. Later runs of
the base branch are also compared with the pinned runs: slow growth over many changes, which
the newest runs already contain, fails a run of the base branch (rule leak.creep); for a pull
request, it is only reported.`,
		Example: "  leakgate baseline pin 4.1\n  leakgate baseline pin v2026.11 --baseline " +
			"git:leak-baseline#shop.json",
		Annotations: manual{
			exits: "0 the runs were pinned\n" + baselineExits, page: "docs/formats/baseline.md",
		}.annotations(),
		RunE: c.run(f.pin),
	}
	f.declareBaseline(cmd.Flags())
	cmd.Flags().Var(word(&f.config, "FILE"), "config", "configuration file that names the baseline")
	return cmd
}

func (f *baselineFlags) pin(c console, args []string) int {
	if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
		return c.usage(fmt.Errorf("want one release name, such as 4.1, got %d", len(args)))
	}
	ctx, stop := untilInterrupt()
	defer stop()
	s, err := f.openSettings(c)
	pinned := 0
	if err == nil {
		defer s.close()
		err = s.store.Update(ctx, func(old [][]byte) ([]byte, error) {
			b, err := s.merge(old)
			if err != nil {
				return nil, err
			}
			if pinned = b.Pin(args[0]); pinned == 0 {
				return nil, errors.New("the baseline has no good run to pin: " +
					"add some with `leakgate baseline update --run DIR`")
			}
			return b.Encode()
		})
	}
	if err != nil {
		return (&gateFlags{}).failed(c, ctx, err)
	}
	c.note("pinned %s as %s", text.Count(pinned, "run", "runs"), text.Printable(args[0]))
	return exitOK
}

// input returns everything that the verdict on a run depends on.
func (s *gateSettings) input(ev *evidence.Evidence, b *gate.Baseline) gate.Input {
	in := gate.Input{
		Heads: ev.Observations, Configured: s.store != nil, Base: b.Runs, Pinned: b.Pinned, PinnedName: b.PinnedName,
		Window: s.window, Match: s.match, FirstSeen: b.FirstSeen(ev.Head.App),
		Accepted: s.accepted, Now: time.Now(), Rules: s.rules, Informational: s.informational, Strict: s.strict,
		AllowUnjudged: s.unjudged,
		Missing:       ev.Missing, Unjudged: ev.Unjudged, RunExit: ev.RunExit, Tool: "leakgate " + version(),
		Head: ev.Head, Traces: ev.Traces, Warnings: ev.Warnings,
	}
	if s.store != nil {
		in.Store = publicStore(s.store.String())
	}
	return in
}

// publicStore returns the address of a baseline in a form that can be
// published. It omits the directories of a local path, which may contain the
// user's name.
func publicStore(address string) string {
	scheme, path, _ := strings.Cut(address, ":")
	path = strings.Trim(path, `'"`)
	if scheme != "file" && scheme != "command" || !filepath.IsAbs(path) {
		return address
	}
	return scheme + ":" + filepath.Base(path)
}
