package androidsim

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/analysis/hprof"
	"github.com/leakgate/leakgate/internal/hproftest"
)

const shopTests = "com.shop.test/androidx.test.runner.AndroidJUnitRunner"

// transcript is an output that can be read while it is being written.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *transcript) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// tested returns a phone with an app that has two processes and tests.
func tested(o Options, tests ...Test) *Phone {
	o.Apps = []App{{Package: "com.shop", Debuggable: true, Processes: []ProcessSpec{
		{Name: "com.shop", RestartAfter: 10 * time.Second, Models: []Model{Steady(JavaHeap, 4), Leak(Java, 3600, 0)}},
		{Name: "com.shop:push", RestartAfter: 10 * time.Second},
	}}}
	if o.Instrumentations == nil {
		o.Instrumentations = []Instrumentation{{}}
	}
	for n := range o.Instrumentations {
		i := &o.Instrumentations[n]
		i.Package, i.Target, i.Models = "com.shop.test", "com.shop", []Model{Steady(JavaHeap, 0.5)}
		i.Tests = tests
	}
	return New(o)
}

// threeTests returns a test that passes, one that leaks, and one of another
// class.
func threeTests() []Test {
	return []Test{
		{Name: "com.shop.CartTest#adds", Took: 2 * time.Second},
		{
			Name: "com.shop.CartTest#pays", Took: 1500 * time.Millisecond,
			Leaks: []LeakedActivities{{"com.shop.PayActivity", 2}},
		},
		{Name: "com.shop.LoginTest#signsIn"},
	}
}

// The output of a run has the format of AndroidJUnitRunner and am.
func TestInstrumentRaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := ask(t, tested(Options{}, threeTests()[:2]...), "am instrument -w -r "+shopTests)
		want := `INSTRUMENTATION_STATUS: class=com.shop.CartTest
INSTRUMENTATION_STATUS: current=1
INSTRUMENTATION_STATUS: id=AndroidJUnitRunner
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: stream=
com.shop.CartTest:
INSTRUMENTATION_STATUS: test=adds
INSTRUMENTATION_STATUS_CODE: 1
INSTRUMENTATION_STATUS: class=com.shop.CartTest
INSTRUMENTATION_STATUS: current=1
INSTRUMENTATION_STATUS: id=AndroidJUnitRunner
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: stream=.
INSTRUMENTATION_STATUS: test=adds
INSTRUMENTATION_STATUS_CODE: 0
INSTRUMENTATION_STATUS: class=com.shop.CartTest
INSTRUMENTATION_STATUS: current=2
INSTRUMENTATION_STATUS: id=AndroidJUnitRunner
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: stream=
INSTRUMENTATION_STATUS: test=pays
INSTRUMENTATION_STATUS_CODE: 1
INSTRUMENTATION_STATUS: class=com.shop.CartTest
INSTRUMENTATION_STATUS: current=2
INSTRUMENTATION_STATUS: id=AndroidJUnitRunner
INSTRUMENTATION_STATUS: numtests=2
INSTRUMENTATION_STATUS: stream=.
INSTRUMENTATION_STATUS: test=pays
INSTRUMENTATION_STATUS_CODE: 0
INSTRUMENTATION_RESULT: stream=

Time: 3.5

OK (2 tests)


INSTRUMENTATION_CODE: -1
`
		if out != want {
			t.Errorf("%s\nwant\n%s", out, want)
		}
	})
}

