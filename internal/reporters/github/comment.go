package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	gogithub "github.com/google/go-github/v60/github"
)

const (
	// maxLooks is the number of times that the list is read before a creation
	// with an unknown outcome is repeated. The pauses are 1, 2, 4 and 8 s, each
	// extended at random by up to half, because a list may lag behind a write.
	maxLooks = 4
	// maxTries is the maximum number of attempts to create a comment, and of
	// other writes whose outcome is unknown.
	maxTries = 3
)

// Comment is a comment that a pull request contains at most once; its marker
// identifies it.
type Comment struct {
	// Number is the number of the pull request.
	Number int
	// Marker is a line that identifies the comment, such as <!-- leakgate:shop
	// -->. The marker is recognized only in the first or the last line, because
	// the lines in between may be quoted from a pull request.
	Marker string
	// Body is Markdown; Upsert adds the marker if it is missing.
	Body string
	// OnlyEdit prevents the creation of a new comment; an existing comment is
	// edited.
	OnlyEdit bool
}

// Upserted is the result of Upsert.
type Upserted string

// These are the results of Upsert.
const (
	Created   Upserted = "created"
	Edited    Upserted = "edited"
	Unchanged Upserted = "unchanged"
	Absent    Upserted = "absent" // there is no comment, and OnlyEdit is set
)

