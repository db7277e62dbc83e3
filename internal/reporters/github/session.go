package github

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	gogithub "github.com/google/go-github/v60/github"
)

const (
	defaultLimit = 2 * time.Minute
	// attemptLimit is the timeout of one request, so that a single dead
	// connection does not use up the entire time limit.
	attemptLimit = 45 * time.Second
	// maxAnswer is the maximum size of a response in bytes: 100 comments of
	// 262,144 bytes, plus the JSON overhead.
	maxAnswer    = 64 << 20
	maxRedirects = 5
	userAgent    = "leakgate"
)

// Options are the arguments of New. Trigger contains the values with which a
// workflow run starts.
type Options struct {
	// Owner and Repo identify the repository that all calls use.
	Owner, Repo string
	// API is the base URL of the REST API, as in GITHUB_API_URL:
	// https://api.github.com, https://HOST/api/v3 or
	// https://api.SUBDOMAIN.ghe.com.
	API string
	// GraphQL is the URL of the GraphQL API; if it is empty, it is derived from
	// API.
	GraphQL string
	// Token is a GITHUB_TOKEN, a token of a GitHub App or a personal access
	// token. The token is sent only to the hosts of API and GraphQL, and is
	// never part of an error or a note.
	Token string
	// Limit is the time limit of each method call, including waits; 0 means 2
	// minutes.
	Limit time.Duration
	// If Say is not nil, it is called with notes about waits and retries.
	Say func(note string)
	// Transport sends the requests. If Transport is nil, the session creates
	// its own transport, which Close closes.
	Transport http.RoundTripper
}

// Session makes API calls for one GitHub repository. A Session is safe for
// concurrent use; writes are sent one after the other, at least a second apart.
type Session struct {
	owner, repo string
	api         *url.URL
	graphQLURL  string
	token       secret
	limit       time.Duration
	say         func(string)
	transport   *authorizer
	close       func()

	// writing is a channel that contains one element while a write is in
	// flight; only the goroutine that added it may access lastWrite.
	writing   chan struct{}
	lastWrite time.Time

	// mu guards login, the cached identity of the token.
	mu    sync.Mutex
	login string
}

// secret is a token that no formatting verb prints, because fmt prints a
// pointer inside a struct as its address.
type secret struct{ text *string }

const redacted = "[token]"

var nameRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,100}$`)

// validName reports whether s can be an owner or a repository, so that it
// cannot change the path of an API request.
func validName(s string) bool { return nameRE.MatchString(s) && s != "." && s != ".." }

// New returns a session for the repository in o. New sends no request. Close
// the session after the last call.
func New(o Options) (*Session, error) {
	if !validName(o.Owner) || !validName(o.Repo) {
		return nil, fmt.Errorf("open GitHub session: invalid repository %q: want OWNER/REPO", o.Owner+"/"+o.Repo)
	}
	// A token that contains a blank or a line break is invalid. The error about
	// the rejected header would contain the token.
	if o.Token == "" || strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("open GitHub session: no valid token: set GITHUB_TOKEN")
	}
	api, err := parseBase(o.API)
	if err != nil {
		return nil, fmt.Errorf("open GitHub session: API URL: %w", err)
	}
	if o.GraphQL == "" {
		o.GraphQL = graphQLOf(api)
	}
	graphQL, err := parseBase(o.GraphQL)
	if err != nil {
		return nil, fmt.Errorf("open GitHub session: GraphQL URL: %w", err)
	}
	s := &Session{
		owner: o.Owner, repo: o.Repo, api: api, graphQLURL: strings.TrimSuffix(graphQL.String(), "/"),
		token: secret{&o.Token}, limit: o.Limit, say: o.Say, close: func() {}, writing: make(chan struct{}, 1),
	}
	if s.limit <= 0 {
		s.limit = defaultLimit
	}
	base := o.Transport
	if base == nil {
		own := ownTransport()
		base, s.close = own, own.CloseIdleConnections
	}
	s.transport = &authorizer{
		base: base, token: s.token, origins: map[string]bool{origin(api): true, origin(graphQL): true},
	}
	return s, nil
}

// Close closes the idle connections of the session's own transport.
func (s *Session) Close() { s.close() }

func ownTransport() *http.Transport {
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		return t.Clone()
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment}
}

// parseBase parses a URL and adds a slash at its end if necessary, as go-github
// requires.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return nil, errors.New("not an absolute http or https URL: " +
			"set GITHUB_API_URL, for example https://api.github.com")
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/"
	u.RawPath = ""
	return u, nil
}

// graphQLOf returns the GraphQL URL for a REST base URL: for HOST/api/v3 it is
// HOST/api/graphql, for any other base BASE/graphql
// (docs.github.com/enterprise-server/graphql/guides/forming-calls-with-graphql).
func graphQLOf(api *url.URL) string {
	u := *api
	u.Path = strings.TrimSuffix(u.Path, "/")
	if server, ok := strings.CutSuffix(u.Path, "/api/v3"); ok {
		u.Path = server + "/api"
	}
	u.Path += "/graphql"
	return u.String()
}

// origin returns the scheme, host and port to which a token is restricted.
func origin(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

// client returns a new go-github client for each call. After a secondary rate
// limit, a v60 client rejects all calls until the primary limit is reset, up to
// an hour later.
func (s *Session) client(redirect func(*http.Request, []*http.Request) error) *gogithub.Client {
	c := gogithub.NewClient(&http.Client{Transport: s.transport, CheckRedirect: redirect})
	c.BaseURL, c.UserAgent = s.api, userAgent
	return c
}

// sameOrigin follows redirects of a renamed repository. net/http turns a POST
// into a GET after 301, which would read instead of write.
func sameOrigin(req *http.Request, via []*http.Request) error {
	switch first := via[0]; {
	case len(via) >= maxRedirects:
		return fmt.Errorf("%w: too many", errRedirect)
	case origin(req.URL) != origin(first.URL):
		return fmt.Errorf("%w to another host", errRedirect)
	case req.Method != first.Method:
		return fmt.Errorf("%w: the repository has moved: use its new name", errRedirect)
	}
	return nil
}

// errRedirect means that a redirect was not followed: the request had no
// effect, and repeating it would not help.
var errRedirect = errors.New("refused redirect")

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// authorizer adds the token to requests to GitHub itself, and limits the size
// of every response.
type authorizer struct {
	base    http.RoundTripper
	token   secret
	origins map[string]bool
}

// RoundTrip sends req.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.origins[origin(req.URL)] {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+*a.token.text)
	}
	resp, err := a.base.RoundTrip(req)
	if err == nil {
		resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxAnswer}
	}
	return resp, err
}

// boundedBody returns an error, instead of the end of the file, if a response
// is too long: a truncated list must not look complete.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader; it returns errTooLarge after the maximum number of
// bytes.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}

var errTooLarge = errors.New("response is too large")

// bounded returns ctx with the session's time limit.
func (s *Session) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.limit)
}

// note passes a message, without the token, to the caller.
func (s *Session) note(format string, args ...any) {
	if s.say != nil {
		s.say(s.redact(fmt.Sprintf(format, args...)))
	}
}

func (s *Session) redact(text string) string {
	return strings.ReplaceAll(text, *s.token.text, redacted)
}
