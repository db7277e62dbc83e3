package monitor

import (
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// A leak fails the check in which its objects were leaked, and no later check.
// If an exception names the leak, the verdict is VerdictKnown.
func TestCheckOfHeaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := []int{2, 2, 3, 4, 4}
		p := cable(phone("S1", counted(rooted(), func(n int) int { return held[min(n, len(held)-1)] }),
			healthy("com.shop"), healthy("com.shop:push")))
		w, o := started(t, response.Options{}, p)
		known := Exception{
			Held: "com.shop.ScreenTracker.sScreens", Reason: "SHOP-12", Owner: "anna",
			Until: time.Now().AddDate(0, 1, 0),
		}
		var all []record.Check
		for i, want := range []struct {
			verdict record.CheckVerdict
			text    string
			known   []Exception
		}{
			{record.VerdictLeak, "com.shop: leaks 2 x DetailActivity, held by ScreenTracker.sScreens (", nil},
			{record.VerdictPass, "com.shop: no new leak in its heap", nil},
			{record.VerdictLeak, "com.shop: leaks 1 x DetailActivity, held by ScreenTracker.sScreens (", nil},
			{record.VerdictKnown, "com.shop: only accepted leaks: 1 x DetailActivity", []Exception{known}},
			{record.VerdictPass, "com.shop: no new leak in its heap", []Exception{known}},
		} {
			c, err := w.Check(t.Context(),
				CheckOptions{Name: "cart", Patterns: []capture.Pattern{"com.shop"}, Heap: true, Known: want.known})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if err := c.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := c.Close(t.Context(), record.OutcomePassed, "")
			if err != nil || got.Verdict != want.verdict || !strings.HasPrefix(got.Text, want.text) ||
				len(got.Processes) != 1 || got.Ended-got.T < 10 || got.Window == 0 {
				t.Errorf("check %d: %v, %+v", i+1, err, got)
			}
			if want.verdict == record.VerdictLeak &&
				(len(got.Processes[0].Leaks) != 1 || len(got.Processes[0].Leaks[0].Trace) < 5 ||
					got.Processes[0].Folder == "") {
				t.Errorf("check %d: %+v", i+1, got.Processes[0])
			}
			again, err := c.Close(t.Context(), "", "")
			if err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("second call of Close: got %+v, %v", again, err)
			}
			all = append(all, got)
		}
		run, err := w.Stop("done")
		if err != nil || run.ExitCode != record.ExitLeak || !reflect.DeepEqual(run.Checks, all) {
			t.Errorf("exit %d, %d checks, %v", run.ExitCode, len(run.Checks), err)
		}
		rebuilt, warnings, err := ledger.Rebuild(o.Dir)
		if err != nil || len(warnings) > 0 || !reflect.DeepEqual(rebuilt.Checks, all) ||
			rebuilt.ExitCode != run.ExitCode {
			t.Errorf("rebuilt: %+v, %v %v", rebuilt.Checks, warnings, err)
		}
	})
}

// shopOfScreens returns a phone whose app has a screen of each type.
func shopOfScreens() *cabled {
	o := rooted()
	o.Serial = "S1"
	o.Apps = []androidsim.App{{
		Package: "com.shop", Debuggable: true, Processes: []androidsim.ProcessSpec{healthy("com.shop")},
		Screens: []androidsim.Screen{
			{Class: ".MainActivity"}, {Class: ".CartActivity", Views: 60},
			{Class: ".LingeringActivity", Lingers: 3 * time.Second}, {Class: ".LeakyActivity", Leaks: true},
			{Class: ".CrashingActivity", Crashes: true},
		},
	}}
	return cable(&simulated{Phone: androidsim.New(o)})
}

// on runs a command on a phone, in the same way as a suite that drives the app.
func on(t *testing.T, p *cabled, command string) {
	t.Helper()
	if exit, err := p.Shell(t.Context(), command, io.Discard, io.Discard); err != nil || exit != 0 {
		t.Fatalf("%s: exit %d, %v", command, exit, err)
	}
}