// Each outcome has the right output, both human-readable and in raw mode.
func TestInstrumentOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		tests   []Test
		options string
		human   string
		codes   []int
	}{
		"passes": {
			threeTests(), "", "\ncom.shop.CartTest:..\ncom.shop.LoginTest:.\n\nTime: 4.5\n\nOK (3 tests)\n\n\n",
			[]int{1, 0, 1, 0, 1, 0, -1},
		},
		"a class": {
			threeTests(), "-e class com.shop.CartTest", "\ncom.shop.CartTest:..\n\nTime: 3.5\n\nOK (2 tests)\n\n\n",
			[]int{1, 0, 1, 0, -1},
		},
		"a method": {
			threeTests(), "-e class com.shop.LoginTest,com.shop.CartTest#pays",
			"\ncom.shop.CartTest:.\ncom.shop.LoginTest:.\n\nTime: 2.5\n\nOK (2 tests)\n\n\n", []int{1, 0, 1, 0, -1},
		},
		"one test": {
			threeTests(), "-e class com.shop.CartTest#pays", "\ncom.shop.CartTest:.\n\nTime: 1.5\n\nOK (1 test)\n\n\n",
			[]int{1, 0, -1},
		},
		"no method": {threeTests(), "-e class com.shop.CartTest#none", "\n\nTime: 0\n\nOK (0 tests)\n\n\n", []int{-1}},
		"only a log": {
			threeTests(), "-e log true -e delay_msec 0",
			"\ncom.shop.CartTest:..\ncom.shop.LoginTest:.\n\nTime: 0\n\nOK (3 tests)\n\n\n",
			[]int{1, 0, 1, 0, 1, 0, -1},
		},
		"no class": {
			threeTests(), "-e class com.shop.NoTest",
			"\ncom.shop.NoTest:\nError in initializationError(com.shop.NoTest):\nSTACK\n\nTime: 0.001\nThere was 1 " +
				"failure:\n1) initializationError(com.shop.NoTest)\nSTACK\n\nFAILURES!!!\nTests run: 1,  Failures: " +
				"1\n\n\n",
			[]int{1, -2, -1}},
		"fails": {
			[]Test{{Name: "a.B#c", Outcome: TestFails}, {Name: "a.B#d", Outcome: TestFails, Took: 20 * time.Minute}},
			"",
			"\na.B:\nError in c(a.B):\nSTACK\n\nError in d(a.B):\nSTACK\n\n\nTime: 1,201\nThere were 2 failures:\n1) " +
				"c(a.B)\nSTACK\n2) d(a.B)\nSTACK\n\nFAILURES!!!\nTests run: 2,  Failures: 2\n\n\n",
			[]int{1, -2, 1, -2, -1}},
		// The name of the first class is printed twice, at the start and at the
		// end of the first test, because the end repeats the value printed at
		// the start.
		"skipped": {
			[]Test{
				{Name: "a.B#c", Outcome: TestIgnored}, {Name: "a.B#d", Outcome: TestAssumptionFails}, {Name: "a.B#e"},
			}, "",
			"\na.B:\na.B:.\n\nTime: 2\n\nOK (2 tests)\n\n\n", []int{1, -3, 1, -4, 1, 0, -1}},
		"crashes": {[]Test{{Name: "a.B#c"}, {Name: "a.B#d", Outcome: TestCrashes}, {Name: "a.B#e"}}, "",
			"\na.B:.INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n", []int{1, 0, 1, 0}},
		"not a number": {
			threeTests(), "-e delay_msec soon",
			"INSTRUMENTATION_RESULT: longMsg=java.lang.NumberFormatException: For input string: " +
				"\"soon\"\nINSTRUMENTATION_RESULT: shortMsg=java.lang.NumberFormatException\nINSTRUMENTATION_CODE: 0\n",
			[]int{0},
		},
		"negative number": {
			threeTests(), "-e delay_msec -1",
			"INSTRUMENTATION_RESULT: longMsg=java.lang.NumberFormatException: delay_msec can not be " +
				"negative\nINSTRUMENTATION_RESULT: shortMsg=java.lang.NumberFormatException\nINSTRUMENTATION_CODE: 0\n",
			[]int{0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tested(Options{}, c.tests...)
				out := stacks.ReplaceAllString(ask(t, p, "am instrument -w "+c.options+" "+shopTests), "STACK\n")
				if strings.ReplaceAll(out, "STACK\n\n\nTime", "STACK\n\nTime") != strings.ReplaceAll(c.human,
					"STACK\n\n\nTime", "STACK\n\nTime") {
					t.Errorf("%q\nwant\n%q", out, c.human)
				}
				raw := ask(t, p, "am instrument -r -w "+c.options+" "+shopTests)
				if got := codesOf(raw); !slices.Equal(got, c.codes) {
					t.Errorf("codes %v, want %v\n%s", got, c.codes, raw)
				}
				if left := pids(p)["com.shop"] + pids(p)["com.shop:push"]; left != 0 || len(p.runs) != 0 {
					t.Errorf("processes %v and %d runs remain", pids(p), len(p.runs))
				}
			})
		})
	}
}

