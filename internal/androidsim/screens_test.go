package androidsim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/capture/dumpsys"
)

// cart returns a phone with an app that has one screen of each kind.
func cart(o Options, models ...Model) *Phone {
	o.Apps = append(o.Apps, App{
		Package: "com.cart", Debuggable: true,
		Processes: []ProcessSpec{
			{
				Name: "com.cart", RestartAfter: 10 * time.Second,
				Models: append([]Model{Steady(JavaHeap, 0.5)}, models...),
			},
			{Name: "com.cart:sync"},
		},
		Screens: []Screen{
			{Class: ".MainActivity", Views: 5},
			{Class: "com.cart.ui.DetailActivity", Leaks: true, JavaKB: 64},
			{Class: "LegacyActivity", Leaks: true, HeldBy: "LegacyPage.sInstance", Views: 9},
			{Class: ".SlowActivity", Lingers: 3 * time.Second, Views: 7},
			{Class: ".SearchActivity", JavaKB: 512, NativeKB: 300, Threads: 2},
			{Class: ".CrashActivity", Crashes: true},
			{Class: ".StuckActivity", ANR: true},
		},
	})
	return New(o)
}

// objectsOf returns the object counts in dumpsys meminfo by name.
func objectsOf(t *testing.T, p *Phone, process string, names ...string) (out []int64) {
	t.Helper()
	text := ask(t, p, "dumpsys meminfo "+process)
	m, err := dumpsys.ParseMeminfo([]byte(text))
	if err != nil || len(m.Blocks) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, name := range names {
		n, ok := m.Blocks[0].Objects[name]
		if !ok {
			t.Fatalf("no %s\n%s", name, text)
		}
		out = append(out, n)
	}
	return out
}

// dumpsys counts open, lingering and leaking instances at each step.
func TestScreens(t *testing.T) {
	for _, api := range []int{24, 34} {
		synctest.Test(t, func(t *testing.T) {
			p := cart(Options{API: api, DumpsysTime: 1})
			for _, step := range []struct {
				command           string
				activities, roots int64
				views, adj        int64
			}{
				{"true", 0, 0, 0, 900},
				{"am start -n com.cart/.MainActivity", 1, 1, 5, 0},
				{"am start -n com.cart/.ui.DetailActivity", 2, 2, 45, 0},
				{"am start -n com.cart/.ui.DetailActivity", 3, 3, 85, 0},
				{"input keyevent 4", 3, 2, 85, 0}, // the leaked instance remains
				{"input keyevent KEYCODE_BACK", 3, 1, 85, 0},
				{"am start -n com.cart/.LegacyActivity", 4, 2, 94, 0},
				{"input keyevent BACK", 4, 1, 94, 0},
				{"am start -n com.cart/com.cart.SlowActivity", 5, 2, 101, 0},
				{"input keyevent BACK", 5, 1, 101, 0}, // the instance lingers
				{"sleep 2.9", 5, 1, 101, 0},
				{"sleep 0.1", 4, 1, 94, 0},
				{"input keyevent 66", 4, 1, 94, 0},
				{"input keyevent HOME", 4, 1, 94, 700},
				{"input keyevent BACK", 4, 1, 94, 700}, // this closes the launcher's screen
				{"am start -n com.cart/.SearchActivity", 5, 2, 134, 0},
				{"input keyevent 4 4 4", 3, 0, 89, 900}, // closes the last screen, too
				{"am start com.cart", 4, 1, 94, 0},      // like tapping the app's icon
				{"monkey -p com.cart 1", 4, 1, 94, 0},
				{"am start -R 3 -n com.cart/.SearchActivity", 5, 2, 134, 0},
				{"am start --activity-clear-task -n com.cart/.MainActivity", 4, 1, 94, 0},
				{"am start -n com.cart/.ui.DetailActivity && am start -n com.cart/.SearchActivity", 6, 3, 174, 0},
				{"am start --activity-single-top -n com.cart/.SearchActivity", 6, 3, 174, 0},
				{"am start --activity-clear-top -n com.cart/.MainActivity", 5, 1, 134, 0}, // Detail has leaked again
				{"am start --activity-clear-top --activity-single-top -n com.cart/.MainActivity", 5, 1, 134, 0},
				{"am start -S -n com.cart/.MainActivity", 1, 1, 5, 0},
			} {
				if a := sh1(t, p, step.command); a.exit != 0 {
					t.Fatalf("%s: %+v", step.command, a)
				}
				n := objectsOf(t, p, "com.cart", "Activities", "ViewRootImpl", "Views", "AppContexts")
				if want := []int64{
					step.activities, step.roots, step.views, step.activities + 4,
				}; !slices.Equal(n, want) {
					t.Errorf("API %d: %s: %v, want %v", api, step.command, n, want)
				}
				if adj := strings.TrimSpace(
					ask(t, p, fmt.Sprintf("cat /proc/%d/oom_score_adj", p.PID("com.cart")))); adj != fmt.Sprint(
					step.adj) {
					t.Errorf("API %d: %s: oom_score_adj %s, want %d", api, step.command, adj, step.adj)
				}
			}
			if n := objectsOf(t, p, "com.cart:sync", "Activities", "ViewRootImpl", "Views"); !slices.Equal(n,
				[]int64{0, 0, 0}) {
				t.Errorf("got objects %v in another process, want none", n)
			}
		})
	}
}

