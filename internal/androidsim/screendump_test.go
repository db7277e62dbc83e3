package androidsim

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/analysis"
	"github.com/leakgate/leakgate/internal/hproftest"
)

// lightCart returns a phone like cart whose screens leak little, which keeps
// dumps small.
func lightCart(seed uint64) *Phone {
	p := cart(Options{DumpsysTime: 1, Seed: seed})
	for n := range p.opt.Apps[0].Screens {
		p.opt.Apps[0].Screens[n].JavaKB = 32
	}
	return p
}

// analyzed dumps the heap of com.cart and analyzes it; at is the device time of
// the dump.
func analyzed(t *testing.T, p *Phone, options string) (report *analysis.Report, data []byte, at time.Duration) {
	t.Helper()
	at = p.Uptime()
	ask(t, p, "am dumpheap "+options+" com.cart "+dumpFile)
	time.Sleep(dumpTakes)
	data = pullDump(t, p)
	report, err := analysis.Analyze(t.Context(), bytes.NewReader(data), int64(len(data)), analysis.Options{Top: 10})
	if err != nil {
		t.Fatal(err)
	}
	return report, data, at
}

// named counts the leaking instances in a report by class and holder.
func named(r *analysis.Report) map[string]int {
	out := map[string]int{}
	for _, leak := range r.Leaks {
		by := ""
		for _, e := range leak.Trace {
			if e.Suspect && by == "" || e.Reference == "mMessages" {
				by = e.Owner[strings.LastIndexByte(e.Owner, '.')+1:] + "." + e.Reference
			}
		}
		for _, c := range leak.Classes {
			out[c.Class+" by "+by] += c.Instances
		}
	}
	return out
}

// expected returns the counts that named must return for a dump taken at the
// given time.
func (s *stage) expected(at time.Duration) map[string]int {
	_, leaked, lingering := s.held(at)
	out := map[string]int{}
	for class, n := range lingering {
		out[class+" by MessageQueue.mMessages"] = n
	}
	for _, screen := range s.app.Screens {
		class := s.app.class(screen.Class)
		if n := leaked[class]; n > 0 {
			holder, field := s.app.holder(screen)
			out[class+" by "+holder[strings.LastIndexByte(holder, '.')+1:]+"."+field] = n
		}
	}
	return out
}

// The ways to leave a screen.
const (
	neverOpened = iota
	leftOpen
	closedNow
	closedLongAgo
	waysToLeave
)

// leave leaves the first four screens in the given ways and checks that a dump
// contains the leaking instances, each with its holder.
func leave(t *testing.T, ways [4]int) {
	synctest.Test(t, func(t *testing.T) {
		p := lightCart(0)
		s := stage{app: p.opt.Apps[0]}
		for _, way := range []int{closedLongAgo, closedNow, leftOpen} {
			for screen, of := range ways {
				if of != way {
					continue
				}
				ask(t, p, "am start -n com.cart/"+s.app.class(s.app.Screens[screen].Class))
				s.instances = append(s.instances, &instance{screen: screen, open: true})
				if way != leftOpen {
					ask(t, p, "input keyevent BACK")
					s.close(p.Uptime())
				}
			}
			if way == closedLongAgo {
				time.Sleep(10 * time.Second)
			}
		}
		report, _, at := analyzed(t, p, "-g")
		if got, want := named(report), s.expected(at); !maps.Equal(got, want) {
			t.Errorf("screens left in the ways %v: found %v\nwant %v", ways, got, want)
		}
	})
}

// A dump contains the leaking instances for an orthogonal array of ways to
// leave four screens: the array contains each pair of ways for each pair of
// screens. TestAnalysisNamesAllScreensThatLeak covers all 256 combinations.
func TestAnalysisNamesScreensThatLeak(t *testing.T) {
	doubled := [waysToLeave]int{0, 2, 3, 1} // doubled[b] is 2*b in the field of four elements
	for a := range waysToLeave {
		for b := range waysToLeave {
			leave(t, [4]int{a, b, a ^ b, a ^ doubled[b]})
		}
	}
}

// Whatever the user does, a dump contains the leaking and the open instances,
// with and without a collection before it. Instances that nothing holds are
// garbage and appear only in a dump without a collection.
func TestDumpsOfScreensAgainstAStage(t *testing.T) {
	for seed := range uint64(2) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			p := lightCart(seed)
			s := stage{app: p.opt.Apps[0]}
			for round := range 2 {
				for range 12 {
					s.act(t, p, r)
				}
				options := []string{"", "-g"}[round%2]
				report, data, at := analyzed(t, p, options)
				if got, want := named(report), s.expected(at); !maps.Equal(got, want) {
					t.Errorf("seed %d: %v\nwant %v", seed, got, want)
				}
				if options == "-g" && len(report.Unreachable) > 0 {
					t.Errorf("seed %d: after a collection, the dump contains unreachable %+v", seed, report.Unreachable)
				}
				s.compareOpen(t, p, data)
			}
		})
	}
}

