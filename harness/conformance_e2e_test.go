//go:build linux && realtime && e2e

package harness_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
	"github.com/onsi/ginkgo/v2/types"
)

// cartOptions returns the options of a phone that has a user build, the app of
// the suites, and screens that crash or block.
func cartOptions(serial string) androidsim.Options {
	steady := []androidsim.Model{
		androidsim.Typical(), androidsim.GCSawtooth(4, 2*time.Minute), androidsim.Noise(0.3, 0.7),
	}
	return androidsim.Options{
		Serial: serial, API: 34, Scale: phoneSpeed, Seed: 1,
		Apps: []androidsim.App{{
			Package: "com.cart", Debuggable: true,
			Processes: []androidsim.ProcessSpec{
				{Name: "com.cart", Models: steady},
				{Name: "com.cart:sync", RestartAfter: 5 * time.Second, Models: steady},
			},
			Screens: []androidsim.Screen{
				{Class: ".MainActivity", Views: 120}, {Class: ".CartActivity", Views: 60},
				{Class: ".ProductActivity", Lingers: 3 * time.Second},
				{Class: ".CheckoutActivity", Leaks: true}, {Class: ".CrashActivity", Crashes: true},
				{Class: ".StuckActivity", ANR: true},
			},
		}},
	}
}

func cartPhone(serial string) *androidsim.Phone { return androidsim.New(cartOptions(serial)) }

// newest holds the programs built with the newest Ginkgo and Gomega that the
// project is tested with.
var newest = sync.OnceValues(func() (programs, error) {
	folder, err := buildFolder()
	if err != nil {
		return programs{}, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join("..", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			return programs{}, err
		}
	}
	modfile := filepath.Join(folder, "go.mod")
	get := goCommand("get", "-modfile", modfile, "github.com/onsi/ginkgo/v2@v2.34.0", "github.com/onsi/gomega@v1.44.0")
	if out, err := get.CombinedOutput(); err != nil {
		return programs{}, fmt.Errorf("get the newest Ginkgo: %w: %s", err, out)
	}
	return build(modfile)
})

// versions runs do with each version of Ginkgo. The argument of do returns a
// bench with the given phones.
func versions(t *testing.T, do func(t *testing.T, with func(phones ...adbd.Phone) *bench)) {
	for name, of := range map[string]func() (programs, error){"pinned": current, "newest": newest} {
		t.Run(name, func(t *testing.T) {
			do(t, func(phones ...adbd.Phone) *bench {
				p, err := of()
				if err != nil {
					t.Fatal(err)
				}
				b := newBench(t, phones...)
				b.programs = p
				return b
			})
		})
	}
}

// The newest Ginkgo runs a suite the same way as the version in go.mod, and its
// JUnit report contains the entries.
func TestNewestGinkgo(t *testing.T) {
	p, err := newest()
	if err != nil {
		t.Fatal(err)
	}
	phone := demoPhone(t)
	b := newBench(t, phone)
	b.programs = p
	plain := testNames(b.run(t, child{scenario: "shop", args: []string{"--dry-run"}, plain: true}))
	for _, args := range [][]string{nil, {"-p", "--procs=3"}} {
		r := b.run(t, child{scenario: "shop", args: args})
		assertContains(t, "the console", r.console, "Ran 18 of 19 Specs")
		checkShop(t, r)
		if got := testNames(r); !slices.Equal(got, plain) {
			t.Errorf("got test names %q\nwant, as without leakgate, %q", got, plain)
		}
		for _, c := range r.junit {
			if c.Name != "[It] cart checks out" {
				continue
			}
			found := false
			for _, p := range c.Properties {
				found = found || strings.Contains(p.Value, `"verdict":"leak"`) &&
					strings.Contains(p.Value, "CheckoutActivity")
			}
			if !found {
				t.Errorf("unexpected properties in the JUnit report: %+v", c.Properties)
			}
		}
	}
	checkPhone(t, phone)
}

// wantNodes maps the specs of the scenario nodes to their expected verdicts.
func wantNodes() map[string]record.CheckVerdict {
	out := map[string]record.CheckVerdict{
		"stopped by a cleanup of the spec leaks":             record.VerdictLeak,
		"driven just before each leaks":                      record.VerdictLeak,
		"driven just after each is clean":                    record.VerdictPass,
		"failed before each leaks":                           record.VerdictLeak,
		"single spec must pass twice and leaks":              record.VerdictLeak,
		"single spec leaks on its first attempt":             record.VerdictLeak,
		"single spec skips itself":                           record.VerdictPass,
		"single spec leaks and skips itself":                 record.VerdictLeak,
		"single spec leaks and panics":                       record.VerdictLeak,
		"single spec is labeled":                             record.VerdictPass,
		"single spec leaks and takes too long":               record.VerdictLeak,
		"single spec leaks in a process that is not checked": record.VerdictPass,
		"single spec is clean at the end":                    record.VerdictPass,
		"single spec is clean and has a time limit":          record.VerdictPass,
		"single spec leaks in a node that takes too long":    record.VerdictLeak,
		"table leaks an accepted class":                      record.VerdictKnown,
	}
	for _, container := range []string{
		"started before each", "stopped after each", "stopped by a cleanup", "started before all",
		"started once ordered container", "table",
	} {
		out[container+" leaks"], out[container+" is clean"] = record.VerdictLeak, record.VerdictPass
	}
	return out
}

