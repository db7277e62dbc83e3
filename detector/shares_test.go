package detector

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// readings holds a machine that receives only breakdowns and never looks for a
// trend, and the values of these breakdowns.
type readings struct {
	m    *robustMachine
	x, y []float64
}

// newReadings returns readings of Java Heap in some slots, in MB.
func newReadings(slots int, level func(slot int) (mb float64, read bool)) *readings {
	p := &readings{m: newRobustMachine(RobustPolicy())}
	p.m.axis, p.m.started = newAxis(0), true
	for i := range slots {
		if mb, read := level(i); read {
			p.m.tracks[javaTrack].add(mb * MB)
			p.x, p.y = append(p.x, float64(i)*slotTime.Hours()), append(p.y, mb)
		}
		p.m.axis.closed++
		for _, t := range p.m.tracks {
			t.closeSlot(i)
		}
		if p.m.axis.closed%firstBin == 0 {
			for _, t := range p.m.tracks {
				t.closeBin(p.m.axis.closed, firstBin)
			}
			p.m.axis.binned++
		}
	}
	return p
}

// last returns the readings of the last slots.
func (p *readings) last(slots int) (x, y []float64) {
	from := 0
	for from < len(p.x) && p.x[from] < float64(p.m.axis.closed-slots)*slotTime.Hours()-1e-9 {
		from++
	}
	return p.x[from:], p.y[from:]
}

func (p *readings) line(window time.Duration) (slope, se float64, n int) {
	return p.m.lineOf(p.m.tracks[javaTrack], window)
}

// TestLineOfAgainstFit checks that for windows of up to two hours, a line is
// fitted to the readings themselves.
func TestLineOfAgainstFit(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 1))
	for range 300 {
		rate, often := 200*r.NormFloat64(), 1+r.IntN(6)
		p := newReadings(10+r.IntN(600), func(i int) (float64, bool) {
			return 100 + rate*float64(i)*slotTime.Hours() + 3*r.NormFloat64(), r.IntN(often) == 0
		})
		slots := min(10+r.IntN(ringSlots-9), p.m.axis.closed)
		x, y := p.last(slots)
		slope, se, n := p.line(time.Duration(slots) * slotTime)
		if n != len(x) {
			t.Fatalf("%d readings in %d slots, want %d", n, slots, len(x))
		}
		want := trend.Fit(x, y)
		if !want.Fitted() {
			if slope != 0 || se != 0 {
				t.Fatalf("%d readings have a slope of %v, error %v", n, slope, se)
			}
			continue
		}
		if math.Abs(slope-want.Slope) > 1e-3*want.SE+1e-3 {
			t.Fatalf("%d readings: %v MB/h, want %v", n, slope, want.Slope)
		}
		// The ratio is Bartlett's factor for the autocorrelation of the
		// residuals, which is limited to values from 0 to 0.9.
		if ratio := se / want.SE; ratio < 0.999 || ratio > 4.36 {
			t.Fatalf("%d readings: error %v, but %v for independent noise", n, se, want.SE)
		}
	}
}

// TestLineOfLongWindows checks that for windows of more than two hours, a line
// is fitted to the floors of 5 min each.
func TestLineOfLongWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 2))
	for _, hours := range []float64{2.5, 4, 8} {
		p := newReadings(1200, func(i int) (float64, bool) {
			return 100 + 25*float64(i)*slotTime.Hours() + 2*r.NormFloat64(), i%3 == 0
		})
		window := time.Duration(hours * float64(time.Hour))
		x, y := p.last(int(window / slotTime))
		slope, se, n := p.line(window)
		want := trend.Fit(x, y)
		if n != int(window/(firstBin*slotTime)) {
			t.Errorf("%v h: %d floors, want one every 5 min", hours, n)
		}
		if math.Abs(slope-want.Slope) > 2*want.SE || se < want.SE*0.7 || se > want.SE*2 {
			t.Errorf("%v h: %v +- %v MB/h, want %v +- %v", hours, slope, se, want.Slope, want.SE)
		}
	}
}

