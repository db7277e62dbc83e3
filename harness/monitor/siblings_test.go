package monitor

import (
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
