package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/hostfile"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/reporters/github"
	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func commentCommand(c *console) *cobra.Command {
	f := &commentFlags{}
	cmd := &cobra.Command{
		Use: "comment --run DIR", GroupID: groupGate,
		Short: "post the verdict of the gate to a pull request",
		Long: `Post the verdict of ` +
			"`leakgate gate`" + ` to the pull request of a GitHub workflow: one comment, which later runs edit.
If nothing is worse and there is no comment yet, none is written. The job summary gets the same
text.

The command needs GITHUB_TOKEN with pull-requests: write (--check: checks: write, --sarif:
security-events: write). With a read-only token, as in a workflow of a fork, only the job
summary is written; a second workflow, on workflow_run, then posts the comment: it reads the
number of the pull request from the event, and uses only numbers and names from the run
directory.`,
		Example: `  leakgate comment --run leakgate-runs/pr --dry-run
  leakgate comment --run leakgate-runs/pr --config leakgate.yaml --check`,
		Annotations: manual{exits: `0 the verdict was posted, or there was nothing to post
2 the command line, the run directory or the token is invalid, or GitHub could not be reached
130 interrupted`, page: "docs/formats/gate.md"}.annotations(),
		RunE: c.run(f.comment),
	}
	flags := cmd.Flags()
	flags.Var(word(&f.run, "DIR"), "run", "run directory with gate.json")
	flags.BoolVar(&f.dryRun, "dry-run", false, "print the comment and post nothing")
	flags.Var(word(&f.key, "KEY"), "key", "name that distinguishes the comments of several jobs (default: the app)")
	flags.Var(choice(&f.when, "WHEN", commentAlways, commentChanged, commentFailed, commentDefault, commentNever),
		"when", "when to write a new comment: always, changed, failed, \"changed || failed\" (default) or never")
	flags.BoolVar(&f.check, "check", false, "also create a check run with annotations")
	flags.BoolVar(&f.sarif, "sarif", false, "also upload the failures to code scanning")
	flags.Var(word(&f.config, "FILE"), "config", "configuration file of a run, with the settings for posting (github)")
	flags.Var(word(&f.profile, "NAME"), "profile", "profile of the configuration file")
	return cmd
}

// These are the values of --when, which select when a new comment is written.
const (
	commentAlways  = "always"
	commentChanged = "changed"
	commentFailed  = "failed"
	commentDefault = "changed || failed"
	commentNever   = "never"
)

type commentFlags struct {
	run, key, when, config, profile string
	dryRun, check, sarif            bool
	noSummary                       bool
	// readOnly reports whether GitHub has rejected a write because the token is
	// read-only.
	readOnly bool
}

func (f *commentFlags) comment(c console, args []string) int {
	if err := withoutRun(args); err != nil {
		return c.usage(err)
	}
	if f.run == "" {
		return c.usage(errors.New("nothing to post: add --run DIR"))
	}
	ctx, stop := untilInterrupt()
	defer stop()
	err := f.post(ctx, c)
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		c.problem("interrupted")
		return record.ExitInterrupted
	}
	c.problem("%s", printableError(err))
	return exitUsage
}

func (f *commentFlags) post(ctx context.Context, c console) error {
	if err := f.configure(c); err != nil {
		return err
	}
	result, err := readComparison(f.run)
	if err != nil {
		return err
	}
	s := &gateSettings{key: f.key}
	defer s.close()
	if c.variable("GITHUB_ACTIONS") == "true" {
		t, err := github.ReadTrigger(c.variable)
		if err != nil {
			return err
		}
		s.ci = &t
	} else if !f.dryRun {
		return fmt.Errorf("this is not a GitHub Actions workflow: post %s from your CI system, or print it with "+
			"--dry-run", filepath.Join(f.run, commentName))
	}
	if f.dryRun {
		_, err := fmt.Fprint(c.out, comparison.Markdown(result, s.markdown(c, result)))
		return err
	}
	err = f.publish(ctx, c, s, result)
	if f.readOnly {
		hint := "post from a workflow on workflow_run"
		if !f.noSummary && s.ci.SummaryPath != "" {
			hint += "; the job summary has the report"
		}
		c.problem("workflows of forks and of Dependabot have a read-only token: %s", hint)
	}
	return err
}

// configure applies the settings of the file that are not overridden by flags.
func (f *commentFlags) configure(c console) error {
	if f.config == "" {
		return nil
	}
	cfg, err := config.Load(f.config, c.getenv, config.WithProfile(cmp.Or(f.profile, c.variable(profileVariable))))
	if err != nil {
		return err
	}
	c.hide(cfg)
	f.key, f.when = cmp.Or(f.key, cfg.GitHub.CommentKey), cmp.Or(f.when, cfg.GitHub.CommentWhen)
	f.check, f.sarif, f.noSummary = f.check || cfg.GitHub.Check, f.sarif || cfg.GitHub.SARIF, !cfg.GitHub.Summary
	return nil
}

func readComparison(dir string) (*comparison.Comparison, error) {
	if err := notADirectory(dir); err != nil {
		return nil, err
	}
	file, err := hostfile.Open(filepath.Join(dir, comparison.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: `leakgate gate --run %s` writes it",
			dir, comparison.FileName, shellWord(dir))
	}
	if err != nil {
		return nil, fmt.Errorf("open comparison: %w", err)
	}
	defer file.Close()
	return comparison.Read(file)
}

