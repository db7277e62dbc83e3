package github

//unit:sleep runs inside the bubbles of the tests that start it, in virtual time

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	testToken  = "ghs_0123456789abcdefSECRET"
	testMarker = "<!-- leakgate:shop -->"
	testSHA    = "0123456789012345678901234567890123456789"
)

// fakeGitHub is an in-memory GitHub with one pull request o/r#7. It keeps a
// history, so that its lists can lag.
type fakeGitHub struct {
	t         *testing.T
	prefix    string // path prefix of the REST API: "" or /api/v3
	graphQL   string // path of the GraphQL API
	login     string // owner of the token
	lag       time.Duration
	noLink    bool
	pageCap   int
	noViewer  bool // GraphQL returns no user
	noDelete  bool
	stored    []byte // the content that is downloaded for every artifact
	artifacts []map[string]any
	runs      map[int64]map[string]any
	pulls     []map[string]any
	// faultOf, if not nil, returns the fault of the nth request.
	faultOf func(n int, r *http.Request) trouble
	// race is called once, when the first comment is about to be created.
	race func(effect func())

	mu       sync.Mutex
	requests int
	posts    []*post
	lastID   int64
	writes   []time.Time
	seen     []string // METHOD PATH
	leaked   []string // requests to other hosts that contained the token
	checks   []map[string]any
	sarif    []map[string]any
	hidden   []string // node IDs of minimized comments
}

// post is a comment with its history.
type post struct {
	id     int64
	user   string
	kind   string
	born   time.Time
	died   time.Time
	bodies []version
}

type version struct {
	at   time.Time
	body string
}

// trouble is a fault that is injected into a request.
type trouble struct {
	kind   string // see answer
	status int
	header map[string]string
	body   string
	delay  time.Duration
}

func newFakeGitHub(t *testing.T) *fakeGitHub {
	return &fakeGitHub{t: t, graphQL: "/graphql", login: actionsLogin, lastID: 1000, runs: map[int64]map[string]any{}}
}

// session starts the fake as an HTTP server over pipes, and returns a session
// connected to it. It must be called in a synctest bubble.
func (w *fakeGitHub) session(o Options) *Session {
	w.t.Helper()
	listener := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: w, ErrorLog: log.New(io.Discard, "", 0)}
	go server.Serve(listener)
	transport := &http.Transport{DialContext: listener.dial}
	if o.API == "" {
		o.API = "http://api.github.test"
	}
	o.Owner, o.Repo, o.Token, o.Transport = "o", "r", testToken, transport
	say := o.Say
	o.Say = func(note string) {
		if strings.Contains(note, testToken) {
			w.t.Errorf("token in note %q", note)
		}
		if say != nil {
			say(note)
		}
	}
	s, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		s.Close()
		transport.CloseIdleConnections()
		server.Close()
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.leaked) > 0 {
			w.t.Errorf("token sent elsewhere: %q", w.leaked)
		}
		for i := 1; i < len(w.writes); i++ {
			if gap := w.writes[i].Sub(w.writes[i-1]); gap < time.Second {
				w.t.Errorf("writes %d and %d are %s apart", i-1, i, gap)
			}
		}
	})
	return s
}

// pipeListener accepts connections over pipes.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// add adds a comment that already existed.
func (w *fakeGitHub) add(user, kind, body string) *post {
	w.lastID++
	old := time.Now().Add(-time.Hour)
	p := &post{id: w.lastID, user: user, kind: kind, born: old, bodies: []version{{old, body}}}
	w.posts = append(w.posts, p)
	return p
}

func (w *fakeGitHub) fill(n int) {
	for i := range n {
		w.add("octocat", "User", fmt.Sprintf("looks good %d", i))
	}
}

// insert adds a comment with the current time.
func (w *fakeGitHub) insert(user, body string) *post {
	p := w.add(user, "Bot", body)
	p.born, p.bodies[0].at = time.Now(), time.Now()
	return p
}

