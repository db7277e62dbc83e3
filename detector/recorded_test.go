package detector_test

import (
	"bufio"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/scenario"
)

var update = flag.Bool("update", false, "rewrite testdata/verdicts.txt; review the difference")

// TestRecordedVerdicts compares the numbers of many verdicts with reviewed
// numbers, to within a thousandth. The test shows which other verdicts a change
// to a rule affects.
func TestRecordedVerdicts(t *testing.T) {
	lines := recordedVerdicts(t)
	const page = "testdata/verdicts.txt"
	if *update {
		if err := os.WriteFile(page, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(page)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	n := 0
	for ; s.Scan(); n++ {
		if n >= len(lines) || !alikeLines(lines[n], s.Text()) {
			t.Fatalf("%s:%d: go test ./detector -run TestRecordedVerdicts -update rewrites it\ngot  %s\nwant %s", page,
				n+1, lines[min(n, len(lines)-1)], s.Text())
		}
	}
	if n != len(lines) || n < 300 {
		t.Errorf("%d lines, %s has %d", len(lines), page, n)
	}
}

// alikeLines reports whether two lines agree word by word; numbers may differ
// by up to a thousandth.
func alikeLines(got, want string) bool {
	a, b := strings.Fields(got), strings.Fields(want)
	return slices.EqualFunc(a, b, func(x, y string) bool {
		v, err := strconv.ParseFloat(x, 64)
		w, werr := strconv.ParseFloat(y, 64)
		if err != nil || werr != nil {
			return x == y
		}
		return math.Abs(v-w) <= 1e-3*max(1e-3, math.Abs(v), math.Abs(w))
	})
}

// verdictLine returns a line with all numbers of a verdict.
func verdictLine(v detector.Verdict) string {
	var b strings.Builder
	mb := func(x float64) string { return fmt.Sprintf(" %.5g", x/detector.MB) }
	fmt.Fprintf(&b, "%v %v %v kind=%v samples %d for %.0f", v.Gate, v.State, v.Worst, v.Kind, v.Samples,
		v.Duration.Seconds())
	b.WriteString(" rate" + mb(v.Rate) + mb(v.RateLow) + mb(v.RateHigh) + " reach" + mb(v.MinDetectable) +
		mb(v.MinDetectableLately) + " grew" + mb(float64(v.Growth)))
	fmt.Fprintf(&b, " first %.0f %.0f flat %.0f", v.FirstSuspicious.N.Seconds(), v.FirstLeaking.N.Seconds(),
		v.Flat.Seconds())
	for _, s := range v.Shares {
		fmt.Fprintf(&b, " %v", s.Dimension)
		b.WriteString(mb(float64(s.Growth)) + mb(s.Rate) + fmt.Sprintf(" %.4f", s.Share))
	}
	for _, j := range v.Jumps {
		fmt.Fprintf(&b, " jump %.0f%s %v", j.At.Seconds(), mb(float64(j.Bytes)), j.Stayed)
	}
	for _, e := range v.Evidence {
		fmt.Fprintf(&b, " %s %.5g", e.Name, e.Value)
	}
	return b.String() + " | " +
		strings.NewReplacer("(", "( ", ")", " )", ",", " ,", ":", " :", ";", " ;", "%", " %").Replace(v.Because)
}

func recordedVerdicts(t *testing.T) []string {
	var out []string
	add := func(name string, v detector.Verdict) { out = append(out, name+": "+verdictLine(v)) }
	play := func(s scenario.Scenario, seed uint64, c scenario.Conditions, p detector.Policy) (*detector.Detector,
		[]detector.Transition) {
		r := rand.New(rand.NewPCG(seed, 211))
		d := detector.New(p)
		return d, scenario.Play(s.Simulate(r), d, c, r.Float64)
	}
	for _, hours := range []float64{0.7, 1.5, 4, 8} {
		for i, s := range slices.Concat(scenario.Null(hours), scenario.Shapes(hours), scenario.Leaks(0, hours),
			scenario.Kinds(hours)) {
			if i%4 != int(hours)%4 {
				continue
			}
			d, steps := play(s, uint64(i), asThree, detector.RobustPolicy())
			d.SetFamilySize(1 + i%3*10)
			add(fmt.Sprintf("%s, %g h", s.Name, hours), d.Verdict())
			for _, x := range steps {
				out = append(out, fmt.Sprintf("  %.0f %v to %v %v %s", x.At.Seconds(), x.From, x.To, x.Kind, x.Rule))
			}
			if i%3 == 0 {
				d, steps := play(s, uint64(i), asThree, detector.ArticlePolicy())
				add(fmt.Sprintf("%s, %g h, article", s.Name, hours), d.Verdict())
				out = append(out, fmt.Sprintf("  %d steps", len(steps)))
			}
		}
	}
	for i, n := range scenario.Nights() {
		_, v := spent(n, uint64(i))
		add(n.Name, v)
	}
	for i, s := range scenario.Bases(2) {
		var bases []*detector.Detector
		for k := range uint64(4) {
			c := asThree
			if i%2 == 1 {
				c = inLoops
			}
			b := s
			b.Leak = map[uint64]float64{0: 60}[k] // the head
			d, _ := play(b, k*100+uint64(i), c, detector.RobustPolicy())
			bases = append(bases, d)
		}
		for _, k := range []int{1, 2, 3} {
			v, err := bases[0].CompareTo(bases[1 : 1+k]...)
			w, werr := bases[1].CompareTo(bases[2:min(4, 2+k)]...)
			if err != nil || werr != nil {
				t.Fatal(err, werr)
			}
			add(fmt.Sprintf("%s, 60 MB/h against %d", s.Name, k), v)
			add(fmt.Sprintf("%s against %d", s.Name, k), w)
		}
	}
	for i, x := range []struct{ head, base string }{
		{"app, 300 MB/h, restart every 25 min", "app, 0 MB/h, restart every 25 min"},
		{"app, 0 MB/h, restart every 25 min", "app, 0 MB/h, restart every 25 min"},
		{"plain, 100 MB/h, restart every 25 min", "plain, 0 MB/h, restart every 25 min"},
		{"plain, 0 MB/h, restart every 10 min", "plain, 300 MB/h, restart every 10 min"},
	} {
		head, _ := spent(night(t, x.head), uint64(i))
		base, _ := spent(night(t, x.base), uint64(i))
		v, err := head.CompareTo(base)
		if err != nil {
			t.Fatal(err)
		}
		add(x.head+" against "+x.base, v)
	}
	for i, perLoop := range []float64{0, 0.3, 0.6, 1, 3} {
		for _, count := range []int{11, 12, 24, 80} {
			add(fmt.Sprintf("%g MB per loop, %d loops", perLoop, count),
				collectedRun(uint64(i), perLoop, count, 30*time.Second).Verdict())
		}
	}
	return out
}

// collectedRun returns a run in loops with a forced collection at the end of
// each.
func collectedRun(seed uint64, perLoop float64, loops int, each time.Duration) *detector.Detector {
	r := rand.New(rand.NewPCG(seed, 223))
	d := detector.New(detector.RobustPolicy())
	at := bootTime
	for i := range loops {
		d.AddSample(detector.Sample{At: at, Bytes: int64((300 + 30*r.Float64()) * detector.MB)})
		at += each / 2
		s := detector.Sample{At: at, Bytes: int64((290 + perLoop*float64(i) + r.NormFloat64()) * detector.MB)}
		d.AddSample(s)
		d.AddCollected(s)
		at += each / 2
	}
	return d
}
