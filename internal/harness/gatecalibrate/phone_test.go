package gatecalibrate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/evidence"
	"github.com/leakgate/leakgate/internal/harness/gate"
	"github.com/leakgate/leakgate/reporters/record"
)

// action is a screen that is opened and closed, with the number of times that a
// script does so in each loop.
type action struct {
	screen androidsim.Screen
	times  int
}

// These are the values of the cart's known leak, which changes: the number of
// objects per loop and the size of each object in kB.
const (
	cartTimes = 2
	cartKB    = 100
)

// actions returns the actions of the app on the simulated phone. Delayed tasks
// hold every second screen for a while, and pages fill memory that does not
// belong to an Activity.
func (r *trial) actions() []action {
	cart := action{
		androidsim.Screen{Class: ".CartScreen", Leaks: true, HeldBy: "EventBus.sListeners", JavaKB: cartKB}, cartTimes,
	}
	switch r.change {
	case oneMore:
		cart.times++
	case tripled:
		cart.times *= 3
	case heavier:
		cart.screen.JavaKB += moreBytes >> 10 / int64(r.objects(cartTimes))
	}
	list := []action{
		{androidsim.Screen{Class: ".ListScreen", Leaks: true, HeldBy: "Tracker.sScreens", JavaKB: 120, Views: 20}, 3},
		cart,
		{androidsim.Screen{Class: ".ProductScreen", Lingers: 2 * time.Second}, 3},
		{androidsim.Screen{Class: ".PreviewScreen", Lingers: 9 * time.Second}, 2},
		{androidsim.Screen{Class: ".AboutScreen"}, 2},
		{androidsim.Screen{Class: ".GalleryScreen", JavaKB: 200}, 1},
	}
	if r.change == newLeak {
		list = append(list,
			action{androidsim.Screen{Class: ".WishScreen", Leaks: true, HeldBy: "Wishes.sRecent", JavaKB: 60}, 1})
	}
	return list
}

// phoneOf returns a phone with the app.
func phoneOf(r *trial) *androidsim.Phone {
	app := androidsim.App{
		Package: "com.shop", Debuggable: true,
		Processes: []androidsim.ProcessSpec{{Name: "com.shop", Models: []androidsim.Model{
			androidsim.Steady(androidsim.JavaHeap, 4), androidsim.GCSawtooth(4, 90*time.Second),
			androidsim.CacheFill(8, 2*time.Minute), androidsim.Noise(2, 0.7),
		}}},
		Screens: []androidsim.Screen{{Class: ".MainActivity"}},
	}
	for _, a := range r.actions() {
		app.Screens = append(app.Screens, a.screen)
	}
	return androidsim.New(androidsim.Options{
		Serial: "S1", Seed: r.seed, Root: true, BuildType: "userdebug", DumpsysTime: 100 * time.Millisecond,
		Apps: []androidsim.App{app},
	})
}

// driving is the workload of a run: either loops of a script or random events.
type driving struct {
	*trial
	phone *androidsim.Phone
	fail  func(format string, args ...any)
}

// Describe implements monitor.Workload.
func (d driving) Describe() record.Workload {
	if d.monkey {
		return record.Workload{
			Kind: "monkey", Digest: "monkey", Seed: new(int64(d.seed)), Events: d.steps() * d.moments(d.long),
		}
	}
	return record.Workload{Kind: "command", Digest: "script"}
}

// steps returns the number of screens that monkey opens between two dumps.
func (d driving) steps() int {
	n := 0
	for _, a := range (&trial{}).actions() {
		n += a.times
	}
	return n * monkeyLoops
}

// order returns the classes of the screens that are opened until the next dump.
func (d driving) order(next func(n int) int) []string {
	var all []string
	for _, a := range d.actions() {
		for range a.times {
			all = append(all, a.screen.Class)
		}
	}
	if !d.monkey {
		for i := range all {
			k := i + next(len(all)-i)
			all[i], all[k] = all[k], all[i]
		}
		return all
	}
	out := make([]string, d.steps())
	for i := range out {
		out[i] = all[next(len(all))]
	}
	return out
}

// Run implements monitor.Workload. If the app is idle at marks, Run waits until
// the dump of each mark has been taken.
func (d driving) Run(ctx context.Context, stage monitor.Env) (record.Workload, error) {
	random := d.random()
	for loop := range d.moments(d.long) {
		for _, class := range d.order(random.IntN) {
			d.drive(ctx, "am start -n com.shop/"+class+"; input keyevent BACK")
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
		}
		mark := fmt.Sprintf("loop %d", loop+1)
		if d.inUse {
			stage.Mark("", mark)
			continue
		}
		if missing, err := stage.Live.Mark(ctx, mark); err != nil || len(missing) > 0 {
			d.fail("%s: %q, %v", mark, missing, err)
		}
	}
	if d.inUse {
		time.Sleep(20 * time.Second) // until the dump of the last mark has been taken
	}
	return d.Describe(), nil
}

func (d driving) drive(ctx context.Context, command string) {
	var out strings.Builder
	if code := d.phone.Shell(ctx, command, strings.NewReader(""), &out, &out); code != 0 {
		d.fail("%s: exit %d, %s", command, code, &out)
	}
}

// runPhone watches the app on the simulated phone, in virtual time, and reads
// the run like `leakgate gate`.
func runPhone(t *testing.T, r *trial) (shown gate.Observation) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := phoneOf(r)
		server := adbd.NewServer(p)
		defer server.Close()
		client, err := adb.NewClient(adb.Options{Dial: server.Dial, NoStart: true})
		if err != nil {
			t.Fatal(err)
		}
		dev, err := client.Select(t.Context(), "S1")
		if err != nil {
			t.Fatal(err)
		}
		facts, err := capture.ReadFacts(t.Context(), dev)
		if err != nil {
			t.Fatal(err)
		}
		d := driving{r, p, t.Errorf}
		d.drive(t.Context(), "am start -W -n com.shop/.MainActivity")
		dir := t.TempDir()
		w, err := monitor.Start(t.Context(), monitor.Options{
			Devices: []monitor.Device{{Device: dev, Facts: facts}}, Patterns: []capture.Pattern{"com.shop"},
			Policy: detector.DefaultPolicy(),
			Dir:    dir, Workload: d, Respond: &monitor.Response{Dump: monitor.AtMarks, Keep: monitor.Nothing},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Wait(); err != nil {
			t.Fatal(err)
		}
		e, err := evidence.FromRun(t.Context(), dir)
		if err != nil || len(e.Missing) > 0 || len(e.Observations) != 1 {
			t.Fatalf("%d observations, missing %q, %v", len(e.Observations), e.Missing, err)
		}
		shown = e.Observations[0]
	})
	return shown
}