func (p *post) body(at time.Time) string {
	body := ""
	for _, v := range p.bodies {
		if !v.at.After(at) {
			body = v.body
		}
	}
	return body
}

func (p *post) alive(at time.Time) bool {
	return !p.born.After(at) && (p.died.IsZero() || p.died.After(at))
}

func (p *post) json(at time.Time) map[string]any {
	return map[string]any{
		"id": p.id, "node_id": fmt.Sprintf("IC_%d", p.id), "body": p.body(at),
		"created_at": p.born.UTC().Format(time.RFC3339),
		"html_url":   fmt.Sprintf("https://github.test/o/r/pull/7#issuecomment-%d", p.id),
		"user":       map[string]any{"login": p.user, "type": p.kind},
	}
}

// ours returns the comments of the token's owner with the marker.
func (w *fakeGitHub) ours() []*post {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*post
	for _, p := range w.posts {
		if now := time.Now(); p.alive(now) && p.user == w.login && hasMarker(p.body(now), testMarker) {
			out = append(out, p)
		}
	}
	return out
}

// foreign returns the bodies of all other comments.
func (w *fakeGitHub) foreign() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, p := range w.posts {
		if p.user != w.login {
			fmt.Fprintf(&b, "%d %s %v %s\n", p.id, p.user, p.alive(time.Now()), p.body(time.Now()))
		}
	}
	return b.String()
}