var (
	stacks      = regexp.MustCompile(`(?m)^[a-z.]+\.[A-Z][A-Za-z]+(Error|Exception): .*\n(\t.*\n|Caused by: .*\n)+`)
	statusCodes = regexp.MustCompile(`(?m)^INSTRUMENTATION_(?:STATUS_)?CODE: (-?\d+)$`)
)

func codesOf(raw string) (out []int) {
	for _, m := range statusCodes.FindAllStringSubmatch(raw, -1) {
		var n int
		fmt.Sscan(m[1], &n)
		out = append(out, n)
	}
	return out
}

// Before Android 9 the values are in a different order.
func TestInstrumentOfOldReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := ask(t, tested(Options{API: 26}, Test{Name: "a.B#c", Outcome: TestFails}), "am instrument -r -w "+
			shopTests)
		keys := regexp.MustCompile(`(?m)^INSTRUMENTATION_STATUS: (\w+)=`).FindAllStringSubmatch(out, -1)
		var got []string
		for _, k := range keys[6:] {
			got = append(got, k[1])
		}
		if want := "numtests stream id test class stack current"; strings.Join(got, " ") != want {
			t.Errorf("%q, want %q\n%s", got, want, out)
		}
	})
}

// Errors before the start have am's messages and do not stop the app.
func TestInstrumentErrors(t *testing.T) {
	thrown := "android.util.AndroidException: INSTRUMENTATION_FAILED: com.none/com.none.Runner\n\tat "
	missing := "INSTRUMENTATION_STATUS: Error=Unable to find instrumentation info for: " +
		"ComponentInfo{com.none/com.none.Runner}\nINSTRUMENTATION_STATUS: " +
		"id=ActivityManagerService\nINSTRUMENTATION_STATUS_CODE: -1\n"
	synctest.Test(t, func(t *testing.T) {
		p := tested(Options{}, threeTests()...)
		p.opt.Instrumentations = append(p.opt.Instrumentations,
			Instrumentation{Package: "com.gone.test", Target: "com.gone"},
			Instrumentation{Package: "com.two.test", Runner: "a.B"},
			Instrumentation{Package: "com.two.test", Runner: "a.C"})
		before := pids(p)
		for _, c := range []struct {
			args, out, err string
			exit           int
		}{
			{"-w com.none/.Runner", missing, thrown, 1},
			{"com.none/.Runner", "", thrown, 1},
			{
				"-w -r com.none/.Runner",
				missing + "onError: commandError=true message=INSTRUMENTATION_FAILED: com.none/com.none.Runner\n",
				thrown, 1,
			},
			{
				"-w com.gone.test/" + usualRunner,
				"INSTRUMENTATION_STATUS: Error=Unable to find instrumentation target package: com.gone\n",
				"android.util.AndroidException: INSTRUMENTATION_FAILED: com.gone.test/", 1,
			},
			{
				"-w com.two.test", "Activity manager",
				"\nError: Found multiple instrumentations: com.two.test/a.B, com.two.test/a.C\n", 0,
			},
			{"-w com.none", "Activity manager", "\nError: No instrumentation found for: com.none\n", 0},
			{"-w com.none/", "Activity manager", "\nError: Bad component name: com.none/\n", 0},
			{"-w", "Activity manager", "\nError: Argument expected after \"-w\"\n", 0},
			{"-w -e class", "Activity manager", "\nError: Argument expected after \"class\"\n", 0},
			{"", "Activity manager", "\nError: Argument expected after \"instrument\"\n", 0},
			{"-x com.shop.test", "", "Error: Unknown option: -x\n", 0},
		} {
			a := sh1(t, p, "am instrument "+c.args)
			if !strings.HasPrefix(a.out, c.out) || c.out == "" && a.out != "" || !strings.HasPrefix(a.err, c.err) ||
				a.exit != c.exit {
				t.Errorf("%s: %+v", c.args, a)
			}
		}
		if after := pids(p); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("before %v, after %v", before, after)
		}
		p.CrashSystem(time.Minute)
		if a := sh1(t, p, "am instrument -w "+shopTests); a.exit != 1 || a.out != "" ||
			!strings.HasPrefix(a.err, "Error type 2\nandroid.util.AndroidException: Can't connect") {
			t.Errorf("without a system: %+v", a)
		}
	})
}

