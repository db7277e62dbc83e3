package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/leakgate/leakgate/internal/text"
)

// These are the kinds of GitHub errors, for errors.Is. A call that exceeds its
// time limit returns context.DeadlineExceeded.
var (
	// ErrReadOnly means that the token lacks the permission (403). Workflows of
	// pull requests from forks have a read-only token.
	ErrReadOnly = errors.New("the token lacks a permission")
	// ErrNotFound means that the object does not exist, or that the token may
	// not see it (404, 410).
	ErrNotFound = errors.New("not found")
	// ErrToken means that the token is invalid or has expired (401).
	ErrToken = errors.New("the token is invalid")
	// ErrTooLong means that a comment, a name or a file exceeds a size limit of
	// GitHub.
	ErrTooLong = errors.New("too long")
	// ErrNoPullRequest means that the commit is not the head of exactly one
	// open pull request.
	ErrNoPullRequest = errors.New("no pull request")
)

// errIncomplete means that the response has status 200 but lacks the value that
// the call returns, for example because a proxy emptied it.
var errIncomplete = errors.New("response without content")

// fault is a failed request. Its error message contains GitHub's message in
// printable form, without the token.
type fault struct {
	text string
	kind error
	// status is the status code of the response; 0 if there was no response.
	status int
	// unknown reports whether the request may have taken effect although it
	// failed.
	unknown bool
	// limited reports whether GitHub rejected the request because of a rate
	// limit; wait is how long GitHub asks to wait, or 0 if unknown.
	limited bool
	wait    time.Duration
}

// Error returns what failed and how to fix it.
func (f *fault) Error() string { return f.text }

// Unwrap returns one of this package's errors, or nil.
func (f *fault) Unwrap() error { return f.kind }

func isUnknown(err error) bool {
	var f *fault
	return errors.As(err, &f) && f.unknown
}

// fault classifies a failed request. err is from go-github; resp is nil if
// there was no response.
func (s *Session) fault(r request, resp *gogithub.Response, err error) *fault {
	f := s.classify(r, resp, err)
	if resp != nil && resp.Response != nil {
		f.status = resp.StatusCode
	}
	return f
}

func (s *Session) classify(r request, resp *gogithub.Response, err error) *fault {
	if resp == nil || resp.Response == nil {
		return s.newFault(r, cause(err).Error(), nil, !errors.Is(err, errRedirect))
	}
	status, message, documentation := resp.StatusCode, answer(err), documentationOf(err)
	said := strings.TrimSpace(fmt.Sprintf("%d %s", status, message))
	if wait, limited := limitOf(status, resp.Header, err, message+" "+documentation); limited {
		f := s.newFault(r, said+": rate limit", nil, false)
		f.limited, f.wait = true, wait
		return f
	}
	switch {
	case status >= 200 && status < 300:
		return s.newFault(r, fmt.Sprintf("incomplete response: %v", cause(err)), nil, true)
	case status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return s.newFault(r, said, nil, true)
	case status >= 300 && status < 400:
		return s.newFault(r, said+": the repository has moved: use its new name", nil, false)
	case status == http.StatusUnauthorized:
		return s.newFault(r, said+": the token is invalid: pass a valid GITHUB_TOKEN", ErrToken, false)
	case status == http.StatusForbidden && strings.Contains(message, "is locked"):
		return s.newFault(r, said+": unlock the conversation", ErrReadOnly, false)
	case status == http.StatusForbidden:
		return s.newFault(r,
			fmt.Sprintf("%s: the token lacks a permission: give the job `permissions: { %s }`",
				said, r.need), ErrReadOnly,
			false)
	case status == http.StatusNotFound, status == http.StatusGone:
		return s.newFault(r,
			fmt.Sprintf("%s: check the name, and that the job has `permissions: { %s }`", said, r.need),
			ErrNotFound, false)
	case status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity &&
		strings.Contains(message, "too long"):
		return s.newFault(r, said+": shorten the text", ErrTooLong, false)
	}
	return s.newFault(r, said, nil, false)
}

