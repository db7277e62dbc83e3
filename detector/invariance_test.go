package detector_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/scenario"
	"github.com/leakgate/leakgate/internal/text"
)

// seen is one input that can be replayed with changes.
type seen struct {
	sample    detector.Sample
	breakdown detector.Breakdown
	detail    bool
}

// written returns the input of a run: a sample every 30 s and a breakdown every
// 90 s.
func written(s scenario.Scenario, seed uint64) []seen {
	p := s.Simulate(rand.New(rand.NewPCG(seed, 81)))
	var list []seen
	for i := 0; i < p.Len(); i += 2 {
		if i%6 == 0 {
			list = append(list, seen{breakdown: p.Breakdown(i), detail: true})
		}
		list = append(list, seen{sample: p.Sample(i)})
	}
	return list
}

// playInputs returns a new detector to which all inputs were added, each
// changed by a function.
func playInputs(list []seen, change func(*seen)) (*detector.Detector, []detector.Transition) {
	d := detector.New(detector.RobustPolicy())
	var steps []detector.Transition
	for _, x := range list {
		if change != nil {
			change(&x)
		}
		steps = append(steps, x.to(d)...)
	}
	return d, steps
}

func (x seen) to(d *detector.Detector) []detector.Transition {
	if x.detail {
		return d.AddBreakdown(x.breakdown)
	}
	return d.AddSample(x.sample)
}

// raised returns a change that adds the given number of bytes to Private Other.
func raised(bytes int64) func(*seen) {
	return func(x *seen) {
		x.sample.Bytes += bytes
		x.breakdown.Dim[detector.PrivateOther].N += bytes
		x.breakdown.Dim[detector.Total].N += bytes
	}
}

func later(by time.Duration) func(*seen) {
	return func(x *seen) { x.sample.At += by; x.breakdown.At += by }
}

// moved returns a verdict with its times moved to another clock.
func moved(v detector.Verdict, by time.Duration) detector.Verdict {
	for _, m := range []*known.Duration{&v.FirstSuspicious, &v.FirstLeaking} {
		if m.Known {
			m.N += by
		}
	}
	v.Jumps = slices.Clone(v.Jumps)
	for i := range v.Jumps {
		v.Jumps[i].At += by
	}
	return v
}

// lively returns scenarios with many events, each of the given number of hours.
func lively(hours float64) []scenario.Scenario {
	return slices.Concat(scenario.Null(hours), scenario.Shapes(hours), scenario.Kinds(hours))
}

// TestConstantAndClockDoNotMatter checks that neither constant memory, in any
// dimension, nor the time since boot is evidence: every transition and every
// number stays the same.
func TestConstantAndClockDoNotMatter(t *testing.T) {
	count := 0
	for i, s := range lively(4) {
		list := written(s, uint64(i))
		d, want := playInputs(list, nil)
		v := d.Verdict()
		count += len(want)
		for _, bytes := range []int64{1, 100*detector.MB + 1, 2048 * detector.MB, 1 << 40} {
			got, steps := playInputs(list, raised(bytes))
			// The message of a jump contains the level before it.
			if !slices.EqualFunc(steps, want, func(a, b detector.Transition) bool {
				if a.Rule == "jump" && b.Rule == "jump" {
					a.Because, b.Because = "", ""
				}
				return a == b
			}) {
				t.Errorf("%s, %d bytes more: %v, want %v", s.Name, bytes, steps, want)
			}
			if w := got.Verdict(); !reflect.DeepEqual(w, v) {
				t.Errorf("%s, %d bytes more: %+v, want %+v", s.Name, bytes, w, v)
			}
		}
		for _, by := range []time.Duration{time.Nanosecond, 7*time.Second + 3, 45 * 24 * time.Hour, -bootTime} {
			got, steps := playInputs(list, later(by))
			for i := range steps {
				steps[i].At -= by
			}
			if !slices.Equal(steps, want) {
				t.Errorf("%s, %v later: %v, want %v", s.Name, by, steps, want)
			}
			if w := moved(got.Verdict(), -by); !reflect.DeepEqual(w, v) {
				t.Errorf("%s, %v later: %+v, want %+v", s.Name, by, w, v)
			}
		}
	}
	if count < 150 {
		t.Errorf("only %d transitions in total, want at least 150", count)
	}
}

