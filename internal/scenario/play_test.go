package scenario

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
)

// TestReadings checks that a breakdown is the sum of its rows, and that the
// fast channel reads the part of this sum that is in smaps.
func TestReadings(t *testing.T) {
	s := Scenario{Hours: 1, Sigma: 20, Leak: 600, LeakDim: Graphics}
	p := s.Simulate(chance(1))
	for i := range p.Len() {
		b, v := p.Breakdown(i), p.Sample(i)
		sum := int64(0)
		for d := range detector.Total {
			if !b.Dim[d].Known {
				t.Fatalf("%v is unknown", d)
			}
			sum += b.Dim[d].N
		}
		// Each row is rounded down to whole bytes.
		if off := b.Dim[detector.Total].N - sum; off < -8 || off > 8 {
			t.Fatalf("point %d: TOTAL is %d bytes off", i, off)
		}
		if off := b.Mapped().N - v.Bytes; off < -2 || off > 2 {
			t.Fatalf("point %d: smaps is %d bytes off", i, off)
		}
		if want := 1000*time.Second + time.Duration(i)*15*time.Second; b.At != want || v.At != want {
			t.Fatalf("point %d: at %v and %v", i, b.At, v.At)
		}
	}
	first, last := p.Breakdown(0).Dim, p.Breakdown(p.Len()-1).Dim
	if mb := (last[detector.Graphics].N - first[detector.Graphics].N) / detector.MB; mb < 550 || mb > 650 {
		t.Errorf("Graphics rose by %d MB, want 550 to 650", mb)
	}
}

// TestConditions checks the number of samples, the duration and the number of
// restarts under several conditions.
func TestConditions(t *testing.T) {
	lost := func() float64 { return 0 }
	tests := map[string]struct {
		s        Scenario
		c        Conditions
		chance   func() float64
		samples  int
		duration time.Duration
		restarts int
	}{
		"no faults":        {Scenario{}, Conditions{}, nil, 241, 2 * time.Hour, 0},
		"15 s":             {Scenario{}, Conditions{Interval: 15 * time.Second}, nil, 481, 2 * time.Hour, 0},
		"60 s":             {Scenario{}, Conditions{Interval: time.Minute}, nil, 121, 2 * time.Hour, 0},
		"all samples lost": {Scenario{}, Conditions{Drop: 0.1}, lost, 0, 0, 0},
		"gap": {Scenario{Gaps: []Gap{{30, 40}, {50, 60}}}, Conditions{}, nil, 241 - 40,
			2 * time.Hour, 0},
		"restarts": {Scenario{Restarts: []float64{30, 60}}, Conditions{}, nil, 121, time.Hour, 2},
		"restart in a gap": {Scenario{Restarts: []float64{35}, Gaps: []Gap{{30, 40}}}, Conditions{}, nil, 161,
			80 * time.Minute, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.s.Hours, tt.s.Sigma = 2, 1
			d := detector.New(detector.ArticlePolicy())
			steps := Play(tt.s.Simulate(chance(2)), d, tt.c, tt.chance)
			v := d.Verdict()
			if v.Samples != tt.samples || v.Duration != tt.duration || v.Restarts != tt.restarts {
				t.Errorf("got %d samples in %v with %d restarts, want %d in %v with %d; steps %v", v.Samples,
					v.Duration, v.Restarts, tt.samples, tt.duration, tt.restarts, steps)
			}
		})
	}
}

// TestDrop checks that one sample in ten is lost.
func TestDrop(t *testing.T) {
	s := Scenario{Hours: 20, Sigma: 1}
	r, d := chance(3), detector.New(detector.ArticlePolicy())
	Play(s.Simulate(r), d, Conditions{Interval: Grid, Drop: 0.1}, r.Float64)
	n := 20.0*240 + 1
	if got := float64(d.Verdict().Samples); math.Abs(got-0.9*n) > 5*math.Sqrt(0.09*n) {
		t.Errorf("%.0f of %.0f samples", got, n)
	}
}

// TestDemands checks that the detector's demand for samples, breakdowns and a
// diagnosis is met.
func TestDemands(t *testing.T) {
	s := Scenario{Hours: 2, Sigma: 5, Leak: 600}
	play := func(c Conditions) ([]detector.Transition, detector.Verdict) {
		d := detector.New(detector.ArticlePolicy())
		steps := Play(s.Simulate(chance(4)), d, c, nil)
		return steps, d.Verdict()
	}
	leaks := func(steps []detector.Transition) (n int) {
		for _, step := range steps {
			if step.To == detector.Leaking {
				n++
			}
		}
		return n
	}
	steps, v := play(Conditions{})
	// The diagnosis never ends, so the machine stays in its state.
	if leaks(steps) != 1 || v.State != detector.Leaking || steps[0].At < 5*time.Minute || steps[0].At > time.Hour {
		t.Errorf("%v: %v", v.State, steps)
	}
	if v.Samples >= 241 {
		t.Errorf("got %d samples, want fewer than 241: LEAKING demands fewer than NORMAL", v.Samples)
	}
	steps, _ = play(Conditions{Diagnosis: 2 * time.Minute})
	if leaks(steps) < 2 || steps[len(steps)-1].At > 2*time.Hour {
		t.Errorf("a diagnosed leak was not found again: %v", steps)
	}
	// With twenty processes, each process waits ten minutes for its turn. A
	// process in the CONFIRMING state must still get its extra breakdowns.
	steps, _ = play(Conditions{Processes: 20})
	if leaks(steps) != 1 {
		t.Errorf("extra breakdowns did not arrive: %v", steps)
	}
	steps, v = play(Conditions{NoBreakdowns: true})
	if leaks(steps) != 0 || !strings.Contains(errorText(v.Warnings), "no breakdowns arrived") {
		t.Errorf("got steps %v and warnings %v without breakdowns, want no leak and a warning", steps, v.Warnings)
	}
}

func errorText(list []error) string {
	var b strings.Builder
	for _, err := range list {
		b.WriteString(err.Error() + "\n")
	}
	return b.String()
}

// TestWatch checks that playing a path in several calls yields the same result
// as playing it in one call.
func TestWatch(t *testing.T) {
	for _, s := range Leaks(0, 2)[:10] {
		p := s.Simulate(chance(5))
		c := Conditions{Diagnosis: time.Minute, LoopEvery: 10 * time.Minute}
		whole, parts := detector.New(detector.ArticlePolicy()), detector.New(detector.ArticlePolicy())
		want := Play(p, whole, c, nil)
		w := NewWatch(p, parts, c, nil)
		for i := 0; i < p.Len()+50; i += 50 {
			w.Until(i)
			parts.Verdict()
		}
		if !reflect.DeepEqual(w.Steps(), want) || !reflect.DeepEqual(parts.Verdict(), whole.Verdict()) {
			t.Errorf("%s: steps of a watch in parts %v, of a single watch %v", s.Name, w.Steps(), want)
		}
	}
}