// TestSpread checks that the error of a slope grows with the correlation of the
// noise, so that the error matches how much slopes really vary.
func TestSpread(t *testing.T) {
	for _, rho := range []float64{0, 0.5, 0.8} {
		r := rand.New(rand.NewPCG(44, 3))
		var square, reported float64
		const runs = 400
		for range runs {
			e := r.NormFloat64()
			p := newReadings(240, func(int) (float64, bool) {
				e = rho*e + math.Sqrt(1-rho*rho)*r.NormFloat64()
				return 100 + 5*e, true
			})
			slope, se, _ := p.line(2 * time.Hour)
			square += slope * slope / runs
			reported += se / runs
		}
		if ratio := math.Sqrt(square) / reported; ratio < 0.85 || ratio > 1.25 {
			t.Errorf("rho %v: slopes vary by %v MB/h, reported %v", rho, math.Sqrt(square), reported)
		}
	}
}

// leakingBy watches a process that leaks at the given rates in MB/h for the
// given time.
func leakingBy(seed uint64, sigma float64, length time.Duration, rates map[Dimension]float64) (*Detector,
	[]Transition) {
	s := simulation{policy: RobustPolicy(), seed: seed, length: length, sigma: sigma}
	for d, rate := range rates {
		s.rate[d] = rate
	}
	return s.run()
}

func TestKinds(t *testing.T) {
	const runs = 10
	tests := map[string]struct {
		rates map[Dimension]float64
		kind  LeakKind
		text  string
	}{
		"java":            {map[Dimension]float64{JavaHeap: 60}, Java, "Java Heap 100 %"},
		"native":          {map[Dimension]float64{NativeHeap: 60}, Native, "Native Heap 100 %"},
		"threads":         {map[Dimension]float64{Stack: 60}, Thread, "Stack 100 %"},
		"graphics":        {map[Dimension]float64{Graphics: 60}, GPU, "Graphics 100 %"},
		"code":            {map[Dimension]float64{Code: 60}, Unknown, "Code 100 %"},
		"private other":   {map[Dimension]float64{PrivateOther: 60}, Unknown, "Private Other 100 %"},
		"java and native": {map[Dimension]float64{JavaHeap: 40, NativeHeap: 40}, Unknown, "several grow at once"},
		"three grow, java is half": {
			map[Dimension]float64{JavaHeap: 40, NativeHeap: 20, Graphics: 20}, Unknown, "several grow at once",
		},
		"mostly java": {map[Dimension]float64{JavaHeap: 60, NativeHeap: 15}, Java, "Java Heap 8"},
		"half graphics": {
			map[Dimension]float64{Graphics: 40, NativeHeap: 40}, Unknown, "several grow at once",
		},
		"java grows, native shrinks": {map[Dimension]float64{JavaHeap: 80, NativeHeap: -20}, Java, "Java Heap 100 %"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			hit := 0
			for seed := range uint64(runs) {
				d, _ := leakingBy(seed, 5, 6*time.Hour, tt.rates)
				v := d.Verdict()
				if v.Gate != Leak {
					t.Fatalf("seed %d: %v: %s", seed, v.Gate, v.Because)
				}
				checkShares(t, v, tt.rates)
				if v.Kind == tt.kind && strings.Contains(v.Because, tt.text) {
					hit++
				} else {
					t.Logf("seed %d: %v: %s", seed, v.Kind, v.Because)
				}
			}
			// A dimension that does not leak is mistaken for one that does in 1
			// of 20 runs.
			if hit < runs-2 {
				t.Errorf("%v and %q in %d of %d runs", tt.kind, tt.text, hit, runs)
			}
		})
	}
}

// checkShares checks that the shares are sorted and add up to 1, and that the
// dimensions that leak are reported with their rates.
func checkShares(t *testing.T, v Verdict, rates map[Dimension]float64) {
	t.Helper()
	sum, before := 0.0, int64(math.MaxInt64)
	seen := map[Dimension]float64{}
	for _, s := range v.Shares {
		if s.Growth <= 0 || s.Growth > before || s.Share <= 0 || s.Dimension == Total || s.Dimension == System {
			t.Errorf("shares %+v", v.Shares)
		}
		sum += s.Share
		before = s.Growth
		seen[s.Dimension] = s.Rate / MB
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("shares add up to %v: %+v", sum, v.Shares)
	}
	for d, rate := range rates {
		if rate > 0 && math.Abs(seen[d]-rate) > 0.15*rate {
			t.Errorf("%v at %v MB/h: reported %v", d, rate, seen[d])
		}
		if rate < 0 && seen[d] > 0 {
			t.Errorf("%v falls, but a rate of %v MB/h is reported", d, seen[d])
		}
	}
}