func (s *Session) newFault(r request, said string, kind error, unknown bool) *fault {
	// The token is removed before the message is truncated, because a truncated
	// token would not be found.
	return &fault{text: r.what + ": " + text.Head(s.redact(said), 500), kind: kind, unknown: unknown}
}

// cause removes the URL from an error of net/http, because the query of a
// download URL contains a signature.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no response in %s", attemptLimit)
	case errors.Is(err, io.EOF):
		return errors.New("connection closed")
	}
	return err
}

// answer returns the message in the body of an error response.
func answer(err error) string {
	var (
		plain     *gogithub.ErrorResponse
		primary   *gogithub.RateLimitError
		secondary *gogithub.AbuseRateLimitError
		twoFactor *gogithub.TwoFactorAuthError
	)
	switch {
	case errors.As(err, &plain):
		return messages(plain)
	case errors.As(err, &primary):
		return primary.Message
	case errors.As(err, &secondary):
		return secondary.Message
	case errors.As(err, &twoFactor):
		return twoFactor.Message
	}
	return ""
}

func messages(r *gogithub.ErrorResponse) string {
	parts := []string{r.Message}
	for _, e := range r.Errors {
		parts = append(parts, strings.TrimSpace(e.Field+" "+e.Code+" "+e.Message))
	}
	return strings.Join(parts, "; ")
}

func documentationOf(err error) string {
	var plain *gogithub.ErrorResponse
	if errors.As(err, &plain) {
		return plain.DocumentationURL
	}
	return ""
}

// limitOf reports whether a response indicates a rate limit, and returns how
// long it asks to wait. The order follows
// docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit:
// Retry-After, then the reset time if no requests remain; otherwise the caller
// chooses a time. go-github v60 does not handle 429, and uses the primary reset
// time, up to an hour later, as the end of a secondary limit.
func limitOf(status int, h http.Header, err error, said string) (wait time.Duration, limited bool) {
	if status != http.StatusForbidden && status != http.StatusTooManyRequests {
		return 0, false
	}
	now := serverTime(h)
	if wait, ok := retryAfter(h, now); ok {
		return max(wait, time.Second), true
	}
	if h.Get("X-RateLimit-Remaining") == "0" {
		if reset, err := strconv.ParseInt(h.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			return max(time.Unix(reset, 0).Sub(now)+time.Second, time.Second), true
		}
	}
	var secondary *gogithub.AbuseRateLimitError
	low := strings.ToLower(said)
	return 0, status == http.StatusTooManyRequests || errors.As(err, &secondary) || strings.Contains(low, "abuse") ||
		strings.Contains(low, "secondary rate limit") || strings.Contains(low, "secondary-rate-limit")
}

// serverTime returns the time in the server's response, if any, because the
// runner's clock may be wrong.
func serverTime(h http.Header) time.Time {
	if t, err := http.ParseTime(h.Get("Date")); err == nil {
		return t
	}
	return time.Now()
}

func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := h.Get("Retry-After")
	if t, err := http.ParseTime(v); err == nil {
		return t.Sub(now), true
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, false
	}
	// A day exceeds any time limit, and a larger number of seconds could
	// overflow.
	return time.Duration(min(n, 86400)) * time.Second, true
}

// expired returns the error for a call that exceeded its time limit. last is
// the previous failure, or nil.
func (s *Session) expired(ctx context.Context, r request, last error) error {
	if errors.Is(context.Cause(ctx), context.Canceled) {
		return fmt.Errorf("%s: %w", r.what, context.Canceled)
	}
	said := fmt.Sprintf("time limit of %s reached", s.limit)
	if last != nil {
		said += "; last failure: " + strings.TrimPrefix(last.Error(), r.what+": ")
	}
	return s.newFault(r, said, context.DeadlineExceeded, false)
}
