package github

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// maxEvent is GitHub's limit for a webhook payload, in bytes
// (docs.github.com/webhooks/webhook-events-and-payloads).
const maxEvent = 25 << 20

// Trigger describes what started a workflow run, according to the run's
// environment and event file. Branch names are untrusted: escape them.
type Trigger struct {
	// Name is the name of the event: pull_request, push, workflow_run,
	// merge_group...
	Name string
	// Owner and Repo identify the repository to which the workflow belongs.
	Owner, Repo string
	// Number is the number of the pull request; 0 if the event does not contain
	// it (see Session.Locate).
	Number int
	// HeadSHA is the judged commit: the head of a pull request, never the merge
	// commit in GITHUB_SHA. HeadSHA is empty if the event does not contain the
	// commit (issue_comment; see Session.Locate).
	HeadSHA string
	// HeadOwner and HeadBranch identify the branch of HeadSHA.
	HeadOwner, HeadBranch string
	// BaseBranch and BaseSHA identify what a pull request or a merge group is
	// merged into; they are empty if unknown.
	BaseBranch, BaseSHA string
	// DefaultBranch is the default branch of the repository; it is empty if the
	// event does not contain it.
	DefaultBranch string
	// Fork reports whether the head is in another repository. For a fork, the
	// token of a pull_request workflow is read-only.
	Fork bool
	// Ref is the value of GITHUB_REF.
	Ref string
	// RunID and RunAttempt identify this workflow run; SourceRun identifies the
	// run that started a workflow_run event. Unknown IDs are 0.
	RunID, SourceRun int64
	RunAttempt       int
	// ServerURL, APIURL and GraphQLURL are the URLs of this GitHub instance,
	// without a slash at the end.
	ServerURL, APIURL, GraphQLURL string
	// SummaryPath is the path of the job summary; it may be empty.
	SummaryPath string
}

// RunURL returns the URL of this workflow run, or "" if unknown.
func (t Trigger) RunURL() string {
	if t.RunID == 0 || t.ServerURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/%s/%s/actions/runs/%d", t.ServerURL, t.Owner, t.Repo, t.RunID)
}

var (
	shaRE = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)
	// queueRE matches the branch of a merge group; the commit in its name is
	// the commit that the group is based on.
	queueRE = regexp.MustCompile(`^(?:refs/heads/)?gh-readonly-queue/(.+)/pr-([0-9]{1,9})-[0-9a-f]{40,64}$`)
	pullRE  = regexp.MustCompile(`^refs/pull/([0-9]{1,9})/(?:merge|head)$`)
)

// ReadTrigger reads the GITHUB_ variables of a workflow run and its event file,
// which may have up to 25 MB.
func ReadTrigger(getenv func(string) string) (Trigger, error) {
	t := Trigger{
		Name:        getenv("GITHUB_EVENT_NAME"),
		Ref:         getenv("GITHUB_REF"),
		ServerURL:   strings.TrimRight(cmp.Or(getenv("GITHUB_SERVER_URL"), "https://github.com"), "/"),
		APIURL:      strings.TrimRight(cmp.Or(getenv("GITHUB_API_URL"), "https://api.github.com"), "/"),
		SummaryPath: getenv("GITHUB_STEP_SUMMARY"),
	}
	var ok bool
	if t.Owner, t.Repo, ok = strings.Cut(getenv("GITHUB_REPOSITORY"), "/"); !ok || !validName(t.Owner) ||
		!validName(t.Repo) {
		return Trigger{}, errors.New("read workflow event: GITHUB_REPOSITORY is not OWNER/REPO: " +
			"run this in a GitHub workflow")
	}
	api, err := parseBase(t.APIURL)
	if err != nil {
		return Trigger{}, fmt.Errorf("read workflow event: GITHUB_API_URL: %w", err)
	}
	t.GraphQLURL = strings.TrimRight(cmp.Or(getenv("GITHUB_GRAPHQL_URL"), graphQLOf(api)), "/")
	// A missing or malformed number is treated as unknown, because these three
	// numbers are used only for links.
	t.RunID, _ = strconv.ParseInt(getenv("GITHUB_RUN_ID"), 10, 64)
	t.RunAttempt, _ = strconv.Atoi(getenv("GITHUB_RUN_ATTEMPT"))
	var p payload
	if path := getenv("GITHUB_EVENT_PATH"); path != "" {
		if p, err = readPayload(path); err != nil {
			return Trigger{}, fmt.Errorf("read workflow event: %w", err)
		}
	}
	t.fill(p, getenv)
	if err := t.check(); err != nil {
		return Trigger{}, err
	}
	return t, nil
}

func readPayload(path string) (payload, error) {
	var p payload
	info, err := os.Stat(path)
	if err != nil {
		return p, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxEvent {
		return p, fmt.Errorf("%s is not a file of at most 25 MB: check GITHUB_EVENT_PATH", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxEvent))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return p, fmt.Errorf("parse %s: %w", path, err)
	}
	return p, nil
}

// payload contains the fields of an event that are used
// (docs.github.com/webhooks/webhook-events-and-payloads).
type payload struct {
	Number      int
	PullRequest *pull `json:"pull_request"`
	Issue       *struct {
		Number      int
		PullRequest *struct{} `json:"pull_request"`
	}
	WorkflowRun *struct {
		ID             int64
		HeadSHA        string      `json:"head_sha"`
		HeadBranch     string      `json:"head_branch"`
		HeadRepository *repository `json:"head_repository"`
		PullRequests   []pull      `json:"pull_requests"`
	} `json:"workflow_run"`
	MergeGroup *struct {
		HeadSHA string `json:"head_sha"`
		HeadRef string `json:"head_ref"`
		BaseSHA string `json:"base_sha"`
		BaseRef string `json:"base_ref"`
	} `json:"merge_group"`
	Repository repository
}