// Screens end with their process, however it ends; switching to another app
// stops them without closing them.
func TestScreensEndWithTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart(Options{
			DumpsysTime: 1, Apps: []App{{Package: "com.shop", Processes: []ProcessSpec{{Name: "com.shop"}}}},
		})
		for name, end := range map[string]func(){
			"killed":       func() { p.Kill("com.cart") },
			"stopped":      func() { ask(t, p, "am force-stop com.cart") },
			"system crash": func() { p.CrashSystem(0) },
			"reboot":       func() { p.Reboot() },
			"restart":      func() { p.Restart("com.cart") },
		} {
			ask(t, p,
				"am start -n com.cart/.MainActivity; am start -n com.cart/.ui.DetailActivity; input keyevent 4; am "+
					"start -n com.cart/.SlowActivity; input keyevent 4")
			if n := objectsOf(t, p, "com.cart", "Activities"); n[0] != 3 {
				t.Fatalf("Activities before the process ends (%s): %d", name, n[0])
			}
			end()
			time.Sleep(time.Minute)
			ask(t, p, "input keyevent BACK")
			if name == "stopped" {
				if pid := p.PID("com.cart"); pid != 0 {
					t.Errorf("%s: pid %d", name, pid)
				}
				continue
			}
			if n := objectsOf(t, p, "com.cart", "Activities", "ViewRootImpl", "Views"); !slices.Equal(n,
				[]int64{0, 0, 0}) {
				t.Errorf("%s: %v", name, n)
			}
		}
		ask(t, p, "am start -n com.cart/.MainActivity; am start -n com.shop/.MainActivity; input keyevent BACK")
		if n := objectsOf(t, p, "com.cart", "Activities"); n[0] != 1 {
			t.Errorf("BACK in another app: %v", n)
		}
		if n := objectsOf(t, p, "com.shop", "Activities", "ViewRootImpl"); !slices.Equal(n, []int64{1, 1}) {
			t.Errorf("an app without screens: %v", n)
		}
	})
}

