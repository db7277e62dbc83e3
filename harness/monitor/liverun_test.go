package monitor

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/ledger"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// started starts a run on a phone. The run continues until the caller stops it.
func started(t *testing.T, r response.Options, p *cabled) (*LiveRun, Options) {
	t.Helper()
	o := responding(t, r, p)
	o.Policy, o.Duration = detector.DefaultPolicy(), 0
	w, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return w, o
}

// A program watches, opens windows, sets marks, requests a dump and stops the
// run. The record contains all of this and is not marked as interrupted.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", counted(rooted(), func(n int) int { return n }), leaky("com.shop", androidsim.Java, 100),
			healthy("com.shop:push")))
		w, o := started(t, response.Options{Dump: response.AtMarks}, p)
		time.Sleep(5 * time.Minute)
		window, err := w.Window("checkout")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			time.Sleep(20 * time.Second)
			if missing, err := w.Mark(t.Context(), fmt.Sprintf("loop %d", i+1)); err != nil || len(missing) > 0 {
				t.Errorf("mark: %q, %v", missing, err)
			}
		}
		closed, err := window.Close()
		if err != nil || len(closed) != 1 || closed[0].Name != "checkout" || len(closed[0].Processes) != 2 ||
			closed[0].Ended-closed[0].T < 60 {
			t.Fatalf("%+v, %v", closed, err)
		}
		if x := closed[0].Processes[0]; x.Process != "com.shop" || x.Gate != detector.Leak || len(x.AtMarks) != 1 ||
			!x.AtMarks[0].Leaks[0].Proved {
			t.Errorf("%+v", x)
		}
		if again, err := window.Close(); err != nil || !reflect.DeepEqual(again, closed) {
			t.Errorf("second call of Close: got %+v, %v", again, err)
		}
		d, err := w.Diagnose(t.Context(), "", "com.shop:push", "dump")
		if err != nil || !d.Analyzed || d.Trigger != record.TriggerDemand || len(d.Leaks) != 1 ||
			d.Leaks[0].Count != 2 {
			t.Errorf("%+v, %v", d, err)
		}
		if objects, err := w.Objects(t.Context(), "S1", "com.shop"); err != nil || objects["Activities"] < 1 {
			t.Errorf("%v, %v", objects, err)
		}
		now := w.Now("com.shop")
		if len(now) != 1 || !now[0].Answers || !now[0].Present || now[0].Age < 0 || now[0].Age > 40*time.Second ||
			now[0].MB < 50 {
			t.Errorf("%+v", now)
		}
		run, err := w.Stop("the suite is done")
		if err != nil || run.Stopped != record.StoppedFinished || run.StopReason != "the suite is done" ||
			run.Interrupted || run.ExitCode != record.ExitLeak {
			t.Errorf("%s, %s, exit %d, %v", run.Stopped, run.StopReason, run.ExitCode, err)
		}
		activities := slices.IndexFunc(run.Processes[0].Objects,
			func(c record.ObjectCount) bool { return c.Name == "Activities" })
		if activities < 0 || run.Processes[0].Objects[activities].Last <= run.Processes[0].Objects[activities].First {
			t.Errorf("objects %+v", run.Processes[0].Objects)
		}
		if b := run.Devices[0].Builds; len(b) != 1 || b[0].Package != "com.shop" || b[0].VersionCode == nil ||
			b[0].VersionName == "" || len(b[0].APK) != 64 || run.Devices[0].ABI == "" ||
			run.Devices[0].Fingerprint == "" || run.Devices[0].HeapLimit < 64 {
			t.Errorf("builds %+v of %+v", b, run.Devices[0])
		}
		if !reflect.DeepEqual(run.Windows, closed) {
			t.Errorf("got windows %+v in run.json, want %+v", run.Windows, closed)
		}
		again, warnings, err := ledger.Rebuild(o.Dir)
		if err != nil || len(warnings) > 0 || !reflect.DeepEqual(again.Windows, closed) ||
			again.Stopped != run.Stopped ||
			again.StopReason != run.StopReason {
			t.Errorf("rebuilt: %+v, %v %v", again.Windows, warnings, err)
		}
		pauses := 0
		for _, e := range readAll(t, o.Dir).events {
			if e.Event == "pause" && e.Process == "com.shop:push" {
				pauses++
			}
		}
		if pauses != 4 {
			t.Errorf("com.shop:push was paused %d times, want once for each of its 4 dumps", pauses)
		}
		checkOver(t, w)
	})
}

