package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leakgate/leakgate/internal/harness/check"
	"github.com/leakgate/leakgate/internal/harness/checkout"
	"github.com/leakgate/leakgate/internal/harness/config"
	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	plans "github.com/leakgate/leakgate/internal/harness/plan"
	"github.com/leakgate/leakgate/internal/harness/store"
	"github.com/leakgate/leakgate/internal/reporters/comparison"
	"github.com/leakgate/leakgate/internal/reporters/github"
	"github.com/leakgate/leakgate/reporters/record"
)

// gateSettings are the rules of a comparison and the address of its base runs.
type gateSettings struct {
	rules                           []gate.Rule
	informational, strict, unjudged bool
	accepted                        []check.Exception
	window                          int
	match                           []string
	// store is nil if no baseline is configured.
	store *store.Store
	// dir is the directory to which a relative path in the address of the store
	// refers.
	dir      string
	checkout string
	// key distinguishes the comments of several gates on one pull request.
	key string
	// ci is the event that started the GitHub workflow, nil elsewhere.
	ci      *github.Trigger
	session *github.Session
}

func (s *gateSettings) close() {
	if s.session != nil {
		s.session.Close()
	}
}

// The default stores.
const (
	fileStore     = "file:leak-baseline.json"
	artifactStore = "artifact:leakgate-baseline"
	baselineName  = "leak-baseline.json"
)

// settings returns the settings from the file, the flags and the CI job.
func (f *ruleFlags) settings(c console) (*gateSettings, error) {
	if f.config == "" && f.profile != "" {
		return nil, errors.New("--profile needs --config")
	}
	if f.config == "" {
		return f.settingsOf(c, nil)
	}
	cfg, err := config.Load(f.config, c.getenv, config.WithProfile(cmp.Or(f.profile, c.variable(profileVariable))))
	if err != nil {
		return nil, err
	}
	c.hide(cfg)
	return f.settingsOf(c, cfg)
}

// settingsOf returns the settings for a file that was read; file may be nil.
func (f *ruleFlags) settingsOf(c console, cfg *config.Config) (*gateSettings, error) {
	s := &gateSettings{
		rules: gate.DefaultRules(), window: gate.Window, match: gate.MatchAll(), informational: f.informational,
		strict: f.strict, unjudged: f.unjudged,
		checkout: cmp.Or(f.checkout, "."),
	}
	address, accepted := f.baseline, f.accepted
	if cfg != nil {
		s.take(cfg)
		if address == "" && cfg.Baseline.Store != "" {
			address, s.dir = cfg.Baseline.Store, filepath.Dir(f.config)
		}
		if accepted == "" && cfg.Gate.Accepted != "" {
			accepted = below(filepath.Dir(f.config), cfg.Gate.Accepted)
		}
	}
	list, err := acceptedLeaks(cmp.Or(accepted, c.variable(acceptedVariable)))
	if err != nil {
		return nil, err
	}
	if s.accepted, err = exceptions(list); err != nil {
		return nil, err
	}
	return s, s.open(c, address)
}

// below resolves a path that is written in a file; a relative path refers to
// the directory of that file.
func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// take applies the values of a file.
func (s *gateSettings) take(cfg *config.Config) {
	s.rules, s.window, s.match = cfg.Gate.Rules, cfg.Baseline.Window, cfg.Baseline.Match
	s.informational = s.informational || cfg.Gate.Informational
	s.strict, s.unjudged = s.strict || cfg.Strict, s.unjudged || cfg.AllowUnjudged
	s.key = cfg.GitHub.CommentKey
}

func exceptions(list []config.Accepted) ([]check.Exception, error) {
	out := make([]check.Exception, len(list))
	for i, a := range list {
		out[i] = check.Exception{
			Key: a.Key, Class: a.Class, Held: a.Held, Reason: a.Reason, Owner: a.Owner, Until: a.Until,
		}
		if err := out[i].Validate(); err != nil {
			return nil, fmt.Errorf("accepted[%d]: %w", i, err)
		}
	}
	return out, nil
}

