package github

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	gogithub "github.com/google/go-github/v60/github"
)

const (
	// writeGap is the pause between write requests (docs.github.com, best
	// practices for the REST API).
	writeGap = time.Second
	// maxFailures is the maximum number of times that one request is repeated
	// after failures other than rate limits.
	maxFailures = 4
	// secondaryWait is the shortest wait after a secondary rate limit if GitHub
	// does not state a time; the wait doubles each time.
	secondaryWait = time.Minute
	perPage       = 100
	// leastPage is the smallest size of a full page: a server that reduces
	// per_page does not go below its default.
	leastPage = 30
	maxPages  = 200
)

// request describes how one API call sends its HTTP requests. send makes one
// attempt; it returns errIncomplete if the response does not contain what was
// requested.
type request struct {
	what string // for errors: "list comments of o/r#7"
	need string // the permission of a workflow: "pull-requests: write"
	mode mode
	send func(context.Context, *gogithub.Client) (*gogithub.Response, error)
}

// mode specifies what may be done after a failure that leaves the effect
// unknown.
type mode int

const (
	read       mode = iota // a read; repeat it
	repeatable             // an idempotent write; repeat it
	once                   // a write that must not happen twice; return, so that the caller reads again
)

// do sends r until the outcome is definite or the deadline of ctx has passed.
func (s *Session) do(ctx context.Context, r request) error {
	var failures, limits int
	for {
		err := s.attempt(ctx, r)
		var f *fault
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return s.expired(ctx, r, nil)
		case !errors.As(err, &f):
			return err
		}
		var pause time.Duration
		switch {
		case f.limited:
			pause = max(f.wait, limitPause(f.wait, limits))
			limits++
			s.note("%s; waiting %s", f.text, pause.Round(time.Second))
		case f.unknown && r.mode != once && failures < maxFailures:
			pause = backOff(failures)
			failures++
			s.note("%s; retrying in %s", f.text, pause.Round(100*time.Millisecond))
		default:
			return err
		}
		if !sleep(ctx, pause) {
			return s.expired(ctx, r, err)
		}
	}
}

// limitPause returns the wait after the nth consecutive rate limit. If GitHub
// does not state a time, the wait is at least a minute and becomes longer each
// time.
func limitPause(asked time.Duration, n int) time.Duration {
	if asked > 0 {
		return asked
	}
	return secondaryWait<<min(n, 10) + rand.N(5*time.Second)
}

// backOff returns 1, 2, 4, 8 s, and so on, each extended at random by up to
// half, so that jobs that failed together do not retry together.
func backOff(n int) time.Duration {
	d := time.Second << min(n, 5)
	return d + rand.N(d/2)
}

// sleep waits for d. It returns false immediately if the deadline of ctx is
// before the end of the wait, because nothing could be done after the wait.
func sleep(ctx context.Context, d time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Session) attempt(ctx context.Context, r request) error {
	if r.mode != read {
		done, ok := s.turn(ctx)
		if !ok {
			return s.newFault(r, "no time left", context.DeadlineExceeded, false)
		}
		defer done()
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	resp, err := r.send(ctx, s.client(sameOrigin))
	if err == nil {
		return nil
	}
	return s.fault(r, resp, err)
}

// turn waits until a write may be sent; done must be called after the write. ok
// is false if the deadline of ctx is earlier.
func (s *Session) turn(ctx context.Context) (done func(), ok bool) {
	select {
	case s.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if wait := time.Until(s.lastWrite.Add(writeGap)); !s.lastWrite.IsZero() && wait > 0 && !sleep(ctx, wait) {
		<-s.writing
		return nil, false
	}
	// The pause starts when the response arrives, because GitHub received the
	// request before that.
	return func() {
		s.lastWrite = time.Now()
		<-s.writing
	}, true
}

// pages sends r for one page after another. fetch returns the number of
// elements on the page, or -1 if the response contained no list.
func (s *Session) pages(ctx context.Context, r request,
	fetch func(context.Context, *gogithub.Client, gogithub.ListOptions) (int, *gogithub.Response, error)) error {
	first := 0
	for page := 1; page <= maxPages; page++ {
		var n int
		var got *gogithub.Response
		r.send = func(ctx context.Context, c *gogithub.Client) (*gogithub.Response, error) {
			var err error
			n, got, err = fetch(ctx, c, gogithub.ListOptions{Page: page, PerPage: perPage})
			if err == nil && n < 0 {
				err = errIncomplete
			}
			return got, err
		}
		if err := s.do(ctx, r); err != nil {
			return err
		}
		if page == 1 {
			first = n
		}
		if !hasNext(got, n, first) {
			return nil
		}
	}
	return s.newFault(r, fmt.Sprintf("more than %d pages", maxPages), nil, false)
}

// hasNext reports whether there may be another page. Without a Link header,
// go-github returns NextPage 0, as on the last page. In that case, hasNext
// returns true if this page may be full.
func hasNext(resp *gogithub.Response, n, first int) bool {
	if resp.Header.Get("Link") != "" {
		return resp.NextPage != 0 && n > 0
	}
	return n >= leastPage && n >= first
}
