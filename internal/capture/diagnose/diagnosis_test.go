package diagnose

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/capture/shell"
	"github.com/leakgate/leakgate/internal/recorded"
	"github.com/leakgate/leakgate/internal/shelltest"
)

// debuggable returns the setup on most developers' phones: not rooted, with a
// debuggable app.
func debuggable(api int) situation { return situation{api: api, debuggable: true} }

// faultAt is a fault that affects a round trip. request runs in place of the
// first round trip that fails.
type faultAt struct {
	name string
	// forGood means that all later round trips fail too.
	forGood bool
	request func(ctx context.Context) error
}

var faultsAt = []faultAt{
	{"connection that drops once", false, func(context.Context) error { return errUnplugged }},
	{"unplugged device", true, func(context.Context) error { return errUnplugged }},
	{"command that hangs", false, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	{"device that hangs", true, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
}

// TestFaultAtEveryRequest repeats a diagnosis, each time with a fault in a
// different round trip: the diagnosis must end in time, and a single failed
// round trip must not lose more than one artifact.
func TestFaultAtEveryRequest(t *testing.T) {
	for _, api := range []int{28, 34} {
		requests := 0
		synctest.Test(t, func(t *testing.T) {
			d, facts, r := debuggable(api).begin(t)
			if _, err := collect(t, t.Context(), d, facts, r, "unknown"); err != nil {
				t.Fatal(err)
			}
			requests = len(d.requests)
		})
		if requests < 20 {
			t.Fatalf("%d requests", requests)
		}
		step := 5
		if recorded.Long() {
			step = 1
		}
		for i, f := range faultsAt {
			t.Run(fmt.Sprintf("API %d, %s", api, f.name), func(t *testing.T) {
				for n := 1 + i%step; n <= requests; n += step {
					synctest.Test(t, func(t *testing.T) { f.meet(t, api, n) })
				}
			})
		}
	}
}

func (f faultAt) meet(t *testing.T, api, at int) {
	d, facts, r := debuggable(api).begin(t)
	broken, first := "", sync.Once{}
	var paused []bool
	r.Paused = func(on bool) { paused = append(paused, on) }
	d.before = func(ctx context.Context, n int, what string) error {
		if n == at || n > at && f.forGood {
			first.Do(func() { broken = what }) // two round trips run concurrently
			return f.request(ctx)
		}
		return nil
	}
	began := time.Now()
	got, err := collect(t, t.Context(), d, facts, r, "unknown")
	took := time.Since(began)
	d.before = nil
	if f.forGood != (err != nil) {
		t.Errorf("request %d: error %v after the fault in %q", at, err, broken)
	}
	// The sum of all limits of the recipe is 15 minutes. A device that hangs
	// receives only one more command.
	if took > 15*time.Minute || f.forGood && took > heapLimit+time.Minute {
		t.Errorf("request %d: took %v", at, took)
	}
	missing := 0
	for _, o := range got.Steps {
		// An artifact that this release does not have is missing in any case.
		if want, _ := debuggable(api).allowed(o.Step); o.File == "" && want != Skipped {
			missing++
		}
	}
	// One failed round trip loses at most one artifact. If another check
	// returns the same information, no artifact is lost.
	if again := strings.Contains(broken, "stat -c") || strings.Contains(broken, "cat /proc/uptime"); !f.forGood &&
		(missing > 1 || again && missing > 0) {
		t.Errorf("request %d: %d artifacts are missing after the fault in %q", at, missing, broken)
	}
	told := strings.Contains(strings.Join(outcome(t, got, "heap").Reasons, "; "), "may be left on the device")
	if left := d.dumps(t); len(left) > 0 && !told {
		t.Errorf("request %d: %v was left and not reported after the fault in %q", at, left, broken)
	}
	if n := len(paused); n != 0 && (n != 2 || !paused[0] || paused[1]) {
		t.Errorf("request %d: paused %v", at, paused)
	}
	if swept, err := Sweep(t.Context(), d); err != nil || len(swept) > 1 || len(d.dumps(t)) > 0 {
		t.Errorf("request %d: swept %v, %v", at, swept, err)
	}
}

// TestTruncatedOutputIsNoArtifact truncates each output after some bytes, with
// exit status 0: the truncated output must not become an artifact.
func TestTruncatedOutputIsNoArtifact(t *testing.T) {
	taken := 0
	for n := int64(0); n < 200_000; n = n*5/4 + 1 {
		synctest.Test(t, func(t *testing.T) {
			d, facts, r := situation{api: 34, rooted: true}.begin(t)
			end := d.TruncateOutput(n, true)
			r.Recipe, _ = RecipeOf("snapshot")
			got, _ := Diagnose(t.Context(), d, facts, r) // a truncated check loses the artifact
			end()
			checkDiagnosis(t, r, got)
			for _, o := range got.Steps {
				if o.File == "" {
					continue
				}
				if taken++; o.Bytes >= n {
					t.Errorf("%s has %d bytes of %d", o.Step, o.Bytes, n)
				}
			}
		})
	}
	if taken < 10 {
		t.Errorf("%d artifacts were taken", taken)
	}
}

// TestEndOfTheProcess checks that what is read after the process has ended does
// not become an artifact, except the log.
func TestEndOfTheProcess(t *testing.T) {
	for name, end := range map[string]func(*localPhone){
		"killed":     func(d *localPhone) { d.Kill("com.shop") },
		"restarted":  func(d *localPhone) { d.Restart("com.shop") },
		"pid reused": func(d *localPhone) { d.ReusePID("com.shop", "com.shop:push") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, facts, r := situation{api: 34, rooted: true}.begin(t)
				d.before = func(_ context.Context, _ int, what string) error {
					if strings.HasPrefix(what, "cat /proc/") && strings.Contains(what, "/smaps") {
						end(d)
					}
					return nil
				}
				got, err := collect(t, t.Context(), d, facts, r, "native")
				if err != nil {
					t.Fatal(err)
				}
				if o := outcome(t, got, "status"); o.Ending != Complete {
					t.Errorf("%+v", o)
				}
				if o := outcome(t, got, "smaps"); o.Ending != Failed ||
					!strings.Contains(strings.Join(o.Reasons, ""), "the process died while smaps was being taken") {
					t.Errorf("%+v", o)
				}
				for _, step := range []string{"showmap", "maps", "meminfo"} {
					if o := outcome(t, got, step); o.Ending != Skipped ||
						!strings.Contains(o.Reasons[0], capture.ErrGone.Error()) {
						t.Errorf("%+v", o)
					}
				}
				for _, step := range []string{"logcat", "exit_info"} {
					if o := outcome(t, got, step); o.Ending != Complete {
						t.Errorf("%+v", o)
					}
				}
			})
		})
	}
}