// TestDriverMemoryDoesNotMatter checks that constant driver memory is not
// evidence, whether it appears in the first breakdown or in a later one.
func TestDriverMemoryDoesNotMatter(t *testing.T) {
	for i, c := range clearScenarios {
		c.Hours = 6
		for _, late := range []time.Duration{0, 20 * time.Minute, 3 * time.Hour} {
			for seed := range uint64(3) {
				list := written(c.Scenario, uint64(i)<<8+seed)
				d, _ := playInputs(list, func(x *seen) {
					if x.breakdown.At >= bootTime+late {
						x.breakdown.OtherMtrack = known.Of(300 * detector.MB)
						x.breakdown.Dim[detector.Total].N += 300 * detector.MB
					}
				})
				if v := d.Verdict(); v.Gate != c.gate &&
					(late == 0 || c.gate != detector.Pass || v.Gate != detector.Settled) {
					t.Errorf("%s, breakdowns known after %v: %v: %s", c.Name, late, v.Gate, v.Because)
				}
			}
		}
	}
}

// TestRepeatsDoNotMatter checks that a repeated reading is ignored and counted,
// even if its value differs.
func TestRepeatsDoNotMatter(t *testing.T) {
	for i, s := range lively(3) {
		list := written(s, uint64(i))
		d, want := playInputs(list, nil)
		r := rand.New(rand.NewPCG(uint64(i), 82))
		again := detector.New(detector.RobustPolicy())
		var steps []detector.Transition
		repeats := 0
		for n, x := range list {
			steps = append(steps, x.to(again)...)
			for range r.IntN(3) {
				old := list[max(0, n-r.IntN(40))]
				old.sample.Bytes += int64(r.IntN(500)) * detector.MB
				old.breakdown.Dim[detector.Graphics].N += int64(r.IntN(500)) * detector.MB
				repeats++
				if got := old.to(again); len(got) != 0 {
					t.Fatalf("%s: a repeated reading caused %v", s.Name, got)
				}
			}
		}
		if !slices.Equal(steps, want) {
			t.Errorf("%s: %v, want %v", s.Name, steps, want)
		}
		v, w := d.Verdict(), again.Verdict()
		if len(w.Warnings) != len(v.Warnings)+1 || w.Warnings[0].Error() != text.Plural(repeats, "reading", "readings")+
			" ignored: not newer than the previous one" {
			t.Errorf("%s: %d repeats: %v", s.Name, repeats, w.Warnings)
		}
		v.Warnings, w.Warnings = nil, nil
		if !reflect.DeepEqual(w, v) {
			t.Errorf("%s: %+v, want %+v", s.Name, w, v)
		}
	}
}

// TestRepeatAfterGap checks that the first reading after a gap is also counted
// only once.
func TestRepeatAfterGap(t *testing.T) {
	d := detector.New(detector.RobustPolicy())
	add := func(at time.Duration) { d.AddSample(detector.Sample{At: at, Bytes: 200 * detector.MB}) }
	add(bootTime)
	add(bootTime + 2*time.Hour)
	add(bootTime + 2*time.Hour)
	if v := d.Verdict(); v.Samples != 2 || v.Duration != 2*time.Hour {
		t.Errorf("%d samples in %v after a gap and a repeated sample, want 2 in 2 h", v.Samples, v.Duration)
	}
}

// overtaken returns the inputs with each sample moved before the breakdown that
// has the same time.
func overtaken(list []seen) []seen {
	list = slices.Clone(list)
	for n := 2; n < len(list); n++ {
		if list[n-1].detail && !list[n].detail {
			list[n-1], list[n] = list[n], list[n-1]
			n++
		}
	}
	return list
}

// TestReadingsFromBefore checks that a reading older than a restart, a change
// of the quantity or a long gap is ignored and counted.
func TestReadingsFromBefore(t *testing.T) {
	for name, endStretch := range map[string]func(d *detector.Detector, at time.Duration){
		"restart": func(d *detector.Detector, at time.Duration) { d.Restart(at) },
		"change":  func(d *detector.Detector, at time.Duration) { d.ChangeQuantity(at) },
		"gap": func(d *detector.Detector, at time.Duration) {
			d.AddSample(detector.Sample{At: at, Bytes: 200 * detector.MB})
		},
	} {
		l := newLeaker()
		l.grow(10 * time.Minute)
		begin := l.at + time.Hour
		endStretch(l.d, begin)
		samples := l.d.Verdict().Samples
		for _, at := range []time.Duration{begin - 1, l.at, bootTime, 0} {
			l.d.AddSample(detector.Sample{At: at, Bytes: 900 * detector.MB})
			l.d.AddBreakdown(wholeReading(at, 900))
		}
		v := l.d.Verdict()
		if v.Samples != samples || !strings.Contains(warningText(v), "8 readings ignored") {
			t.Errorf("%s: %d samples, want %d; %v", name, v.Samples, samples, v.Warnings)
		}
		l.d.AddSample(detector.Sample{At: begin + 1, Bytes: 200 * detector.MB})
		if v := l.d.Verdict(); v.Samples != samples+1 {
			t.Errorf("%s: %d samples, want %d", name, v.Samples, samples+1)
		}
	}
}