// The leaks of tests appear in dumpsys and in heap dumps, from the leaking test
// until the end of the process. The tests run in a new process, not in the one
// that was already running.
func TestInstrumentLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tested(Options{DumpsysTime: 1}, threeTests()...)
		time.Sleep(10 * time.Second)
		user := p.PID("com.shop")
		began := p.Uptime()
		var out transcript
		done := make(chan int)
		go func() {
			done <- p.Shell(t.Context(), "am instrument -w -r -e delay_msec 4000 com.shop.test", nil, &out, nil)
		}()
		until := func(at time.Duration) {
			t.Helper()
			time.Sleep(at - (p.Uptime() - began))
			synctest.Wait()
		}
		look := func(activities, views int, codes ...int) {
			t.Helper()
			text := ask(t, p, "dumpsys meminfo com.shop")
			if want := fmt.Sprintf("Activities: %8d\n", activities); !strings.Contains(text, want) ||
				!strings.Contains(text, fmt.Sprintf("Views: %8d ", views)) {
				t.Errorf("%v: want %d Activities, %d views\n%s", p.Uptime()-began, activities, views, text)
			}
			if got := codesOf(out.String()); !slices.Equal(got, codes) {
				t.Errorf("%v: codes %v, want %v", p.Uptime()-began, got, codes)
			}
		}
		until(2 * time.Second) // before the first test
		if pid := p.PID("com.shop"); pid == user || p.PID("com.shop:push") != 0 {
			t.Errorf("pid %d, before %d; %v", pid, user, pids(p))
		}
		look(0, 0)
		until(5 * time.Second) // adds runs: 4.5 to 6.5
		look(1, 120, 1)
		until(8 * time.Second) // the delay after the test
		look(0, 0, 1, 0)
		until(11 * time.Second) // pays runs: 10.5 to 12
		look(1, 120, 1, 0, 1)
		until(13 * time.Second)
		look(2, 50, 1, 0, 1, 0)
		g := takeDump(t, p, "-g") // lasts until 17
		leaks := g.Nodes[g.Path(g.Class("com.shop.PayActivity"), "sInstances.elementData")]
		held := 0
		for _, id := range leaks.Elements {
			if id == 0 {
				continue
			}
			held++
			if size := g.Retained(id); size != 2<<20 || g.Nodes[id].Class != "com.shop.PayActivity" {
				t.Errorf("%s retains %d bytes", g.Nodes[id].Class, size)
			}
		}
		if held != 2 || leakedIn(g) != nil || g.Class("com.shop.MainActivity") != 0 {
			t.Errorf("%d Activities are retained, %v from a leak model; want 2 and none", held, leakedIn(g))
		}
		m, _ := p.Memory("com.shop")
		if m.JavaHeap < 4500 || m.JavaHeap > 4800 {
			t.Errorf("got a Java heap of %d kB, want 4500 to 4800 kB", m.JavaHeap)
		}
		until(17200 * time.Millisecond) // signsIn: 16 to 17
		look(2, 50, 1, 0, 1, 0, 1, 0)
		if exit := <-done; exit != 0 || p.Uptime()-began != 21*time.Second ||
			!strings.Contains(out.String(), "\nTime: 20.5\n") {
			t.Errorf("exit %d after %v\n%s", exit, p.Uptime()-began, out.String())
		}
		if p.PID("com.shop") != 0 {
			t.Error("the process is still running after its tests")
		}
		time.Sleep(time.Hour)
		if p.PID("com.shop") != 0 {
			t.Error("a stopped package restarted by itself")
		}
		ask(t, p, "am start -n com.shop/.MainActivity")
		if n := activities(t, p); n != 1 {
			t.Errorf("a new process has %d Activities, want 1", n)
		}
	})
}

