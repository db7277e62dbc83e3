package replay

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/detector"
)

// traded returns a table of eight hours of an app with two processes that pass
// 200 MB of work back and forth while the busy one leaks at the given rate in
// MB/h. A seed determines the noise. If apart is set, the rows of one process
// follow those of the other instead of alternating.
func traded(seed uint64, rate float64, apart bool) string {
	r := rand.New(rand.NewPCG(seed, 13))
	var rows [2]strings.Builder
	var turns strings.Builder
	share, held := 0.5, [2]float64{}
	for i := range 960 {
		if i%40 == 0 {
			share = r.Float64()
		}
		for k, work := range []float64{share, 1 - share} {
			held[k] += rate * work / 120
			row := fmt.Sprintf("%d,%s,%d,%.0f\n", i*30, []string{"com.shop", "com.shop:remote"}[k], 7+k,
				1024*(200+200*work+held[k]+2*r.NormFloat64()))
			rows[k].WriteString(row)
			turns.WriteString(row)
		}
	}
	const head = "t_s,process,pid,pss_kb\n"
	if apart {
		return head + rows[0].String() + rows[1].String()
	}
	return head + turns.String()
}

var robust = Options{Policy: detector.RobustPolicy()}

// If the rows of an app's processes alternate in a table, the processes are
// added up.
func TestSumOfATable(t *testing.T) {
	for name, c := range map[string]struct {
		table   string
		gate    detector.Gate
		leaks   bool
		because string
	}{
		"a leak":                  {traded(4, 50, false), detector.Leak, true, "grows"},
		"no leak":                 {traded(4, 0, false), "", false, ""},
		"rows not sorted by time": {traded(4, 50, true), detector.Inconclusive, false, "sort the table by t_s"},
		"two apps": {
			strings.ReplaceAll(traded(4, 50, false), "com.shop:", "com.shopping:"), "none", false, "",
		},
		"never at the same time": {
			"t_s,process,pss_kb\n0,com.x,5\n30,com.x,5\n9000,com.x:p,5\n9030,com.x:p,5\n", "none", false, "",
		},
	} {
		r := mustSay(t, c.table, robust)
		if c.gate == "none" {
			if len(r.Apps) > 0 {
				t.Errorf("%s: %+v", name, r.Apps)
			}
			continue
		}
		if len(r.Apps) != 1 {
			t.Errorf("%s: %d apps", name, len(r.Apps))
			continue
		}
		if a := r.Apps[0]; a.Leaks() != c.leaks || c.gate != "" && a.Gate != c.gate ||
			!strings.Contains(a.Reason, c.because) {
			t.Errorf("%s: %s: %s", name, a.Gate, a.Reason)
		}
	}
}

// A process that has had no row for a long time has ended, and the sum
// continues without it.
func TestSumAfterAnEndInATable(t *testing.T) {
	var b strings.Builder
	b.WriteString("t_s,process,pss_kb\n")
	for i := range 200 {
		fmt.Fprintf(&b, "%d,com.x,102400\n", i*30)
		if i < 50 {
			fmt.Fprintf(&b, "%d,com.x:p,51200\n", i*30)
		}
	}
	a := mustSay(t, b.String(), robust).Apps[0]
	// There are 50 sums of both processes. Then the last value of the second
	// process is used for 2 min, the sum is unknown until 15 min have passed,
	// and after that the sum is the value of one process.
	if *a.LastMB != 100 || a.Samples < 150 || a.Samples > 175 || a.Gaps != 1 {
		t.Errorf("got %d sums with %d gaps, the last sum %.0f MB; want 150 to 175 with 1 gap, the last 100 MB",
			a.Samples, a.Gaps, *a.LastMB)
	}
}

// If there is a base, the sum is judged by its difference from the base, as the
// processes are.
func TestSumAndBase(t *testing.T) {
	head, base := write(t, "head.csv", traded(4, 50, false)), write(t, "base.csv", traded(5, 50, false))
	o := robust
	o.Bases = []string{base}
	r, err := Run(t.Context(), []string{head}, o)
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Apps[0]; a.Base == nil || *a.Base != base || a.Gate == detector.Leak {
		t.Errorf("%v %s: %s", a.Base, a.Gate, a.Reason)
	}
	o.Bases = []string{write(t, "one.csv", "t_s,process,pss_kb\n0,com.shop,5\n30,com.shop,5\n")}
	if r, err = Run(t.Context(), []string{head}, o); err != nil {
		t.Fatal(err)
	}
	if a := r.Apps[0]; a.Base != nil || a.Gate != detector.Leak ||
		!slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, "no comparison was made") }) {
		t.Errorf("%v %s %q", a.Base, a.Gate, a.Warnings)
	}
	// The looks of sums are kept as well.
	o.Bases, o.Explain = nil, true
	if r, err = Run(t.Context(), []string{head}, o); err != nil || len(r.Apps[0].Looks) == 0 {
		t.Errorf("the sum has no looks: %v", err)
	}
}