// open opens the store of the baseline. If the settings name no store, it uses
// the artifacts of the workflow on GitHub; elsewhere it uses the file with the
// default name, if that file exists.
func (s *gateSettings) open(c console, address string) error {
	if c.variable("GITHUB_ACTIONS") == "true" {
		t, err := github.ReadTrigger(c.variable)
		if err != nil {
			return err
		}
		s.ci = &t
	}
	if address == "" {
		switch _, err := os.Stat(baselineName); {
		case err == nil:
			address = fileStore
		case s.ci != nil && token(c) != "":
			address = artifactStore
		default:
			if s.ci != nil {
				c.note("no baseline: set %s (permissions: actions: read), or name one with --baseline",
					ownTokenVariable)
			}
			return nil
		}
	}
	a, err := store.Parse(address)
	if err != nil {
		return err
	}
	o := store.Options{Dir: s.dir, Env: c.environ, Check: checkBaseline, Say: func(line string) { c.note("%s", line) }}
	if s.ci != nil {
		o.Branch = cmp.Or(s.ci.BaseBranch, s.ci.DefaultBranch)
	}
	if a.Scheme() == "artifact" {
		if err := s.connect(c); err != nil {
			return err
		}
		o.Artifacts = artifacts{s.session}
	}
	s.store, err = store.Open(a, o)
	return err
}

const (
	// ownTokenVariable holds a GitHub token that is hidden from workloads;
	// workloads can read tokenVariable.
	ownTokenVariable = "LEAKGATE_GITHUB_TOKEN"
	tokenVariable    = "GITHUB_TOKEN"
	// artifactVariable holds the name of the artifact in which a workflow
	// uploads the run directory.
	artifactVariable = "LEAKGATE_ARTIFACT"
	// acceptedVariable holds the path of the file of accepted leaks, for test
	// suites as well.
	acceptedVariable = "LEAKGATE_ACCEPTED"
)

// token returns the GitHub token.
func token(c console) string { return cmp.Or(c.variable(ownTokenVariable), c.variable(tokenVariable)) }

// connect starts the session with GitHub.
func (s *gateSettings) connect(c console) error {
	if s.session != nil {
		return nil
	}
	if s.ci == nil {
		return errors.New("this is not a GitHub Actions workflow: " +
			"use file:PATH or git:BRANCH#PATH, or run leakgate in a workflow")
	}
	var err error
	s.session, err = github.New(github.Options{
		Owner: s.ci.Owner, Repo: s.ci.Repo, API: s.ci.APIURL, GraphQL: s.ci.GraphQLURL, Token: token(c),
		Say: func(line string) { c.note("%s", line) }, Transport: c.github,
	})
	return err
}

// artifacts implements store.Artifacts with GitHub Actions.
type artifacts struct{ session *github.Session }

// List implements store.Artifacts.
func (a artifacts) List(ctx context.Context, name, branch string, n int) ([]store.Upload, error) {
	list, err := a.session.Artifacts(ctx, name, branch, n)
	out := make([]store.Upload, len(list))
	for i := range list {
		out[i] = store.Upload{ID: list[i].ID}
	}
	return out, err
}

// Download implements store.Artifacts.
func (a artifacts) Download(ctx context.Context, id int64, file string, limit int64) ([]byte, error) {
	content, err := a.session.Download(ctx, github.Artifact{ID: id}, file, limit)
	if errors.Is(err, github.ErrNotFound) {
		// The artifact was deleted or expired after the list was read.
		err = fmt.Errorf("%w (%w)", err, fs.ErrNotExist)
	}
	return content, err
}