func (w *fakeGitHub) count(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, line := range w.seen {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

func (w *fakeGitHub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests++
	n := w.requests
	w.seen = append(w.seen, r.Method+" "+r.URL.RequestURI())
	if (r.URL.Path == "/storage" || !strings.Contains(r.Host, "api")) && r.Host != "ghes.test" &&
		strings.Contains(fmt.Sprint(r.Header, r.URL), testToken) {
		w.leaked = append(w.leaked, r.Host)
	}
	if r.Method != http.MethodGet {
		w.writes = append(w.writes, time.Now())
	}
	w.mu.Unlock()
	var what trouble
	if w.faultOf != nil {
		what = w.faultOf(n, r)
	}
	body, _ := io.ReadAll(r.Body)
	w.answer(rw, r, body, what)
}

// answer executes r, as far as the fault permits.
func (w *fakeGitHub) answer(rw http.ResponseWriter, r *http.Request, body []byte, what trouble) {
	effect := func() *httptest.ResponseRecorder {
		w.mu.Lock()
		defer w.mu.Unlock()
		rec := httptest.NewRecorder()
		w.route(rec, r, body)
		return rec
	}
	switch what.kind {
	case "refuse":
		for k, v := range what.header {
			rw.Header().Set(k, v)
		}
		rw.WriteHeader(what.status)
		io.WriteString(rw, what.body)
	case "reset":
		closeConnection(rw, "")
	case "hang":
		<-r.Context().Done()
	case "lose":
		effect()
		closeConnection(rw, "")
	case "ghost": // the effect comes after the connection is lost
		time.AfterFunc(what.delay, func() { effect() })
		closeConnection(rw, "")
	case "cut":
		rec := effect()
		half := rec.Body.Bytes()[:rec.Body.Len()/2]
		closeConnection(rw,
			fmt.Sprintf("HTTP/1.1 %d OK\r\nContent-Length: %d\r\n\r\n%s", rec.Code, rec.Body.Len(), half))
	case "empty":
		effect()
		rw.WriteHeader(http.StatusOK)
	case "error": // 502 after the effect
		effect()
		rw.WriteHeader(http.StatusBadGateway)
	default:
		rec := effect()
		time.Sleep(what.delay)
		for k, v := range rec.Header() {
			rw.Header()[k] = v
		}
		rw.WriteHeader(rec.Code)
		rw.Write(rec.Body.Bytes())
	}
}

func closeConnection(rw http.ResponseWriter, last string) {
	conn, _, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, last)
	conn.Close()
}

var (
	listRE  = regexp.MustCompile(`^/repos/o/r/issues/7/comments$`)
	oneRE   = regexp.MustCompile(`^/repos/o/r/issues/comments/([0-9]+)$`)
	checkRE = regexp.MustCompile(`^/repos/o/r/check-runs/([0-9]+)$`)
	runRE   = regexp.MustCompile(`^/repos/o/r/actions/runs/([0-9]+)$`)
	zipRE   = regexp.MustCompile(`^/repos/o/r/actions/artifacts/([0-9]+)/zip$`)
)

func reply(rw http.ResponseWriter, status int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	if v != nil {
		json.NewEncoder(rw).Encode(v)
	}
}

func (w *fakeGitHub) route(rw http.ResponseWriter, r *http.Request, body []byte) {
	if r.Host == "storage.test" || r.URL.Path == "/storage" {
		rw.Write(w.stored)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+testToken {
		reply(rw, 401, map[string]any{"message": "Bad credentials"})
		return
	}
	if r.URL.Path == w.graphQL {
		w.routeGraphQL(rw, body)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, w.prefix)
	if !ok {
		reply(rw, 404, map[string]any{"message": "Not Found"})
		return
	}
	var in map[string]any
	json.Unmarshal(body, &in)
	id := func(re *regexp.Regexp) int64 {
		n, _ := strconv.ParseInt(re.FindStringSubmatch(path)[1], 10, 64)
		return n
	}
	switch {
	case path == "/user":
		if w.login == actionsLogin {
			reply(rw, 403, map[string]any{"message": "Resource not accessible by integration"})
			return
		}
		reply(rw, 200, map[string]any{"login": w.login, "type": "User"})
	case listRE.MatchString(path) && r.Method == "GET":
		w.list(rw, r)
	case listRE.MatchString(path) && r.Method == "POST":
		w.create(rw, in["body"].(string))
	case oneRE.MatchString(path):
		w.change(rw, r, id(oneRE), in)
	case path == "/repos/o/r/check-runs" && r.Method == "POST":
		in["id"] = len(w.checks) + 1
		in["html_url"] = "https://github.test/check"
		w.checks = append(w.checks, in)
		reply(rw, 201, w.check(in))
	case checkRE.MatchString(path) && r.Method == "PATCH":
		c := w.checks[id(checkRE)-1]
		c["updates"] = append(list(c["updates"]), in["output"])
		reply(rw, 200, w.check(c))
	case checkRE.MatchString(path):
		reply(rw, 200, w.check(w.checks[id(checkRE)-1]))
	case strings.HasSuffix(path, "/check-runs"):
		reply(rw, 200, map[string]any{"total_count": len(w.checks), "check_runs": w.checks})
	case path == "/repos/o/r/code-scanning/sarifs":
		w.sarif = append(w.sarif, in)
		reply(rw, 202, map[string]any{"id": "sarif-1"})
	case path == "/repos/o/r/actions/artifacts":
		w.page(rw, r, len(w.artifacts), func(from, to int) any {
			return map[string]any{"total_count": len(w.artifacts), "artifacts": w.artifacts[from:to]}
		})
	case zipRE.MatchString(path):
		http.Redirect(rw, r, "http://storage.test/x?sig=signature", http.StatusFound)
	case runRE.MatchString(path) && w.runs[id(runRE)] != nil:
		reply(rw, 200, w.runs[id(runRE)])
	case path == "/repos/o/r/commits/"+testSHA+"/pulls":
		w.page(rw, r, len(w.pulls), func(from, to int) any { return w.pulls[from:to] })
	case path == "/repos/o/r/pulls":
		var found []map[string]any
		for _, p := range w.pulls {
			if p["label"] == r.FormValue("head") {
				found = append(found, p)
			}
		}
		reply(rw, 200, append([]map[string]any{}, found...))
	case strings.HasPrefix(path, "/repos/o/r/pulls/") && len(w.pulls) > 0:
		reply(rw, 200, w.pulls[0])
	default:
		reply(rw, 404, map[string]any{"message": "Not Found"})
	}
}

func list(v any) []any { l, _ := v.([]any); return l }

// check returns a check run as GitHub returns it: with the number of
// annotations instead of the annotations.
func (w *fakeGitHub) check(c map[string]any) map[string]any {
	out := map[string]any{"id": c["id"], "html_url": c["html_url"], "external_id": c["external_id"]}
	out["output"] = map[string]any{"annotations_count": len(annotationsOf(c))}
	return out
}

// annotationsOf returns the annotations of a check run from its creation and
// its updates.
func annotationsOf(c map[string]any) []any {
	outputs := append([]any{c["output"]}, list(c["updates"])...)
	var all []any
	for _, o := range outputs {
		all = append(all, list(o.(map[string]any)["annotations"])...)
	}
	return all
}

// page replies with one page of n elements and a Link header.
func (w *fakeGitHub) page(rw http.ResponseWriter, r *http.Request, n int, body func(from, to int) any) {
	size, _ := strconv.Atoi(r.FormValue("per_page"))
	if w.pageCap > 0 {
		size = min(size, w.pageCap)
	}
	number, _ := strconv.Atoi(r.FormValue("page"))
	number = max(number, 1)
	from, to := min((number-1)*size, n), min(number*size, n)
	if to < n && !w.noLink {
		rw.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, r.Host, r.URL.Path, number+1))
	} else if number > 1 && !w.noLink {
		rw.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=1>; rel="first"`, r.Host, r.URL.Path))
	}
	reply(rw, 200, body(from, to))
}

func (w *fakeGitHub) list(rw http.ResponseWriter, r *http.Request) {
	at := time.Now().Add(-w.lag)
	shown := []map[string]any{}
	for _, p := range w.posts {
		if p.alive(at) {
			shown = append(shown, p.json(at))
		}
	}
	w.page(rw, r, len(shown), func(from, to int) any { return shown[from:to] })
}

func (w *fakeGitHub) create(rw http.ResponseWriter, body string) {
	var p *post
	effect := func() { p = w.insert(w.login, body) }
	if race := w.race; race != nil {
		w.race = nil
		race(effect)
	} else {
		effect()
	}
	if len(body) > 262144 {
		p.died = time.Now()
		reply(rw, 422,
			map[string]any{
				"message": "Validation Failed",
				"errors": []any{
					map[string]any{
						"code": "unprocessable", "field": "data",
						"message": "Body is too long (maximum is 262144 characters)",
					},
				},
			})
		return
	}
	reply(rw, 201, p.json(time.Now()))
}

func (w *fakeGitHub) change(rw http.ResponseWriter, r *http.Request, id int64, in map[string]any) {
	i := slices.IndexFunc(w.posts, func(p *post) bool { return p.id == id && p.alive(time.Now()) })
	switch {
	case i < 0:
		reply(rw, 404, map[string]any{"message": "Not Found"})
	case r.Method == "PATCH":
		w.posts[i].bodies = append(w.posts[i].bodies, version{time.Now(), in["body"].(string)})
		reply(rw, 200, w.posts[i].json(time.Now()))
	case w.noDelete:
		reply(rw, 403, map[string]any{"message": "Resource not accessible"})
	default:
		w.posts[i].died = time.Now()
		rw.WriteHeader(204)
	}
}

func (w *fakeGitHub) routeGraphQL(rw http.ResponseWriter, body []byte) {
	var in struct {
		Query     string
		Variables map[string]string
	}
	json.Unmarshal(body, &in)
	switch {
	case strings.Contains(in.Query, "minimizeComment"):
		w.hidden = append(w.hidden, in.Variables["id"])
		reply(rw, 200,
			map[string]any{
				"data": map[string]any{
					"minimizeComment": map[string]any{"minimizedComment": map[string]any{"isMinimized": true}},
				},
			})
	case w.noViewer:
		reply(rw, 200,
			map[string]any{
				"errors": []any{
					map[string]any{"type": "FORBIDDEN", "message": "Resource not accessible by integration"},
				},
			})
	default:
		reply(rw, 200, map[string]any{"data": map[string]any{"viewer": map[string]any{"login": w.login}}})
	}
}
