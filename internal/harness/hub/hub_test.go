package hub

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/capture/adb"
	"github.com/leakgate/leakgate/harness/fleet"
	"github.com/leakgate/leakgate/harness/monitor"
	"github.com/leakgate/leakgate/internal/adbd"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// cart returns a phone with an app whose CheckoutActivity leaks.
func cart(serial string) *androidsim.Phone {
	return androidsim.New(androidsim.Options{
		Serial: serial, Seed: 1, DumpsysTime: time.Millisecond,
		Apps: []androidsim.App{{
			Package: "com.cart", Debuggable: true,
			Processes: []androidsim.ProcessSpec{
				{Name: "com.cart", Models: []androidsim.Model{androidsim.Steady(androidsim.JavaHeap, 8)}},
			},
			Screens: []androidsim.Screen{
				{Class: ".MainActivity"}, {Class: ".CheckoutActivity", Leaks: true, JavaKB: 64},
			},
		}},
	})
}

// newHub returns a hub for phones in memory.
func newHub(t *testing.T, o Options, phones ...adbd.Phone) *Hub {
	t.Helper()
	server := adbd.NewServer(phones...)
	t.Cleanup(func() { server.Close() })
	client, err := fleet.NewClient(adb.Options{Dial: server.Dial, NoStart: true})
	if err != nil {
		t.Fatal(err)
	}
	o.Client, o.Artifacts, o.Suite = client, t.TempDir(), "Shop suite"
	o.Getenv = env(map[string]string{"LEAKGATE_LEASES": t.TempDir()})
	if o.Processes == nil {
		o.Processes = []string{"com.cart*"}
	}
	return New(o)
}

// drive runs a command on a phone.
func drive(t *testing.T, p adbd.Phone, command string) {
	t.Helper()
	var out strings.Builder
	if code := p.Shell(t.Context(), command, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("%s: exit %d, %s", command, code, &out)
	}
}

// spec checks what a command leaves behind, as the harness does.
func spec(t *testing.T, h *Hub, p adbd.Phone, name, command, outcome string, known ...monitor.Exception) record.Check {
	t.Helper()
	turn, err := h.Turn(t.Context(), name, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Release()
	opened, err := h.Open(t.Context(), OpenRequest{Name: name, Device: turn.Serial()})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Recount(t.Context(), opened.Check); err != nil {
		t.Fatal(err)
	}
	drive(t, p, command)
	if err := h.Collect(t.Context(), CollectRequest{Check: opened.Check, Known: known}); err != nil {
		t.Error(err)
	}
	c, err := h.Close(t.Context(), CloseRequest{Check: opened.Check, Outcome: outcome})
	if err != nil {
		t.Error(err)
	}
	return c
}

// The test covers a suite in one process, including the checks of its specs and
// the verdict on the suite.
func TestHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart("S1")
		h := newHub(t, Options{}, p)
		drive(t, p, "am start -W -n com.cart/.MainActivity")
		if err := h.Start(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		accepted := monitor.Exception{
			Class: "CheckoutActivity", Reason: "SHOP-1", Owner: "anna", Until: time.Now().AddDate(0, 0, 1),
		}
		const checkout = "am start -W -n com.cart/.CheckoutActivity; input keyevent BACK"
		for _, c := range []struct {
			name, command, outcome string
			known                  []monitor.Exception
			want                   record.CheckVerdict
		}{
			{
				"clean", "am start -W -n com.cart/.MainActivity; input keyevent BACK", record.OutcomePassed, nil,
				record.VerdictPass,
			},
			{"leaks", checkout, record.OutcomePassed, nil, record.VerdictLeak},
			{"old leak", "input tap 1 1", record.OutcomePassed, nil, record.VerdictPass},
			{"accepted", checkout, record.OutcomePassed, []monitor.Exception{accepted}, record.VerdictKnown},
			{"fails", checkout, record.OutcomeFailed, nil, record.VerdictLeak},
		} {
			if got := spec(t, h, p, c.name, c.command, c.outcome, c.known...); got.Verdict != c.want ||
				got.Device != "S1" {
				t.Errorf("%s: %s: %s", c.name, got.Verdict, got.Text)
			}
		}
		drive(t, p, checkout) // outside of any check
		if got := spec(t, h, p, "after it", "input tap 1 1", record.OutcomePassed); got.Verdict != record.VerdictPass {
			t.Errorf("spec after the leak: %s", got.Text)
		}
		v, err := h.Finish("done", false)
		if err != nil || !v.Started || len(v.Run.Checks) != 6 {
			t.Fatalf("%+v, %v", v, err)
		}
		failures, notes := strings.Join(v.Failures, "\n"), strings.Join(v.Notes, "\n")
		if len(v.Failures) != 2 || !strings.Contains(failures, "fails: com.cart: leaks 1 x CheckoutActivity") ||
			!strings.Contains(failures, "before the check of after it: com.cart: leaked 1 x CheckoutActivity") {
			t.Errorf("failures:\n%s", failures)
		}
		for _, want := range []string{
			"leaks: com.cart: leaks 1 x CheckoutActivity", "accepted: com.cart: only accepted leaks",
			"6 checks: 3 passed, 2 leak, 1 known, 0 inconclusive, 0 not checked, 0 skipped",
		} {
			if !strings.Contains(notes, want) {
				t.Errorf("notes lack %q:\n%s", want, notes)
			}
		}
		checkEnded(t, h)
	})
}