// TestGraphicsNeedCertainty checks that a leak of graphics memory is named only
// if it has grown enough and certainly more than the next dimension, because
// its diagnosis does not cover other memory.
func TestGraphicsNeedCertainty(t *testing.T) {
	full := shares{certainty: 1, readings: 100, graphicsT: 100}
	full.list = []Share{{Dimension: Graphics, Growth: 1000 * MB}}
	full.finish()
	tests := map[string]struct {
		change func(*shares)
		want   LeakKind
	}{
		"certain":                  {func(*shares) {}, GPU},
		"graphics not significant": {func(s *shares) { s.graphicsT = graphicsErrors - 1 }, Unknown},
		"small":                    {func(s *shares) { s.list[0].Growth = 10 * MB }, Unknown},
		"not certain":              {func(s *shares) { s.certainty = 0.9 }, Unknown},
		"only half":                {func(s *shares) { s.list[0].Share = 0.5 }, Unknown},
		"no shares":                {func(s *shares) { s.list = nil }, Unknown},
		"java, small": {
			func(s *shares) { s.list[0].Growth, s.list[0].Dimension = 10*MB, JavaHeap }, Java,
		},
		"java, not certain": {func(s *shares) { s.certainty, s.list[0].Dimension = 0.6, JavaHeap }, Java},
		"native":            {func(s *shares) { s.list[0].Dimension = NativeHeap }, Native},
		"java, slightly more than half": {
			func(s *shares) { s.list[0].Dimension, s.list[0].Share = JavaHeap, 0.59 }, Unknown,
		},
		"java, just enough": {func(s *shares) { s.list[0].Dimension, s.list[0].Share = JavaHeap, 0.61 }, Java},
	}
	for name, tt := range tests {
		s := full
		s.list = append([]Share(nil), full.list...)
		tt.change(&s)
		if got := s.kind(); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestGraphicsOfAQuietProcess checks that graphics memory that does not grow is
// never the kind of a leak of other memory.
func TestGraphicsOfAQuietProcess(t *testing.T) {
	for seed := range uint64(20) {
		d, steps := leakingBy(seed, 20, 4*time.Hour, map[Dimension]float64{JavaHeap: 100})
		if v := d.Verdict(); v.Kind == GPU {
			t.Errorf("seed %d: %v: %s", seed, v.Kind, v.Because)
		}
		if _, kind, ok := leakAt(steps); ok && kind == GPU {
			t.Errorf("seed %d: LEAKING with kind %v", seed, kind)
		}
	}
}

func TestEmptyShares(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	s := m.sharesOver(time.Hour)
	if s.kind() != Unknown || len(s.list) != 0 || s.readings != 0 ||
		!strings.Contains(s.text(), "cannot determine from 0 breakdowns which memory grows") {
		t.Errorf("%v of %+v: %s", s.kind(), s, s.text())
	}
	p := newReadings(200, func(i int) (float64, bool) { return 100, i%3 == 0 })
	s = p.m.sharesOver(time.Hour)
	if s.kind() != Unknown || len(s.list) != 0 || s.readings < leastReadings ||
		!strings.Contains(s.text(), "no single dimension") {
		t.Errorf("constant memory: kind %v of %+v: %s", s.kind(), s, s.text())
	}
	p = newReadings(200, func(i int) (float64, bool) { return float64(i), i >= 200-3*20 && i%20 == 0 })
	if s = p.m.sharesOver(time.Hour); len(s.list) != 0 || s.readings != 3 {
		t.Errorf("shares from three readings: %+v, want none", s)
	}
	p = newReadings(200, func(i int) (float64, bool) { return 100 + float64(i)/2, i%3 == 0 })
	s = p.m.sharesOver(time.Hour)
	if s.kind() != Java || len(s.list) != 1 || s.list[0].Share != 1 || math.Abs(s.list[0].Rate/MB-60) > 0.1 ||
		s.certainty != 1 {
		t.Errorf("exact line: kind %v of %+v: %s", s.kind(), s, s.text())
	}
}
