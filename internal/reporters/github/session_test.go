package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestHosts checks that github.com, Enterprise Server and ghe.com behave the
// same.
func TestHosts(t *testing.T) {
	for api, c := range map[string]struct{ prefix, graphQL, given string }{
		"http://api.github.test":          {"", "/graphql", ""},
		"http://ghes.test/api/v3":         {"/api/v3", "/api/graphql", ""},
		"http://ghes.test/api/v3/":        {"/api/v3", "/api/elsewhere", "http://ghes.test/api/elsewhere"},
		"http://api.octocorp.ghe.test":    {"", "/graphql", ""},
		"http://api.octocorp.ghe.test:80": {"", "/graphql", "http://api.octocorp.ghe.test/graphql"},
	} {
		t.Run(api, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFakeGitHub(t)
				w.prefix, w.graphQL = c.prefix, c.graphQL
				w.add(actionsLogin, "Bot", "old\n"+testMarker)
				s := w.session(Options{API: api, GraphQL: c.given})
				if got, _, err := s.Upsert(t.Context(),
					Comment{Number: 7, Marker: testMarker, Body: wanted}); got != Edited ||
					err != nil {
					t.Fatal(got, err)
				}
				if n := w.count("POST " + c.graphQL); n != 1 {
					t.Errorf("%d requests to %s: %v", n, c.graphQL, w.seen)
				}
			})
		})
	}
}

func TestNewErrors(t *testing.T) {
	good := Options{Owner: "o", Repo: "r", API: "https://api.github.com", Token: testToken}
	for name, change := range map[string]func(*Options){
		"owner":       func(o *Options) { o.Owner = "o/x" },
		"repository":  func(o *Options) { o.Repo = ".." },
		"no token":    func(o *Options) { o.Token = "" },
		"two tokens":  func(o *Options) { o.Token = testToken + "\nX: y" },
		"API":         func(o *Options) { o.API = "api.github.com" },
		"credentials": func(o *Options) { o.API = "https://" + testToken + "@api.github.com" },
		"GraphQL":     func(o *Options) { o.GraphQL = "/graphql" },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil || strings.Contains(err.Error(), testToken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s, err := New(good)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if text := fmt.Sprintf("%v %+v %#v", s, s, s); strings.Contains(text, testToken) {
		t.Error(text)
	}
}

// TestRetryAfter checks whole seconds and dates, and invalid values.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"7": 7 * time.Second, "0": 0, "99999999999": 24 * time.Hour, "Fri, 02 Jan 2026 03:04:35 GMT": 30 * time.Second,
		"-1": -1, "": -1, "soon": -1,
	} {
		got, ok := retryAfter(http.Header{"Retry-After": {value}}, now)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %s %t", value, got, ok)
		}
	}
}

// TestResetByServerClock checks that the wait does not depend on the clock of
// the runner.
func TestResetByServerClock(t *testing.T) {
	server := time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)
	h := http.Header{
		"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {fmt.Sprint(server.Add(time.Minute).Unix())},
		"Date": {server.Format(http.TimeFormat)},
	}
	if wait, limited := limitOf(403, h, nil, ""); !limited || wait != 61*time.Second {
		t.Error(wait, limited)
	}
}

// TestTooLargeAnswer checks that reading beyond the size limit of a response
// returns an error.
func TestTooLargeAnswer(t *testing.T) {
	body := boundedBody{ReadCloser: http.NoBody, left: 0}
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, errTooLarge) {
		t.Error(err)
	}
}

// TestTokenIsOnlySentToGitHub checks that redirects within GitHub keep the
// token, and that redirects to other hosts are not followed, so that these
// hosts never receive it.
func TestTokenIsOnlySentToGitHub(t *testing.T) {
	for location, works := range map[string]bool{
		"http://api.github.test/repos/o/r/issues/7/comments?again=1": true,
		"http://evil.test/repos/o/r/issues/7/comments":               false,
		"http://api.github.test:81/repos/o/r/issues/7/comments":      false,
		"https://api.github.test/repos/o/r/issues/7/comments":        false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newFakeGitHub(t)
			w.add(actionsLogin, "Bot", wanted)
			w.faultOf = func(_ int, r *http.Request) trouble {
				if r.Method == "GET" && r.FormValue("again") == "" && r.Host == "api.github.test" {
					return trouble{kind: "refuse", status: 307, header: map[string]string{"Location": location}}
				}
				return trouble{}
			}
			s := w.session(Options{})
			_, _, err := s.Upsert(t.Context(), Comment{Number: 7, Marker: testMarker, Body: wanted})
			if (err == nil) != works {
				t.Errorf("%s: %v", location, err)
			}
		})
	}
}

// TestAuthorizer checks that the token is only sent to the scheme, host and
// port of the API.
func TestAuthorizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		s := w.session(Options{API: "http://ghes.test/api/v3"})
		for url, want := range map[string]string{
			"http://GHES.test/x": "Bearer " + testToken, "http://ghes.test:81/": "", "http://ghes.test.evil.test/": "",
			"http://sub.ghes.test/": "", "http://x.test/ghes.test": "",
		} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			sent := authorizer{
				base: roundTrip(func(r *http.Request) { got = r.Header.Get("Authorization") }), token: s.token,
				origins: s.transport.origins,
			}
			if _, err := sent.RoundTrip(req); err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("%s received %q", url, got)
			}
			if req.Header.Get("Authorization") != "" {
				t.Error("the caller's request was modified")
			}
		}
	})
}

type roundTrip func(*http.Request)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	f(r)
	return &http.Response{StatusCode: 200, Body: http.NoBody}, nil
}

func TestSleepRespectsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if sleep(ctx, time.Hour) || sleep(ctx, time.Minute) || time.Since(start) != 0 {
			t.Error("waited beyond the deadline")
		}
		if !sleep(ctx, 59*time.Second) || time.Since(start) != 59*time.Second {
			t.Error(time.Since(start))
		}
	})
}