// checkOver checks that the methods of a run that has ended still return and
// that no call blocks forever.
func checkOver(t *testing.T, w *LiveRun) {
	t.Helper()
	<-w.Done()
	if rows := w.Now("com.shop"); len(rows) > 0 {
		t.Errorf("%+v", rows)
	}
	_, windowErr := w.Window("late")
	_, markErr := w.Mark(t.Context(), "late")
	_, diagnoseErr := w.Diagnose(t.Context(), "", "com.shop", "dump")
	_, objectsErr := w.Objects(t.Context(), "", "com.shop")
	for _, err := range []error{windowErr, markErr, diagnoseErr, objectsErr} {
		if !errors.Is(err, errRunEnded) {
			t.Errorf("call after the end: got error %v, want %v", err, errRunEnded)
		}
	}
	first, err := w.Stop("again")
	if second, serr := w.Wait(); !reflect.DeepEqual(first, second) || !errors.Is(serr, err) && err != nil {
		t.Error("Stop and Wait return different results")
	}
}

// Impossible requests are rejected with advice.
func TestWatchRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop")))
		w, _ := started(t, response.Options{}, p)
		time.Sleep(time.Minute)
		p.Kill("com.shop")
		time.Sleep(time.Minute)
		_, mark := w.Mark(t.Context(), "  ")
		_, window := w.Window("")
		_, recipe := w.Diagnose(t.Context(), "", "com.shop", "heap")
		_, device := w.Diagnose(t.Context(), "S9", "com.shop", "dump")
		_, gone := w.Diagnose(t.Context(), "", "com.shop", "dump")
		_, other := w.Objects(t.Context(), "", "com.other")
		for want, err := range map[string]error{
			"the text is empty": mark, "the name is empty": window, `unknown recipe "heap": want java`: recipe,
			`"S9" matches 0`: device,
			"diagnose com.shop: not running, or not watched": gone, "count objects of com.other: not running": other,
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		if rows := w.Now("com.shop"); len(rows) != 1 || rows[0].Present {
			t.Errorf("%+v", rows)
		}
		if run, err := w.Stop(""); err != nil || run.Stopped != record.StoppedFinished {
			t.Errorf("%s, %v", run.Stopped, err)
		}
	})
}

// Rows of a disconnected phone show that the phone does not respond, and how
// old the values are.
func TestNowOfDisconnectedPhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), healthy("com.shop")))
		o := responding(t, response.Options{}, p)
		o.Duration, o.DeviceTimeout = 0, 30*time.Minute
		w, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		p.unplug(true)
		time.Sleep(10 * time.Minute)
		if rows := w.Now("com.shop"); len(rows) != 1 || rows[0].Answers || rows[0].Age < 9*time.Minute {
			t.Errorf("%+v", rows)
		}
		// This run ends within the device timeout while the phone is still
		// disconnected.
		run, err := w.Stop("done")
		if err != nil || run.ExitCode != record.ExitNoDevice ||
			!strings.Contains(run.Devices[0].Error, "has not responded for 10m0s at the end of the run") {
			t.Errorf("exit %d, %+v, %v", run.ExitCode, run.Devices[0].Error, err)
		}
	})
}

// When Ctrl-C, the end of a workload or an early stop races with requests, each
// request is answered.
func TestWatchEndsWhileAsked(t *testing.T) {
	for _, interrupted := range []bool{true, false} {
		t.Run(fmt.Sprint(interrupted), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := cable(phone("S1", counted(rooted(), func(int) int { return 3 }), healthy("com.shop"),
					healthy("com.shop:push")))
				p.slow = 3 * time.Second
				o := responding(t, response.Options{Dump: response.AtMarks}, p)
				o.Duration = 0
				ctx, interrupt := context.WithCancel(t.Context())
				defer interrupt()
				w, err := Start(ctx, o)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second)
				answers := make(chan error, 30)
				for i := range 10 {
					go func() {
						time.Sleep(time.Duration(i) * 700 * time.Millisecond)
						_, err := w.Mark(t.Context(), "loop")
						answers <- err
					}()
					go func() {
						time.Sleep(time.Duration(i) * 900 * time.Millisecond)
						_, err := w.Diagnose(t.Context(), "", "com.shop", "dump")
						answers <- err
					}()
					go func() {
						x, err := w.Window("span")
						time.Sleep(time.Duration(i) * time.Second)
						if err == nil {
							_, err = x.Close()
						}
						answers <- err
					}()
				}
				time.Sleep(4 * time.Second)
				if interrupted {
					interrupt()
				}
				run, err := w.Stop("early")
				if err != nil || run.Interrupted != interrupted {
					t.Errorf("%s, %v", run.Stopped, err)
				}
				for range 30 {
					<-answers
				}
				checkOver(t, w)
			})
		})
	}
}

