package monitor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/internal/harness/response"
	"github.com/leakgate/leakgate/reporters/record"
)

// Marks that keep the device busy do not prevent the snapshot that a suspicion
// triggers. Without this snapshot, growth could not be determined later.
func TestSnapshotBetweenMarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Native, 300), healthy("com.shop:a"),
			healthy("com.shop:b")))
		p.slow = 20 * time.Second
		o := responding(t, response.Options{Dump: response.AtMarks}, p)
		o.Workload, o.Duration = looping{60, 40 * time.Second, 0}, 26*time.Minute
		r := respond(t, t.Context(), o)
		suspicion := r.at(t, "suspicion",
			func(e record.Event) bool { return e.Event == "state" && *e.To == detector.Suspicious })
		snapshots := r.diagnosesOf("com.shop", record.TriggerSuspicious)
		if len(snapshots) != 1 || snapshots[0].T+snapshots[0].Duration > r.events[suspicion].T+120 {
			t.Errorf("got snapshots %+[2]v, want one soon after the suspicion at %[1]v s", r.events[suspicion].T,
				snapshots)
		}
	})
}

// Every process is dumped at the end, however many processes there are.
func TestDumpsOfManyProcessesAtEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 130
		var apps []androidsim.ProcessSpec
		for i := range n {
			apps = append(apps, healthy(fmt.Sprintf("com.shop:p%d", i)))
		}
		o := responding(t, response.Options{Dump: response.AtEnd}, cable(phone("S1", smallDumps(rooted()), apps...)))
		o.Duration = time.Minute
		if r := respond(t, t.Context(), o); len(r.Diagnoses) != n || r.Stopped != record.StoppedDuration {
			t.Errorf("%d dumps, %s, %+v", len(r.Diagnoses), r.Stopped, r.eventsOf("error", ""))
		}
	})
}

// A process that keeps restarting gets a snapshot every half hour, not in each
// life.
func TestSnapshotsOverRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Native, 300)))
		o := responding(t, response.Options{}, p)
		o.Duration = 100 * time.Minute
		for life := range 11 {
			time.AfterFunc(time.Duration(life+1)*9*time.Minute, func() { p.Restart("com.shop") })
		}
		r := respond(t, t.Context(), o)
		suspicions := 0
		for _, e := range r.events {
			if e.Event == "state" && *e.To == detector.Suspicious {
				suspicions++
			}
		}
		snapshots := r.diagnosesOf("com.shop", record.TriggerSuspicious)
		if suspicions < 6 || len(snapshots) < 2 || len(snapshots) > 4 {
			t.Errorf("%d suspicions, %d snapshots", suspicions, len(snapshots))
		}
		for i := 1; i < len(snapshots); i++ {
			if apart := snapshots[i].T - snapshots[i-1].T; apart < snapshotEvery.Seconds()-10 {
				t.Errorf("snapshots %v s apart", apart)
			}
		}
	})
}

// eventFunc is an observer that is called with every event.
type eventFunc func(record.Event)

func (h eventFunc) Happened(e record.Event)    { h(e) }
func (eventFunc) Changed(string, func() []Row) {}

// If a run is aborted before a leak has been diagnosed, the leak is reported as
// not diagnosed.
func TestLeakNotDiagnosedWhenAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300),
			leaky("com.shop:b", androidsim.Java, 300)))
		p.slow = time.Hour
		o := responding(t, response.Options{}, p)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		leaks := 0
		o.Observer = eventFunc(func(e record.Event) {
			if e.Event == "state" && *e.To == detector.Leaking {
				if leaks++; leaks == 2 {
					stop()
				}
			}
		})
		o.Duration = 40 * time.Minute
		r := respond(t, ctx, o)
		told := 0
		for _, e := range r.eventsOf("error", "") {
			if strings.Contains(e.Text, "leak not diagnosed: run aborted first") {
				told++
			}
		}
		if leaks != 2 || told != 1 || r.Stopped != record.StoppedInterrupted {
			t.Errorf("got %d leaks, reported %d times, run stopped by %s: %+v", leaks, told, r.Stopped, r.events)
		}
	})
}

// A process that has been diagnosed and is normal now is not diagnosed again at
// the end.
func TestDiagnosedLeakOfEarlierLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := cable(phone("S1", smallDumps(rooted()), leaky("com.shop", androidsim.Java, 300)))
		o := responding(t, response.Options{}, p)
		o.Duration = 51*time.Minute + 30*time.Second
		time.AfterFunc(48*time.Minute, func() { p.Restart("com.shop") })
		r := respond(t, t.Context(), o)
		if len(r.diagnosesOf("com.shop", record.TriggerLeak)) == 0 ||
			len(r.diagnosesOf("com.shop", record.TriggerFinal)) > 0 {
			t.Errorf("%+v", r.Diagnoses)
		}
	})
}