// checkEnded checks that a hub whose suite has ended still responds and holds
// no devices.
func checkEnded(t *testing.T, h *Hub) {
	t.Helper()
	if err := h.Start(t.Context(), true); err == nil || !strings.Contains(err.Error(), "the suite has ended") {
		t.Errorf("Start after the suite has ended: %v", err)
	}
	if _, err := h.Open(t.Context(), OpenRequest{Name: "late"}); err == nil {
		t.Error("a check was opened after the suite had ended")
	}
	folder, _ := h.options.Getenv("LEAKGATE_LEASES")
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("leases %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(h.Dir(), "run.json")); err != nil {
		t.Error(err)
	}
}

// Without a device, each spec of a suite fails immediately. An explicit start
// retries.
func TestHubWithoutADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart("S1")
		end := p.SetAdbState(adbd.StateUnauthorized)
		h := newHub(t, Options{}, p)
		for range 2 {
			if err := h.Start(t.Context(), false); err == nil || !strings.Contains(err.Error(), "start the watch: ") ||
				!strings.Contains(err.Error(), "has not authorized") {
				t.Errorf("%v", err)
			}
		}
		end()
		if err := h.Start(t.Context(), false); err == nil {
			t.Error("a spec started the watch")
		}
		if _, err := h.Now(t.Context(), "*"); err == nil {
			t.Error("Now succeeded before the watch started")
		}
		if err := h.Start(t.Context(), true); err != nil {
			t.Error(err)
		}
		if _, err := h.Finish("done", false); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{})
		_ = h.Start(t.Context(), false)
		if v, err := h.Finish("done", false); err != nil || v.Started || len(v.Failures) != 1 {
			t.Errorf("%+v, %v", v, err)
		}
		unused := newHub(t, Options{})
		if v, err := unused.Finish("done", false); err != nil || v.Started || len(v.Failures) != 0 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// A pattern that matches no process fails the suite. An interrupted suite ends
// immediately.
func TestHubVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(t, Options{Processes: []string{"com.carts"}}, cart("S1"))
		if err := h.Start(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		began := time.Now()
		v, err := h.Finish("interrupted", true)
		if err != nil || len(v.Failures) != 1 ||
			v.Failures[0] != "no process matched com.carts; running processes with similar names: com.cart" ||
			v.Run.ExitCode != record.ExitInterrupted {
			t.Errorf("%+v, exit %d, %v", v.Failures, v.Run.ExitCode, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("the suite took %v", took)
		}
	})
}

// The verdict on a suite includes the warnings of its run, such as a process of
// the app that was not watched.
func TestHubWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := androidsim.New(androidsim.Options{Serial: "S1", Root: true, Apps: []androidsim.App{
			{Package: "com.cart", Processes: []androidsim.ProcessSpec{{Name: "com.cart"}, {Name: "org.tiles.render"}}},
		}})
		h := newHub(t, Options{Processes: []string{"com.cart"}}, p)
		if err := h.Start(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		v, err := h.Finish("done", false)
		const want = "warning: device S1: processes with the user ID of the app that are not watched: org.tiles.render;"
		if err != nil || len(v.Failures) > 0 || !strings.Contains(strings.Join(v.Notes, "\n"), want) {
			t.Errorf("failures %q, notes %q, %v", v.Failures, v.Notes, err)
		}
	})
}

// The test covers all requests to a hub.
func TestHubRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cart("S1")
		h := newHub(t, Options{}, p)
		drive(t, p, "am start -W -n com.cart/.MainActivity")
		of := ProcessRequest{Process: "com.cart"}
		s, err := h.Snapshot(t.Context(), of)
		if err != nil || s.Process != "com.cart" || s.Objects["Activities"] != 1 {
			t.Errorf("%+v, %v", s, err)
		}
		if settled, err := h.Settle(t.Context(), of); !settled || err != nil {
			t.Errorf("%v, %v", settled, err)
		}
		if d, err := h.Dump(t.Context(), of); err != nil || d.Heap == nil {
			t.Errorf("%+v, %v", d, err)
		}
		if rows, err := h.Now(t.Context(), "com.*"); err != nil || len(rows) != 1 || !rows[0].Present ||
			rows[0].PID != s.PID || rows[0].MaxAge <= 0 {
			t.Errorf("%+v, %v", rows, err)
		}
		for name, err := range map[string]error{
			"recount": h.Recount(t.Context(), 7), "collect": h.Collect(t.Context(), CollectRequest{Check: 7}),
			"close": func() error { _, err := h.Close(t.Context(), CloseRequest{Check: 7}); return err }(),
		} {
			if err == nil || err.Error() != "there is no open check 7" {
				t.Errorf("%s: %v", name, err)
			}
		}
		if out, err := h.Stress(t.Context(), StressRequest{Shell: "exit 3"}); err != nil || out.Error == "" {
			t.Errorf("%+v, %v", out, err)
		}
		opened, err := h.Open(t.Context(), OpenRequest{Name: "dropped", Patterns: []capture.Pattern{"com.cart"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Close(t.Context(), CloseRequest{Check: opened.Check, Drop: true}); err != nil {
			t.Error(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := h.Discover(ctx); err == nil {
			t.Error("Discover ignores a canceled context")
		}
		if v, err := h.Finish("done", false); err != nil || len(v.Run.Checks) != 0 {
			t.Errorf("%+v, %v", v.Run.Checks, err)
		}
	})
}