// With nodes of each type, a spec that leaks fails, whichever node starts and
// stops the app.
func TestAllNodes(t *testing.T) {
	versions(t, func(t *testing.T, with func(...adbd.Phone) *bench) {
		for _, args := range [][]string{nil, {"--procs=3"}, {"--randomize-all", "--seed=5"}} {
			phone := demoPhone(t)
			b := with(phone)
			r := b.run(t, child{scenario: "nodes", args: args})
			want := wantNodes()
			if got := r.verdicts(t); !maps.Equal(got, want) {
				for name, v := range want {
					if got[name] != v {
						t.Errorf("%v: %s is %q, want %q", args, name, got[name], v)
					}
				}
				t.Errorf("%v: %d verdicts, want %d", args, len(got), len(want))
			}
			for name, v := range want {
				if s := r.spec(t, name); s.Failed() != (v == record.VerdictLeak) {
					t.Errorf("%v: %s is %v with verdict %s", args, name, s.State, v)
				}
			}
			for name, own := range map[string]string{
				"failed before each leaks": "no network", "leaks and panics": "",
				"leaks and takes too long":      "A spec timeout occurred",
				"in a node that takes too long": "A node timeout occurred",
			} {
				if s := r.spec(t, name); !strings.HasPrefix(s.Failure.Message, own) ||
					strings.Contains(s.Failure.Message, "CheckoutActivity") {
					t.Errorf("%v: %s fails with %q", args, name, s.Failure.Message)
				}
			}
			failed, verdict := r.verdict()
			if !failed || r.code != 1 {
				t.Errorf("%v: exit %d, want 1 and a failed suite: %s", args, r.code, verdict)
			}
			assertContains(t, "the verdict on the suite", verdict, "failed before each leaks: com.cart: leaks",
				"leaks and panics: com.cart: leaks", "leaks and takes too long: com.cart: leaks",
				"before the check of ")
			checkPhone(t, phone)
		}
	})
}

// A leak in a spec without a check fails the suite but none of the checked
// specs. A leak that is older than the suite causes no failure.
func TestLeakOlderThanSuite(t *testing.T) {
	b := newBench(t, demoPhone(t))
	first := b.run(t, child{scenario: "old", args: []string{"--skip=unseen"}})
	if _, verdict := first.verdict(); first.code != 0 {
		t.Errorf("a leak that existed before the suite: exit %d, want 0: %s", first.code, verdict)
	} else {
		assertContains(t, "the verdict on the suite", verdict,
			"before the check of app is clean at first: com.cart: leaked 1 x CheckoutActivity")
	}
	r := b.run(t, child{scenario: "old"})
	failed, verdict := r.verdict()
	if !failed || len(r.failures()) != 0 || r.code != 1 {
		t.Errorf("exit %d, failed: %q", r.code, r.failures())
	}
	assertContains(t, "the verdict on the suite", verdict,
		"before the check of app is clean: com.cart: leaked 1 x CheckoutActivity, held by ScreenTracker.sScreens")
}

// TestSelections runs selected specs, and specs that are repeated in the
// different ways that Ginkgo offers.
func TestSelections(t *testing.T) {
	for _, c := range []struct {
		child
		phone  bool
		code   int
		failed []string
		runs   int
		suites int
	}{
		{child{scenario: "chosen"}, true, 1, []string{"app is chosen"}, 1, 1},
		{child{scenario: "simple", args: []string{"--focus=is clean"}}, true, 0, []string{}, 1, 1},
		{child{scenario: "simple", args: []string{"--skip=leaks"}}, true, 0, []string{}, 1, 1},
		{child{scenario: "nodes", args: []string{"--label-filter=slow"}}, true, 0, []string{}, 1, 1},
		{child{scenario: "clean", args: []string{"--repeat=1"}}, true, 0, []string{}, 2, 1},
		{child{scenario: "clean", args: []string{"--repeat=1", "--procs=2"}}, true, 0, []string{}, 2, 1},
		{child{scenario: "simple", args: []string{"--focus=no such spec"}}, false, 0, []string{}, 0, 1},
		{child{scenario: "simple", args: []string{"--dry-run"}}, false, 0, []string{}, 0, 1},
		{child{scenario: "nodes", args: []string{"--dry-run"}}, false, 0, []string{}, 0, 1},
		{child{scenario: "unchecked"}, false, 0, []string{}, 0, 1},
		{child{scenario: "unchecked", args: []string{"--procs=2"}}, false, 0, []string{}, 0, 1},
	} {
		b := newBench(t)
		if c.phone {
			b = newBench(t, demoPhone(t))
		}
		r := b.run(t, c.child)
		if r.code != c.code || !slices.Equal(r.failures(), c.failed) || len(r.runs()) != c.runs ||
			len(r.suites) != c.suites {
			t.Errorf("%s %q: exit %d, failed %q, runs %q, %d suites", c.scenario, c.args, r.code, r.failures(),
				r.runs(), len(r.suites))
		}
	}
}