type pull struct {
	Number     int
	Head, Base struct {
		Ref, SHA string
		Repo     *repository
	}
}

type repository struct {
	ID            int64
	FullName      string `json:"full_name"`
	DefaultBranch string `json:"default_branch"`
	Owner         struct{ Login string }
}

// same reports whether a and b are the same repository. The repository of a
// deleted fork is nil.
func same(a, b *repository) bool {
	if a == nil || b == nil {
		return false
	}
	if a.ID != 0 && b.ID != 0 {
		return a.ID == b.ID
	}
	return a.FullName != "" && strings.EqualFold(a.FullName, b.FullName)
}

// fill sets the values from the event. GITHUB_SHA is the head only if the event
// does not involve a merge.
func (t *Trigger) fill(p payload, getenv func(string) string) {
	t.DefaultBranch = p.Repository.DefaultBranch
	switch {
	case p.PullRequest != nil:
		t.setPull(*p.PullRequest)
		t.Number = cmp.Or(t.Number, p.Number)
	case t.Name == "issue_comment" || t.Name == "issues":
		if p.Issue != nil && p.Issue.PullRequest != nil {
			t.Number = p.Issue.Number
			return
		}
		t.setCommit(getenv)
	case t.Name == "workflow_run" && p.WorkflowRun != nil:
		t.setSource(p)
	case t.Name == "merge_group":
		t.setGroup(p, getenv)
	case strings.HasPrefix(t.Name, "pull_request"):
		// Without the event file, GITHUB_SHA would be the merge commit.
	default:
		t.setCommit(getenv)
	}
	if m := pullRE.FindStringSubmatch(t.Ref); m != nil && t.Number == 0 && strings.HasPrefix(t.Name, "pull_request") {
		t.Number, _ = strconv.Atoi(m[1])
	}
}

func (t *Trigger) setCommit(getenv func(string) string) {
	t.HeadSHA, t.HeadOwner = getenv("GITHUB_SHA"), t.Owner
	if branch, ok := strings.CutPrefix(t.Ref, "refs/heads/"); ok {
		t.HeadBranch = branch
	}
}

func (t *Trigger) setPull(p pull) {
	t.Number, t.HeadSHA, t.HeadBranch = p.Number, p.Head.SHA, p.Head.Ref
	t.BaseSHA, t.BaseBranch = p.Base.SHA, p.Base.Ref
	t.Fork = !same(p.Head.Repo, p.Base.Repo)
	if p.Head.Repo != nil {
		t.HeadOwner = p.Head.Repo.owner()
	}
}

// owner returns the login of the owner, which is missing in some parts of an
// event.
func (r *repository) owner() string {
	owner, _, _ := strings.Cut(r.FullName, "/")
	return cmp.Or(r.Owner.Login, owner)
}

// setSource reads the run that started a workflow_run event. This run's
// pull_requests field also contains pull requests of other repositories in the
// fork network; for a run of a fork, it is empty.
func (t *Trigger) setSource(p payload) {
	run := p.WorkflowRun
	t.SourceRun, t.HeadSHA, t.HeadBranch = run.ID, run.HeadSHA, run.HeadBranch
	t.Fork = !same(run.HeadRepository, &p.Repository)
	if run.HeadRepository != nil {
		t.HeadOwner = run.HeadRepository.owner()
	}
	var found []pull
	for _, pr := range run.PullRequests {
		if pr.Head.SHA == run.HeadSHA && pr.Base.Repo != nil && pr.Base.Repo.ID == p.Repository.ID {
			found = append(found, pr)
		}
	}
	if len(found) == 1 {
		t.Number, t.BaseBranch, t.BaseSHA = found[0].Number, found[0].Base.Ref, found[0].Base.SHA
	}
}

// setGroup reads a merge group. Its event contains no pull request; the number
// of the pull request is only in the branch name.
func (t *Trigger) setGroup(p payload, getenv func(string) string) {
	t.setCommit(getenv)
	ref := t.Ref
	if g := p.MergeGroup; g != nil {
		ref, t.HeadSHA, t.BaseSHA = cmp.Or(g.HeadRef, ref), cmp.Or(g.HeadSHA, t.HeadSHA), g.BaseSHA
		t.BaseBranch = strings.TrimPrefix(g.BaseRef, "refs/heads/")
	}
	t.HeadBranch = strings.TrimPrefix(ref, "refs/heads/")
	if m := queueRE.FindStringSubmatch(ref); m != nil {
		t.Number, _ = strconv.Atoi(m[2])
		t.BaseBranch = cmp.Or(t.BaseBranch, m[1])
	}
}

// check rejects values that GitHub never writes, because they become parts of
// URLs.
func (t Trigger) check() error {
	for _, sha := range []string{t.HeadSHA, t.BaseSHA} {
		if sha != "" && !shaRE.MatchString(sha) {
			return errors.New("read workflow event: invalid commit: check GITHUB_EVENT_PATH and GITHUB_SHA")
		}
	}
	if t.Number < 0 || t.RunID < 0 || t.RunAttempt < 0 || t.SourceRun < 0 {
		return errors.New("read workflow event: negative number: check GITHUB_EVENT_PATH")
	}
	return nil
}
