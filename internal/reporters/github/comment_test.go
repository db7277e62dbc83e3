package github

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const wanted = "## leakgate: 1 new leak\n\n" + testMarker + "\n"

// Errors of GitHub, with GitHub's own messages.
var (
	secondary = trouble{
		kind: "refuse", status: 403,
		header: map[string]string{"X-RateLimit-Remaining": "4990", "X-RateLimit-Reset": "946687799"},
		body: `{"message":"You have exceeded a secondary rate limit. ` + testToken +
			`","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}
	secondaryAfter = trouble{
		kind: "refuse", status: 403, header: map[string]string{"Retry-After": "7"}, body: secondary.body,
	}
	tooMany = trouble{
		kind: "refuse", status: 429, header: map[string]string{"Retry-After": "20"}, body: `{"message":"slow down"}`,
	}
	badGateway = trouble{kind: "refuse", status: 502, body: "<html>" + testToken}
	readOnly   = trouble{
		kind: "refuse", status: 403, body: `{"message":"Resource not accessible by integration ` + testToken + `"}`,
	}
)

// nth returns a function that injects the given faults, one after the other,
// into the first requests with the given method and with part in their paths.
func nth(method, part string, what ...trouble) func(int, *http.Request) trouble {
	return func(_ int, r *http.Request) trouble {
		if r.Method != method || !strings.Contains(r.URL.Path, part) || len(what) == 0 {
			return trouble{}
		}
		first := what[0]
		what = what[1:]
		return first
	}
}

// always returns a function that injects a fault into every request with the
// given method and with part in its path.
func always(method, part string, what trouble) func(int, *http.Request) trouble {
	return func(_ int, r *http.Request) trouble {
		if r.Method != method || !strings.Contains(r.URL.Path, part) {
			return trouble{}
		}
		return what
	}
}

func TestUpsert(t *testing.T) {
	old := "old\n\n" + testMarker
	for name, c := range map[string]struct {
		arrange func(*fakeGitHub)
		comment Comment
		want    Upserted
		err     error
		says    string // part of the error
		atLeast time.Duration
		atMost  time.Duration
		creates int // number of creations that arrive; -1 for any number
		check   func(*testing.T, *fakeGitHub)
	}{
		"first":         {want: Created, creates: 1, atMost: 20 * time.Second},
		"nothing worse": {comment: Comment{OnlyEdit: true}, want: Absent},
		"nothing worse, existing comment": {arrange: func(w *fakeGitHub) { w.add(actionsLogin, "Bot", old) },
			comment: Comment{OnlyEdit: true}, want: Edited},
		"unchanged": {
			arrange: func(w *fakeGitHub) { w.add(actionsLogin, "Bot", strings.ReplaceAll(wanted, "\n", "\r\n")) },
			want:    Unchanged,
			check: func(t *testing.T, w *fakeGitHub) {
				if n := w.count("PATCH"); n != 0 {
					t.Errorf("got %d edits of an identical comment, want none", n)
				}
			}},
		"page 4": {
			arrange: func(w *fakeGitHub) { w.fill(321); w.add(actionsLogin, "Bot", old); w.fill(20) }, want: Edited,
		},
		"page 4 without Link": {
			arrange: func(w *fakeGitHub) { w.noLink = true; w.fill(321); w.add(actionsLogin, "Bot", old) },
			want:    Edited,
		},
		"last comment of a full page": {
			arrange: func(w *fakeGitHub) { w.noLink = true; w.fill(99); w.add(actionsLogin, "Bot", old) }, want: Edited,
		},
		"capped pages": {
			arrange: func(w *fakeGitHub) {
				w.noLink, w.pageCap = true, 30
				w.fill(70)
				w.add(actionsLogin, "Bot", old)
			}, want: Edited,
		},
		"foreign marker": {
			arrange: func(w *fakeGitHub) { w.add("mallory", "User", old); w.add("other[bot]", "Bot", old) },
			want:    Created, creates: 1,
		},
		"user with the name of the bot": {
			arrange: func(w *fakeGitHub) { w.add("github-actions", "User", old); w.add(actionsLogin, "User", old) },
			want:    Created, creates: 1, check: func(*testing.T, *fakeGitHub) {},
		},
		"quoted marker": {
			arrange: func(w *fakeGitHub) { w.add(actionsLogin, "Bot", "coverage of\n"+testMarker+"\nis 7 %") },
			want:    Created, creates: 1,
		},
		"duplicates": {arrange: func(w *fakeGitHub) {
			w.add(actionsLogin, "Bot", old)
			w.fill(150)
			w.add(actionsLogin, "Bot", wanted)
			w.add(actionsLogin, "Bot", old)
		}, want: Edited, check: func(t *testing.T, w *fakeGitHub) {
			if w.ours()[0].id != 1001 {
				t.Error("the remaining comment is not the oldest")
			}
		}},
		"duplicates that cannot be deleted": {arrange: func(w *fakeGitHub) {
			w.noDelete = true
			w.add(actionsLogin, "Bot", old)
			w.add(actionsLogin, "Bot", old)
		}, want: Edited, check: func(t *testing.T, w *fakeGitHub) {
			if fmt.Sprint(w.hidden) != "[IC_1002]" || w.ours()[0].body(time.Now()) != wanted {
				t.Errorf("minimized %v", w.hidden)
			}
		}},
		"duplicates that remain": {arrange: func(w *fakeGitHub) {
			w.noDelete = true
			w.add(actionsLogin, "Bot", wanted)
			w.add(actionsLogin, "Bot", old)
			w.faultOf = func(_ int, r *http.Request) trouble {
				if r.URL.Path == "/graphql" && w.count("DELETE") > 0 {
					return readOnly
				}
				return trouble{}
			}
		}, want: Unchanged, check: func(t *testing.T, w *fakeGitHub) {
			if len(w.ours()) != 2 || len(w.hidden) != 0 || w.count("DELETE") != 1 {
				t.Errorf("%d comments, minimized %v", len(w.ours()), w.hidden)
			}
		}},
		"never listed": {arrange: func(w *fakeGitHub) { w.lag = 24 * time.Hour }, want: Created, creates: 1},
		"never listed, racing": {arrange: func(w *fakeGitHub) {
			w.lag = 20 * time.Minute
			w.race = func(effect func()) {
				w.add(actionsLogin, "Bot", old)
				effect()
			}
		}, want: Edited, creates: 1},
		"viewer unknown": {
			arrange: func(w *fakeGitHub) { w.noViewer = true; w.add(actionsLogin, "Bot", old) }, want: Edited,
		},
		"personal token": {
			arrange: func(w *fakeGitHub) { w.login = "alice"; w.add("alice", "User", old) }, want: Edited,
		},
		"personal, no viewer": {
			arrange: func(w *fakeGitHub) { w.login, w.noViewer = "alice", true; w.add("alice", "User", old) },
			want:    Edited,
		},
		"secondary limit": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", secondary) }, want: Created, creates: 2,
			atLeast: time.Minute, atMost: 90 * time.Second,
		},
		"secondary, retry-after": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", secondaryAfter, secondaryAfter) },
			want:    Created, creates: 3, atLeast: 14 * time.Second, atMost: 40 * time.Second,
		},
		"429": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("GET", "/comments", tooMany) }, want: Created, creates: 1,
			atLeast: 20 * time.Second, atMost: 50 * time.Second,
		},
		"primary limit resets too late": {arrange: func(w *fakeGitHub) {
			far := trouble{
				kind: "refuse", status: 403,
				header: map[string]string{
					"X-RateLimit-Remaining": "0",
					"X-RateLimit-Reset":     fmt.Sprint(time.Now().Add(50 * time.Minute).Unix()),
				}, body: "{}",
			}
			w.faultOf = always("GET", "/comments", far)
		}, err: context.DeadlineExceeded, says: "rate limit", atMost: 10 * time.Second},
		"primary limit": {arrange: func(w *fakeGitHub) {
			soon := trouble{
				kind: "refuse", status: 403,
				header: map[string]string{
					"X-RateLimit-Remaining": "0",
					"X-RateLimit-Reset":     fmt.Sprint(time.Now().Add(30 * time.Second).Unix()),
				}, body: "{}",
			}
			w.faultOf = nth("GET", "/comments", soon)
		}, want: Created, creates: 1, atLeast: 30 * time.Second, atMost: time.Minute},
		"502 twice": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("GET", "/comments", badGateway, badGateway) }, want: Created,
			creates: 1,
		},
		"502 on creation": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", badGateway) }, want: Created,
			creates: 2,
		},
		"502 after effect": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", trouble{kind: "error"}) },
			want:    Created, creates: 1,
		},
		"reset": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("GET", "", trouble{kind: "reset"}, trouble{kind: "reset"}) },
			want:    Created, creates: 1,
		},
		"reset on creation": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", trouble{kind: "reset"}) },
			want:    Created, creates: 2,
		},
		"lost reply": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", trouble{kind: "lose"}) }, want: Created,
			creates: 1,
		},
		"lost reply, lagging list": {arrange: func(w *fakeGitHub) {
			w.lag, w.faultOf = 6*time.Second, nth("POST", "/comments", trouble{kind: "lose"})
		}, want: Created, creates: 1},
		"delayed effect": {arrange: func(w *fakeGitHub) {
			w.lag, w.faultOf = 2*time.Second, nth("POST", "/comments", trouble{kind: "ghost", delay: 8 * time.Second})
		}, want: Created, creates: 1},
		"truncated reply": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", trouble{kind: "cut"}) }, want: Created,
			creates: 1,
		},
		"empty reply": {
			arrange: func(w *fakeGitHub) { w.faultOf = nth("POST", "/comments", trouble{kind: "empty"}) },
			want:    Created, creates: 1,
		},
		"empty list": {arrange: func(w *fakeGitHub) {
			w.add(actionsLogin, "Bot", old)
			w.faultOf = nth("GET", "/comments", trouble{kind: "empty"})
		}, want: Edited},
		"truncated list": {arrange: func(w *fakeGitHub) {
			w.add(actionsLogin, "Bot", old)
			w.faultOf = nth("GET", "/comments", trouble{kind: "cut"})
		}, want: Edited},
		"empty edits": {arrange: func(w *fakeGitHub) {
			w.add(actionsLogin, "Bot", old)
			w.faultOf = always("PATCH", "", trouble{kind: "empty"})
		}, want: Edited},
		"lost edit": {arrange: func(w *fakeGitHub) {
			w.add(actionsLogin, "Bot", old)
			w.faultOf = nth("PATCH", "", trouble{kind: "lose"})
		}, want: Edited},
		"list lags an edit": {arrange: func(w *fakeGitHub) {
			w.lag = 5 * time.Second
			w.add(actionsLogin, "Bot", old)
			w.add(actionsLogin, "Bot", old)
		}, want: Edited},
		"racing job, before": {
			arrange: func(w *fakeGitHub) { w.race = func(effect func()) { w.insert(actionsLogin, old); effect() } },
			want:    Edited, creates: 1,
		},
		"racing job, after": {arrange: func(w *fakeGitHub) {
			w.lag = 3 * time.Second
			w.race = func(effect func()) { effect(); w.insert(actionsLogin, old) }
		}, want: Created, creates: 1},
		"removed meanwhile": {arrange: func(w *fakeGitHub) {
			p := w.add(actionsLogin, "Bot", old)
			w.faultOf = func(_ int, r *http.Request) trouble {
				if r.Method == "PATCH" && p.died.IsZero() {
					p.died = time.Now()
				}
				return trouble{}
			}
		}, want: Created, creates: 1},
		"read-only token": {
			arrange: func(w *fakeGitHub) { w.faultOf = always("POST", "/comments", readOnly) }, err: ErrReadOnly,
			says: "pull-requests: write", creates: 1, atMost: 5 * time.Second,
		},
		"invalid token": {arrange: func(w *fakeGitHub) {
			w.faultOf = always("POST", "/graphql",
				trouble{kind: "refuse", status: 401, body: `{"message":"Bad credentials"}`})
		}, err: ErrToken, says: "Bad credentials"},
		"wrong number": {comment: Comment{Number: 8}, err: ErrNotFound, says: "#8: 404", atMost: 5 * time.Second},
		"locked": {arrange: func(w *fakeGitHub) {
			w.faultOf = always("POST", "/comments",
				trouble{
					kind: "refuse", status: 403,
					body: `{"message":"Unable to create comment because issue is locked."}`,
				})
		}, err: ErrReadOnly, says: "unlock", creates: 1},
		"too long": {
			comment: Comment{Body: strings.Repeat("x", 300000)}, err: ErrTooLong, says: "too long", creates: 1,
		},
		"moved": {arrange: func(w *fakeGitHub) {
			w.faultOf = always("POST", "/comments",
				trouble{
					kind: "refuse", status: 301,
					header: map[string]string{"Location": "http://api.github.test/repositories/1/issues/7/comments"},
				})
		}, says: "has moved", creates: 1},
		"redirected elsewhere": {arrange: func(w *fakeGitHub) {
			w.faultOf = always("GET", "/comments",
				trouble{kind: "refuse", status: 302, header: map[string]string{"Location": "http://evil.test/"}})
		}, says: "another host"},
		"502 forever": {
			arrange: func(w *fakeGitHub) { w.faultOf = always("GET", "/comments", badGateway) }, says: "502",
		},
		"hangs forever": {
			arrange: func(w *fakeGitHub) { w.faultOf = always("GET", "/comments", trouble{kind: "hang"}) },
			err:     context.DeadlineExceeded, says: "time limit of 2m0s", atLeast: 2 * time.Minute,
			atMost: 2 * time.Minute,
		},
		"creations hang": {
			arrange: func(w *fakeGitHub) { w.faultOf = always("POST", "/comments", trouble{kind: "hang"}) },
			err:     context.DeadlineExceeded, creates: 2, atMost: 2 * time.Minute,
		},
		"limited forever": {
			arrange: func(w *fakeGitHub) { w.faultOf = always("POST", "/comments", secondaryAfter) },
			err:     context.DeadlineExceeded, says: "rate limit", creates: -1, atMost: 2 * time.Minute,
		},
		"limited for 1 hour": {arrange: func(w *fakeGitHub) {
			w.faultOf = always("POST", "/comments",
				trouble{kind: "refuse", status: 429, header: map[string]string{"Retry-After": "3600"}})
		}, err: context.DeadlineExceeded, creates: 1, atMost: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newFakeGitHub(t)
				w.fill(3)
				w.posts, w.lastID = nil, 1000
				if c.arrange != nil {
					c.arrange(w)
				}
				before := w.foreign()
				s := w.session(Options{})
				comment := c.comment
				comment.Marker = testMarker
				if comment.Number == 0 {
					comment.Number = 7
				}
				if comment.Body == "" {
					comment.Body = wanted
				}
				start := time.Now()
				got, url, err := s.Upsert(t.Context(), comment)
				took := time.Since(start)
				if took < c.atLeast || (c.atMost > 0 && took > c.atMost) {
					t.Errorf("took %s", took)
				}
				if fails := c.err != nil || c.says != ""; (err != nil) != fails || !errors.Is(err, c.err) &&
					c.err != nil {
					t.Fatalf("error %v, want %v", err, c.err)
				}
				if err != nil &&
					(!strings.Contains(err.Error(), c.says) || strings.Contains(fmt.Sprintf("%+v", err), testToken)) {
					t.Errorf("error %q, want %q and no token", err, c.says)
				}
				if n := w.count("POST /repos/o/r/issues"); c.creates >= 0 && n != c.creates {
					t.Errorf("%d creations, want %d", n, c.creates)
				}
				if w.foreign() != before {
					t.Error("comments of other authors were changed")
				}
				if err != nil {
					return
				}
				if got != c.want || (got == Absent) != (url == "") {
					t.Errorf("%s %q, want %s", got, url, c.want)
				}
				if c.check != nil {
					c.check(t, w)
				}
				if ours := w.ours(); got != Absent && !w.noDelete && c.check == nil &&
					(len(ours) != 1 || ours[0].body(time.Now()) != wanted && got != Unchanged) {
					t.Errorf("got %d comments of our own, want 1 with the new body", len(ours))
				}
			})
		})
	}
}

// TestUpsertAgain checks that later calls find the comment of the first call
// and do not request the token's owner again.
func TestUpsertAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		s := w.session(Options{})
		for i, want := range []Upserted{Created, Unchanged, Edited} {
			body := "no marker yet"
			if i == 2 {
				body = "changed"
			}
			if got, _, err := s.Upsert(t.Context(), Comment{Number: 7, Marker: testMarker, Body: body}); got != want ||
				err != nil {
				t.Fatalf("%s %v, want %s", got, err, want)
			}
		}
		if n := w.count("POST /graphql"); n != 1 {
			t.Errorf("got %d requests for the owner of the token, want 1", n)
		}
	})
}

// TestUpsertLearnsLogin checks that, if the owner of the token is unknown,
// Upsert takes it from the response to the creation of a comment. An earlier
// comment of this owner must then be found and edited.
func TestUpsertLearnsLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		w.login = "gate[bot]"
		w.noViewer = true
		w.add("gate[bot]", "Bot", "old\n"+testMarker)
		w.faultOf = always("GET", "/user", readOnly)
		s := w.session(Options{})
		if got, _, err := s.Upsert(t.Context(), Comment{Number: 7, Marker: testMarker, Body: wanted}); got != Edited ||
			err != nil {
			t.Fatal(got, err)
		}
		if ours := w.ours(); len(ours) != 1 || ours[0].id != 1001 || ours[0].body(time.Now()) != wanted {
			t.Errorf("%d comments", len(ours))
		}
	})
}

// TestUpsertCreatedThenFailed checks that if a comment was created and a later
// request fails, Upsert returns both the comment and the error.
func TestUpsertCreatedThenFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		lists := 0
		w.faultOf = func(_ int, r *http.Request) trouble {
			if r.Method == "GET" {
				if lists++; lists > 1 {
					return trouble{kind: "hang"}
				}
			}
			return trouble{}
		}
		s := w.session(Options{Limit: 30 * time.Second})
		got, url, err := s.Upsert(t.Context(), Comment{Number: 7, Marker: testMarker, Body: wanted})
		if got != Created || url == "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(got, url, err)
		}
	})
}

func TestUpsertCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		w.faultOf = always("GET", "", trouble{kind: "hang"})
		s := w.session(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, cancel)
		start := time.Now()
		if _, _, err := s.Upsert(ctx, Comment{Number: 7, Marker: testMarker, Body: wanted}); !errors.Is(err,
			context.Canceled) || time.Since(start) != 10*time.Second {
			t.Fatal(err, time.Since(start))
		}
	})
}

// TestWritesOfSeveral checks that goroutines that share a session keep the
// pause between writes. The cleanup function of session verifies the pause.
func TestWritesOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newFakeGitHub(t)
		s := w.session(Options{})
		done := make(chan error)
		for i := range 5 {
			go func() {
				_, _, err := s.Upsert(t.Context(), Comment{Number: 7, Marker: fmt.Sprintf("<!-- %d -->", i), Body: "x"})
				done <- err
			}()
		}
		for range 5 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := w.count("POST /repos"); n != 5 {
			t.Errorf("%d creations", n)
		}
	})
}

// TestUpsertRandom calls Upsert under random schedules of faults and checks its
// guarantees; each kind of outcome must occur. A failure prints the seed.
func TestUpsertRandom(t *testing.T) {
	const schedules = 250
	outcomes, total := map[string]int{}, 0
	for seed := range uint64(schedules) {
		ok := t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				outcomes[upsertRandomly(t, seed)]++
				total++
			})
		})
		if !ok {
			break
		}
	}
	t.Log(outcomes)
	for _, want := range []string{"created", "edited", "unchanged", "absent", "error"} {
		if total == schedules && outcomes[want] < 5 {
			t.Errorf("only %d schedules ended with %s", outcomes[want], want)
		}
	}
}

func upsertRandomly(t *testing.T, seed uint64) string {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := newFakeGitHub(t)
	w.noLink, w.noViewer = rng.IntN(2) == 0, rng.IntN(4) == 0
	w.lag = []time.Duration{0, 0, 3 * time.Second, 9 * time.Second}[rng.IntN(4)]
	for range rng.IntN(4) {
		w.fill(rng.IntN(60))
		switch rng.IntN(4) {
		case 0:
			w.add("mallory", "User", "mine\n"+testMarker)
		case 1:
			w.add(actionsLogin, "Bot", "old\n"+testMarker)
		case 2:
			w.add(actionsLogin, "Bot", wanted)
		}
	}
	raced := 0
	if rng.IntN(3) == 0 {
		first := rng.IntN(2) == 0
		w.race = func(effect func()) {
			raced = 1
			if !first {
				effect()
			}
			w.insert(actionsLogin, "raced\n"+testMarker)
			if first {
				effect()
			}
		}
	}
	likely := []float64{0, 0.1, 0.3, 0.6}[rng.IntN(4)]
	kinds := []trouble{
		secondary, secondaryAfter, tooMany, badGateway, {kind: "reset"}, {kind: "lose"}, {kind: "cut"}, {kind: "empty"},
		{kind: "error"},
		{kind: "hang"}, {delay: 5 * time.Second}, {delay: 50 * time.Second}, {kind: "ghost", delay: 4 * time.Second}}
	var lock = make(chan struct{}, 1)
	w.faultOf = func(int, *http.Request) trouble {
		lock <- struct{}{}
		defer func() { <-lock }()
		if rng.Float64() < likely {
			return kinds[rng.IntN(len(kinds))]
		}
		return trouble{}
	}
	limit := []time.Duration{20 * time.Second, 2 * time.Minute, 15 * time.Minute}[rng.IntN(3)]
	comment := Comment{Number: 7, Marker: testMarker, Body: wanted, OnlyEdit: rng.IntN(4) == 0}
	before, foreign := len(w.ours()), w.foreign()
	s := w.session(Options{Limit: limit, Say: func(note string) { t.Log(note) }})
	start := time.Now()
	got, _, err := s.Upsert(t.Context(), comment)
	if took := time.Since(start); took > limit {
		t.Errorf("took %s of %s", took, limit)
	}
	time.Sleep(time.Minute) // until all delayed requests have taken effect
	if w.foreign() != foreign {
		t.Error("comments of other authors were changed")
	}
	ours := w.ours()
	if err != nil {
		if strings.Contains(err.Error(), testToken) {
			t.Errorf("token in %v", err)
		}
		if len(ours) > before+1+raced || before > 0 && len(ours) == 0 {
			t.Errorf("%d comments, %d before: %v", len(ours), before, err)
		}
		return "error"
	}
	if got == Absent {
		if !comment.OnlyEdit || len(ours) != 0 {
			t.Errorf("absent, but %d comments", len(ours))
		}
		return string(got)
	}
	if len(ours) != 1 || ours[0].body(time.Now()) != wanted {
		t.Errorf("%s, but %d comments", got, len(ours))
	}
	return string(got)
}