// TestBeforeSuite checks a BeforeSuite that fails or is skipped, and one that
// uses the device before it is ready.
func TestBeforeSuite(t *testing.T) {
	none := newBench(t)
	for _, args := range [][]string{nil, {"--procs=2"}} {
		r := none.run(t, child{scenario: "before", args: args, env: []string{"SUITE_BEFORE=fail"}})
		if r.code != 1 || len(r.runs()) != 0 {
			t.Errorf("%q: exit %d, runs %q", args, r.code, r.runs())
		}
		assertLacks(t, "the console", r.console, "no device")
		r = none.run(t, child{scenario: "before", args: args, env: []string{"SUITE_BEFORE=skip"}})
		if r.code != 0 {
			t.Errorf("%q: exit %d", args, r.code)
		}
		r = none.run(t, child{scenario: "before", args: args, env: []string{"SUITE_BEFORE=skip", "CI=true"}})
		if failed, verdict := r.verdict(); !failed || r.code != 1 ||
			!strings.Contains(verdict, "nothing was checked: the suite was skipped in its BeforeSuite") {
			t.Errorf("%q: exit %d, %s", args, r.code, verdict)
		}
	}
}

// TestSuiteOptions checks options of a suite: starting in BeforeSuite, checking
// every spec, a list of accepted leaks, a directory for the runs, and ending
// the suite at the first failure.
func TestSuiteOptions(t *testing.T) {
	list := filepath.Join(t.TempDir(), "accepted.yaml")
	write := func(until string) {
		text := "version: 1\naccepted:\n  - { held: ScreenTracker.sScreens, reason: SHOP-14, owner: anna, until: " +
			until + " }\n"
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("2999-01-01")
	r := newBench(t, demoPhone(t)).run(t,
		child{scenario: "before", args: []string{"--procs=2"}, env: []string{"SUITE_BEFORE=start"}})
	if r.code != 0 || len(r.runs()) != 1 {
		t.Errorf("started in BeforeSuite: exit %d, runs %q, want 0 and one run", r.code, r.runs())
	}
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "unchecked", env: []string{"SUITE_OPTIONS=every"}})
	if e := entry(t, r.spec(t, "has no check")); e.Verdict != record.VerdictPass || r.code != 0 {
		t.Errorf("every spec: exit %d, %s", r.code, e)
	}
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "simple", env: []string{"SUITE_OPTIONS=accepted=" + list}})
	if e := entry(t, r.spec(t, "leaks")); e.Verdict != record.VerdictKnown || r.code != 0 {
		t.Errorf("accepted: exit %d, %s", r.code, e)
	}
	write("2020-01-01")
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "simple", env: []string{"LEAKGATE_ACCEPTED=" + list}})
	if failed, verdict := r.verdict(); !failed || r.code != 1 ||
		!strings.Contains(verdict,
			"expired exception: ScreenTracker.sScreens (SHOP-14, owner anna, until 2020-01-01)") {
		t.Errorf("expired exception: exit %d, %s", r.code, verdict)
	}
	folder := t.TempDir()
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "clean", env: []string{"LEAKGATE_ARTIFACTS=" + folder}})
	if found := names(folder); len(found) != 1 || len(r.runs()) != 0 || r.code != 0 {
		t.Errorf("runs in another directory: exit %d, got %q there and %q in the default directory, want 1 and 0 runs",
			r.code, found, r.runs())
	}
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "nodes", args: []string{"--fail-fast"}})
	if got := r.failures(); len(got) != 1 || r.code != 1 {
		t.Errorf("fail fast: exit %d, failed %q, want 1 and one failed spec", r.code, got)
	}
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "simple", env: []string{"LEAKGATE_WAIT=perhaps"}})
	assertContains(t, "the console", r.console, `leakgate: environment LEAKGATE_WAIT: invalid value "perhaps": want true or false`)
	if r.code != 1 {
		t.Errorf("an invalid variable: exit %d, want 1", r.code)
	}
}

// The memory of a spec is judged if the spec lasts for 30 minutes or more; a
// shorter spec never passes silently.
func TestTrends(t *testing.T) {
	phone := androidsim.New(androidsim.Options{
		Serial: "S1", Scale: 400, Seed: 1, Root: true,
		Apps: []androidsim.App{{Package: "com.shop", Debuggable: true, Processes: []androidsim.ProcessSpec{
			{
				Name: "com.shop",
				Models: []androidsim.Model{
					androidsim.Typical(), androidsim.Noise(2, 0.7), androidsim.Leak(androidsim.Native, 600, 0),
				},
			},
		}}}})
	r := newBench(t, phone).run(t, child{scenario: "trends", env: []string{"SUITE_WATCHES=com.shop"}})
	short, long, live := entry(t, r.spec(t, "is short")), entry(t, r.spec(t, "is long")),
		entry(t, r.spec(t, "is LEAKING"))
	assertContains(t, "the short spec", short.Text, "com.shop: inconclusive: ", " of the 30 minutes that a trend needs")
	if short.Verdict != record.VerdictInconclusive || long.Verdict != record.VerdictLeak ||
		live.Verdict != record.VerdictLeak {
		t.Errorf("%s\n%s\n%s", short, long, live)
	}
	assertContains(t, "the LEAKING spec", live.Text, "was LEAKING during the check")
	if failed, verdict := r.verdict(); !failed || r.code != 1 || !strings.Contains(verdict, "com.shop: leak: ") {
		t.Errorf("exit %d, %s", r.code, verdict)
	}
	checkPhone(t, phone)
}