// TestOrderDoesNotMatter checks that the order of a breakdown and a sample does
// not matter: a breakdown takes seconds, so samples overtake it. If the driver
// memory changes in the meantime, a sample is raised by an older value.
func TestOrderDoesNotMatter(t *testing.T) {
	still := func(x *seen) {
		x.breakdown.Dim[detector.Graphics], x.breakdown.EGL = known.Of(35*detector.MB), known.Of(35*detector.MB)
	}
	for i, s := range lively(4) {
		list := written(s, uint64(i))
		d, want := playInputs(list, still)
		got, steps := playInputs(overtaken(list), still)
		if !slices.Equal(steps, want) {
			t.Errorf("%s: %v, want %v", s.Name, steps, want)
		}
		if v, w := d.Verdict(), got.Verdict(); !reflect.DeepEqual(w, v) {
			t.Errorf("%s: %+v, want %+v", s.Name, w, v)
		}
	}
	for i, c := range clearScenarios {
		c.Hours = 8
		for seed := range uint64(5) {
			got, _ := playInputs(overtaken(written(c.Scenario, uint64(i)<<8+seed)), nil)
			if v := got.Verdict(); v.Gate != c.gate || c.gate == detector.Leak && v.Kind != c.kind {
				t.Errorf("%s, seed %d: %v %v, want %v %v", c.Name, seed, v.Gate, v.Kind, c.gate, c.kind)
			}
		}
	}
}

// TestSamplingDoesNotMatter checks that lost samples, and an interval other
// than the requested one, do not change the gate of a clear run and hardly
// change the rate.
func TestSamplingDoesNotMatter(t *testing.T) {
	ways := map[string]scenario.Conditions{
		"10 % lost":             {Drop: 0.1},
		"33 % lost":             {Drop: 0.33},
		"every 15 s":            {Interval: 15 * time.Second},
		"every 30 s":            {Interval: 30 * time.Second},
		"every 60 s":            {Interval: time.Minute},
		"every 45 s, some lost": {Interval: 45 * time.Second, Drop: 0.2},
		"one of ten processes":  {Processes: 10},
	}
	for name, way := range ways {
		way.Diagnosis = asThree.Diagnosis
		for _, c := range clearScenarios {
			c.Hours = 8
			for seed := range uint64(6) {
				d, _ := watched(c.Scenario, seed, way)
				v := d.Verdict()
				if v.Gate != c.gate || c.gate == detector.Leak && v.Kind != c.kind {
					t.Errorf("%s, %s, seed %d: %v %v, want %v %v: %s", name, c.Name, seed, v.Gate, v.Kind, c.gate,
						c.kind, v.Because)
				}
				if c.gate == detector.Leak &&
					(v.Worst != detector.Leaking || math.Abs(v.Rate/detector.MB-c.Leak) > 0.15*c.Leak) {
					t.Errorf("%s, %s, seed %d: %v, %.0f MB/h", name, c.Name, seed, v.Worst, v.Rate/detector.MB)
				}
			}
		}
	}
}

// TestSamplingAndTime checks that with a sample every 30 s, the median time at
// which a leak is found changes by at most one look. A sample every 60 s is not
// enough for the windows of 15 and 20 min, so a fast leak is found two looks
// later.
func TestSamplingAndTime(t *testing.T) {
	for _, rate := range []float64{100, 300} {
		median := func(interval time.Duration) time.Duration {
			var times []time.Duration
			for seed := range uint64(21) {
				s := scenario.Scenario{Hours: 8, Sigma: 5, Rho: 0.7, Leak: rate}
				d, _ := watched(s, seed, scenario.Conditions{Interval: interval, Diagnosis: 2 * time.Minute})
				v := d.Verdict()
				if !v.FirstLeaking.Known {
					t.Errorf("%g MB/h sampled every %v, seed %d: never LEAKING", rate, interval, seed)
				}
				times = append(times, v.FirstLeaking.N-bootTime)
			}
			slices.Sort(times)
			return times[len(times)/2]
		}
		want := median(30 * time.Second)
		for interval, looks := range map[time.Duration]int{15 * time.Second: 1, time.Minute: 2} {
			late := time.Duration(looks) * 5 * time.Minute
			if got := median(interval); got > want+late || got < want-late {
				t.Errorf("%g MB/h: LEAKING after %v when sampled every %v, but after %v when sampled every 30 s", rate,
					got, interval, want)
			}
		}
	}
}
