package trip

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/reporters/record"
)

// The reason for the end of a process may arrive before it is requested, during
// the wait, or never.
func TestDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Deaths
		d.Happened(record.Event{Event: "restart", PID: 7, Reason: "crash"})
		d.Happened(record.Event{Event: "death", PID: 8, Reason: "low_memory", Text: "RSS 300 MB"})
		if got := d.Reason(t.Context(), 8); got != "low memory, RSS 300 MB" {
			t.Errorf("%q", got)
		}
		answers := make(chan string, 2)
		for range 2 {
			go func() { answers <- d.Reason(t.Context(), 7) }()
		}
		time.Sleep(3 * time.Second)
		d.Happened(record.Event{Event: "death", PID: 6, Reason: "exit"})
		d.Happened(record.Event{Event: "death", PID: 7, Reason: "crash", Text: "crash"})
		for range 2 {
			if got := <-answers; got != "crash" {
				t.Errorf("%q", got)
			}
		}
		began := time.Now()
		if got := d.Reason(t.Context(), 9); got != "" || time.Since(began) != deathWithin {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got := d.Reason(ctx, 9); got != "" || time.Since(began) != deathWithin+time.Second {
			t.Errorf("%q after %v", got, time.Since(began))
		}
		for pid := range 2 * maxDeaths {
			d.Happened(record.Event{Event: "death", PID: pid, Text: strings.Repeat("x", 5000)})
		}
		if len(d.reasons) > maxDeaths || len(d.reasons[500]) > maxStep+10 {
			t.Errorf("got %d reasons, one with %d characters, want at most %d with at most %d", len(d.reasons),
				len(d.reasons[500]), maxDeaths, maxStep+10)
		}
	})
}

// If a diagnosis has no heap dump, the reason is reported.
func TestWhyDumpIsMissing(t *testing.T) {
	for want, d := range map[string]record.Diagnosis{
		"the device wrote no heap dump": {},
		"not debuggable; user build": {
			Steps: []record.Collected{
				{Step: "heap", Outcome: "skipped", Reasons: []string{"not debuggable", "user build", "more"}},
			},
		},
		"heap dump: it could not be analyzed": {Warnings: []string{"", "heap dump: it could not be analyzed"}},
	} {
		if got := lacking(d, len(d.Steps)-1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