// A thousand windows of all lengths get the same verdicts as separate runs with
// the same lines.
func TestWindowsAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs := []androidsim.ProcessSpec{leaky("com.shop", androidsim.Native, 300), healthy("com.shop:push")}
		specs[1].RestartAfter = 5 * time.Second
		p := cable(phone("S1", smallDumps(rooted()), specs...))
		w, o := started(t, response.Options{Cooldown: time.Hour}, p)
		windows := 1000
		if racing {
			windows = 60
		}
		done := make(chan error, windows)
		for i := range windows {
			time.Sleep(7 * time.Second)
			if i%97 == 50 {
				p.Restart("com.shop:push")
			}
			go func() {
				x, err := w.Window(fmt.Sprintf("spec %d", i))
				if err == nil {
					time.Sleep(time.Duration(1+i*i%5000) * 250 * time.Millisecond)
					_, err = x.Close()
				}
				done <- err
			}()
		}
		for range windows {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		run, err := w.Stop("done")
		if err != nil || len(run.Windows) != windows {
			t.Fatalf("%d windows, %v", len(run.Windows), err)
		}
		lines := readAll(t, o.Dir)
		gates := map[detector.Gate]int{}
		opened := map[int]int{}
		for i, x := range run.Windows {
			for _, y := range run.Windows {
				if y.T <= x.Ended {
					opened[i]++
				}
			}
			want := judgeSpan(t, o, lines, x, opened[i])
			for j, got := range x.Processes {
				gates[got.Gate]++
				if j >= len(want) || got.Gate != want[j].Gate || got.Samples != want[j].Samples ||
					got.Restarts != want[j].Restarts || !reflect.DeepEqual(got.Rate, want[j].Rate) ||
					got.Reason != want[j].Reason {
					t.Fatalf("window %d (%v to %v): %+v, want %+v", x.Number, x.T, x.Ended, got, want)
				}
			}
		}
		if gates[detector.Inconclusive] < windows/10 {
			t.Errorf("%v", gates)
		}
		t.Log(gates)
	})
}

// judgeSpan judges the lines of a window as a separate run. Like the run, it
// multiplies the number of processes by the number of windows.
func judgeSpan(t *testing.T, o Options, r result, x record.JudgedWindow, windows int) []record.Process {
	t.Helper()
	l, err := ledger.New(record.Header{Devices: []record.HeaderDevice{headerOf(o.Devices[0])}}, o.Policy)
	if err != nil {
		t.Fatal(err)
	}
	known := map[capture.Key]record.Event{}
	for _, e := range r.events {
		if (e.Event == "found" || e.Event == "restart" || e.Event == "level") && e.T <= x.T {
			known[capture.Key{Name: e.Process}] = e
		}
	}
	for _, name := range []string{"com.shop", "com.shop:push"} {
		if e, ok := known[capture.Key{Name: name}]; ok {
			e.Event, e.T, e.Up = "found", x.T, 0
			_ = l.AddEvent(e)
		}
	}
	inside := false
	for _, line := range r.lines {
		switch {
		case line.event != nil && line.event.Event == "window" && line.event.Window == x.Number:
			inside = true
		case line.event != nil && line.event.Event == "window_end" && line.event.Window == x.Number:
			inside = false
		case !inside:
		case line.sample != nil:
			_ = l.AddSample(*line.sample)
		default:
			_ = l.AddEvent(*line.event)
		}
	}
	var out []record.Process
	seen := 0
	for _, a := range l.Accounts() {
		if a.Inputs() > 0 {
			seen++
		}
	}
	for _, a := range l.Accounts() {
		if a.Inputs() > 0 {
			out = append(out, a.Record(seen*windows))
		}
	}
	return out
}

// A lost device does not block a caller that waits for its dumps.
func TestMarkWithLostDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dumps := func(n int) int { return 3 }
		a, b := cable(phone("S1", counted(rooted(), dumps), healthy("com.shop"))),
			cable(phone("S2", counted(rooted(), dumps), healthy("com.shop")))
		o := responding(t, response.Options{Dump: response.AtMarks}, a, b)
		o.Duration, o.DeviceTimeout = 0, time.Minute
		w, err := Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.unplug(true)
		time.Sleep(5 * time.Minute)
		missing, err := w.Mark(t.Context(), "loop 1")
		if err != nil || len(missing) != 1 || !strings.Contains(missing[0], "no longer watched") {
			t.Errorf("%q, %v", missing, err)
		}
		if run, err := w.Stop("done"); err != nil || run.ExitCode != record.ExitNoDevice || len(run.Processes) != 2 {
			t.Errorf("exit %d, %v", run.ExitCode, err)
		}
	})
}