// am start has the output and the duration of the real command.
func TestAmStartOfScreens(t *testing.T) {
	const starting = "Starting: Intent { cmp=com.cart/.MainActivity }\n"
	launched := func(state, component, total, wait string) string {
		return "Status: ok\nLaunchState: " + state + "\nActivity: " + component + "\nTotalTime: " + total +
			"\nWaitTime: " + wait + "\nComplete\n"
	}
	exception := func(thrown string) string {
		return "\nException occurred while executing 'start':\njava.lang." + thrown + "\n\tat "
	}
	synctest.Test(t, func(t *testing.T) {
		p := cart(Options{})
		for _, c := range []struct {
			args     string
			out, err string
			exit     int
			takes    time.Duration
		}{
			{"-n com.cart/.MainActivity", starting, "", 0, startTakes},
			{"-n com.cart/com.cart.MainActivity", starting, "", 0, startTakes},
			{"-n com.cart/.MainActivity", starting, "", 0, startTakes}, // a new instance, without a message
			{
				"-W -n com.cart/.MainActivity", starting + launched("WARM", "com.cart/.MainActivity", "120", "123"), "",
				0, startTakes + warmStart,
			},
			{
				"-W -S -n com.cart/.MainActivity", "Stopping: com.cart\n" + starting +
					launched("COLD", "com.cart/.MainActivity", "480", "483"), "", 0, stopTakes + startTakes + coldStart,
			},
			{
				"-f 0x20000000 -n com.cart/.MainActivity",
				"Starting: Intent { flg=0x20000000 cmp=com.cart/.MainActivity }\n",
				"Warning: Activity not started, intent has been delivered to currently running top-most instance.\n", 0,
				startTakes,
			},
			{"-R 2 -n com.cart/.MainActivity", starting + starting, "", 0, 2 * startTakes},
			{
				"-a android.intent.action.VIEW -c a.B -d shop://cart/1 -t text/plain --ez now true --user 0 -n " +
					"com.cart/.MainActivity",
				"Starting: Intent { act=android.intent.action.VIEW cat=[a.B] dat=shop://cart/1 typ=text/plain " +
					"cmp=com.cart/.MainActivity (has extras) }\n", "", 0, startTakes},
			{
				"com.cart/.MainActivity",
				"Starting: Intent { act=android.intent.action.MAIN cat=[android.intent.category.LAUNCHER] " +
					"cmp=com.cart/.MainActivity }\n", "", 0, startTakes,
			},
			{
				"com.cart",
				"Starting: Intent { act=android.intent.action.MAIN " +
					"cat=[android.intent.category.LAUNCHER] pkg=com.cart }\n", "", 0, startTakes,
			},
			{
				"-n com.cart/.NoActivity", "Starting: Intent { cmp=com.cart/.NoActivity }\n",
				"Error type 3\nError: Activity class {com.cart/com.cart.NoActivity} does not exist.\n", 1, 0,
			},
			{
				"-W -n com.cart/.NoActivity",
				"Starting: Intent { cmp=com.cart/.NoActivity }\nError type 3\nError: Activity class " +
					"{com.cart/com.cart.NoActivity} does not exist.\n", "", 1, 0,
			},
			{
				"-W -n com.cart/.CrashActivity", "Starting: Intent { cmp=com.cart/.CrashActivity }\n" +
					launched("UNKNOWN (0)", "com.android.launcher3/.Launcher", "480", "483"), "", 0,
				startTakes + coldStart,
			},
			{"-n com.cart", "", exception("IllegalArgumentException: Bad component name: com.cart"), 255, 0},
			{"-Q -n com.cart/.MainActivity", "", exception("IllegalArgumentException: Unknown option: -Q"), 255, 0},
			{
				"-n com.cart/.MainActivity -f", "",
				exception("IllegalArgumentException: Argument expected after \"-f\""), 255, 0,
			},
			{
				"-n com.cart/.MainActivity -R some", "", exception("NumberFormatException: For input string: \"some\""),
				255, 0,
			},
			{
				"-n com.none/.MainActivity", "Starting: Intent { cmp=com.none/.MainActivity }\n",
				"Error type 3\nError: Activity class {com.none/com.none.MainActivity} does not exist.\n", 1, 0,
			},
		} {
			began := time.Now()
			a := sh1(t, p, "am start "+c.args)
			if c.exit == 255 && strings.HasPrefix(a.err, c.err) {
				a.err = c.err
			}
			if want := (answer{c.out, c.err, c.exit}); a != want || time.Since(began) != c.takes {
				t.Errorf("am start %s: %+v after %v\nwant %+v after %v", c.args, a, time.Since(began), want, c.takes)
			}
		}
		old := cart(Options{API: 25})
		if a := sh1(t, old, "am start -Q -n com.cart/.MainActivity"); a.exit != 0 ||
			!strings.HasSuffix(a.err, "\nError: Unknown option: -Q\n") {
			t.Errorf("Android 7: %+v", a)
		}
		if a := sh1(t, old, "am start -W -n com.cart/.MainActivity"); a.exit != 0 ||
			strings.Contains(a.out, "LaunchState") || !strings.Contains(a.out, "TotalTime: 120\n") {
			t.Errorf("Android 7: %+v", a)
		}
		if out := ask(t, p, "am startservice -n com.cart/.SyncService"); out != "Starting service: Intent { "+
			"cmp=com.cart/.SyncService }\n" {
			t.Errorf("a service: %q", out)
		}
	})
}