// Without a usable device the suite fails and reports the reason.
func TestNoDevice(t *testing.T) {
	state := func(s string) *androidsim.Phone {
		p := cartPhone("S1")
		p.SetAdbState(s)
		return p
	}
	for name, c := range map[string]struct {
		phones []adbd.Phone
		words  string
	}{
		"none":         {nil, "no device"},
		"unauthorized": {[]adbd.Phone{state(adbd.StateUnauthorized)}, "has not authorized this computer"},
		"offline":      {[]adbd.Phone{state(adbd.StateOffline)}, "offline"},
	} {
		for _, args := range [][]string{nil, {"--procs=2"}} {
			r := newBench(t, c.phones...).run(t, child{scenario: "before", args: args})
			failed, verdict := r.verdict()
			if !failed || r.code != 1 || len(r.failures()) != 2 {
				t.Errorf("%s %q: exit %d, failed %q", name, args, r.code, r.failures())
			}
			assertContains(t, name, verdict, "start the watch: ", c.words)
			assertContains(t, name, r.spec(t, "is clean").Failure.Message, "leakgate: start the watch: ", c.words)
		}
	}
}

// leave lets a waiting spec continue.
func leave(t *testing.T, marks, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(marks, name+".go"), nil, 0o600); err != nil {
		t.Error(err)
	}
}

// awaitMark waits until a spec sets a mark, and returns the name of the mark.
func (r *running) awaitMark(t *testing.T, marks, name string) string {
	t.Helper()
	for end := time.Now().Add(childTime / 2); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(marks, name)); err == nil && len(text) > 0 {
			return string(text)
		}
	}
	r.signal(t, syscall.SIGKILL)
	t.Fatalf("no spec reached %s:\n%s", name, r.console)
	return ""
}

// Two suites on one computer never drive the same phone at the same time: the
// second suite fails with advice, or waits.
func TestTwoSuites(t *testing.T) {
	phone := demoPhone(t)
	b := newBench(t, phone)
	marks := t.TempDir()
	first := b.start(t, child{scenario: "holding", env: []string{"SUITE_MARKS=" + marks}})
	first.awaitMark(t, marks, "waits")
	beside := child{scenario: "clean", dead: true} // while the first is still running
	second := b.start(t, beside)
	if err := second.cmd.Wait(); err == nil {
		t.Error("the second suite passed, want a failure")
	}
	assertContains(t, "the second suite", second.console.String(), "is in use by leakgate \"suite Shop suite\" (pid ",
		"not checked: start the watch: device \"demo-phone\" is in use", "wait with LEAKGATE_WAIT=true")
	beside.env = []string{"LEAKGATE_WAIT=true"}
	third := b.start(t, beside)
	time.Sleep(2 * time.Second)
	leave(t, marks, "waits")
	if r := first.finishBeside(t); r.code != 0 {
		t.Errorf("the first suite exited with %d, want 0", r.code)
	}
	if r := third.finish(t); r.code != 0 {
		t.Errorf("the waiting suite exited with %d, want 0", r.code)
	}
}

// finishBeside waits until a child exits while another one is still running.
func (r *running) finishBeside(t *testing.T) result {
	t.Helper()
	_ = r.cmd.Wait()
	out := result{console: r.console.String(), code: r.cmd.ProcessState.ExitCode(), folder: r.cmd.Dir}
	out.read(t)
	return out
}

// A suite that is interrupted from outside records its run, reports its
// findings, and leaves nothing behind.
func TestInterruptions(t *testing.T) {
	for _, args := range [][]string{nil, {"--procs=3"}} {
		for _, times := range []int{1, 2} {
			phone := demoPhone(t)
			b := newBench(t, phone)
			marks := t.TempDir()
			name := map[int]string{1: "paused", 2: "cleaned"}[times]
			r := b.start(t, child{scenario: name, args: args, env: []string{"SUITE_MARKS=" + marks}})
			r.awaitMark(t, marks, "waits")
			r.signal(t, syscall.SIGINT)
			if times == 2 {
				r.awaitMark(t, marks, "cleanup")
				r.signal(t, syscall.SIGINT)
			}
			began := time.Now()
			out := r.finish(t)
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%q, %d signals: ended after %v", args, times, took)
			}
			if out.code != 1 || len(out.runs()) != 1 {
				t.Errorf("%q, %d signals: exit %d, runs %q", args, times, out.code, out.runs())
				continue
			}
			run, err := record.ReadRun(out.runs()[0])
			if err != nil || run.ExitCode != record.ExitInterrupted || len(run.Checks) != 1 {
				t.Errorf("%q, %d signals: %v, exit code %d, checks %+v", args, times, err, run.ExitCode, run.Checks)
			}
			if s := out.spec(t, "waits"); s.State != types.SpecStateInterrupted {
				t.Errorf("%q, %d signals: the spec is %v", args, times, s.State)
			}
			checkPhone(t, phone)
		}
	}
}