// compareOpen checks the open instances in a dump: they are in task order and
// attached, and only the top one is resumed.
func (s *stage) compareOpen(t *testing.T, p *Phone, data []byte) {
	t.Helper()
	g, err := hproftest.ReadGraph(data)
	if err != nil {
		t.Fatal(err)
	}
	records := g.Nodes[g.Path(g.Class("android.app.ActivityThread"), "sCurrentActivityThread.mActivities.mArray")]
	var got, want []string
	for _, id := range records.Elements {
		if activity := g.Path(id, "activity"); activity != 0 {
			destroyed, _ := g.Field(activity, "mDestroyed")
			resumed, _ := g.Field(activity, "mResumed")
			stopped, _ := g.Field(activity, "mStopped")
			got = append(got, fmt.Sprint(g.Nodes[activity].Class, destroyed, resumed, stopped))
		}
	}
	for _, i := range s.instances {
		if i.open {
			resumed, stopped := 0, 1
			if i == s.top() && p.showsScreen() {
				resumed, stopped = 1, 0
			}
			want = append(want, fmt.Sprint(s.app.class(s.app.Screens[i.screen].Class), 0, resumed, stopped))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q are open, want %q", got, want)
	}
}

// A closed screen is garbage: a dump without a collection contains it until the
// app itself has run a collection.
func TestClosedScreensAreGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart(Options{DumpsysTime: 1})
		ask(t, p, "am start -n com.cart/.MainActivity; am start -n com.cart/.MainActivity; input keyevent 4")
		garbage := func(options string) (n int) {
			report, _, _ := analyzed(t, p, options)
			if len(report.Leaks) > 0 {
				t.Errorf("%+v", named(report))
			}
			for _, g := range report.Unreachable {
				if g.Class == "com.cart.MainActivity" {
					n += g.Instances
				}
			}
			return n
		}
		if n := garbage(""); n != 1 {
			t.Errorf("without a collection: %d", n)
		}
		if n := garbage("-g"); n != 0 {
			t.Errorf("objects after a forced collection: %d", n)
		}
		if n := garbage(""); n != 0 {
			t.Errorf("objects after an earlier collection: %d", n)
		}
		ask(t, p, "am start -n com.cart/.MainActivity; input keyevent 4; sleep 60")
		if n := garbage(""); n != 0 {
			t.Errorf("objects after an automatic collection: %d", n)
		}
	})
}

// The dump contains the memory that screens retain: as many bytes as in the
// memory of the process, in the fields that hold them.
func TestDumpsHaveWhatScreensLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A model leaks into the same list.
		p := cart(Options{DumpsysTime: 1}, Leak(Java, 240, 0))
		time.Sleep(time.Minute)
		ask(t, p,
			"am start -R 5 -n com.cart/.LegacyActivity; input keyevent 4; am start -R 4 -n com.cart/.SearchActivity; "+
				"am start -n com.cart/.ui.DetailActivity; input keyevent 4")
		ask(t, p, "am dumpheap -g com.cart "+dumpFile)
		time.Sleep(dumpTakes)
		g, err := hproftest.ReadGraph(pullDump(t, p))
		if err != nil {
			t.Fatal(err)
		}
		for field, want := range map[string]struct {
			n     int
			bytes int64
		}{
			"com.cart.LegacyPage.sInstance": {5, 5 * 2 << 20}, "com.cart.SearchActivity.sPages": {4, 4 * 512 << 10},
			"com.cart.ScreenTracker.sScreens": {3, 0},
		} {
			dot := strings.LastIndexByte(field, '.')
			list := g.Path(g.Class(field[:dot]), field[dot+1:])
			array := g.Nodes[g.Path(list, "elementData")]
			if array == nil {
				t.Fatalf("there is no %s", field)
			}
			n := 0
			for _, id := range array.Elements {
				if id != 0 {
					n++
				}
			}
			if bytes := g.Retained(list); n != want.n || want.bytes > 0 &&
				(bytes < want.bytes || bytes > want.bytes+1000) {
				t.Errorf("%s has %d objects and %d bytes, want %+v", field, n, bytes, want)
			}
		}
		threads := 0
		for _, n := range g.Nodes {
			if n.Class == "java.lang.Thread" && strings.HasPrefix(g.Text(g.Path(n.ID, "name")), "pool-") {
				threads++
			}
		}
		if threads != 8 {
			t.Errorf("%d threads are left, want 8", threads)
		}
	})
}