// A check of ten seconds in which one Activity leaks fails every time, with the
// class, the holder and the trace of the leak. A check never fails if it ends
// with one more open screen, creates garbage, or does nothing while an old leak
// exists.
func TestCheckOfScreens(t *testing.T) {
	rounds := 2
	if os.Getenv("LEAKGATE_E2E") == "long" {
		rounds = 100
	}
	synctest.Test(t, func(t *testing.T) {
		p := shopOfScreens()
		on(t, p, "am start -n com.shop/.MainActivity")
		w, _ := started(t, response.Options{}, p)
		for n := range rounds {
			for _, spec := range []struct {
				screen string
				closes bool
				want   record.CheckVerdict
			}{
				{".LeakyActivity", true, record.VerdictLeak}, {".CartActivity", false, record.VerdictPass},
				{".LingeringActivity", true, record.VerdictPass}, {".CartActivity", true, record.VerdictPass},
			} {
				c, err := w.Check(t.Context(), CheckOptions{Name: spec.screen})
				if err != nil {
					t.Fatal(err)
				}
				on(t, p, "am start -n com.shop/"+spec.screen)
				time.Sleep(10 * time.Second)
				if spec.closes {
					on(t, p, "input keyevent BACK")
				}
				if err := c.Collect(t.Context()); err != nil {
					t.Fatal(err)
				}
				got, err := c.Close(t.Context(), record.OutcomePassed, "")
				if err != nil || got.Verdict != spec.want {
					t.Fatalf("round %d, %s: %s: %s, %v", n, spec.screen, got.Verdict, got.Text, err)
				}
				if got.Verdict == record.VerdictLeak {
					l := got.Processes[0].Leaks
					if len(l) != 1 || l[0].New != 1 || l[0].Name != "LeakyActivity, held by ScreenTracker.sScreens" ||
						!strings.Contains(strings.Join(l[0].Trace, "\n"), "static ScreenTracker.sScreens") {
						t.Fatalf("round %d: %+v", n, l)
					}
				}
				if !spec.closes {
					on(t, p, "input keyevent BACK")
				}
			}
		}
		if run, err := w.Stop("done"); err != nil || len(run.Checks) != 4*rounds || run.ExitCode != record.ExitLeak {
			t.Errorf("%d checks, exit %d, %v", len(run.Checks), run.ExitCode, err)
		}
	})
}

// A leak that occurred before the first check, or between two checks, is not
// attributed to any check. A crash is reported by the check in which it
// happens.
func TestCheckOfOlderLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shopOfScreens()
		leave := func() {
			on(t, p, "am start -n com.shop/.LeakyActivity")
			on(t, p, "input keyevent BACK")
		}
		on(t, p, "am start -n com.shop/.MainActivity")
		leave()
		w, _ := started(t, response.Options{}, p)
		check := func(name string, body func()) record.Check {
			t.Helper()
			c, err := w.Check(t.Context(), CheckOptions{Name: name})
			if err != nil {
				t.Fatal(err)
			}
			body()
			if err := c.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			got, err := c.Close(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		open := func() { on(t, p, "am start -n com.shop/.CartActivity") }
		older := func(c record.Check) int64 {
			n := int64(0)
			for _, x := range c.Processes {
				for _, l := range x.Older {
					n += l.New
				}
			}
			return n
		}
		if c := check("first", open); c.Verdict != record.VerdictPass || older(c) != 1 {
			t.Errorf("%s: %s, %d older", c.Verdict, c.Text, older(c))
		}
		if c := check("second", open); c.Verdict != record.VerdictPass || older(c) != 0 {
			t.Errorf("%s: %s, %d older", c.Verdict, c.Text, older(c))
		}
		leave()
		if c := check("third", open); c.Verdict != record.VerdictPass || older(c) != 1 {
			t.Errorf("%s: %s, %d older", c.Verdict, c.Text, older(c))
		}
		c := check("crash", func() {
			_, _ = p.Shell(t.Context(), "am start -n com.shop/.CrashingActivity", io.Discard, io.Discard)
			time.Sleep(time.Second)
		})
		if c.Verdict != record.VerdictNotChecked || len(c.Processes) != 1 || len(c.Processes[0].Deaths) != 1 ||
			c.Processes[0].Deaths[0].Reason != "crash" {
			t.Errorf("%+v", c)
		}
		if _, err := w.Stop("done"); err != nil {
			t.Error(err)
		}
	})
}

// checked runs a body in a check of the phone's app, as a suite does.
func checked(t *testing.T, w *LiveRun, o CheckOptions, body func()) record.Check {
	t.Helper()
	c, err := w.Check(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	body()
	if err := c.Collect(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := c.Close(t.Context(), record.OutcomePassed, "")
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// If a body closes a screen that was open before, the number of objects does
// not grow. A leak of this screen is detected because the screen's window is
// gone.
func TestCheckOfScreenClosedInBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shopOfScreens()
		on(t, p, "am start -n com.shop/.MainActivity")
		w, _ := started(t, response.Options{}, p)
		for screen, want := range map[string]record.CheckVerdict{
			".LeakyActivity": record.VerdictLeak, ".CartActivity": record.VerdictPass,
		} {
			on(t, p, "am start -n com.shop/"+screen) // as in a BeforeEach
			got := checked(t, w, CheckOptions{Name: screen}, func() { on(t, p, "input keyevent BACK") })
			if got.Verdict != want || len(got.Processes[0].Older) > 0 {
				t.Errorf("%s: %s: %s", screen, got.Verdict, got.Text)
			}
		}
		if _, err := w.Stop("done"); err != nil {
			t.Error(err)
		}
	})
}