// On a phone with scaled time, the commands of a suite take proportionally less
// real time.
func TestScreensInScaledTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart(Options{Scale: 60})
		began := time.Now()
		ask(t, p,
			"am start -W -S -n com.cart/.MainActivity; input keyevent 4; sleep 5; dumpsys meminfo com.cart; am "+
				"dumpheap -g com.cart "+dumpFile)
		const device = stopTakes + startTakes + coldStart + keyTakes + 5*time.Second + usualDump + dumpTakes
		if d := time.Since(began) - device/60; d < 0 || d > time.Millisecond {
			t.Errorf("%v of device time took %v of real time", device, time.Since(began))
		}
	})
}

// The memory that a screen retains when it is opened is part of the memory of
// the process, in each dimension.
func TestScreensKeepMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart(Options{Root: true})
		memory := func() Memory {
			m, ok := p.Memory("com.cart")
			if !ok {
				t.Fatal("com.cart is not running")
			}
			return m
		}
		for screen, want := range map[string]struct{ java, native, threads int64 }{
			".MainActivity": {}, ".SlowActivity": {}, ".ui.DetailActivity": {java: 64}, ".LegacyActivity": {java: 2048},
			".SearchActivity": {512, 300, 2},
		} {
			before := memory()
			ask(t, p, fmt.Sprintf("am start -n com.cart/%s", screen))
			open := memory()
			ask(t, p, fmt.Sprintf("input keyevent 4; am start -R 9 -n com.cart/%s; input keyevent 4; sleep 5", screen))
			after := memory()
			if d := after.JavaHeap - before.JavaHeap; d < 10*want.java-16 || d > 10*want.java+16 {
				t.Errorf("%s: %d kB of Java memory, want %d", screen, d, 10*want.java)
			}
			if d := after.NativeHeap - before.NativeHeap; d < 10*want.native-4 || d > 10*want.native+4 {
				t.Errorf("%s: %d kB of native memory, want %d", screen, d, 10*want.native)
			}
			if d := int64(after.Threads - before.Threads); d != 10*want.threads {
				t.Errorf("%s: %d threads, want %d", screen, d, 10*want.threads)
			}
			if open.JavaHeap <= before.JavaHeap {
				t.Errorf("%s: %d kB while open, %d kB after closing", screen, open.JavaHeap, before.JavaHeap)
			}
		}
		if a, b := memory().PSS,
			ask(t, p, fmt.Sprintf("grep ^Pss: /proc/%d/smaps_rollup", p.PID("com.cart"))); !strings.Contains(b,
			fmt.Sprintf(" %d kB", a)) {
			t.Errorf("%d kB, but smaps_rollup says %s", a, b)
		}
	})
}

