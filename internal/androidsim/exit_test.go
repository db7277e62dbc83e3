package androidsim

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
)

// TestExitInfo stops a process in each possible way and reads the exit reason.
func TestExitInfo(t *testing.T) {
	for _, api := range append([]int{30}, apis...) {
		synctest.Test(t, func(t *testing.T) {
			p := asked(Options{API: api, SU: true}, ProcessSpec{Models: []Model{Crash(time.Minute, 5*time.Second)}})
			if text := ask(t, p, "dumpsys activity exit-info com.shop"); strings.Contains(text, "ApplicationExitInfo") {
				t.Errorf("API %d: before any exit: %s", api, text)
			}
			time.Sleep(2 * time.Minute)
			p.Kill("com.shop")
			time.Sleep(time.Minute)
			ask(t, p, fmt.Sprintf("su 0 kill -9 %d", p.PID("com.shop")))
			time.Sleep(time.Minute)
			pid := p.PID("com.shop")
			ask(t, p, "am force-stop com.shop")
			text := ask(t, p, "dumpsys activity exit-info com.shop")
			if api < exitInfo {
				want := "Bad activity command, or no activities match: exit-info\nUse -h for help.\n"
				if api >= 24 {
					want = "Unknown command: exit-info\n" + want
				}
				if text != want {
					t.Errorf("API %d: %q", api, text)
				}
				return
			}
			var reasons []string
			for _, found := range regexp.MustCompile(`reason=\d+ \([^=]*\) ?(?:subreason=\d+ \([^=]*\))?\s*status=\d+`).
				FindAllString(text, -1) {
				reasons = append(reasons, strings.Join(strings.Fields(found), " "))
			}
			want := []string{
				"reason=10 (USER REQUESTED) subreason=21 (FORCE STOP) status=0",
				"reason=2 (SIGNALED) subreason=0 (UNKNOWN) status=9",
				"reason=3 (LOW_MEMORY) subreason=0 (UNKNOWN) status=0",
				"reason=4 (APP CRASH(EXCEPTION)) subreason=0 (UNKNOWN) status=0",
			}
			if api == exitInfo {
				for i, w := range want {
					want[i] = regexp.MustCompile(` subreason=\d+ \([A-Z ]*\)`).ReplaceAllString(w, "")
				}
			}
			if fmt.Sprint(reasons) != fmt.Sprint(want) {
				t.Errorf("API %d: %q\nwant %q", api, reasons, want)
			}
			if !strings.Contains(text, "#0:\n          timestamp=2000-01-01 00:0") ||
				!strings.Contains(text, fmt.Sprintf("pid=%d", pid)) || strings.Count(text, "rss=304MB") != 4 {
				t.Errorf("API %d: %s", api, text)
			}
			if known := strings.Contains(text, " pss=0.00 "); known != (api >= 34) {
				t.Errorf("API %d: %s", api, text)
			}
			if other := ask(t, p, "dumpsys activity exit-info com.none"); strings.Contains(other, "package:") {
				t.Errorf("API %d: exits of another package: %s", api, other)
			}
			p.Reboot()
			time.Sleep(30 * time.Second)
			if after := ask(t, p, "dumpsys activity exit-info com.shop"); strings.Count(after,
				"ApplicationExitInfo #") != 4 {
				t.Errorf("API %d: after a reboot: %s", api, after)
			}
		})
	}
}

func TestExitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := asked(Options{}, ProcessSpec{})
		for range 200 {
			p.Restart("com.shop")
		}
		if n := strings.Count(ask(t, p, "dumpsys activity exit-info"),
			"ApplicationExitInfo #"); n != androidtext.MaxExits {
			t.Errorf("%d exits are printed", n)
		}
		if len(p.exits) > 200/2 || len(p.lives) > maxLives {
			t.Errorf("%d exits and %d ended processes are stored", len(p.exits), len(p.lives))
		}
	})
}

func TestDumpPackage(t *testing.T) {
	synctest.Test(t, testDumpPackage) // dumpsys takes a second
}

func testDumpPackage(t *testing.T) {
	for _, api := range apis {
		for _, large := range []bool{false, true} {
			p := New(Options{
				API: api,
				Apps: []App{
					{
						Package: "a.b", Debuggable: large, LargeHeap: large,
						Processes: []ProcessSpec{{Name: "a.b", Bits32: large}},
					},
				},
			})
			text := ask(t, p, "dumpsys package a.b")
			flags := regexp.MustCompile(`(?m)^ +flags=\[ (.*) \]$`).FindStringSubmatch(text)
			if flags == nil || strings.Contains(flags[1], "LARGE_HEAP") != large ||
				strings.Contains(flags[1], "DEBUGGABLE") != large {
				t.Errorf("API %d: %q in %s", api, flags, text)
			}
			if abi := map[bool]string{
				false: abi64, true: abi32,
			}[large]; !strings.Contains(text, "primaryCpuAbi="+abi+"\n") {
				t.Errorf("API %d: %s", api, text)
			}
			want := map[bool]string{true: "Unable to find package: x.y\n"}[api >= 24]
			if text := ask(t, p, "dumpsys package x.y"); text != want {
				t.Errorf("API %d: %q", api, text)
			}
		}
	}
}