// load reads the baseline. It is empty if the store has none yet.
func (s *gateSettings) load(ctx context.Context) (*gate.Baseline, error) {
	if s.store == nil {
		return &gate.Baseline{}, nil
	}
	contents, err := s.store.Load(ctx)
	if errors.Is(err, store.ErrNone) {
		return &gate.Baseline{}, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := s.merge(contents)
	if err != nil {
		return nil, fmt.Errorf("load baseline from %s: %w", s.store, err)
	}
	return b, nil
}

// merge combines several baselines, which concurrent runs have uploaded.
func (s *gateSettings) merge(contents [][]byte) (*gate.Baseline, error) {
	out := &gate.Baseline{}
	for _, raw := range contents {
		b, err := readBaseline(raw)
		if err != nil {
			return nil, err
		}
		out.Merge(b, s.window)
	}
	return out, nil
}

func readBaseline(raw []byte) (*gate.Baseline, error) {
	b, err := gate.ReadBaseline(raw)
	if err != nil {
		return nil, fmt.Errorf("%w; restore an earlier version, or remove it and record base runs again", err)
	}
	return b, nil
}

func checkBaseline(raw []byte) error {
	_, err := readBaseline(raw)
	return err
}

// compare judges one run.
func (s *gateSettings) compare(ctx context.Context, c console, ev *evidence.Evidence) (*comparison.Comparison, error) {
	b, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	s.fillHead(c, ev)
	in := s.input(ev, b)
	if s.store != nil && len(b.Runs) == 0 {
		in.Warnings = append(in.Warnings,
			fmt.Sprintf("%s has no base runs: if it should have some, check this address", in.Store))
	}
	tree, err := checkout.Open(ctx, s.checkout)
	if err != nil {
		return nil, err
	}
	s.ancestors(ctx, tree, &in)
	result := gate.Compare(in)
	s.locate(ctx, tree, result)
	return result, ctx.Err()
}

// fillHead adds the commit and the branch of the CI job if the run does not
// contain them.
func (s *gateSettings) fillHead(c console, ev *evidence.Evidence) {
	var job record.Revision
	if s.ci != nil {
		job = record.Revision{Commit: s.ci.HeadSHA, Branch: s.ci.HeadBranch, PullRequest: s.ci.Number}
	} else if r := plans.BuildOfCI(c.variable); r != nil {
		job = *r
	}
	h := &ev.Head
	h.Commit, h.Branch = cmp.Or(h.Commit, job.Commit), cmp.Or(h.Branch, job.Branch)
	h.PullRequest = cmp.Or(h.PullRequest, job.PullRequest)
	for i := range ev.Observations {
		o := &ev.Observations[i]
		o.Commit, o.Branch, o.PullRequest = cmp.Or(o.Commit, h.Commit), cmp.Or(o.Branch, h.Branch),
			cmp.Or(o.PullRequest, h.PullRequest)
	}
}

// ancestors keeps only the base runs whose commits are ancestors of the
// checkout, because later changes on the base branch are not part of this
// build. If git cannot determine the ancestors, all base runs are kept.
func (s *gateSettings) ancestors(ctx context.Context, tree *checkout.Checkout, in *gate.Input) {
	var commits []string
	for _, o := range in.Base {
		if o.Commit != "" && !slices.Contains(commits, o.Commit) {
			commits = append(commits, o.Commit)
		}
	}
	if len(commits) == 0 {
		return
	}
	behind, unknown, err := tree.Ancestors(ctx, "HEAD", commits)
	if err != nil || len(behind) == 0 && len(unknown) == 0 && !s.hasTestedCommit(ctx, tree, in) {
		return // not a git checkout of this app
	}
	kept := slices.DeleteFunc(slices.Clone(in.Base), func(o gate.Observation) bool {
		_, ok := behind[o.Commit]
		return o.Commit != "" && !ok && !slices.Contains(unknown, o.Commit)
	})
	if n := len(in.Base) - len(kept); n > 0 {
		in.Warnings = append(in.Warnings,
			fmt.Sprintf("%d of %d base runs are not from ancestors of this commit and are not compared; merge or "+
				"rebase to compare with them", n, len(in.Base)))
	}
	in.Base = kept
	if s.ci != nil && s.ci.BaseSHA != "" {
		base, err := tree.Base(ctx, s.ci.BaseSHA, s.ci.HeadSHA)
		if err == nil {
			behind, _, err = tree.Ancestors(ctx, base, commits)
		}
		if err != nil {
			return // the distance to the merge base is unknown
		}
	}
	for _, n := range behind {
		if in.Behind == nil || n < *in.Behind {
			in.Behind = new(n)
		}
	}
}

// hasTestedCommit reports whether the checkout contains the tested commit,
// which proves that it is a checkout of this app.
func (s *gateSettings) hasTestedCommit(ctx context.Context, tree *checkout.Checkout, in *gate.Input) bool {
	if in.Head.Commit == "" {
		return false
	}
	behind, _, err := tree.Ancestors(ctx, "HEAD", []string{in.Head.Commit})
	return err == nil && len(behind) > 0
}

// mostLocated bounds the number of leaks for which the declaration of the
// suspect is looked up.
const mostLocated = 100

// For each leak that is worse, locate finds where the suspect is declared,
// whether this change touches it, and who owns the file.
func (s *gateSettings) locate(ctx context.Context, tree *checkout.Checkout, result *comparison.Comparison) {
	var changes *checkout.Changes
	if base := s.changedSince(ctx, tree, result); base != "" {
		if got, err := tree.Changed(ctx, base, "HEAD"); err == nil {
			changes = &got
		}
	}
	located := 0
	for i := range result.Leaks {
		row := &result.Leaks[i]
		if len(row.Suspects) == 0 || !row.Fails && row.Status != comparison.New && row.Status != comparison.Present &&
			row.Status != comparison.Moved {
			continue
		}
		if located++; located > mostLocated || ctx.Err() != nil {
			return
		}
		for k := range row.Suspects {
			locateSuspect(ctx, tree, &row.Suspects[k], changes)
		}
		if at := slices.IndexFunc(row.Suspects, func(s comparison.Suspect) bool { return s.File != "" }); at >= 0 {
			row.Owners = tree.Owners(row.Suspects[at].File)
		}
	}
}

func locateSuspect(ctx context.Context, tree *checkout.Checkout, suspect *comparison.Suspect,
	changes *checkout.Changes) {
	d, ok := tree.Declaration(ctx, suspect.Class, suspect.Field)
	if !ok {
		return
	}
	suspect.File, suspect.Line = d.File, d.Line
	if changes != nil {
		// If the line of the field is unknown, as for a captured variable, only
		// the file is certain.
		suspect.Changed, suspect.Added = new(changes.File(d.File)), new(d.OfField && changes.Adds(d.File, d.Line))
	}
}

// changedSince returns the commit that this build is compared with, "" if it is
// unknown.
func (s *gateSettings) changedSince(ctx context.Context, tree *checkout.Checkout,
	result *comparison.Comparison) string {
	if s.ci != nil && s.ci.BaseSHA != "" {
		base, _ := tree.Base(ctx, s.ci.BaseSHA, s.ci.HeadSHA)
		return base
	}
	return result.Base.Commit
}

// markdown returns the links and commands of a comment.
func (s *gateSettings) markdown(c console, result *comparison.Comparison) comparison.MarkdownOptions {
	o := comparison.MarkdownOptions{Key: cmp.Or(s.key, result.Head.App), Tool: "leakgate " + version()}
	if s.ci == nil {
		return o
	}
	o.RepoURL = s.ci.ServerURL + "/" + s.ci.Owner + "/" + s.ci.Repo
	o.HeadSHA, o.RunURL = cmp.Or(s.ci.HeadSHA, result.Head.Commit), s.ci.RunURL()
	if name, id := c.variable(artifactVariable), cmp.Or(s.ci.SourceRun, s.ci.RunID); name != "" && id > 0 {
		o.Download = fmt.Sprintf("gh run download %d -n %s -D %[2]s", id, shellWord(name))
		o.RunDir = strings.TrimSpace(name)
	}
	return o
}

// judgedForBaseline returns why a run cannot be added to the baseline: nothing
// was judged, evidence is missing, or the run failed. It returns nil if the run
// can be added.
func judgedForBaseline(ev *evidence.Evidence, result *comparison.Comparison) error {
	switch {
	case !result.Judged:
		return errors.New("nothing in this run could be judged: not added to the baseline")
	case ev.WorkloadFailed:
		return errors.New("the workload of the run failed: not added to the baseline")
	case len(ev.Missing) > 0:
		return fmt.Errorf("evidence is missing (%s): not added to the baseline", ev.Missing[0])
	case slices.Contains([]int{record.ExitInterrupted, record.ExitNoDevice, record.ExitWorkload, exitUnread},
		ev.RunExit):
		return fmt.Errorf("the run ended with exit code %d: not added to the baseline", ev.RunExit)
	}
	return nil
}
