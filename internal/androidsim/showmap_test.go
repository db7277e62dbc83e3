package androidsim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidtext"
	"github.com/leakgate/leakgate/internal/capture/procfs"
)

// TestShowmapOptions checks that every option prints the same total, and one
// line per area or per object.
func TestShowmapOptions(t *testing.T) {
	for _, api := range apis {
		synctest.Test(t, func(t *testing.T) {
			p := asked(Options{API: api, BuildType: "userdebug", SU: true},
				ProcessSpec{Models: []Model{Swap(0.3, 0, time.Second)}})
			time.Sleep(time.Minute)
			truth, _ := p.Memory("com.shop")
			text := ask(t, p, fmt.Sprintf("su 0 cat /proc/%d/smaps", truth.PID))
			smaps, err := procfs.ParseSmaps(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			lines := map[string]int{}
			for _, options := range []string{"", "-v", "-t", "-t -v", "-a", "-a -v"} {
				if strings.Contains(options, "-") && options != "-t" && (api == 29 || api == 30) {
					// In these releases, the last two titles are not separated
					// if the count column is missing.
					if text := ask(t, p, fmt.Sprintf("su 0 showmap %s %d", options, truth.PID)); !strings.Contains(text,
						"swap  swapPSSobject\n") || !strings.HasSuffix(text, " TOTAL\n") {
						t.Errorf("API %d, showmap %s: %.300s", api, options, text)
					}
					continue
				}
				s, err := procfs.ParseShowmap([]byte(ask(t, p, fmt.Sprintf("su 0 showmap %s %d", options, truth.PID))))
				if err != nil || s.Truncated || len(s.Warnings) > 0 {
					t.Fatalf("API %d, showmap %s: %v %v", api, options, err, s.Warnings)
				}
				if s.Total.PSS.N != truth.PSS || s.Total.Swap.N != truth.SwapPSS || s.Total.RSS != smaps.Rss ||
					s.Total.SwapPss.Known != (api >= 26) {
					t.Errorf("API %d, showmap %s: TOTAL %+v", api, options, s.Total)
				}
				lines[options] = len(s.Rows)
				var pss int64
				for _, r := range s.Rows {
					pss += r.PSS.N
					if (r.Flags != "") != (strings.Contains(options, "-v") && api >= androidtext.ShowmapFlags) ||
						(r.End > r.Start) != strings.Contains(options, "-a") {
						t.Errorf("API %d, showmap %s: %+v", api, options, r)
					}
				}
				if terse := strings.Contains(options, "-t"); !terse && pss != truth.PSS || terse && api < 29 &&
					pss >= truth.PSS || pss > truth.PSS {
					t.Errorf("API %d, showmap %s: the lines add up to %d of %d", api, options, pss, truth.PSS)
				}
				byAddress := slices.IsSortedFunc(s.Rows,
					func(a, b procfs.ShowmapRow) int { return int(a.Start>>12) - int(b.Start>>12) })
				byName := slices.IsSortedFunc(s.Rows,
					func(a, b procfs.ShowmapRow) int { return strings.Compare(a.Object, b.Object) })
				if strings.Contains(options, "-a") && !byAddress || !strings.Contains(options, "-a") && !byName {
					t.Errorf("API %d, showmap %s: the rows are not sorted", api, options)
				}
			}
			if lines["-t"] > lines[""] || api < 29 && lines["-t"] == lines[""] || api != 29 &&
				(int64(lines["-v"]) != smaps.Mappings.N || lines[""] >= lines["-v"] || lines["-t -v"] >= lines["-v"]) {
				t.Errorf("API %d: %v lines for %d areas", api, lines, smaps.Mappings.N)
			}
		})
	}
}

func TestShowmapIsNotEverywhere(t *testing.T) {
	for _, api := range apis {
		for build, there := range map[string]bool{"user": api >= 29, "userdebug": true} {
			p := asked(Options{API: api, BuildType: build, SU: true}, ProcessSpec{})
			a := sh1(t, p, fmt.Sprintf("su 0 showmap %d", p.PID("com.shop")))
			if there != (a.exit == 0) || there == strings.Contains(a.err, "not found") {
				t.Errorf("API %d, %s: exit %d, %q", api, build, a.exit, a.err)
			}
			where := "/system/bin/showmap"
			if api < 29 {
				where = "/system/xbin/showmap"
			}
			if a := sh1(t, p, "test -f "+where); there != (a.exit == 0) {
				t.Errorf("API %d, %s: %s: %+v", api, build, where, a)
			}
			if a := sh1(t, p, fmt.Sprintf("%s %d", where, p.PID("com.shop"))); a.exit == 0 {
				t.Errorf("API %d, %s: the shell can run it: %+v", api, build, a)
			}
		}
	}
}