// Each orchestrated test has its own process, so a crash does not end other
// tests.
func TestInstrumentOrchestrated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tests := []Test{
			{Name: "a.B#c", Leaks: []LeakedActivities{{"com.shop.PayActivity", 5}}},
			{Name: "a.B#d", Outcome: TestCrashes}, {Name: "a.B#e"},
		}
		p := tested(Options{DumpsysTime: 1, Instrumentations: []Instrumentation{{Orchestrated: true}}}, tests...)
		var out transcript
		done := make(chan int)
		go func() {
			done <- p.Shell(t.Context(), "am instrument -w -r -e delay_msec 1000 com.shop.test", nil, &out, nil)
		}()
		seen := map[int]int{}
		for range 960 {
			time.Sleep(10 * time.Millisecond)
			if pid := p.PID("com.shop"); pid != 0 {
				seen[pid] = max(seen[pid], activities(t, p))
			}
		}
		counts := []int{}
		for _, n := range seen {
			counts = append(counts, n)
		}
		slices.Sort(counts)
		if exit := <-done; exit != 0 || !slices.Equal(counts, []int{1, 1, 5}) {
			t.Errorf("exit %d, Activities %v", exit, counts)
		}
		if got := codesOf(out.String()); !slices.Equal(got, []int{1, 0, 1, -2, 1, 0, -1}) ||
			!strings.Contains(out.String(),
				"stack=Test instrumentation process crashed. Check a.B#d.txt for details\n") ||
			!strings.Contains(out.String(), "Tests run: 3,  Failures: 1\n") {
			t.Errorf("codes %v\n%s", got, out.String())
		}
	})
}

// The tests end when the process ends or another run starts, but not when a
// client disconnects.
func TestInstrumentEnds(t *testing.T) {
	const crash = "INSTRUMENTATION_RESULT: shortMsg=Process crashed.\nINSTRUMENTATION_CODE: 0\n"
	for name, c := range map[string]struct {
		do   func(t *testing.T, p *Phone)
		want string
	}{
		"force-stop":  {func(t *testing.T, p *Phone) { ask(t, p, "am force-stop com.shop") }, crash},
		"kill":        {func(_ *testing.T, p *Phone) { p.Kill("com.shop") }, crash},
		"restart":     {func(_ *testing.T, p *Phone) { p.Restart("com.shop") }, crash},
		"another run": {func(t *testing.T, p *Phone) { ask(t, p, "am instrument com.shop.test") }, crash},
		"system crash": {
			func(_ *testing.T, p *Phone) { p.CrashSystem(time.Minute) },
			"INSTRUMENTATION_ABORTED: System has crashed.\n",
		},
		"other app": {func(t *testing.T, p *Phone) { ask(t, p, "am force-stop com.none") }, "OK (3 tests)\n\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := tested(Options{}, threeTests()...)
				var out transcript
				done := make(chan int)
				go func() { done <- p.Shell(t.Context(), "am instrument -w com.shop.test", nil, &out, nil) }()
				time.Sleep(3 * time.Second)
				c.do(t, p)
				if exit := <-done; exit != 0 || !strings.HasPrefix(out.String(), "\ncom.shop.CartTest:.") ||
					!strings.HasSuffix(out.String(), c.want) {
					t.Errorf("exit %d, %q", exit, out.String())
				}
				time.Sleep(time.Hour)
				p.Uptime()
				if pids(p); len(p.runs) != 0 {
					t.Errorf("%d runs remain", len(p.runs))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := tested(Options{DumpsysTime: 1}, threeTests()...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if exit := p.Shell(ctx, "am instrument -w com.shop.test", nil, &bytes.Buffer{}, nil); exit == 0 {
			t.Error("am exited successfully before the tests ended")
		}
		time.Sleep(3500 * time.Millisecond)
		if n := activities(t, p); n != 3 {
			t.Errorf("the tests did not continue: %d Activities", n)
		}
	})
}

func TestInstrumentationsAreInstalled(t *testing.T) {
	p := tested(Options{}, threeTests()...)
	for command, want := range map[string]string{
		"pm list instrumentation":          "instrumentation:" + shopTests + " (target=com.shop)\n",
		"pm list instrumentation com.none": "",
		"pm list packages -3":              "package:com.shop\npackage:com.shop.test\n",
		"pm path com.shop.test":            "package:/data/app/com.shop.test-1/base.apk\n",
	} {
		if got := ask(t, p, command); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// Android records the crash as a native one.
func TestInstrumentCrashIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tested(Options{}, Test{Name: "a.B#c", Outcome: TestCrashes})
		ask(t, p, "am instrument -w com.shop.test")
		if text := ask(t, p, "dumpsys activity exit-info com.shop"); !strings.Contains(text,
			"reason=5 (APP CRASH(NATIVE)) subreason=0 (UNKNOWN) status=11") ||
			!strings.Contains(text, "description=stop com.shop due to start instr") {
			t.Errorf("%s", text)
		}
		if log := ask(t, p, "logcat -d -b all"); !strings.Contains(log, "Fatal signal 11 (SIGSEGV)") ||
			!strings.Contains(log, "Force stopping com.shop appid=10123 user=0: start instr") {
			t.Errorf("%s", log)
		}
	})
}

// A class that both a model and a test leak is declared only once in the dump.
func TestInstrumentLeaksWhatAModelLeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tested(Options{},
			Test{
				Name: "a.B#c",
				Leaks: []LeakedActivities{
					{"com.shop.DetailActivity", 1}, {"com.shop.MainActivity", 2}, {"com.shop.DetailActivity", 1},
				},
			})
		p.opt.Instrumentations[0].Models = []Model{Leak(Java, 3600, 0)}
		var g *hproftest.Graph
		go p.Shell(t.Context(), "am instrument -e delay_msec 5000 com.shop.test", nil, &bytes.Buffer{}, nil)
		time.Sleep(7 * time.Second)
		g = takeDump(t, p, "-g")
		classes := 0
		for _, n := range g.Nodes {
			if n.Kind == hprof.SubClassDump && n.Class == "com.shop.DetailActivity" {
				classes++
			}
		}
		if leaked := leakedIn(g); classes != 1 || len(leaked) < 3 {
			t.Errorf("%d classes, %d leaked", classes, len(leaked))
		}
	})
}