// Upsert makes c the token user's only comment with its marker, and returns
// what it did and the comment's URL. If there are several such comments, the
// oldest is edited and the others are deleted, or minimized if deletion is
// forbidden; comments of other authors are not changed. The token needs the
// permission `pull-requests: write`.
//
// After an error, the comment may exist nevertheless; only ErrReadOnly,
// ErrNotFound, ErrToken and ErrTooLong on the first write rule that out. If a
// comment was created before the failure, its URL is returned with the error.
func (s *Session) Upsert(ctx context.Context, c Comment) (Upserted, string, error) {
	if c.Number <= 0 || strings.TrimSpace(c.Marker) == "" || strings.ContainsAny(c.Marker, "\r\n") {
		return "", "", fmt.Errorf("write comment: invalid pull request %d or marker %q", c.Number, c.Marker)
	}
	c.Marker = strings.TrimSpace(c.Marker)
	if !hasMarker(c.Body, c.Marker) {
		c.Body = strings.TrimRight(c.Body, "\n") + "\n\n" + c.Marker + "\n"
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	w := commentWriter{
		Session: s, Comment: c, edited: map[int64]bool{}, gone: map[int64]bool{}, attempted: map[int64]bool{},
	}
	for {
		ours, err := w.look(ctx)
		if err == nil {
			var done bool
			if done, err = w.step(ctx, ours); done {
				return w.result, w.url, nil
			}
		}
		if err != nil {
			return w.failed(err)
		}
	}
}

// hasMarker reports whether marker is the first or the last line of body.
func hasMarker(body, marker string) bool {
	body = strings.TrimSpace(body)
	first, _, _ := strings.Cut(body, "\n")
	last := body[strings.LastIndexByte(body, '\n')+1:]
	return strings.TrimSpace(first) == marker || strings.TrimSpace(last) == marker
}

// sameBody compares two bodies and ignores changes that GitHub may make:
// different line breaks, and removed blanks at the end.
func sameBody(a, b string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(a) == plain(b)
}

// commentWriter is the state of one Upsert call: it reads the list, performs
// one write, and reads the list again, until nothing is left to write.
type commentWriter struct {
	*Session
	Comment
	result Upserted
	url    string

	// created is the comment that the latest creation returned; nil if the
	// outcome is unknown or nothing was sent.
	created *gogithub.IssueComment
	// sent reports whether the creation of a comment was requested and that
	// comment has not appeared in any list yet.
	sent bool
	// looks is the number of times that the list has been read since the
	// creation was sent.
	looks    int
	tries    int
	unknowns int
	// edited and gone record writes that succeeded, because a lagging list must
	// not cause them to be undone. attempted records edits regardless of their
	// outcome.
	edited, gone, attempted map[int64]bool
}

func (w *commentWriter) failed(err error) (Upserted, string, error) {
	if w.created == nil {
		return "", "", err
	}
	return Created, w.created.GetHTMLURL(), fmt.Errorf("comment created, but not checked for duplicates: %w", err)
}

func (w *commentWriter) request(what, need string, m mode) request {
	return request{what: fmt.Sprintf("%s %s/%s#%d", what, w.owner, w.repo, w.Number), need: need, mode: m}
}

// look returns our comments, oldest first.
func (w *commentWriter) look(ctx context.Context) ([]*gogithub.IssueComment, error) {
	author, err := w.author(ctx)
	if err != nil {
		return nil, err
	}
	var ours []*gogithub.IssueComment
	r := w.request("list comments of", "pull-requests: write", read)
	err = w.pages(ctx, r,
		func(ctx context.Context, c *gogithub.Client, o gogithub.ListOptions) (int, *gogithub.Response, error) {
			page, resp, err := c.Issues.ListComments(ctx, w.owner, w.repo, w.Number,
				&gogithub.IssueListCommentsOptions{ListOptions: o})
			if err != nil || page == nil {
				// An empty response is not an empty list: treating it as one
				// would create a second comment.
				return -1, resp, err
			}
			for _, comment := range page {
				if comment.GetID() != 0 && wrote(comment.GetUser(), author) && hasMarker(comment.GetBody(), w.Marker) &&
					!w.gone[comment.GetID()] {
					ours = append(ours, comment)
				}
			}
			return len(page), resp, nil
		})
	slices.SortFunc(ours, func(a, b *gogithub.IssueComment) int { return cmp.Compare(a.GetID(), b.GetID()) })
	// If a comment is deleted while the pages are read, the following comments
	// move to earlier pages. If a page is read twice, its comments occur twice.
	return slices.CompactFunc(ours, func(a, b *gogithub.IssueComment) bool { return a.GetID() == b.GetID() }), err
}

// step performs the next write and reports whether nothing was left to write.
func (w *commentWriter) step(ctx context.Context, ours []*gogithub.IssueComment) (done bool, err error) {
	if w.sent && !w.shown(ours) {
		if w.looks < maxLooks {
			w.looks++
			return false, w.pause(ctx, w.looks-1)
		}
		if w.created != nil && !w.gone[w.created.GetID()] {
			w.note("comment %s is not listed yet", w.created.GetHTMLURL())
			ours = append(ours, w.created)
			slices.SortFunc(ours, func(a, b *gogithub.IssueComment) int { return cmp.Compare(a.GetID(), b.GetID()) })
		}
	}
	switch {
	case len(ours) == 0 && w.OnlyEdit:
		w.result = Absent
		return true, nil
	case len(ours) == 0:
		return false, w.create(ctx)
	case !w.upToDate(ours[0]):
		return false, w.edit(ctx, ours[0])
	case len(ours) > 1:
		return false, w.remove(ctx, ours[len(ours)-1])
	}
	w.finish(ours[0])
	return true, nil
}

// shown reports whether the latest creation appears in the list. If the latest
// creation is listed, all older comments are listed as well.
func (w *commentWriter) shown(ours []*gogithub.IssueComment) bool {
	return slices.ContainsFunc(ours, func(c *gogithub.IssueComment) bool {
		if w.created != nil {
			return c.GetID() == w.created.GetID()
		}
		return sameBody(c.GetBody(), w.Body)
	})
}

func (w *commentWriter) upToDate(c *gogithub.IssueComment) bool {
	return w.edited[c.GetID()] || sameBody(c.GetBody(), w.Body)
}

func (w *commentWriter) finish(kept *gogithub.IssueComment) {
	w.url, w.result = kept.GetHTMLURL(), Unchanged
	switch {
	case w.attempted[kept.GetID()]:
		w.result = Edited
	case w.sent && (w.created == nil || w.created.GetID() == kept.GetID()):
		w.result = Created
	}
}

// pause waits before the next look.
func (w *commentWriter) pause(ctx context.Context, n int) error {
	if sleep(ctx, backOff(n)) {
		return nil
	}
	return w.expired(ctx, w.request("look for the comment on", "", read), nil)
}

func (w *commentWriter) create(ctx context.Context) error {
	w.tries++
	w.sent, w.created, w.looks = true, nil, 0
	r := w.request("create comment on", "pull-requests: write", once)
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		comment, resp, err := c.Issues.CreateComment(ctx, w.owner, w.repo, w.Number,
			&gogithub.IssueComment{Body: &w.Body})
		if err == nil && comment.GetID() == 0 {
			err = errIncomplete
		}
		if err == nil {
			w.created = comment
		}
		return resp, err
	}
	err := w.do(ctx, r)
	if isUnknown(err) && ctx.Err() == nil && w.tries < maxTries {
		w.note("%v; looking for the comment before another is created", err)
		return nil
	}
	if err == nil && w.created.GetUser().GetLogin() != "" {
		w.learn(w.created.GetUser().GetLogin())
	}
	return err
}

