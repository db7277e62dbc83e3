package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	gogithub "github.com/google/go-github/v60/github"
)

// Locate adds to t the values that its event does not contain: the pull request
// of a head commit (for a workflow_run of a fork), or the head of a pull
// request (for an issue_comment). Locate uses only GitHub's API, because a fork
// controls the contents of its artifacts. It returns ErrNoPullRequest unless
// the commit is the head of exactly one open pull request; a newer commit may
// have been pushed in the meantime. The token needs the permission
// `pull-requests: read`.
func (s *Session) Locate(ctx context.Context, t Trigger) (Trigger, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	switch {
	case t.Number > 0 && t.HeadSHA == "":
		pr, err := s.pullRequest(ctx, t.Number)
		if err != nil {
			return t, err
		}
		return located(t, pr)
	case t.Number == 0 && t.HeadSHA != "":
		pr, err := s.pullOf(ctx, t)
		if err != nil {
			return t, err
		}
		return located(t, pr)
	}
	return t, nil
}

// located returns t with the values of pr. The head repository is missing if
// the fork was deleted.
func located(t Trigger, pr *gogithub.PullRequest) (Trigger, error) {
	t.Number = pr.GetNumber()
	t.HeadSHA, t.HeadBranch, t.HeadOwner = pr.GetHead().GetSHA(), pr.GetHead().GetRef(),
		pr.GetHead().GetRepo().GetOwner().GetLogin()
	t.BaseSHA, t.BaseBranch = pr.GetBase().GetSHA(), pr.GetBase().GetRef()
	t.Fork = pr.GetHead().GetRepo().GetID() == 0 || pr.GetHead().GetRepo().GetID() != pr.GetBase().GetRepo().GetID()
	err := t.check()
	return t, err
}

func (s *Session) pullRequest(ctx context.Context, number int) (*gogithub.PullRequest, error) {
	var pr *gogithub.PullRequest
	err := s.do(ctx, request{
		what: fmt.Sprintf("read pull request %s/%s#%d", s.owner, s.repo, number), need: "pull-requests: read",
		mode: read,
		send: func(ctx context.Context, c *gogithub.Client) (resp *gogithub.Response, err error) {
			pr, resp, err = c.PullRequests.Get(ctx, s.owner, s.repo, number)
			if err == nil && pr.GetNumber() != number {
				err = errIncomplete
			}
			return resp, err
		},
	})
	return pr, err
}

// pullOf returns the open pull request whose head is t's head commit. The
// lookup by commit misses some commits of forks, but the lookup by branch finds
// them.
func (s *Session) pullOf(ctx context.Context, t Trigger) (*gogithub.PullRequest, error) {
	var byCommit, byBranch []*gogithub.PullRequest
	what := fmt.Sprintf("find the pull request of %s in %s/%s", t.HeadSHA, s.owner, s.repo)
	err := s.pages(ctx, request{what: what, need: "pull-requests: read", mode: read},
		func(ctx context.Context, c *gogithub.Client, o gogithub.ListOptions) (int, *gogithub.Response, error) {
			page, resp, err := c.PullRequests.ListPullRequestsWithCommit(ctx, s.owner, s.repo, t.HeadSHA, &o)
			byCommit = append(byCommit, page...)
			return length(page), resp, err
		})
	if err != nil && (isUnknown(err) || ctx.Err() != nil || !unknownCommit(err)) {
		return nil, err
	}
	found := s.withHead(byCommit, t.HeadSHA)
	if len(found) == 0 && t.HeadOwner != "" && t.HeadBranch != "" {
		err = s.pages(ctx, request{what: what, need: "pull-requests: read", mode: read},
			func(ctx context.Context, c *gogithub.Client, o gogithub.ListOptions) (int, *gogithub.Response, error) {
				page, resp, err := c.PullRequests.List(ctx, s.owner, s.repo, &gogithub.PullRequestListOptions{
					State: "open", Head: t.HeadOwner + ":" + t.HeadBranch, ListOptions: o,
				})
				byBranch = append(byBranch, page...)
				return length(page), resp, err
			})
		if err != nil {
			return nil, err
		}
		found = s.withHead(byBranch, t.HeadSHA)
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s: it is the head of %d open pull requests, want one: %w",
			what, len(found), ErrNoPullRequest)
	}
	return found[0], nil
}

// length returns the number of elements, or -1 for a missing list.
func length[T any](page []T) int {
	if page == nil {
		return -1
	}
	return len(page)
}

// unknownCommit reports whether GitHub does not have a commit: it returns 404
// or 422 ("No commit found for SHA") for a commit that only a fork has.
func unknownCommit(err error) bool {
	var f *fault
	return errors.As(err, &f) && (f.status == 404 || f.status == 422)
}

// withHead returns the open pull requests to this repository whose head is sha,
// without duplicates.
func (s *Session) withHead(list []*gogithub.PullRequest, sha string) []*gogithub.PullRequest {
	var found []*gogithub.PullRequest
	for _, pr := range list {
		base := &repository{FullName: pr.GetBase().GetRepo().GetFullName()}
		if pr.GetNumber() > 0 && pr.GetState() == "open" && pr.GetHead().GetSHA() == sha &&
			same(base, &repository{FullName: s.owner + "/" + s.repo}) {
			found = append(found, pr)
		}
	}
	slices.SortFunc(found, func(a, b *gogithub.PullRequest) int { return cmp.Compare(a.GetNumber(), b.GetNumber()) })
	// If a page is repeated because the list has changed, the same pull request
	// is not counted twice.
	return slices.CompactFunc(found, func(a, b *gogithub.PullRequest) bool { return a.GetNumber() == b.GetNumber() })
}