// publish posts to GitHub. If one post fails, the others are still attempted.
func (f *commentFlags) publish(ctx context.Context, c console, s *gateSettings, result *comparison.Comparison) error {
	var failed error
	if !f.noSummary && s.ci.SummaryPath != "" {
		failed = github.AppendSummary(s.ci.SummaryPath, []byte(comparison.Markdown(result, s.markdown(c, result))))
	}
	if err := s.connect(c); err != nil {
		return errors.Join(failed, err)
	}
	t, err := s.session.Locate(ctx, *s.ci)
	if err != nil && !errors.Is(err, github.ErrNoPullRequest) {
		return errors.Join(failed, err)
	}
	*s.ci = t
	if f.check {
		failed = errors.Join(failed, f.degraded(c, s, f.createCheck(ctx, c, s, result)))
	}
	switch {
	case f.sarif && !result.Judged:
		// GitHub closes each alert that is missing from an upload.
		c.note("no verdict: no alerts uploaded; existing ones stay open")
	case f.sarif:
		failed = errors.Join(failed, f.degraded(c, s, f.upload(ctx, s, result)))
	}
	if s.ci.Number == 0 {
		c.note("no pull request has this commit: nothing to comment on")
		return failed
	}
	return errors.Join(failed, f.degraded(c, s, f.upsert(ctx, c, s, result)))
}

// degraded prints err and returns nil if the token is read-only because the
// workflow belongs to a fork or to Dependabot. Otherwise it returns err: in
// other workflows, a read-only token means that a permission is missing.
func (f *commentFlags) degraded(c console, s *gateSettings, err error) error {
	restricted := s.ci.Fork && s.ci.Name == "pull_request" || c.variable("GITHUB_ACTOR") == "dependabot[bot]"
	if !restricted || !errors.Is(err, github.ErrReadOnly) {
		return err
	}
	c.problem("%v", err)
	f.readOnly = true
	return nil
}

func (f *commentFlags) upsert(ctx context.Context, c console, s *gateSettings, result *comparison.Comparison) error {
	if f.when == commentNever {
		return nil
	}
	o := s.markdown(c, result)
	did, url, err := s.session.Upsert(ctx, github.Comment{
		Number: s.ci.Number, Marker: comparison.CommentMarker(o.Key), Body: comparison.Markdown(result, o),
		OnlyEdit: !f.wanted(result),
	})
	if err != nil {
		return err
	}
	if did == github.Absent {
		c.note("nothing is worse: no comment written")
		return nil
	}
	c.note("comment %s: %s", did, text.Printable(url))
	return nil
}

// wanted reports whether to write a comment on a pull request that has none
// yet.
func (f *commentFlags) wanted(result *comparison.Comparison) bool {
	failed := result.Verdict == comparison.Fail || len(result.Reasons) > 0
	switch cmp.Or(f.when, commentDefault) {
	case commentAlways:
		return true
	case commentFailed:
		return failed
	}
	return failed || changed(result)
}

// changed reports whether any leak of the app is new, got worse or moved. Leaks
// that are gone or smaller need no comment.
func changed(result *comparison.Comparison) bool {
	for i := range result.Leaks {
		switch row := &result.Leaks[i]; row.Status {
		case comparison.New, comparison.Grown, comparison.Heavier, comparison.Wider, comparison.Moved:
			if !row.Library {
				return true
			}
		}
	}
	return false
}

// checkTitle returns the title of the check run, which GitHub shows in lists of
// checks. It does not say which evidence is missing, because that could reveal
// the name of a device.
func checkTitle(result *comparison.Comparison) string {
	switch result.Verdict {
	case comparison.Fail:
		return text.Head(result.Text, 200)
	case comparison.Pass:
		return "nothing is worse"
	}
	return "not judged: see the summary"
}

func (f *commentFlags) createCheck(ctx context.Context, c console, s *gateSettings,
	result *comparison.Comparison) error {
	if s.ci.HeadSHA == "" {
		return errors.New("the event does not name the commit to check")
	}
	o := s.markdown(c, result)
	run := github.CheckRun{
		Name: "leakgate " + o.Key, HeadSHA: s.ci.HeadSHA, Title: checkTitle(result),
		Summary: comparison.Markdown(result, o), DetailsURL: o.RunURL,
		Conclusion: map[comparison.Result]github.Conclusion{
			comparison.Pass: github.Success, comparison.Fail: github.Failure,
		}[result.Verdict],
	}
	run.Conclusion = cmp.Or(run.Conclusion, github.Neutral)
	for _, a := range comparison.Annotations(result) {
		run.Annotations = append(run.Annotations,
			github.Annotation{
				Path: a.Path, Line: a.Line, Failing: a.Level == "failure", Title: a.Title, Message: a.Message,
			})
	}
	url, err := s.session.CreateCheckRun(ctx, run)
	if err == nil {
		c.note("check: %s", text.Printable(url))
	}
	return err
}

func (f *commentFlags) upload(ctx context.Context, s *gateSettings, result *comparison.Comparison) error {
	var out bytes.Buffer
	if err := comparison.WriteSARIF(&out, result, f.config); err != nil {
		return err
	}
	ref := s.ci.Ref
	if s.ci.Number > 0 {
		ref = fmt.Sprintf("refs/pull/%d/head", s.ci.Number)
	}
	_, err := s.session.UploadSARIF(ctx, ref, s.ci.HeadSHA, out.Bytes())
	return err
}