// FuzzInstrument checks that arguments are either parsed completely or rejected
// with a reason, and that the selected tests exist.
func FuzzInstrument(f *testing.F) {
	for _, s := range []string{
		"-w -r -e class a.B#c,d.E com.shop.test", "-e", "-- x/y", "-w -e delay_msec 99999999999 x",
		"--user 0 --abi x -p y z", "--no-restart a", "-e log true -e class #,, b/",
	} {
		f.Add(s, 34)
	}
	f.Fuzz(func(t *testing.T, line string, api int) {
		args := strings.Fields(line)
		o, unknown, illegal := parseInstrument(args, api)
		switch {
		case unknown != "" && (illegal != "" || !slices.Contains(args, unknown) || !strings.HasPrefix(unknown, "-")):
			t.Fatalf("%q: unknown %q, %q", args, unknown, illegal)
		case illegal != "" && !strings.HasPrefix(illegal, "Argument expected after \""):
			t.Fatalf("%q: %q", args, illegal)
		case unknown == "" && illegal == "" && !slices.Contains(args, o.component):
			t.Fatalf("%q: component %q", args, o.component)
		}
		for key, value := range o.values {
			if illegal == "" && (!slices.Contains(args, key) || !slices.Contains(args, value)) {
				t.Fatalf("%q: -e %q %q", args, key, value)
			}
		}
		known := Instrumentation{Tests: threeTests()}
		for _, test := range known.chosen(o.values) {
			if !slices.ContainsFunc(known.Tests, func(k Test) bool { return k.Name == test.Name }) &&
				test.Outcome != testUnloadable && o.values["log"] != "true" {
				t.Fatalf("%q chooses %q", args, test.Name)
			}
		}
		if delay, illegal := testDelay(o.values["delay_msec"]); delay < 0 || delay > (1<<31-1)*time.Millisecond ||
			delay > 0 && illegal != "" {
			t.Fatalf("a delay of %v, %q", delay, illegal)
		}
	})
}