// A screen that crashes, one that blocks, and one that does not fit in the heap
// each end the process with the exit reason that Android records.
func TestScreensEndTheProcess(t *testing.T) {
	for _, api := range []int{30, 34} {
		synctest.Test(t, func(t *testing.T) {
			for name, c := range map[string]struct {
				command, reason, description string
				log                          []string
			}{
				"crash": {"am start -n com.cart/.CrashActivity", `4 (APP CRASH(EXCEPTION))`, "crash",
					[]string{
						"FATAL EXCEPTION: main", "java.lang.IllegalStateException: simulated crash",
						"\tat com.cart.CrashActivity.onCreate(CrashActivity.java:57)",
						"simulated crash,CrashActivity.java,57]",
					}},
				"anr": {
					"am start -n com.cart/.StuckActivity; input keyevent 4; sleep 4; input keyevent 4", `6 (ANR)`,
					"user request after error: Input dispatching timed out (com.cart/com.cart.StuckActivity is not " +
						"responding. Waited 5001ms for KeyEvent)",
					[]string{
						"E ActivityManager: ANR in com.cart (com.cart/.StuckActivity)", "I am_anr  : [0,PID,com.cart,",
					}},
				"full": {"am start -R 32 -n com.cart/.LegacyActivity", `4 (APP CRASH(EXCEPTION))`, "crash",
					[]string{
						"java.lang.OutOfMemoryError: Failed to allocate a ", "growth limit 67108864",
						"\tat com.cart.LegacyActivity.onCreate(LegacyActivity.java:57)",
					}},
			} {
				p := cart(Options{API: api, HeapGrowthLimit: 64})
				if name == "full" {
					ask(t, p, "am start -R 31 -n com.cart/.LegacyActivity; input keyevent 4")
					if n := objectsOf(t, p, "com.cart", "Activities")[0]; n != 31 {
						t.Fatalf("%d leak", n)
					}
					c.command = "am start -n com.cart/.LegacyActivity"
				}
				pid := p.PID("com.cart")
				ask(t, p, c.command)
				if name == "anr" {
					if p.PID("com.cart") != pid {
						t.Error("com.cart is killed too early")
					}
					time.Sleep(time.Second)
				}
				if p.PID("com.cart") != 0 {
					t.Errorf("API %d: %s: com.cart is still running", api, name)
				}
				exits, err := dumpsys.ParseExitInfo([]byte(ask(t, p, "dumpsys activity exit-info com.cart")))
				if err != nil || len(exits.Exits) != 1 {
					t.Fatalf("%v, %+v", err, exits)
				}
				text := ask(t, p, "dumpsys activity exit-info com.cart")
				if !strings.Contains(text, "reason="+c.reason) ||
					!strings.Contains(text, "description="+c.description+"\n") &&
						!strings.Contains(text, "description="+c.description+" state=") {
					t.Errorf("API %d: %s: %s", api, name, text)
				}
				log := strings.ReplaceAll(ask(t, p, "logcat -d -b all"), fmt.Sprintf(",%d,", pid), ",PID,")
				for _, want := range c.log {
					if !strings.Contains(log, want) {
						t.Errorf("API %d: %s: the log lacks %q\n%s", api, name, want, log)
					}
				}
				time.Sleep(10 * time.Second)
				if n := objectsOf(t, p, "com.cart", "Activities"); n[0] != 0 {
					t.Errorf("API %d: %s: Activities afterwards: %v", api, name, n)
				}
			}
		})
	}
}

// gfxinfo and meminfo report the same counts.
func TestScreensInGfxinfo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart(Options{})
		ask(t, p, "am start -n com.cart/.MainActivity; am start -n com.cart/.SearchActivity")
		text := ask(t, p, "dumpsys gfxinfo com.cart")
		if !strings.Contains(text, "Total ViewRootImpl   : 2\nTotal attached Views : 45\n") ||
			!strings.Contains(text, "com.cart/com.cart.SearchActivity/android.view.ViewRootImpl@") {
			t.Error(text)
		}
	})
}