// TestSuiteTimeout runs a suite that reaches its timeout.
func TestSuiteTimeout(t *testing.T) {
	phone := demoPhone(t)
	b := newBench(t, phone)
	marks := t.TempDir()
	out := b.run(t, child{scenario: "paused", args: []string{"--timeout=5s"}, env: []string{"SUITE_MARKS=" + marks}})
	_, verdict := out.verdict()
	if out.code != 1 {
		t.Errorf("exit %d", out.code)
	}
	assertContains(t, "the verdict on the suite", verdict, "waits: com.cart: leaks 1 x CheckoutActivity")
	assertContains(t, "the console", out.console, "A suite timeout occurred", "leakgate: ", "MB/h")
	checkPhone(t, phone)
}

// On a signal, each process of the suite prints the state of the watched
// processes.
func TestProgressTable(t *testing.T) {
	for _, args := range [][]string{nil, {"--procs=3"}} {
		phone := demoPhone(t)
		b := newBench(t, phone)
		marks := t.TempDir()
		r := b.start(t, child{scenario: "paused", args: args, env: []string{"SUITE_MARKS=" + marks}})
		pid := r.awaitMark(t, marks, "waits")
		for _, p := range b.processes() {
			if strings.Contains(p, "suite.test") && !strings.Contains(p, "ginkgo run") {
				var n int
				fmt.Sscan(p, &n)
				if err := syscall.Kill(n, syscall.SIGUSR1); err != nil {
					t.Error(err)
				}
			}
		}
		r.await(t, "leakgate: 2 processes, run in ")
		r.await(t, "com.cart  pid ")
		if len(args) > 0 {
			r.await(t, "leakgate: waiting for the device, which \"app waits\" (process ")
		}
		leave(t, marks, "waits")
		if out := r.finish(t); out.code != 1 || pid == "" {
			t.Errorf("exit %d", out.code)
		}
	}
}

// A phone is unplugged during the suite, and in some cases plugged in again.
func TestUnplugged(t *testing.T) {
	for _, back := range []bool{false, true} {
		phone := demoPhone(t)
		b := newBench(t, phone)
		marks := t.TempDir()
		r := b.start(t, child{scenario: "paused", env: []string{"SUITE_MARKS=" + marks}})
		r.awaitMark(t, marks, "waits")
		b.server.Remove(phone)
		if back {
			time.Sleep(2 * time.Second)
			b.server.Add(phone)
			time.Sleep(2 * time.Second)
		}
		leave(t, marks, "waits")
		began := time.Now()
		out := r.finish(t)
		if took := time.Since(began); took > 60*time.Second {
			t.Errorf("phone plugged in again: %v: the suite took %v to end, want at most 60s", back, took)
		}
		e := entry(t, out.spec(t, "waits"))
		switch {
		case back && e.Verdict != record.VerdictLeak:
			t.Errorf("plugged in again: %s: %s", e.Verdict, e.Text)
		case !back &&
			(e.Verdict != record.VerdictNotChecked && e.Verdict != record.VerdictInconclusive || out.code != 1):
			t.Errorf("unplugged: exit %d, %s: %s", out.code, e.Verdict, e.Text)
		}
	}
}

// An app that crashes or blocks is reported with its spec and does not affect
// the next spec.
func TestCrashes(t *testing.T) {
	phone := cartPhone("S1")
	r := newBench(t, phone).run(t, child{scenario: "crashes"})
	for name, reason := range map[string]string{"crashes": "crash", "blocks": "anr"} {
		s := r.spec(t, name)
		e := entry(t, s)
		found := false
		for _, p := range e.Processes {
			for _, d := range slices.Concat(p.Deaths, p.Faults) {
				found = found || d.Reason == reason
			}
		}
		if !found {
			t.Errorf("%s: %+v", name, e)
		}
		_, verdict := r.verdict()
		assertContains(t, "the verdict on the suite", verdict, name+": com.cart, pid ", reason)
		assertContains(t, "the console", r.console, ": "+reason+": ")
	}
	for _, name := range []string{"is clean", "is clean after it", "is clean at the end"} {
		if e := entry(t, r.spec(t, name)); e.Verdict != record.VerdictPass {
			t.Errorf("%s: %s", name, e)
		}
	}
	checkPhone(t, phone)
}

