package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/leakgate/leakgate/internal/text"
)

const (
	// maxZip is the maximum size of an artifact's zip file in bytes.
	maxZip = 64 << 20
	// maxOfName is the maximum number of artifacts with one name that are
	// considered; it limits the number of requests for their runs.
	maxOfName = 1000
)

// trustedEvents are the events that only people with write access to the
// repository can trigger. Runs started by other events are not trusted: a
// pull_request run of a branch "main" in a fork can upload anything under any
// name.
var trustedEvents = []string{"push", "schedule", "workflow_dispatch", "repository_dispatch", "merge_group"}

// Artifact is an artifact of a workflow run of the repository itself.
type Artifact struct {
	ID   int64
	Name string
	// HeadSHA and HeadBranch are the commit and the branch for which the run
	// was started.
	HeadSHA, HeadBranch string
	Created             time.Time
	// Size is the size of the zip file in bytes.
	Size  int64
	RunID int64
	// Event is the event that started the run, such as push.
	Event string
}

// Artifacts returns artifacts with the given name from runs for the branch,
// newest first; limit is their maximum number. Expired artifacts and artifacts
// of forks and pull requests are skipped. The run may have failed: the caller
// decides what its contents prove. The token needs the permission `actions:
// read`.
func (s *Session) Artifacts(ctx context.Context, name, branch string, limit int) ([]Artifact, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	candidates, err := s.candidates(ctx, name, branch)
	if err != nil {
		return nil, err
	}
	runs := map[int64]string{}
	var kept []Artifact
	for _, a := range candidates {
		if len(kept) >= limit {
			break
		}
		event, ok := runs[a.RunID]
		if !ok {
			if event, err = s.trustedRun(ctx, a); err != nil {
				return nil, err
			}
			runs[a.RunID] = event
		}
		if a.Event = event; event != "" {
			kept = append(kept, a)
		}
	}
	return kept, nil
}

// candidates returns the artifacts that the list alone does not rule out,
// newest first.
func (s *Session) candidates(ctx context.Context, name, branch string) ([]Artifact, error) {
	var found []Artifact
	seen := 0
	r := request{
		what: fmt.Sprintf("list artifacts %s of %s/%s", text.Quote(name, 100), s.owner, s.repo), need: "actions: read",
		mode: read,
	}
	err := s.pages(ctx, r,
		func(ctx context.Context, c *gogithub.Client, o gogithub.ListOptions) (int, *gogithub.Response, error) {
			// ListArtifacts of go-github v60 cannot filter by name.
			path := fmt.Sprintf("repos/%s/%s/actions/artifacts?name=%s&per_page=%d&page=%d", s.owner, s.repo,
				url.QueryEscape(name), o.PerPage, o.Page)
			req, err := c.NewRequest(http.MethodGet, path, nil)
			if err != nil {
				return 0, nil, err
			}
			var page gogithub.ArtifactList
			resp, err := c.Do(ctx, req, &page)
			if err != nil || page.TotalCount == nil {
				return -1, resp, err
			}
			for _, a := range page.Artifacts {
				if ownArtifact(a, name, branch) {
					found = append(found, newArtifact(a))
				}
			}
			if seen += len(page.Artifacts); seen >= maxOfName {
				// Older artifacts are not needed, because the list is sorted
				// newest first.
				resp.Header.Del("Link")
				return 0, resp, nil
			}
			return len(page.Artifacts), resp, nil
		})
	slices.SortFunc(found, func(a, b Artifact) int {
		return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
	})
	return slices.CompactFunc(found, func(a, b Artifact) bool { return a.ID == b.ID }), err
}

// ownArtifact reports whether the artifact a was uploaded by a run of the
// repository's own branch. An artifact with missing IDs is not trusted.
func ownArtifact(a *gogithub.Artifact, name, branch string) bool {
	run := a.GetWorkflowRun()
	return a.GetID() > 0 && a.GetName() == name && a.Expired != nil && !a.GetExpired() &&
		run.GetID() > 0 && run.GetHeadBranch() == branch && shaRE.MatchString(run.GetHeadSHA()) &&
		run.GetRepositoryID() > 0 && run.GetRepositoryID() == run.GetHeadRepositoryID()
}

func newArtifact(a *gogithub.Artifact) Artifact {
	run := a.GetWorkflowRun()
	return Artifact{
		ID: a.GetID(), Name: a.GetName(), HeadSHA: run.GetHeadSHA(), HeadBranch: run.GetHeadBranch(),
		Created: a.GetCreatedAt().Time, Size: a.GetSizeInBytes(), RunID: run.GetID(),
	}
}

