package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leakgate/leakgate/internal/androidsim"
	"github.com/leakgate/leakgate/reporters/record"
)

// twelveMinutes is the configuration of a run for a pull request: 24 loops of
// half a minute, each with a mark.
const twelveMinutes = `version: 1
app: { package: com.shop, processes: [com.shop] }
workload:
  device_command: |
    am start -n com.shop/.MainActivity; sleep 5; i=0
    while [ $i -lt 25 ]; do
      i=$((i+1)); echo leakgate:mark loop $i; sleep 4
      am start -n com.shop/.CartActivity; sleep 4; input keyevent BACK; sleep 21
    done
duration: 15m
report: { junit: true }
`

// A run of 12 minutes reaches a verdict: either it names the screen that each
// loop leaks, or it reports that nothing leaked. The files of the run agree,
// and judging its samples again yields the same verdict.
func TestTwelveMinuteRunHasVerdict(t *testing.T) {
	for name, c := range map[string]struct {
		screen  androidsim.Screen
		want    int
		because string
		out     []string
	}{
		"leak": {
			androidsim.Screen{Class: ".CartActivity", Leaks: true}, record.ExitLeak,
			"1 more Activity after each of 24 loops: 1 to 25, 1 more context",
			[]string{
				"LEAK", "proved by counts at marks", "25 readings, after forced collections: leak",
				"LEAK Activities: 1, 2, 3",
			},
		},
		"no leak": {
			androidsim.Screen{Class: ".CartActivity"}, record.ExitClean,
			"no growth after forced collections in the last ",
			[]string{"24 loops: no Activity, window", "25 readings, after forced collections: pass"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inFolder(t)
				if err := os.WriteFile("run.yaml", []byte(twelveMinutes), 0o600); err != nil {
					t.Fatal(err)
				}
				phone := androidsim.New(androidsim.Options{Serial: "S1", Apps: []androidsim.App{{
					Package: "com.shop", Debuggable: true,
					Screens: []androidsim.Screen{{Class: ".MainActivity"}, c.screen},
					Processes: []androidsim.ProcessSpec{{Name: "com.shop", Models: []androidsim.Model{
						androidsim.Typical(), androidsim.GCSawtooth(20, time.Minute), androidsim.Noise(1, 0.3),
					}}},
				}}})
				code, out, errOut := attach(t, phone).typed(t, "run", "run.yaml", "--out", "run")
				if code != c.want {
					t.Fatalf("exit %d, want %d:\n%s\n%s", code, c.want, out, errOut)
				}
				run, err := record.ReadRun("run")
				if err != nil {
					t.Fatal(err)
				}
				p := run.Processes[0]
				if !strings.HasPrefix(p.Reason, c.because) || len(p.CountsAtMarks) != 1 ||
					!p.CountsAtMarks[0].Collected {
					t.Errorf("%s: %+v", p.Reason, p.CountsAtMarks)
				}
				for _, words := range c.out {
					if !strings.Contains(strings.Join(strings.Fields(out), " "), words) {
						t.Errorf("no %q in\n%s", words, out)
					}
				}
				for _, file := range []string{"junit.xml"} {
					text, err := os.ReadFile(filepath.Join("run", file))
					if err != nil || !strings.Contains(string(text), strings.TrimSuffix(c.because, ": ")) {
						t.Errorf("%s: %v\n%s", file, err, text)
					}
				}
				if err := os.Remove(filepath.Join("run", "run.json")); err != nil {
					t.Fatal(err)
				}
				if code, out, errOut := typed(t, nil, "report", "run"); code > 1 {
					t.Fatalf("report: exit %d\n%s\n%s", code, out, errOut)
				}
				again, err := record.ReadRun("run")
				if err != nil || again.ExitCode != c.want || fmt.Sprint(again.Processes[0].Reason) != p.Reason {
					t.Errorf("report: %v, exit %d: %s", err, again.ExitCode, again.Processes[0].Reason)
				}
			})
		})
	}
}
