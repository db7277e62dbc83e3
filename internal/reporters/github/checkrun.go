package github

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"unicode/utf8"

	gogithub "github.com/google/go-github/v60/github"
)

// GitHub's limits (docs.github.com/rest/checks/runs): the size of the summary
// and of the text in bytes, and the number of annotations per request.
const (
	maxOutput  = 65535
	maxPerCall = 50
	maxMessage = 60 << 10 // GitHub accepts at most 64 KB per message
	maxTitle   = 255
	// maxAnnotations is our own limit. This limit corresponds to twenty
	// requests, sent a second apart. Nobody reads more annotations.
	maxAnnotations = 1000
)

// Conclusion is the result of a check run.
type Conclusion string

// These are the results of a check run.
const (
	Success Conclusion = "success"
	Failure Conclusion = "failure"
	Neutral Conclusion = "neutral"
)

// CheckRun is a check run of a commit.
type CheckRun struct {
	// Name is shown in the list of checks; the default is leakgate.
	Name string
	// HeadSHA is the commit; for a pull request, it must be the head commit,
	// not the merge commit.
	HeadSHA    string
	Conclusion Conclusion
	// Title, Summary and Text are truncated to GitHub's limits. Summary and
	// Text are Markdown. Title must not be empty.
	Title, Summary, Text string
	// DetailsURL is the URL to which the check links; if it is empty, there is
	// no link.
	DetailsURL string
	// Annotations are shown at lines of files; annotations beyond the first
	// 1,000 are skipped.
	Annotations []Annotation
}

// Annotation is a note at lines of a file.
type Annotation struct {
	// Path is relative to the root of the repository, with slashes.
	Path string
	// Line and EndLine count from 1; an EndLine of 0 means Line.
	Line, EndLine int
	// Failing reports whether the annotation is shown as a failure rather than
	// as a warning.
	Failing        bool
	Title, Message string
}

