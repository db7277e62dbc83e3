package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/reporters/record"
)

// A run warns that the processes which render the pages of WebViews are not
// watched, unless they are, or there are none.
func TestWebViewsOutsideTheApp(t *testing.T) {
	const renderer = "com.google.android.webview:sandboxed_process0:org.chromium.content.app.SandboxedProcessService0:0"
	for _, c := range []struct {
		api       int
		webViews  []int64
		processes string
		warned    bool
	}{
		{34, []int64{0, 2, 0}, "com.x", true},
		{26, []int64{1}, "com.x com.x:push", true},
		{25, []int64{1}, "com.x", false}, // rendered in the process of the app
		{34, []int64{0, 0}, "com.x", false},
		{34, nil, "com.x", false},
		{34, []int64{1}, "com.x " + renderer, false},
		{34, []int64{1}, "com.x com.android.chrome:sandboxed_process3", false},
	} {
		l, err := New(record.Header{Devices: []record.HeaderDevice{{Device: "phone", StartedUp: 1000, API: c.api}}},
			detector.DefaultPolicy())
		if err != nil {
			t.Fatal(err)
		}
		p, up := l.Part("phone"), 1000.0
		for i, name := range strings.Fields(c.processes) {
			p.AddEvent(record.Event{Event: "found", User: new(0), Process: name, PID: i + 1, Up: up, Source: "status"})
		}
		for _, n := range c.webViews {
			up += 30
			p.AddSample(record.Sample{
				Process: "com.x", PID: 1, Up: up, T: up - 1000, Source: "dumpsys",
				Breakdown: &record.Breakdown{Objects: map[string]int64{"WebViews": n}},
			})
		}
		r := l.Run()
		warned := strings.Contains(fmt.Sprint(r.Warnings),
			"com.x has WebViews, but the processes that render their pages")
		if warned != c.warned {
			t.Errorf("%+v: warnings %q", c, r.Warnings)
		}
	}
}

// The names in events of a hostile file are bounded, and each is listed once.
func TestUnwatchedNamesAreBounded(t *testing.T) {
	r := newLoopRun(t, false)
	for i := range 10 * maxUnwatched {
		for range 2 {
			r.event(record.Event{Event: "unwatched", Unwatched: []string{"com.z"}}) // about a process: ignored
			r.Part.AddEvent(record.Event{
				Event: "unwatched", Unwatched: []string{fmt.Sprint("com.y", i), strings.Repeat("x", 2*maxText)},
				Up: (r.up + time.Duration(i)*time.Second).Seconds(),
			})
		}
	}
	text := strings.Join(r.finished(t).Warnings, "\n")
	if n := strings.Count(text, "com.y"); n != maxUnwatched-1 || strings.Count(text, "com.y0, xxx") != 1 ||
		strings.Contains(text, "com.z") || len(text) > 2*maxText {
		t.Errorf("%d names in %q", n, text)
	}
}