// stage is a simple model of an app's screens; it tracks each instance while a
// user opens and closes screens. The tests compare the phone with this model.
type stage struct {
	app       App
	instances []*instance
}

type instance struct {
	screen int
	open   bool
	closed time.Duration
}

func (s *stage) top() *instance {
	for _, i := range slices.Backward(s.instances) {
		if i.open {
			return i
		}
	}
	return nil
}

func (s *stage) close(at time.Duration) {
	if top := s.top(); top != nil {
		top.open, top.closed = false, at
	}
}

// held counts the instances that something holds, by class: open, leaking and
// lingering ones.
func (s *stage) held(at time.Duration) (open, leaked, lingering map[string]int) {
	open, leaked, lingering = map[string]int{}, map[string]int{}, map[string]int{}
	for _, i := range s.instances {
		screen := s.app.Screens[i.screen]
		class := s.app.class(screen.Class)
		switch {
		case i.open:
			open[class]++
		case screen.Leaks:
			leaked[class]++
		case at < i.closed+screen.Lingers:
			lingering[class]++
		}
	}
	return open, leaked, lingering
}

func total(counts map[string]int) (n int64) {
	for _, c := range counts {
		n += int64(c)
	}
	return n
}

// act performs one random action on the phone and on the stage.
func (s *stage) act(t *testing.T, p *Phone, r *rand.Rand) string {
	t.Helper()
	switch n := r.IntN(10); {
	case n < 5:
		screen := r.IntN(5)
		class := s.app.class(s.app.Screens[screen].Class)
		command := "am start -n com.cart/" + class
		if r.IntN(8) == 0 {
			command = "am start --activity-clear-task -n com.cart/" + class
		}
		ask(t, p, command)
		for strings.Contains(command, "clear-task") && s.top() != nil {
			s.close(p.Uptime())
		}
		s.instances = append(s.instances, &instance{screen: screen, open: true})
		return command
	case n < 8:
		before := s.top()
		ask(t, p, "input keyevent BACK")
		if before != nil {
			s.close(p.Uptime())
		}
		return "BACK"
	case n == 8:
		time.Sleep(time.Duration(r.IntN(5000)) * time.Millisecond)
		return "wait"
	case r.IntN(4) == 0:
		p.Restart("com.cart")
		s.instances = nil
		return "restart"
	}
	ask(t, p, "input keyevent HOME; monkey -p com.cart 1 >/dev/null")
	if s.top() == nil {
		s.instances = append(s.instances, &instance{screen: 0, open: true})
	}
	return "HOME and back"
}

// Whatever the user does, dumpsys counts the instances that something holds.
func TestScreensAgainstAStage(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			p := cart(Options{DumpsysTime: 1, Seed: seed})
			s := stage{app: p.opt.Apps[0]}
			var done []string
			for range 40 {
				done = append(done, s.act(t, p, r))
				n := objectsOf(t, p, "com.cart", "Activities", "ViewRootImpl")
				open, leaked, lingering := s.held(p.Uptime())
				if want := []int64{
					total(open) + total(leaked) + total(lingering), total(open),
				}; !slices.Equal(n, want) {
					t.Fatalf("seed %d: %v, want %v after %q", seed, n, want, done)
				}
			}
		})
	}
}