func TestCallerEndsDiagnosis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, facts, r := situation{api: 34, rooted: true}.begin(t)
		ctx, cancel := context.WithCancel(t.Context())
		d.before = func(ctx context.Context, _ int, what string) error {
			if strings.Contains(what, "showmap") {
				cancel()
				return ctx.Err()
			}
			return nil
		}
		got, err := collect(t, ctx, d, facts, r, "native")
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for i, want := range []Ending{Complete, Complete, Failed, Skipped, Skipped, Skipped, Skipped} {
			if o := got.Steps[i]; o.Ending != want {
				t.Errorf("%+v", o)
			}
		}
	})
}

// TestLevelIsTheFirstHint checks that the user of the level is tried first, and
// that no round trip is spent on other users.
func TestLevelIsTheFirstHint(t *testing.T) {
	p := capture.Process{Name: "com.a", UID: 10100, PID: 7, Start: 5}
	for _, c := range []struct {
		level capture.Level
		want  string
	}{
		{capture.Level{Source: capture.SmapsRollup}, "cat /proc/7/smaps"},
		{capture.Level{Source: capture.SU, Prefix: shell.SU()[0]}, "su 0 cat /proc/7/smaps"},
		{capture.Level{Source: capture.SU, Prefix: shell.SU()[1]}, "su -c 'cat /proc/7/smaps'"},
		{capture.Level{Source: capture.RunAs, Prefix: shell.RunAs("com.a", 0)}, "run-as 'com.a' cat /proc/7/smaps"},
	} {
		dev := &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
			return 0, play(stdout, command, map[string]string{
				"cat /proc/7/stat": statLine(7, "a", 5), "cat /proc/uptime": "10.00 9.00\n", c.want: oneMapping,
			})
		}}
		recipe, _ := RecipeOf("native")
		recipe.Steps = slices.DeleteFunc(recipe.Steps, func(s Step) bool { return s.Name != "smaps" })
		r := Request{Process: p, Level: c.level, Dir: t.TempDir(), Recipe: recipe}
		got, err := Diagnose(t.Context(), dev, capture.Facts{API: 34, UID: 2000, TimeScale: 1}, r)
		if err != nil || got.Steps[0].Command != c.want || got.Steps[0].Ending != Complete {
			t.Errorf("%v: %+v, %v", c.level, got, err)
		}
		checkDiagnosis(t, r, got)
		if n := len(dev.Commands); n != 3 {
			t.Errorf("%d requests: %q", n, dev.Commands)
		}
	}
}