// If the heap of an app cannot be dumped, the check is inconclusive, and its
// message contains the counts and advice. In strict mode it fails.
func TestNotDebuggable(t *testing.T) {
	o := cartOptions("S1")
	o.Apps[0].Debuggable = false
	for _, strict := range []bool{false, true} {
		c := child{scenario: "simple"}
		if strict {
			c.env = []string{"SUITE_OPTIONS=strict"}
		}
		r := newBench(t, androidsim.New(o)).run(t, c)
		e := entry(t, r.spec(t, "leaks"))
		assertContains(t, "the entry", e.Text,
			"no heap dump could show whether something leaks: com.cart is not debuggable: use a debuggable build",
			"Activities 1 -> 2")
		if e.Verdict != record.VerdictInconclusive || r.spec(t, "leaks").Failed() != strict || (r.code == 1) != strict {
			t.Errorf("strict %v: exit %d, %s", strict, r.code, e.Verdict)
		}
		assertContains(t, "the console", r.console,
			"inconclusive: com.cart: no heap dump could show whether something leaks: com.cart is not debuggable")
		if e := entry(t, r.spec(t, "is clean")); e.Verdict != record.VerdictPass {
			t.Errorf("%s", e)
		}
	}
}

// A pattern that matches no process fails the suite, and the message lists the
// running processes.
func TestPatternWithoutProcess(t *testing.T) {
	r := newBench(t, demoPhone(t)).run(t, child{scenario: "clean", env: []string{"SUITE_WATCHES=com.carts"}})
	failed, verdict := r.verdict()
	if !failed || r.code != 1 {
		t.Errorf("exit %d", r.code)
	}
	assertContains(t, "the verdict on the suite", verdict,
		"no process matched com.carts; running processes with similar names: com.cart",
		"4 not checked")
	r = newBench(t, demoPhone(t)).run(t, child{scenario: "clean", env: []string{"SUITE_OPTIONS=process=com.nothing"}})
	failed, verdict = r.verdict()
	if !failed || r.code != 1 {
		t.Errorf("exit %d", r.code)
	}
	assertContains(t, "the verdict on the suite", verdict, "no process matched com.nothing")
}

// A spec in which no process was read is not checked. The console and the
// verdict on the suite report this.
func TestSpecWithoutProcess(t *testing.T) {
	o := cartOptions("S1")
	o.Apps[0].Processes = o.Apps[0].Processes[:1]
	r := newBench(t, androidsim.New(o)).run(t, child{scenario: "gone"})
	_, verdict := r.verdict()
	for _, name := range []string{"has no app", "has no app at all"} {
		if e := entry(t, r.spec(t, name)); e.Verdict != record.VerdictNotChecked {
			t.Errorf("%s: %s", name, e)
		}
		assertContains(t, "the verdict on the suite", verdict, name+": ")
	}
	assertContains(t, "the console", r.console, "not checked: ")
	assertContains(t, "the verdict on the suite", verdict, "2 not checked")
	if r.code != 0 {
		t.Errorf("exit %d", r.code)
	}
}

// With two devices, each spec uses one of them, and specs run on both at the
// same time.
func TestDevicePool(t *testing.T) {
	r := newBench(t, cartPhone("S1"), cartPhone("S2")).run(t, child{scenario: "pool", args: []string{"--procs=2"}})
	used := map[string]int{}
	for _, s := range r.specs() {
		e := entry(t, s)
		used[e.Device]++
		for _, own := range s.ReportEntries {
			if own.Name == "serial" && own.Value.Representation != e.Device {
				t.Errorf("%s used device %s, but was checked on %s", s.FullText(), own.Value.Representation, e.Device)
			}
		}
	}
	if used["S1"] < 1 || used["S2"] < 1 || used["S1"]+used["S2"] != 6 {
		t.Errorf("devices %v", used)
	}
	if got := r.failures(); !slices.Equal(got, []string{"app drives c"}) || r.code != 1 {
		t.Errorf("exit %d, failed %q", r.code, got)
	}
	entries := newBench(t, cartPhone("S1"), cartPhone("S2")).
		run(t, child{scenario: "entries", args: []string{"--procs=2"}})
	if got := entries.failures(); !slices.Equal(got, []string{"table d"}) || entries.code != 1 ||
		len(entries.verdicts(t)) != 4 {
		t.Errorf("exit %d, failed %q, verdicts %v", entries.code, got, entries.verdicts(t))
	}
	one := newBench(t, cartPhone("S1"), cartPhone("S2")).
		run(t, child{scenario: "pool", args: []string{"--procs=2"}, env: []string{"SUITE_OPTIONS=device=S2"}})
	for _, s := range one.specs() {
		if e := entry(t, s); e.Device != "S2" {
			t.Errorf("%s was checked on %q", s.FullText(), e.Device)
		}
	}
}