// The app of the served demo is healthy until its screens are opened. It
// contains tests.
func TestServedDemoHasScreens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ServedDemo(60, 1)
		for _, process := range []string{"com.cart", "com.cart:sync"} {
			time.Sleep(time.Second)
			before, _ := p.Memory(process)
			time.Sleep(2 * time.Minute)
			after, _ := p.Memory(process)
			if before.PID == 0 || before.PID != after.PID || after.Total-before.Total > 12<<10 ||
				before.Total-after.Total > 12<<10 {
				t.Errorf("%s: %d kB after a minute, %d kB after two hours", process, before.Total, after.Total)
			}
		}
		leaks := func(screen string) (n, natives int64) {
			m, _ := p.Memory("com.cart")
			before := objectsOf(t, p, "com.cart", "Activities")[0]
			ask(t, p, "for i in 1 2 3 4 5 6 7 8; do am start -W -n com.cart/"+screen+
				"; input keyevent BACK; done; sleep 5")
			after, _ := p.Memory("com.cart")
			return objectsOf(t, p, "com.cart", "Activities")[0] - before, after.NativeHeap - m.NativeHeap
		}
		for screen, want := range map[string][2]int64{
			".MainActivity": {}, ".CartActivity": {}, ".ProductActivity": {}, ".CheckoutActivity": {8, 0},
			".LegacyActivity": {8, 0}, ".SearchActivity": {0, 2400},
		} {
			if n, native := leaks(screen); n != want[0] || native < want[1]-1200 || native > want[1]+1200 {
				t.Errorf("%s: %d Activities and %d kB more, want %d", screen, n, native, want)
			}
		}
		out := ask(t, p, "am instrument -w com.cart.test")
		if !regexp.MustCompile(`(?m)^OK \((\d+) tests\)$`).MatchString(out) ||
			!strings.Contains(out, "OK ("+strconv.Itoa(len(demoCartTests().Tests))+" tests)") {
			t.Error(out)
		}
		if got := fmt.Sprint(p.Instrumentations()); got != "[com.shop.test/"+usualRunner+" com.cart.test/"+usualRunner+
			"]" {
			t.Error(got)
		}
	})
}

// FuzzStart checks that arguments are either parsed completely or rejected with
// a one-line exception, and that each parsed value is one of the arguments.
func FuzzStart(f *testing.F) {
	for _, s := range []string{
		"-W -S -n com.cart/.A", "-a x -c y -c z -d a:b -t t -f 0x10000000 --es k v a/.b", "-R 3 com.cart", "-n x",
		"-n /", "-f 99999999999 a/b", "-R -1 a", "--", "-- -x", "--ez a", "-p x --user 0", "",
		"--activity-single-top --activity-clear-task --ei a 1 --esn b file:///x",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		o, thrown := parseStart(args)
		in := o.intent
		if thrown != "" {
			if !strings.HasPrefix(thrown, "java.lang.IllegalArgumentException: ") &&
				!strings.HasPrefix(thrown, "java.lang.NumberFormatException: ") || strings.Contains(thrown, "\n") {
				t.Fatalf("%q: %q", args, thrown)
			}
			return
		}
		if in.target() == "" && in.className == "" && in.action == "" && in.data == "" && in.mime == "" &&
			in.categories == nil {
			t.Fatalf("%q: an empty intent is accepted: %v", args, in)
		}
		if o.wait && !slices.Contains(args, "-W") || o.stop && !slices.Contains(args, "-S") || o.repeat < 0 ||
			o.repeat > maxRepeat {
			t.Fatalf("%q: %+v", args, o)
		}
		for _, value := range []string{in.data, in.mime, in.pkg} {
			if value != "" && !slices.Contains(args, value) {
				t.Fatalf("%q: %q", args, value)
			}
		}
		if in.className != "" {
			short := shortComponent(in.component, in.className)
			if !slices.Contains(args, short) && !slices.Contains(args, in.component+"/"+in.className) {
				t.Fatalf("%q: component %q", args, short)
			}
			// The short form of the component names the same Activity.
			again, thrown := parseStart([]string{"-n", short})
			if thrown != "" || again.intent.component != in.component || again.intent.className != in.className {
				t.Fatalf("%q: %q is %+v, %s", args, short, again, thrown)
			}
		}
		if text := in.String(); !strings.HasPrefix(text, "Intent { ") || !strings.HasSuffix(text, " }") ||
			in.className != "" && !strings.Contains(text, "cmp="+in.component) {
			t.Fatalf("%q: %s", args, text)
		}
	})
}