const oneMapping = "12c00000-13440000 rw-p 00000000 00:00 0 [anon:x]\nSize: 8448 kB\nRss: 10 kB\nPss: 10 " +
	"kB\nVmFlags: rd wr\n"

// play prints the markers of a joined command line, and after each marker the
// prepared output of the command.
func play(w io.Writer, line string, answers map[string]string) error {
	for rest := line; rest != ""; {
		var command string
		command, rest, _ = strings.Cut(rest, "; ")
		if marker, ok := strings.CutPrefix(command, "echo @"); ok {
			if _, err := fmt.Fprintf(w, "@%s\n", strings.NewReplacer("'", "", "$r", "0").Replace(marker)); err != nil {
				return err
			}
			continue
		}
		if command == "echo" {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
			continue
		}
		for known, text := range answers {
			if strings.HasPrefix(command, known) {
				if _, err := io.WriteString(w, text); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// TestSuThatWaitsIsTriedOnce: each call of su may wait for the user to confirm
// it, so su is called only once.
func TestSuThatWaitsIsTriedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, facts, r := situation{api: 34}.begin(t)
		d.endless = "su 0 id"
		began := time.Now()
		got, err := collect(t, t.Context(), d, facts, r, "native")
		waits := strings.Count(strings.Join(d.requests, "\n"), d.endless)
		if took := time.Since(began); err != nil || waits != 1 || took > rightsTimeout+5*time.Second {
			t.Errorf("waits %d, took %v, %v", waits, took, err)
		}
		if o := outcome(t, got, "maps"); o.Ending == Complete ||
			!strings.Contains(strings.Join(o.Reasons, ";"), "su did not answer") {
			t.Errorf("%+v", o)
		}
	})
}

func TestTooMuchOutputIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, facts, r := situation{api: 34, rooted: true}.begin(t)
		flood, err := CustomStep("flood", "cat /dev/zero", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		slow, err := CustomStep("slow", "echo begun; sleep 1000", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		failed, err := CustomStep("failed", "echo some; exit 3", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		good, err := CustomStep("good", "echo {process} {pid} {user} {package} {{x}; true", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		r.Recipe = Recipe{Name: "x"}.With(flood, slow, failed, good)
		got, err := collect(t, t.Context(), d, facts, r, "")
		if err != nil {
			t.Fatal(err)
		}
		for step, words := range map[string]string{
			"flood": "exceeds", "slow": "not finished in 1m0s", "failed": "exit status 3",
		} {
			if o := outcome(t, got, step); o.Ending != Failed || !strings.Contains(o.Reasons[0], words) {
				t.Errorf("%+v", o)
			}
		}
		want := fmt.Sprintf("com.shop %d 0 com.shop {x}\n", r.Process.PID)
		if o := outcome(t, got, "good"); o.Ending != Complete || o.Bytes != int64(len(want)) {
			t.Errorf("%+v", o)
		}
	})
}

// TestRightsAreFoundWithoutAHint checks that the same methods are found if the
// level is unknown.
func TestRightsAreFoundWithoutAHint(t *testing.T) {
	for _, s := range []situation{
		{api: 34, rooted: true}, {api: 34, su: true}, {api: 34, debuggable: true},
		{api: 23, debuggable: true, user: 10},
	} {
		synctest.Test(t, func(t *testing.T) {
			d, facts, r := s.begin(t)
			r.Level = capture.Level{}
			facts.API = 0 // neither the level nor the release is known
			got, err := collect(t, t.Context(), d, facts, r, "native")
			if o := outcome(t, got, "smaps"); err != nil ||
				o.Command != fmt.Sprintf("%scat /proc/%d/smaps", s.by(), r.Process.PID) || len(o.Reasons) > 2 {
				t.Errorf("%v: %+v, %v", s, o, err)
			}
			if o := outcome(t, got, "exit_info"); (o.Ending == Complete) != (s.api >= 30) || o.Ending == Fallback {
				t.Errorf("%v: %+v", s, o)
			}
		})
	}
}

// TestRightsRefused checks the wording of each refusal, and that a command is
// not tried without the permission that it needs.
func TestRightsRefused(t *testing.T) {
	const app, other = "uid=10100(u0_a100) gid=10100", "uid=2000(shell) gid=2000(shell)"
	p := capture.Process{Name: "com.a:push", UID: 10100, PID: 7, Start: 5}
	for _, c := range []struct {
		app, su0, suC string
		root, runAs   string // the prefix, or part of the reason
	}{
		{app, "uid=0(root)", "", "su 0", "run-as 'com.a'"},
		{"run-as: package not debuggable: com.a", "su: not found", "uid=0(root)", "su -c", "not_debuggable"},
		{"run-as: unknown package: com.a", "Permission denied", "Permission denied", "permission", "unknown_package"},
		{other, other, other, "it runs as uid 2000", "it runs as uid 2000"},
		{"\x1b[2J", "invalid uid/gid '-c'", "", "invalid uid/gid", "?[2J"},
		{"", "", "", "it prints nothing", "it prints nothing"},
	} {
		dev := &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
			return 0,
				play(stdout, command,
					map[string]string{
						"run-as 'com.a' id": c.app + "\n", "su 0 id": c.su0 + "\n", "su -c 'id'": c.suC + "\n",
					})
		}}
		facts := capture.Facts{API: 30, UID: 2000}
		d := &diagnosing{
			dev: dev, facts: facts, req: Request{Process: p}, rights: newRights(facts, Request{Process: p}),
		}
		for as, want := range map[As]string{AsRoot: c.root, AsApp: c.runAs} {
			w, err := d.prefix(t.Context(), as)
			if err == nil && w.String() != want || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v is %q, %v", c, as, w.String(), err)
			}
			if err != nil && (!errors.As(err, new(notAllowed)) || strings.Contains(err.Error(), "\x1b")) {
				t.Errorf("%+v: %v: %v", c, as, err)
			}
		}
		if len(dev.Commands) != 1 {
			t.Errorf("asked %d times", len(dev.Commands))
		}
	}
}