// CreateCheckRun adds a completed check run to a commit, updates it as often as
// its annotations require, and returns its URL. It replaces an earlier check
// run with the same name, because GitHub shows only the latest. A new check run
// is always created, because annotations cannot be removed from an existing
// check run. The token must be a GITHUB_TOKEN or a token of a GitHub App, with
// the permission `checks: write`.
func (s *Session) CreateCheckRun(ctx context.Context, run CheckRun) (string, error) {
	if !shaRE.MatchString(run.HeadSHA) {
		return "", fmt.Errorf("create check run: invalid commit %q", run.HeadSHA)
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	run.Name = cmp.Or(run.Name, "leakgate")
	if len(run.Annotations) > maxAnnotations {
		s.note("check run: %d of %d annotations are shown", maxAnnotations, len(run.Annotations))
		run.Annotations = run.Annotations[:maxAnnotations]
	}
	w := checkWriter{Session: s, CheckRun: run, nonce: rand.Text()}
	first := min(len(run.Annotations), maxPerCall)
	if err := w.create(ctx, run.Annotations[:first]); err != nil {
		return "", err
	}
	for at := first; at < len(run.Annotations); at += maxPerCall {
		batch := run.Annotations[at:min(at+maxPerCall, len(run.Annotations))]
		if err := w.add(ctx, batch, at+len(batch)); err != nil {
			return w.made.GetHTMLURL(), err
		}
	}
	return w.made.GetHTMLURL(), nil
}

// checkWriter is the state of one CreateCheckRun call. The nonce is the check
// run's external ID, which identifies the check run if the response to its
// creation was lost.
type checkWriter struct {
	*Session
	CheckRun
	nonce string
	made  *gogithub.CheckRun
}

func (w *checkWriter) request(what string, m mode) request {
	return request{
		what: fmt.Sprintf("%s of %s/%s at %.12s", what, w.owner, w.repo, w.HeadSHA), need: "checks: write", mode: m,
	}
}

func (w *checkWriter) output(annotations []Annotation) *gogithub.CheckRunOutput {
	o := &gogithub.CheckRunOutput{
		Title:   gogithub.String(truncate(cmp.Or(w.Title, w.Name), maxTitle)),
		Summary: gogithub.String(truncate(w.Summary, maxOutput)),
	}
	if w.Text != "" {
		o.Text = gogithub.String(truncate(w.Text, maxOutput))
	}
	for _, a := range annotations {
		o.Annotations = append(o.Annotations, a.form())
	}
	return o
}

func (a Annotation) form() *gogithub.CheckRunAnnotation {
	level := "warning"
	if a.Failing {
		level = "failure"
	}
	line := max(a.Line, 1)
	form := &gogithub.CheckRunAnnotation{
		Path: &a.Path, StartLine: &line, EndLine: gogithub.Int(max(a.EndLine, line)), AnnotationLevel: &level,
		Message: gogithub.String(truncate(cmp.Or(a.Message, a.Title, "-"), maxMessage)),
	}
	if a.Title != "" {
		form.Title = gogithub.String(truncate(a.Title, maxTitle))
	}
	return form
}

// truncate returns the first n bytes of s without splitting a character. If s
// is shortened, the result ends with an ellipsis.
func truncate(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	const ellipsis = "…"
	n -= len(ellipsis)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

func (w *checkWriter) create(ctx context.Context, annotations []Annotation) error {
	o := gogithub.CreateCheckRunOptions{
		Name: w.Name, HeadSHA: w.HeadSHA, ExternalID: &w.nonce, Status: gogithub.String("completed"),
		Conclusion: gogithub.String(string(cmp.Or(w.Conclusion, Neutral))), Output: w.output(annotations),
	}
	if w.DetailsURL != "" {
		o.DetailsURL = &w.DetailsURL
	}
	r := w.request("create check run", once)
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		made, resp, err := c.Checks.CreateCheckRun(ctx, w.owner, w.repo, o)
		if err == nil && made.GetID() == 0 {
			err = errIncomplete
		}
		if err == nil {
			w.made = made
		}
		return resp, err
	}
	for try := 1; ; try++ {
		err := w.do(ctx, r)
		if !isUnknown(err) || ctx.Err() != nil || try == maxTries {
			return err
		}
		w.note("%v; looking for the check run before another is created", err)
		if err := w.find(ctx); err != nil || w.made != nil {
			return err
		}
	}
}

// find searches for the check run with our nonce. It searches repeatedly
// because the list may lag behind the creation.
func (w *checkWriter) find(ctx context.Context) error {
	r := w.request("list check runs", read)
	for look := range maxLooks {
		if !sleep(ctx, backOff(look)) {
			return w.expired(ctx, r, nil)
		}
		err := w.pages(ctx, r,
			func(ctx context.Context, c *gogithub.Client, o gogithub.ListOptions) (int, *gogithub.Response, error) {
				page, resp, err := c.Checks.ListCheckRunsForRef(ctx, w.owner, w.repo, w.HeadSHA,
					&gogithub.ListCheckRunsOptions{
						CheckName: &w.Name, Filter: gogithub.String("all"), ListOptions: o,
					})
				if err != nil {
					return 0, resp, err
				}
				for _, run := range page.CheckRuns {
					if run.GetExternalID() == w.nonce && run.GetID() != 0 {
						w.made = run
					}
				}
				if page.CheckRuns == nil && page.GetTotal() != 0 || page.Total == nil {
					return -1, resp, nil
				}
				return len(page.CheckRuns), resp, nil
			})
		if err != nil || w.made != nil {
			return err
		}
	}
	return nil
}

// add adds annotations until their number in the check run is want. A request
// whose response was lost is repeated only if GitHub has not counted its
// annotations, because otherwise they would be shown twice.
func (w *checkWriter) add(ctx context.Context, annotations []Annotation, want int) error {
	o := gogithub.UpdateCheckRunOptions{Name: w.Name, Output: w.output(annotations)}
	r := w.request("update check run", once)
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		run, resp, err := c.Checks.UpdateCheckRun(ctx, w.owner, w.repo, w.made.GetID(), o)
		if err == nil && run.GetID() == 0 {
			err = errIncomplete
		}
		return resp, err
	}
	for try := 1; ; try++ {
		err := w.do(ctx, r)
		if !isUnknown(err) || ctx.Err() != nil || try == maxTries {
			return err
		}
		counted, err := w.counted(ctx, want)
		if err != nil || counted {
			return err
		}
	}
}

func (w *checkWriter) counted(ctx context.Context, want int) (bool, error) {
	r := w.request("read check run", read)
	n := 0
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		run, resp, err := c.Checks.GetCheckRun(ctx, w.owner, w.repo, w.made.GetID())
		if err == nil && run.GetID() == 0 {
			err = errIncomplete
		}
		n = run.GetOutput().GetAnnotationsCount()
		return resp, err
	}
	for look := range maxLooks {
		if !sleep(ctx, backOff(look)) {
			return false, w.expired(ctx, r, nil)
		}
		if err := w.do(ctx, r); err != nil || n >= want {
			return n >= want, err
		}
	}
	return false, nil
}
