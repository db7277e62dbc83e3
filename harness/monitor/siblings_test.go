package monitor

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/capture"
	"github.com/leakgate/leakgate/internal/androidsim"
)

// A process of the app that no pattern matches is not silently ignored, even if
// it starts late or leaks; a process of the same package that the user did not
// choose is.
func TestUnwatchedProcesses(t *testing.T) {
	late := leaky("org.tiles.render", androidsim.Java, 600)
	late.StartAfter = 12 * time.Minute
	app := []androidsim.ProcessSpec{
		healthy("com.shop"), healthy("com.shop:push"), healthy("com.shop.remote"), late,
	}
	for _, c := range []struct {
		patterns, want string
	}{
		{"com.shop com.shop:*", "com.shop.remote org.tiles.render"},
		{"com.shop", "com.shop.remote com.shop:push org.tiles.render"},
		{"com.shop:push", "com.shop.remote org.tiles.render"},
		{"com.shop*", "org.tiles.render"},
		{"com.shop* org.tiles.render", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			other := androidsim.App{Package: "com.other", Processes: []androidsim.ProcessSpec{healthy("com.other")}}
			o := rooted()
			o.Serial, o.Apps = "S1", []androidsim.App{{Package: "com.shop", Processes: app}, other}
			run := options(t, &simulated{Phone: androidsim.New(o)})
			run.Patterns, run.Duration = nil, 25*time.Minute
			for word := range strings.FieldsSeq(c.patterns) {
				run.Patterns = append(run.Patterns, capture.Pattern(word))
			}
			r := perform(t, t.Context(), run)
			var got []string
			for _, e := range r.eventsOf("unwatched", "") {
				got = append(got, e.Unwatched...)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("%s: recorded %q, want %q", c.patterns, text, c.want)
			}
			warned := slices.ContainsFunc(r.Warnings, func(w string) bool {
				return strings.Contains(w, "processes with the user ID of the app that are not watched: "+
					strings.ReplaceAll(c.want, " ", ", ")+"; to watch them, add their names")
			})
			if warned != (c.want != "") {
				t.Errorf("%s: warnings %q", c.patterns, r.Warnings)
			}
		})
	}
}

// searchFails is a phone on which the first searches for siblings fail.
type searchFails struct {
	*simulated
	left int
}

func (d *searchFails) Shell(ctx context.Context, command string, out, errOut io.Writer) (int, error) {
	if strings.Contains(command, "Uid:") && d.left > 0 {
		d.left--
		return -1, errors.New("connection ended")
	}
	return d.simulated.Shell(ctx, command, out, errOut)
}

// Even a run of 20 s finds the processes that are not watched. A search that
// fails is repeated by the next scan, and an error that persists is recorded.
func TestSearchForSiblings(t *testing.T) {
	for _, c := range []struct {
		lasts            time.Duration
		failures, errors int
		found            bool
	}{
		{20 * time.Second, 0, 0, true},
		{time.Minute, 1, 0, true},
		{9 * time.Minute, 2, 1, false},
		{14 * time.Minute, 2, 1, true},
		{50 * time.Minute, 100, 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := phone("S1", rooted(), healthy("com.shop"), healthy("com.shop.remote"))
			o := options(t, p)
			o.Devices[0].Device = &searchFails{simulated: p, left: c.failures}
			o.Duration = c.lasts
			r := perform(t, t.Context(), o)
			failed := 0
			for _, e := range r.eventsOf("error", "") {
				if strings.Contains(e.Text, "search for processes with the same uid") {
					failed++
				}
			}
			if n := len(r.eventsOf("unwatched", "")); (n == 1) != c.found || failed != c.errors {
				t.Errorf("%v, %d failures: %d unwatched events, %d errors", c.lasts, c.failures, n, failed)
			}
		})
	}
}