// TestRightsOfATruncatedAnswer: an incomplete part of the output counts as
// missing, even if it is the last part, which is the output of su.
func TestRightsOfATruncatedAnswer(t *testing.T) {
	p := capture.Process{Name: "com.a", UID: 10100, PID: 7, Start: 5}
	for _, c := range []struct {
		name string
		// the output is truncated before these words
		until     string
		err       error
		root, app string // the prefix, or part of the reason
		no        bool   // the refusal of su is permanent
	}{
		{
			"run-as times out", "uid=10100", context.DeadlineExceeded, "su not tried: run-as did not answer within 3s",
			"it did not answer within 3s", false,
		},
		{
			"truncated in run-as", "100(u0", nil, "su not tried: run-as returned a truncated answer",
			"it returned a truncated answer", false,
		},
		{"no output", "\n@", errUnplugged, "su not tried: run-as did not answer: ", "it did not answer: ", false},
		{
			"su times out", "uid=0", context.DeadlineExceeded,
			"su did not answer within 3s: it may be waiting for confirmation",
			"run-as 'com.a'", true,
		},
		{"truncated in su", "(root)", nil, "su returned a truncated answer", "run-as 'com.a'", false},
		{"truncated in the last part", "su: no", nil, "su 0", "run-as 'com.a'", false},
	} {
		dev := &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
			var all strings.Builder
			if err := play(&all, command,
				map[string]string{
					"run-as 'com.a' id": "uid=10100(u0_a100) gid=10100\n", "su 0 id": "uid=0(root) gid=0(root)\n",
					"su -c 'id'": "su: no\n",
				}); err != nil {
				return -1, err
			}
			head, _, found := strings.Cut(all.String(), c.until)
			if !found {
				t.Errorf("%s: %q was not truncated", c.name, all.String())
			}
			_, err := io.WriteString(stdout, head)
			return 0, cmp.Or(c.err, err)
		}}
		facts := capture.Facts{API: 30, UID: 2000}
		d := &diagnosing{
			dev: dev, facts: facts, req: Request{Process: p}, rights: newRights(facts, Request{Process: p}),
		}
		for as, want := range map[As]string{AsRoot: c.root, AsApp: c.app} {
			w, err := d.prefix(t.Context(), as)
			if err == nil && w.String() != want || err != nil && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %v is %q, %v, want %q", c.name, as, w.String(), err, want)
			}
			if no := errors.As(err, new(notAllowed)); no != (c.no && as == AsRoot) {
				t.Errorf("%s: %v: permanent refusal: %v", c.name, as, err)
			}
		}
		if len(dev.Commands) != 1 {
			t.Errorf("%s: asked %d times", c.name, len(dev.Commands))
		}
	}
}