func (w *commentWriter) edit(ctx context.Context, kept *gogithub.IssueComment) error {
	r := w.request("edit comment on", "pull-requests: write", repeatable)
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		comment, resp, err := c.Issues.EditComment(ctx, w.owner, w.repo, kept.GetID(),
			&gogithub.IssueComment{Body: &w.Body})
		if err == nil && comment.GetID() != kept.GetID() {
			err = errIncomplete
		}
		return resp, err
	}
	w.attempted[kept.GetID()] = true
	err := w.do(ctx, r)
	switch {
	case err == nil:
		w.edited[kept.GetID()] = true
	case errors.Is(err, ErrNotFound):
		// Another job deleted the comment after the list was read.
		w.gone[kept.GetID()] = true
		return nil
	}
	return w.tolerate(ctx, err)
}

func (w *commentWriter) remove(ctx context.Context, extra *gogithub.IssueComment) error {
	r := w.request("delete duplicate comment on", "pull-requests: write", repeatable)
	r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
		return c.Issues.DeleteComment(ctx, w.owner, w.repo, extra.GetID())
	}
	err := w.do(ctx, r)
	if errors.Is(err, ErrReadOnly) {
		err = w.minimize(ctx, extra)
	}
	if err == nil || errors.Is(err, ErrNotFound) {
		w.gone[extra.GetID()] = true
		return nil
	}
	return w.tolerate(ctx, err)
}

// minimize hides a duplicate that the token is not allowed to delete. If hiding
// is not allowed either, the duplicate remains visible.
func (w *commentWriter) minimize(ctx context.Context, extra *gogithub.IssueComment) error {
	const mutation = "mutation($id:ID!){minimizeComment(input:{subjectId:$id,classifier:OUTDATED}){" +
		"minimizedComment{isMinimized}}}"
	var data struct {
		MinimizeComment struct{ MinimizedComment struct{ IsMinimized bool } }
	}
	r := w.request("minimize duplicate comment on", "pull-requests: write", repeatable)
	err := w.graphQL(ctx, r, mutation, map[string]any{"id": extra.GetNodeID()}, func() any { return &data },
		func() bool { return data.MinimizeComment.MinimizedComment.IsMinimized })
	if err == nil || isUnknown(err) || ctx.Err() != nil {
		return err
	}
	w.note("%v; the duplicate remains", err)
	return nil
}

// tolerate pauses and returns nil if the outcome of a write is unknown, so that
// the caller reads the list again. It returns err for any other error, and
// after maxTries unknown outcomes.
func (w *commentWriter) tolerate(ctx context.Context, err error) error {
	if !isUnknown(err) || ctx.Err() != nil || w.unknowns >= maxTries {
		return err
	}
	w.unknowns++
	return w.pause(ctx, w.unknowns)
}