// If a process of the suite is killed while it drives the device, the other
// processes continue with that device.
func TestKilledProcess(t *testing.T) {
	phone := demoPhone(t)
	b := newBench(t, phone)
	marks := t.TempDir()
	r := b.start(t,
		child{scenario: "held", dead: true, args: []string{"--procs=3"}, env: []string{"SUITE_MARKS=" + marks}})
	var pid int
	fmt.Sscan(r.awaitMark(t, marks, "third"), &pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	out := r.finish(t)
	if out.code != 1 {
		t.Errorf("exit %d", out.code)
	}
	// Ginkgo writes no report for a suite if one of the suite's processes is
	// killed.
	assertContains(t, "the console", out.console, "••", "a Ginkgo parallel process disappeared")
	checkPhone(t, phone)
}

// Background stress ends with its spec.
func TestBackground(t *testing.T) {
	phone := demoPhone(t)
	r := newBench(t, phone).run(t, child{scenario: "background"})
	if r.code != 0 {
		t.Errorf("exit %d, failed %q", r.code, r.failures())
	}
	for _, run := range r.runs() {
		logs, _ := filepath.Glob(filepath.Join(run, "workload*.log"))
		if len(logs) != 4 {
			t.Errorf("logs of workloads: %q", logs)
		}
	}
	checkPhone(t, phone)
}

// A suite can run tests that are written in Kotlin. The leaking test is named
// in Ginkgo's report and in the junit.xml of the run.
func TestInstrument(t *testing.T) {
	phone := demoPhone(t)
	r := newBench(t, phone).run(t, child{scenario: "tests"})
	if got := r.failures(); !slices.Equal(got, []string{"app runs tests"}) || r.code != 1 {
		t.Errorf("exit %d, failed %q", r.code, got)
	}
	assertContains(t, "the failure", r.spec(t, "runs tests").Failure.Message, "com.cart.CheckoutTest#pays",
		"leaks 1 x CheckoutActivity", "╰→ com.cart.CheckoutActivity instance")
	assertLacks(t, "the failure", r.spec(t, "runs tests").Failure.Message, "com.cart.CartTest#addsItem")
	entries := 0
	for _, e := range r.spec(t, "runs tests").ReportEntries {
		if strings.HasPrefix(e.Name, "leakgate com.cart.") {
			entries++
		}
	}
	if entries != 5 {
		t.Errorf("got %d report entries of tests, want 5", entries)
	}
	for _, run := range r.runs() {
		text, err := os.ReadFile(filepath.Join(run, "junit.xml"))
		if err != nil {
			t.Fatal(err)
		}
		assertContains(t, "junit.xml of the run", string(text), "com.cart.CheckoutTest", "pays", "CheckoutActivity")
	}
	checkPhone(t, phone)
}

// The matchers work alone and with Eventually and Consistently.
func TestMatchers(t *testing.T) {
	r := newBench(t, demoPhone(t)).run(t, child{scenario: "matchers"})
	want := []string{
		"app fails with the message of the matcher", "app requests a process that does not exist",
		"app requests several processes",
	}
	if got := r.failures(); !slices.Equal(got, want) || r.code != 1 {
		t.Errorf("exit %d, failed %q", r.code, got)
	}
	assertContains(t, "the failure of HaveLeaks", r.spec(t, "the message of the matcher").Failure.Message,
		"has 1 x CheckoutActivity, held by ScreenTracker.sScreens", "expected it not to have leaks", "GC Root: ")
	assertContains(t, "the failure of a missing process", r.spec(t, "that does not exist").Failure.Message,
		"read com.nothing: it has not been seen")
	several := r.spec(t, "requests several processes")
	assertContains(t, "the failure of several processes", several.Failure.Message,
		"2 processes match: name one of them")
	if several.RunTime > 10*time.Second {
		t.Errorf("the spec ran for %v, want at most 10s", several.RunTime)
	}
}

// Ordinary Go tests work without Ginkgo.
func TestForTest(t *testing.T) {
	phone := demoPhone(t)
	b := newBench(t, phone)
	r := b.run(t, child{scenario: "plain", alone: true, args: []string{"-test.run=TestPlain", "-test.v"}})
	if r.code != 1 {
		t.Errorf("exit %d", r.code)
	}
	assertContains(t, "the output", r.console, "--- FAIL: TestPlainLeak", "--- PASS: TestPlainClean",
		"--- FAIL: TestPlainFailure",
		leakText, "checked at ", "library_test.go:", "╰→ com.cart.CheckoutActivity instance", "the total is wrong")
	if n := strings.Count(r.console, "╰→ com.cart.CheckoutActivity instance"); n != 2 {
		t.Errorf("%d traces", n)
	}
	checkPhone(t, phone)
}

// Settings take precedence in this order, from highest to lowest: flag,
// environment, YAML file, code.
func TestPrecedence(t *testing.T) {
	o := cartOptions("S1")
	o.Apps[0].Debuggable = false // so that Strict has an effect
	file := filepath.Join(t.TempDir(), "leakgate.yaml")
	write := func(strict bool) string {
		text := fmt.Sprintf("version: 1\napp: { processes: [com.cart] }\nworkload: none\nduration: 1h\nstrict: %t\n",
			strict)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "config=" + file
	}
	for _, c := range []struct {
		name   string
		yaml   *bool
		code   string
		env    []string
		flags  []string
		strict bool
	}{
		{"nothing", nil, "", nil, nil, false},
		{"code", nil, "strict", nil, nil, true},
		{"YAML before code", new(false), "strict", nil, nil, false},
		{"YAML", new(true), "", nil, nil, true},
		{"environment before YAML", new(true), "", []string{"LEAKGATE_STRICT=false"}, nil, false},
		{"environment before code", nil, "strict", []string{"LEAKGATE_STRICT=false"}, nil, false},
		{
			"flag before environment", new(false), "", []string{"LEAKGATE_STRICT=false"},
			[]string{"--", "-leakgate.strict"}, true,
		},
		{
			"flag before all", new(true), "strict", []string{"LEAKGATE_STRICT=true"},
			[]string{"--", "-leakgate.strict=false"}, false,
		},
		{"flag that observes", nil, "strict", nil, []string{"--", "-leakgate.observe"}, false},
	} {
		words := c.code
		if c.yaml != nil {
			words += "," + write(*c.yaml)
		}
		r := newBench(t, androidsim.New(o)).
			run(t, child{scenario: "simple", args: c.flags, env: append(c.env, "SUITE_OPTIONS="+words)})
		if strict := r.spec(t, "leaks").Failed(); strict != c.strict || (r.code == 1) != c.strict {
			t.Errorf("%s: exit %d, strict %v", c.name, r.code, strict)
		}
	}
}

// Observe never fails a spec and reports everything.
func TestObserve(t *testing.T) {
	r := newBench(t, demoPhone(t)).run(t, child{scenario: "simple", env: []string{"LEAKGATE_OBSERVE=true"}})
	if r.code != 0 {
		t.Errorf("exit %d", r.code)
	}
	assertContains(t, "the console", r.console, leakText)
	if e := entry(t, r.spec(t, "leaks")); e.Verdict != record.VerdictLeak {
		t.Errorf("%s", e)
	}
}

// A spec of ten seconds in which one Activity leaks fails each time. A spec
// that ends on another screen, or leaves garbage, passes each time.
func TestRepeatedSpecs(t *testing.T) {
	rounds := 5
	if os.Getenv("LEAKGATE_E2E") == "long" {
		rounds = 100
	}
	phone := demoPhone(t)
	r := newBench(t, phone).run(t,
		child{scenario: "many", most: 15 * time.Minute, env: []string{fmt.Sprintf("SUITE_ROUNDS=%d", rounds)}})
	right := map[string]int{}
	for _, s := range r.specs() {
		e := entry(t, s)
		leaks := strings.Contains(s.FullText(), "CheckoutActivity")
		switch {
		case leaks && s.Failed() && strings.HasPrefix(s.Failure.Message, leakText) &&
			strings.Contains(s.Failure.Message, "╰→ com.cart.CheckoutActivity instance"):
			right["leaks"]++
		case !leaks && s.State == types.SpecStatePassed && e.Verdict == record.VerdictPass:
			right[s.LeafNodeText]++
		default:
			t.Errorf("%s: %s", s.FullText(), e)
		}
	}
	if len(right) != 3 || slices.Min(slices.Collect(maps.Values(right))) != rounds {
		t.Errorf("%v, want %d each", right, rounds)
	}
}

// For a spec that prints 8 MB, leakgate's own time, apart from reading the
// device, is less than a millisecond.
func TestOverhead(t *testing.T) {
	r := newBench(t, demoPhone(t)).run(t,
		child{
			scenario: "loud", alone: true, args: []string{"--ginkgo.json-report=out/report.json", "--ginkgo.succinct"},
		})
	var own, readings []time.Duration
	for _, s := range r.specs() {
		if len(s.CapturedGinkgoWriterOutput) < 8<<20 {
			t.Errorf("%s printed %d bytes", s.FullText(), len(s.CapturedGinkgoWriterOutput))
		}
		var nodes time.Duration
		for _, e := range s.SpecEvents {
			if e.SpecEventType == types.SpecEventNodeEnd &&
				strings.HasSuffix(e.CodeLocation.FileName, "watch_test.go") {
				nodes += e.Duration
			}
		}
		took := time.Duration(entry(t, s).Duration * float64(time.Second))
		own, readings = append(own, nodes-took), append(readings, took)
	}
	slices.Sort(own)
	slices.Sort(readings)
	if len(own) != 12 {
		t.Fatalf("%d specs", len(own))
	}
	t.Logf("leakgate's own time per spec: median %v, at most %v; device readings: median %v", own[6], own[11],
		readings[6])
	if own[6] > time.Millisecond {
		t.Errorf("leakgate adds %v per spec without the %v of readings, want at most 1ms", own[6], readings[6])
	}
}

// TestRoundTrips runs round trips in a suite: with a loop that leaves nothing
// behind, one that leaks screens, one that leaks native memory, and one that
// restarts the app.
func TestRoundTrips(t *testing.T) {
	phone := demoPhone(t)
	b := newBench(t, phone)
	for _, args := range [][]string{nil, {"--procs=2"}} {
		r := b.run(t, child{scenario: "trips", args: args})
		if got := r.failures(); !slices.Equal(got, []string{"app leaks", "app leaks native memory"}) || r.code != 1 {
			t.Errorf("%q: exit %d, failed %q", args, r.code, got)
		}
		assertContains(t, "the trip that leaks", r.spec(t, "app leaks").Failure.Message, "Activities +1 per loop",
			"ScreenTracker.sScreens (ArrayList): +10 objects",
			"expected it not to grow with every repetition")
		assertContains(t, "the trip that leaks native memory", r.spec(t, "leaks native memory").Failure.Message,
			"ative")
		checkPhone(t, phone)
	}
}