// statLine returns /proc/PID/stat of a process that started at the given tick.
func statLine(pid int, comm string, start int) string {
	return fmt.Sprintf("%d (%s) S 1 1 0 0 -1 4211008 0 0 0 0 300 200 0 0 20 0 12 0 %d 1 1\n", pid, comm, start)
}

// TestRefusedSUIsNotTriedAgain: su may wait for the user to confirm it, so it
// is not tried again if the probe has tried it before.
func TestRefusedSUIsNotTriedAgain(t *testing.T) {
	p := capture.Process{Name: "com.a", UID: 10100, PID: 7, Start: 5}
	dev := &shelltest.Device{Run: func(_ context.Context, command string, stdout, _ io.Writer) (int, error) {
		if strings.Contains(command, "su ") {
			t.Errorf("asked: %s", command)
		}
		return 0, play(stdout, command, map[string]string{"run-as 'com.a' id": "uid=10100(u0_a100) gid=10100\n"})
	}}
	facts := capture.Facts{API: 30, UID: 2000}
	req := Request{
		Process: p,
		Findings: []capture.ProbeResult{
			{Source: capture.SU, Answer: capture.Refused, Reason: "no answer in 10s; not tried again"},
		},
	}
	d := &diagnosing{dev: dev, facts: facts, req: req, rights: newRights(facts, req)}
	if _, err := d.prefix(t.Context(), AsRoot); !errors.As(err, new(notAllowed)) ||
		!strings.Contains(err.Error(), "not tried again") {
		t.Errorf("root: %v", err)
	}
	if w, err := d.prefix(t.Context(), AsApp); err != nil || w.String() != "run-as 'com.a'" {
		t.Errorf("app: %q, %v", w.String(), err)
	}
}