// A check whose result is unknown does not pass: the body restarts or stops the
// app, the heap of a leaking app cannot be dumped, or a trend has no sample.
func TestCheckOfUnknownIsInconclusive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := shopOfScreens()
		on(t, p, "am start -n com.shop/.MainActivity")
		w, _ := started(t, response.Options{}, p)
		restarted := checked(t, w, CheckOptions{Name: "restarts"},
			func() { on(t, p, "am start -S -n com.shop/.MainActivity") })
		if restarted.Verdict != record.VerdictInconclusive ||
			!strings.Contains(restarted.Text, "restarted during the body (pid ") {
			t.Errorf("%s: %s", restarted.Verdict, restarted.Text)
		}
		short := checked(t, w, CheckOptions{Name: "short", Trend: true}, func() {})
		if short.Verdict != record.VerdictInconclusive || !strings.Contains(short.Text, "a trend needs 30 minutes") {
			t.Errorf("%s: %s", short.Verdict, short.Text)
		}
		ended := checked(t, w, CheckOptions{Name: "ends"}, func() { on(t, p, "am force-stop com.shop") })
		if ended.Verdict != record.VerdictNotChecked || len(ended.Processes) != 1 ||
			len(ended.Processes[0].Deaths) != 1 || !strings.Contains(ended.Text, "it ended during the body") {
			t.Errorf("%+v", ended)
		}
		if _, err := w.Stop("done"); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := androidsim.Options{Seed: 7, Serial: "S1"}
		o.Apps = []androidsim.App{
			{
				Package: "com.shop", Processes: []androidsim.ProcessSpec{healthy("com.shop")},
				Screens: []androidsim.Screen{{Class: ".MainActivity"}, {Class: ".LeakyActivity", Leaks: true}},
			},
		}
		p := cable(&simulated{Phone: androidsim.New(o)})
		on(t, p, "am start -n com.shop/.MainActivity")
		w, _ := started(t, response.Options{}, p)
		checked(t, w, CheckOptions{Name: "first"}, func() {})
		on(t, p, "am start -n com.shop/.LeakyActivity") // as in a BeforeEach that opens and closes the screen
		on(t, p, "input keyevent BACK")
		const want = "had 1 Activity without a window before the body, and no heap dump could show whether they " +
			"leak: com.shop is not debuggable"
		if got := checked(t, w, CheckOptions{Name: "second"}, func() {}); got.Verdict != record.VerdictInconclusive ||
			!strings.Contains(got.Text, want) {
			t.Errorf("%s: %s", got.Verdict, got.Text)
		}
		if got := checked(t, w, CheckOptions{Name: "third"}, func() {}); got.Verdict != record.VerdictPass {
			t.Errorf("the leak was reported again: %s: %s", got.Verdict, got.Text)
		}
		if _, err := w.Stop("done"); err != nil {
			t.Error(err)
		}
	})
}

// With Live, a spec in which the process is LEAKING fails, even if there are
// few samples.
func TestCheckLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Native, 400),
			healthy("com.shop:push")))
		w, _ := started(t, response.Options{}, p)
		early := checked(t, w, CheckOptions{Name: "early", Live: true}, func() { time.Sleep(time.Minute) })
		time.Sleep(2 * time.Hour)
		late := checked(t, w, CheckOptions{Name: "late", Live: true}, func() { time.Sleep(time.Minute) })
		if early.Verdict == record.VerdictLeak || late.Verdict != record.VerdictLeak ||
			late.Text != "com.shop: was LEAKING during the check" {
			t.Errorf("early %s: %s; late %s: %s", early.Verdict, early.Text, late.Verdict, late.Text)
		}
		if _, err := w.Stop("done"); err != nil {
			t.Error(err)
		}
	})
}

// A process that starts during a check is found immediately, and its end is
// recorded with the reason.
func TestCheckOfRestartedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()),
			androidsim.ProcessSpec{
				Name: "com.shop", RestartAfter: 2 * time.Second, Models: healthy("com.shop").Models,
			}))
		w, _ := started(t, response.Options{}, p)
		time.Sleep(time.Minute)
		c, err := w.Check(t.Context(), CheckOptions{Name: "crashes"})
		if err != nil {
			t.Fatal(err)
		}
		p.Kill("com.shop")
		time.Sleep(3 * time.Second)
		if err := c.Collect(t.Context()); err != nil {
			t.Fatal(err)
		}
		got, err := c.Close(t.Context(), record.OutcomeFailed, "boom")
		if err != nil || len(got.Processes) != 1 || len(got.Processes[0].Deaths) != 1 ||
			got.Processes[0].Deaths[0].Reason == "" || got.Stack != "boom" {
			t.Errorf("%+v, %v", got, err)
		}
		none, err := w.Check(t.Context(), CheckOptions{Name: "other", Patterns: []capture.Pattern{"com.other"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := none.Collect(t.Context()); err != nil {
			t.Error(err)
		}
		if got, err := none.Close(t.Context(), "", ""); err != nil || got.Verdict != record.VerdictNotChecked {
			t.Errorf("%+v, %v", got, err)
		}
		if run, err := w.Stop("done"); err != nil || run.ExitCode == record.ExitLeak {
			t.Errorf("exit %d, %v", run.ExitCode, err)
		}
	})
}