// trustedRun returns the event that started the run of artifact a; it returns
// "" if the run was started by a pull request or for another repository.
func (s *Session) trustedRun(ctx context.Context, a Artifact) (string, error) {
	var run *gogithub.WorkflowRun
	err := s.do(ctx, request{
		what: fmt.Sprintf("read workflow run %d of %s/%s", a.RunID, s.owner, s.repo), need: "actions: read", mode: read,
		send: func(ctx context.Context, c *gogithub.Client) (resp *gogithub.Response, err error) {
			run, resp, err = c.Actions.GetWorkflowRunByID(ctx, s.owner, s.repo, a.RunID)
			if err == nil && run.GetID() != a.RunID {
				err = errIncomplete
			}
			return resp, err
		},
	})
	if errors.Is(err, ErrNotFound) {
		// The run was deleted after the list was read.
		return "", nil
	}
	if err != nil {
		return "", err
	}
	own := run.GetRepository().GetID() > 0 && run.GetRepository().GetID() == run.GetHeadRepository().GetID()
	if !own || run.GetHeadBranch() != a.HeadBranch || run.GetHeadSHA() != a.HeadSHA ||
		!slices.Contains(trustedEvents, run.GetEvent()) {
		return "", nil
	}
	return run.GetEvent(), nil
}

// Download returns one file of an artifact; limit is the maximum size of the
// file in bytes. The zip file is untrusted: see extract. The token is never
// sent to the storage to which GitHub redirects; it needs the permission
// `actions: read`.
func (s *Session) Download(ctx context.Context, a Artifact, file string, limit int64) ([]byte, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if a.Size > maxZip {
		return nil, fmt.Errorf("download artifact %d: %s, want at most %s: upload runs without dumps",
			a.ID, text.Size(a.Size), text.Size(maxZip))
	}
	var zipped []byte
	err := s.do(ctx, request{
		what: fmt.Sprintf("download artifact %d of %s/%s", a.ID, s.owner, s.repo), need: "actions: read", mode: read,
		send: func(ctx context.Context, _ *gogithub.Client) (*gogithub.Response, error) {
			// Each attempt requests the URL again, because it is only valid for
			// a minute.
			location, resp, err := s.storage(ctx, a.ID)
			if err != nil {
				return resp, err
			}
			zipped, resp, err = s.fetch(ctx, location)
			return resp, err
		},
	})
	if err != nil {
		return nil, err
	}
	data, err := extract(zipped, file, max(limit, 0))
	if err != nil {
		return nil, fmt.Errorf("read artifact %d: %w", a.ID, err)
	}
	return data, nil
}

// storage returns the URL of an artifact's zip file.
func (s *Session) storage(ctx context.Context, id int64) (*url.URL, *gogithub.Response, error) {
	c := s.client(noRedirect)
	req, err := c.NewRequest(http.MethodGet, fmt.Sprintf("repos/%s/%s/actions/artifacts/%d/zip", s.owner, s.repo, id),
		nil)
	if err != nil {
		return nil, nil, err
	}
	for range maxRedirects {
		resp, err := c.Do(ctx, req, nil)
		if resp == nil || resp.StatusCode < 300 || resp.StatusCode > 399 {
			if err == nil {
				err = errIncomplete
			}
			return nil, resp, err
		}
		location, err := req.URL.Parse(resp.Header.Get("Location"))
		if err != nil || resp.Header.Get("Location") == "" ||
			(location.Scheme != "https" && location.Scheme != s.api.Scheme) {
			return nil, nil, fmt.Errorf("%w to an invalid address", errRedirect)
		}
		// If a repository was renamed, the API first redirects to another URL
		// of the API.
		if origin(location) != origin(s.api) || resp.StatusCode == http.StatusFound {
			return location, resp, nil
		}
		if req, err = c.NewRequest(http.MethodGet, location.String(), nil); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("%w: too many", errRedirect)
}

// fetch downloads from the URL location and does not send the token.
func (s *Session) fetch(ctx context.Context, location *url.URL) ([]byte, *gogithub.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	client := http.Client{Transport: s.transport.base}
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		// This status is not from GitHub: the storage returns 403 for an
		// expired URL, and a new URL is requested.
		return nil, nil, fmt.Errorf("the storage returned %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxZip+1))
	if err == nil && len(data) > maxZip {
		err = errTooLarge
	}
	return data, &gogithub.Response{Response: resp}, err
}
