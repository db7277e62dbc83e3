package detector

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/detector/trend"
)

// TestPoolIsFlat checks that lives of half an hour and more are flat if no
// growth is proven and growth of 40 MB is ruled out; lives of 45 min and more
// are also flat if growth of 20 MB is ruled out in their second half.
func TestPoolIsFlat(t *testing.T) {
	for name, c := range map[string]struct {
		p    pool
		want bool
	}{
		"flat":             {pool{skip: 10, age: 40, all: ratesOfLives{high: 79}}, true},
		"perhaps 41 MB":    {pool{skip: 10, age: 40, all: ratesOfLives{high: 82}}, false},
		"grows a little":   {pool{skip: 10, age: 40, grows: true, all: ratesOfLives{high: 30}}, false},
		"too short":        {pool{skip: 3, age: 28, all: ratesOfLives{high: 1}}, false},
		"just long enough": {pool{skip: 3, age: 29, all: ratesOfLives{high: 1}}, true},
		"long, grows early only": {
			pool{skip: 20, age: 60, grows: true, all: ratesOfLives{high: 100}, late: ratesOfLives{high: 59}}, true,
		},
		"long, grows late as well": {
			pool{skip: 20, age: 60, grows: true, all: ratesOfLives{high: 100}, late: ratesOfLives{high: 61}}, false,
		},
		"not long, flat in second half": {
			pool{skip: 10, age: 40, grows: true, all: ratesOfLives{high: 100}, late: ratesOfLives{high: 1}}, false,
		},
	} {
		if got := c.p.flat(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestPooledAge checks that the chosen age is the age with the most evidence
// among the ages that at least three lives reach.
func TestPooledAge(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		want    int
	}{
		{nil, 0}, {[]int{10, 10}, 0}, {[]int{10, 10, 10}, 10}, {[]int{10, 12, 60, 60, 60}, 60},
		{[]int{10, 10, 10, 10, 60, 60}, 10},
		{[]int{20, 20, 20, 20, 20, 24, 24, 24}, 20}, {[]int{20, 24, 24, 24, 24, 24, 24, 24}, 24},
		{[]int{0, 0, 0, 0}, 0},
	} {
		var list []pastLife
		for _, n := range c.lengths {
			list = append(list, pastLife{levels: make([]float32, n)})
		}
		if got := pooledAge(list); got != c.want {
			t.Errorf("%v: %d, want %d", c.lengths, got, c.want)
		}
	}
}

// TestMeanAndError checks the result against the formula.
func TestMeanAndError(t *testing.T) {
	mean, se := meanAndError([]float64{1, 2, 3, 6})
	if mean != 3 || math.Abs(se-math.Sqrt((4.0+1+0+9)/3/4)) > 1e-12 {
		t.Errorf("%v, %v", mean, se)
	}
	r := newRates([]float64{1, 2, 3, 6})
	if half := 3.182446305284263 * se; r.rate != 3 || math.Abs(r.low-(3-half)) > 1e-6 ||
		math.Abs(r.high-(3+half)) > 1e-6 || r.se != se {
		t.Errorf("%+v", r)
	}
	if got := lessTimes([]float64{5, 7}, []float64{2, 4}, 0.5); got[0] != 4 || got[1] != 5 {
		t.Errorf("%v", got)
	}
}

// TestSlopesOfLives checks the slopes in MB/h of lives with a level every
// minute.
func TestSlopesOfLives(t *testing.T) {
	life := pastLife{}
	for i := range 21 {
		life.levels = append(life.levels, float32(2*i+max(0, i-10))) // 2, then 3 MB a minute
	}
	hollow := pastLife{levels: make([]float32, 21)}
	for i := range hollow.levels {
		hollow.levels[i] = nan32
	}
	all, firsts, seconds := slopesOfLives([]pastLife{life, hollow}, 0, 21)
	if len(all) != 1 || math.Abs(firsts[0]-120) > 1e-9 || math.Abs(seconds[0]-180) > 1e-9 || all[0] <= 120 ||
		all[0] >= 180 {
		t.Errorf("%v %v %v", all, firsts, seconds)
	}
	if all, _, _ = slopesOfLives([]pastLife{life}, 11, 21); math.Abs(all[0]-180) > 1e-9 {
		t.Errorf("from minute 11 on: %v", all)
	}
}

// TestRatchet checks that adjacent rises count as one, and that a series that
// falls, or whose rises do not stay, is not a ratchet.
func TestRatchet(t *testing.T) {
	steps := func(at ...int) []float64 {
		y := make([]float64, 36)
		for i := range y {
			y[i] = 0.5 * math.Sin(float64(i)*2.3)
			for _, k := range at {
				if i >= k {
					y[i] += 40
				}
			}
		}
		return y
	}
	fall := steps(5, 12, 20, 28)
	for i := 24; i < len(fall); i++ {
		fall[i] -= 20
	}
	small := steps(5, 12, 20, 28)
	for i := 24; i < len(small); i++ {
		small[i] -= 12 // less than a tenth of the rises
	}
	lost := steps(5, 12, 20, 28)
	for i := range lost {
		lost[i] -= 2.9 * float64(i) // most of the rise is lost bit by bit
	}
	for name, c := range map[string]struct {
		y     []float64
		rises int
		even  bool
	}{
		"flat":                        {steps(), 0, false},
		"one":                         {steps(18), 1, false},
		"four":                        {steps(5, 12, 20, 28), 4, true},
		"neighbors":                   {steps(5, 6, 20, 28), 3, true},
		"no rise in the second third": {steps(1, 3, 5, 7, 9, 30), 6, false},
		"large fall":                  {fall, 0, false},
		"small fall":                  {small, 4, true},
		"rise lost gradually":         {lost, 0, false},
	} {
		if rises, even := ratchet(c.y); rises != c.rises || even != c.even {
			t.Errorf("%s: %d %v, want %d %v", name, rises, even, c.rises, c.even)
		}
	}
}

// TestFallOf checks that a single fall is found, and that none is found if
// another change is as large.
func TestFallOf(t *testing.T) {
	floors := func(change func(i int) float64) []float32 {
		out := make([]float32, 90)
		for i := range out {
			out[i] = float32(float64(i)*4 + change(i))
		}
		return out
	}
	after := func(at int, mb float64) func(int) float64 {
		return func(i int) float64 {
			if i >= at {
				return mb
			}
			return 0
		}
	}
	both := func(f, g func(int) float64) func(int) float64 { return func(i int) float64 { return f(i) + g(i) } }
	for name, c := range map[string]struct {
		bins []float32
		at   int
		fall float64
	}{
		"one fall":               {floors(after(40, -300)), 40, 300 - 16},
		"small fall only":        {floors(after(40, -40)), 0, 0},
		"fall just large enough": {floors(after(40, -50)), 40, 50 - 16},
		"two falls":              {floors(both(after(40, -300), after(60, -200))), 0, 0},
		"large and small fall":   {floors(both(after(40, -300), after(60, -100))), 40, 300 - 16},
		"fall and rise":          {floors(both(after(40, -300), after(60, 200))), 0, 0},
		"fall at the beginning":  {floors(after(2, -300)), 0, 0},
		"fall at the end":        {floors(after(88, -300)), 0, 0},
		"short dip":              {floors(both(after(40, -300), after(42, 300))), 0, 0},
	} {
		at, fall, ok := fallOf(c.bins)
		if ok != (c.at > 0) || ok && (at != c.at && at != c.at-1 || math.Abs(fall-c.fall) > 9) {
			t.Errorf("%s: %d, %.0f MB, %v; want %d, %.0f MB", name, at, fall, ok, c.at, c.fall)
		}
	}
}

// TestAlike checks that two slopes are alike if both rise and the smaller is at
// least 0.4 times the larger.
func TestAlike(t *testing.T) {
	for _, c := range []struct {
		a, b float64
		want bool
	}{{1, 1, true}, {1, 0.41, true}, {0.41, 1, true}, {1, 0.39, false}, {0.39, 1, false}, {-1, -1, false},
		{0, 0, false}} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("alike(%v, %v) = %v", c.a, c.b, got)
		}
	}
}

// TestSlowestFound compares the result, for any guess, with a brute-force
// search for the slowest rate above which every rate is found.
func TestSlowestFound(t *testing.T) {
	steps := int(math.Round(math.Log(fastestTried/slowestTried) / math.Log(rateStep)))
	for _, found := range []func(float64) bool{
		func(rate float64) bool { return rate >= 50 }, func(rate float64) bool { return rate >= 1 },
		func(rate float64) bool { return rate > 20000 },
		func(rate float64) bool { return rate >= 50 && (rate < 59 || rate > 60) },
		func(rate float64) bool { return rate >= fastestTried }, func(float64) bool { return false },
	} {
		want := math.Inf(1)
		for i := steps; i >= 0; i-- {
			if !found(slowestTried * math.Pow(rateStep, float64(i))) {
				break
			}
			want = slowestTried * math.Pow(rateStep, float64(i))
		}
		for _, guess := range []float64{0, 1, 30, 49, 5000, 1e9} {
			calls := 0
			got := slowestFound(guess, func(rate float64) bool { calls++; return found(rate) })
			if near := guess > want/2 && guess < 2*want; near && calls > 20 {
				t.Errorf("guess %v: tried %d leaks before finding %v, want at most 20", guess, calls, want)
			}
			// The search from below may skip a single rate that is not found.
			// The result is then above the guess.
			if got != want && !(guess < want && found(got) && got < want) {
				t.Errorf("guess %v: %v, want %v", guess, got, want)
			}
		}
	}
}

// TestPairSigma checks that two pairs of floors are enough to measure how much
// pairs vary.
func TestPairSigma(t *testing.T) {
	x := &track{bins: []float32{0, 0, 0, 0, 10, 0}}
	if got := pairSigma(x, time.Hour); math.Abs(got-0) > 1e-9 && math.Abs(got-2.5) > 1e-9 {
		t.Errorf("%v", got)
	}
	x.bins = []float32{0, 0, 0, 0, 10, 30}
	// The rises up to floors 4 and 5 are 5 and 20.
	if got := pairSigma(x, time.Hour); math.Abs(got-7.5) > 1e-6 {
		t.Errorf("%v, want 7.5", got)
	}
	x.bins = x.bins[:5]
	if got := pairSigma(x, time.Hour); got != 0 {
		t.Errorf("one pair: %v", got)
	}
}

// TestLastingJump checks that the result is the largest jump of this stretch
// that still has at least half of its height.
func TestLastingJump(t *testing.T) {
	for name, c := range map[string]struct {
		floor float64
		want  int
	}{"both remain": {500, 1}, "half of the larger jump remains": {300, 1},
		"less than half of the larger jump remains": {299, 2},
		"half of the smaller jump remains":          {270, 2}, "none remains": {120, -1}} {
		m := newRobustMachine(RobustPolicy())
		m.axis.origin = 2 * time.Hour
		m.jumps.known, m.jumps.floor = true, c.floor
		m.jumps.list = []Jump{
			{At: time.Hour, Bytes: 1000 * MB}, {At: 3 * time.Hour, Bytes: 300 * MB},
			{At: 4 * time.Hour, Bytes: 160 * MB},
		}
		m.jumps.levels = []float64{-2000, 150, 190}
		if got := m.jumps.lasting(m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if m.jumps.known = false; m.jumps.lasting(m) != -1 {
			t.Errorf("%s: jump found although the floor is unknown", name)
		}
	}
}

// levelsThat returns levels a quarter of an hour apart, from a function of the
// hours.
func levelsThat(hours float64, curve func(h float64) float64) []float64 {
	var y []float64
	for i := 0; float64(i) < 4*hours; i++ {
		y = append(y, curve(float64(i)/4)+0.3*math.Sin(float64(i)*2.1))
	}
	return y
}

// judgedThat returns a judgement of the levels that levelsThat returns.
func judgedThat(hours float64, curve func(h float64) float64) *judgement {
	j := &judgement{}
	j.window = time.Duration(hours * float64(time.Hour))
	j.finding.judge(levelsThat(hours, curve), scale{hours: hours, need: needed(hours), family: 1, before: noRecord})
	return j
}

// TestSettledRules checks that memory has settled if it was flat for three
// hours and for a third of the run, but not after several steps or after large
// slow growth.
func TestSettledRules(t *testing.T) {
	ramp := func(mb, from, to float64) func(float64) float64 {
		return func(h float64) float64 { return mb * max(0, min(1, (h-from)/(to-from))) }
	}
	steps := func(at ...float64) func(float64) float64 {
		return func(h float64) (mb float64) {
			for _, x := range at {
				if h >= x {
					mb += 70
				}
			}
			return mb
		}
	}
	for name, c := range map[string]struct {
		hours   float64
		curve   func(float64) float64
		jump    *Jump
		settled bool
		flat    float64
	}{
		"flat for 4 h":       {8, ramp(100, 0, 4), nil, true, 4},
		"flat for 2 h":       {8, ramp(100, 0, 6), nil, false, 2},
		"flat for 2 h of 3":  {3, ramp(100, 0, 1), nil, false, 2},
		"flat for 3 h of 12": {12, ramp(240, 0, 9), nil, false, 3.5},
		"flat for 5 h of 12": {12, ramp(100, 0, 7), nil, true, 5},
		"flat":               {8, ramp(0, 0, 4), nil, false, 0},
		"one step":           {8, steps(3), nil, true, 5},
		"one step too late":  {8, steps(6), nil, false, 2},
		"two steps":          {8, steps(2, 4), nil, false, 0},
		"240 MB in 3 h":      {8, ramp(240, 0, 3), nil, true, 5},
		"350 MB in 3 h":      {8, ramp(350, 0, 3), nil, false, 0},
		"350 MB in an hour":  {8, ramp(350, 0, 1), nil, true, 7},
		"jump of 300 MB": {
			9, func(h float64) float64 { return 300 * max(0, min(1, (h-2.9)*8)) }, &Jump{Bytes: 300 * MB}, true, 6,
		},
		"400 MB in 3 h and a small jump": {8, ramp(400, 0, 3), &Jump{Bytes: 100 * MB}, false, 0},
		"continues to rise slowly":       {8, func(h float64) float64 { return 100*min(1, h/3) + 8*h }, nil, false, 0},
	} {
		j := judgedThat(c.hours, c.curve)
		j.jump = c.jump
		settled := j.settled()
		if settled != c.settled || math.Abs(j.flat.Hours()-c.flat) > 0.8 {
			t.Errorf("%s: %v, flat for %.2f h; want %v, %.1f h", name, settled, j.flat.Hours(), c.settled, c.flat)
		}
	}
}

// TestGaveBack checks that memory counts as given back only if at most a
// quarter of the growth remains.
func TestGaveBack(t *testing.T) {
	back := func(to float64) func(float64) float64 {
		return func(h float64) float64 {
			if h > 6 {
				return to
			}
			return 40 * h
		}
	}
	for mb, want := range map[float64]bool{0: true, 10: true, 40: true, 90: false, 200: false} {
		if got := judgedThat(8, back(mb)).gaveBack(); got != want {
			t.Errorf("back to %v MB: %v", mb, got)
		}
	}
}

// TestStillRising checks that a rise that keeps its pace to the end counts as
// still rising, and that a curve that levels off does not.
func TestStillRising(t *testing.T) {
	for name, c := range map[string]struct {
		curve func(float64) float64
		want  bool
	}{
		"line":              {func(h float64) float64 { return 30 * h }, true},
		"line from 500":     {func(h float64) float64 { return 500 + 30*h }, true},
		"flat at the end":   {func(h float64) float64 { return 30 * min(h, 1.4) }, false},
		"levels off":        {func(h float64) float64 { return 60 * (1 - math.Exp(-2*h)) }, false},
		"slower at the end": {func(h float64) float64 { return 30*min(h, 1.5) + 4*max(0, h-1.5) }, false},
	} {
		if got := stillRising(levelsThat(2, c.curve)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	// The levels are too noisy to have a shape, but do not rise in their last
	// quarter.
	if stillRising([]float64{0, 12, 3, 18, 25, 33, 31, 30}) || !stillRising([]float64{0, 12, 3, 18, 25, 33, 41, 40}) {
		t.Error("noise and growth are not distinguished")
	}
}

// TestLowestAfter checks the lowest median of three consecutive floors after a
// slot.
func TestLowestAfter(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	x := newTrack()
	x.bins = append(x.bins, 50, 60, 10, 70, 40, 45, nan32, 80)
	for to, want := range map[int]float64{0: 40, 30: 42.5, 40: 42.5, 60: 80} {
		if got := m.lowestAfter(x, to); got != want {
			t.Errorf("after slot %d: %v, want %v", to, got, want)
		}
	}
	if got := m.lowestAfter(x, 80); !math.IsInf(got, 1) {
		t.Errorf("after the end: %v", got)
	}
}

// TestBeyondSpread checks the result against the formula: (head - mean) / (sd
// sqrt(1 + 1/k)).
func TestBeyondSpread(t *testing.T) {
	for name, c := range map[string]struct {
		rate          float64
		rates, errors []float64
		t, df         float64
	}{
		"runs that differ": {
			50, []float64{10, 20, 30}, []float64{1, 1, 1}, 30 / (10 * math.Sqrt(4.0/3)), 2,
		},
		"runs that agree by chance": {
			50, []float64{20, 20, 20}, []float64{6, 6, 6}, 30 / (6 * math.Sqrt(4.0/3)), 34,
		},
		"differences within the noise": {
			50, []float64{10, 20, 30}, []float64{8, 8, 8}, 30 / (10 * math.Sqrt(4.0/3)), 34,
		},
		"differences beyond the noise": {
			50, []float64{10, 20, 30}, []float64{7, 7, 7}, 30 / (10 * math.Sqrt(4.0/3)), 2,
		},
		"four": {
			5, []float64{1, 2, 3, 6}, []float64{0.1, 0.1, 0.1, 0.1}, 2 / math.Sqrt(14.0/3*1.25), 3,
		},
	} {
		if got, df := beyondSpread(c.rate, c.rates, c.errors); math.Abs(got-c.t) > 1e-9 || df != c.df {
			t.Errorf("%s: %v with %v degrees of freedom, want %v with %v", name, got, df, c.t, c.df)
		}
	}
}

// TestFamilies checks that the family size is the product of the numbers of
// processes, of long stretches and of series per process.
func TestFamilies(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	if m.families() != 1 || m.familiesOf(5) != 5 {
		t.Errorf("%v, %v", m.families(), m.familiesOf(5))
	}
	m.family, m.stretches = 3, 2
	if m.families() != 6 || m.familiesOf(4) != 24 {
		t.Errorf("%v, %v", m.families(), m.familiesOf(4))
	}
}

// TestPoolOfThree checks that a pool of three lives has two degrees of freedom.
func TestPoolOfThree(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	lives := func(rates ...float64) (list []pastLife) {
		for _, rate := range rates {
			x := pastLife{}
			for i := range 21 {
				x.levels = append(x.levels, float32(rate/60*float64(i)))
			}
			list = append(list, x)
		}
		return list
	}
	// In the two cases t is 17 and 35. The 99.9 % point of Student's t is 22
	// with two degrees of freedom and 7 with four.
	for _, c := range []struct {
		apart float64
		grows bool
	}{{10, false}, {5, true}} {
		p, ok := m.pool(lives(100-c.apart, 100, 100+c.apart), 1, 21)
		if !ok || p.grows != c.grows || math.Abs(p.growth-100*20.0/60) > 1e-3 || math.Abs(p.pace-1) > 1e-3 {
			t.Errorf("%v: %v, %+v", c.apart, ok, p)
		}
	}
	if _, ok := m.pool(lives(100, 100), 1, 21); ok {
		t.Error("pooled only two lives, want at least three")
	}
}

// TestFirstWindowOfDimensions checks that the message states when dimensions
// begin to be judged.
func TestFirstWindowOfDimensions(t *testing.T) {
	d := New(RobustPolicy())
	seen := map[string]bool{}
	d.OnLook(func(l Look) { seen[l.Text] = true })
	for at := time.Duration(0); at < 20*time.Minute; at += 30 * time.Second {
		b := Breakdown{At: at}
		b.Dim[JavaHeap] = Amount{N: 50 * MB, Known: true}
		d.AddBreakdown(b)
		d.AddSample(Sample{At: at, Bytes: 100 * MB})
	}
	if !seen["Java Heap: needs at least 60 min of data"] || !seen["memory: needs at least 15 min of data"] {
		t.Errorf("%v", seen)
	}
}

// TestLookAfterTwoMinutes checks that a time without samples is a gap only if
// it exceeds both two minutes and three sampling intervals.
func TestLookAfterTwoMinutes(t *testing.T) {
	for _, c := range []struct {
		rhythm, missing time.Duration
		want            bool
	}{
		{30 * time.Second, 2 * time.Minute, true}, {30 * time.Second, 2*time.Minute + 30*time.Second, false},
		{time.Minute, 3 * time.Minute, true}, {time.Minute, 4 * time.Minute, false},
	} {
		missing, want := c.missing, c.want
		d := New(RobustPolicy())
		looks := 0
		d.OnLook(func(l Look) {
			if l.At == 20*time.Minute {
				looks++
			}
		})
		for at := time.Duration(0); at <= 25*time.Minute; at += c.rhythm {
			if at > 20*time.Minute-missing && at < 20*time.Minute {
				continue
			}
			d.AddSample(Sample{At: at, Bytes: 100 * MB})
		}
		if (looks > 0) != want {
			t.Errorf("%v without a sample: %d looks", missing, looks)
		}
	}
}

// fed returns a detector with a sample every 30 s whose values are a function
// of the hours.
func fed(hours float64, curve func(h float64) float64) *Detector {
	d := New(RobustPolicy())
	for at := time.Duration(0); at < time.Duration(hours*float64(time.Hour)); at += 30 * time.Second {
		d.AddSample(Sample{At: at, Bytes: int64(curve(at.Hours()) * MB)})
	}
	return d
}

// TestMinutes checks that the levels of the last two hours come from the slots,
// and older levels from the floors.
func TestMinutes(t *testing.T) {
	for _, hours := range []float64{1.7, 3} {
		m := fed(hours, func(h float64) float64 { return 100 + 60*h }).machine.(*robustMachine)
		for i := range int(hours*60) - 1 {
			want, slack := float64(i)+0.25, 1e-3 // the mean of the samples at 0 and 30 s
			if (m.axis.closed - 2*i) > ringSlots {
				want, slack = float64(i/5*5)+2.25, 0.3
			}
			if got := m.minute(m.tracks[totalTrack], i); math.Abs(got-want) > slack {
				t.Fatalf("%v h, minute %d: %v, want %v", hours, i, got, want)
			}
		}
	}
}

// TestCausesOfLives checks that a cause belongs to the life that ended at its
// time, whether it is reported before the restart or after the next life began.
func TestCausesOfLives(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	live := func(from, to time.Duration) {
		for at := from; at <= to; at += 30 * time.Second {
			m.addSample(Sample{At: at, Bytes: 100 * MB})
		}
	}
	minutes := func(n int) time.Duration { return time.Duration(n) * time.Minute }
	live(minutes(0), minutes(5))
	m.restart(minutes(6))
	live(minutes(6), minutes(10))
	m.death(minutes(5), Crash)  // of the first life, late
	m.death(minutes(6), Killed) // of the second life, at its first sample, before its restart
	m.restart(minutes(11))
	m.death(minutes(11), LowMemory) // never sampled, so it does not belong to a stored life
	m.restart(minutes(12))
	live(minutes(12), minutes(16))
	m.restart(minutes(17))
	m.death(minutes(16), 99)
	var got []Cause
	for _, x := range m.lives.list {
		got = append(got, x.cause)
	}
	if want := []Cause{Crash, Killed, UnknownCause}; !slices.Equal(got, want) || m.lives.count != 4 {
		t.Errorf("%v, want %v; %d lives", got, want, m.lives.count)
	}
	if c := m.lives.causes; c[Crash] != 1 || c[Killed] != 1 || c[LowMemory] != 1 || c[UnknownCause] != 1 {
		t.Errorf("%v", c)
	}
	if !m.lives.list[2].explained || m.lives.list[0].began != 0 || m.lives.list[1].began != minutes(6) {
		t.Errorf("%+v", m.lives.list)
	}
}

// TestRebootIsOneRestart checks that a reboot of the device and the restart of
// the process count as one.
func TestRebootIsOneRestart(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	m.addSample(Sample{At: time.Hour, Bytes: 100 * MB})
	m.addSample(Sample{At: time.Hour + time.Minute, Bytes: 100 * MB})
	m.restart(10 * time.Second) // the clock restarts
	m.restart(40 * time.Second) // the process restarts
	if m.lives.count != 1 {
		t.Errorf("%d lives ended", m.lives.count)
	}
	m.addSample(Sample{At: time.Minute, Bytes: 100 * MB})
	m.restart(2 * time.Minute)
	m.restart(3 * time.Minute)
	if m.lives.count != 3 {
		t.Errorf("%d lives ended", m.lives.count)
	}
}

// TestAgeOfLongLives checks that the first third of lives of 45 min and more is
// skipped, and the first tenth of shorter lives.
func TestAgeOfLongLives(t *testing.T) {
	for age, skip := range map[int]int{44: 5, 45: 15, 10: 1, 19: 2} {
		m := newRobustMachine(RobustPolicy())
		for k := range 4 {
			x := pastLife{}
			for i := range age {
				x.levels = append(x.levels, float32(math.Sin(float64(i+k))))
			}
			m.lives.list = append(m.lives.list, x)
		}
		if p, ok := m.poolLives(); !ok || p.skip != skip || p.age != age || p.lives != 4 {
			t.Errorf("%d min: %v, %+v", age, ok, p)
		}
	}
}

// TestSpreadBy checks the factor by which correlated residuals raise the
// variance of a slope, which is 1 for a perfect line.
func TestSpreadBy(t *testing.T) {
	if got := spreadBy([]float64{0, 1, 2}, []float64{5, 6, 7}, trend.Line{Intercept: 5, Slope: 1}); got != 1 {
		t.Errorf("%v", got)
	}
	if got := spreadBy([]float64{0, 1, 2, 3}, []float64{1, 1, -1, -1}, trend.Line{}); got != 5.0/3 {
		t.Errorf("%v, want 5/3", got) // a is 1/4
	}
	if got := trendText("memory", trend.Line{}); !strings.HasPrefix(got, "memory rises 0.0 MB/h") {
		t.Error(got)
	}
}

// TestFellLately checks that leaked memory that was suddenly freed shortly
// before the end has not settled.
func TestFellLately(t *testing.T) {
	noise := func(h float64) float64 { return math.Sin(h * 77) }
	at := func(fall float64) func(float64) float64 {
		return func(h float64) float64 {
			if h >= fall {
				return 300 + noise(h)
			}
			return 300 + 60*h + noise(h)
		}
	}
	for fall, want := range map[float64]Gate{7: Inconclusive, 4: Settled} {
		v := fed(8, at(fall)).Verdict()
		if v.Worst != Leaking || v.Gate != want ||
			strings.Contains(v.Because, "at once: too little data since then") != (want == Inconclusive) {
			t.Errorf("falls after %v h: %v %v: %s", fall, v.Worst, v.Gate, v.Because)
		}
	}
}

// TestJumpAfterRaise checks that driver memory that is first seen late moves
// the floor and does not hide a jump.
func TestJumpAfterRaise(t *testing.T) {
	d := fed(1, func(h float64) float64 { return 200 + math.Sin(h*77) })
	d.AddSample(Sample{At: time.Hour, Bytes: 200 * MB}) // computes the floor; the next computation is in two minutes
	d.AddBreakdown(Breakdown{At: time.Hour + 10*time.Second, EGL: Amount{N: 50 * MB, Known: true}})
	if n := len(d.Verdict().Jumps); n != 0 {
		t.Fatalf("%d jumps", n)
	}
	steps := d.AddSample(Sample{At: time.Hour + 30*time.Second, Bytes: 460 * MB})
	if jumps := d.Verdict().Jumps; len(jumps) != 1 || len(steps) != 1 || math.Abs(float64(jumps[0].Bytes)/MB-260) > 3 {
		t.Errorf("%v, %v", jumps, steps)
	}
}

// TestGrowthOfShortRuns checks that a run that is too short reports by how much
// memory grew, as soon as two levels of two minutes are known.
func TestGrowthOfShortRuns(t *testing.T) {
	for minutes, want := range map[float64]string{
		1:  "only 30 s of uninterrupted data; a trend needs 30 min",
		3:  "only 2.5 min of uninterrupted data; a trend needs 30 min",
		12: "only 12 min of uninterrupted data: +215 MB; a trend needs 30 min",
	} {
		if v := fed(minutes/60, func(h float64) float64 { return 200 + 1200*h }).Verdict(); v.Because != want {
			t.Errorf("%v min: %s, want %s", minutes, v.Because, want)
		}
	}
}

// TestTrimAfterAWarmUp checks that the later part of a run with one fall is
// also judged without that fall.
func TestTrimAfterAWarmUp(t *testing.T) {
	v := fed(8, func(h float64) float64 {
		mb := 700 + 250*(1-math.Exp(-h/0.7)) + 45*h + 2*math.Sin(h*77)
		if h >= 5 {
			mb -= 300
		}
		return mb
	}).Verdict()
	if v.Gate != Leak || math.Abs(v.Rate/MB-45) > 8 || !strings.Contains(v.Because, "not counting ") {
		t.Errorf("%v, %.0f MB/h: %s", v.Gate, v.Rate/MB, v.Because)
	}
}

// TestFewReadings checks that twelve readings of a dimension are enough to find
// a leak that the total hides.
func TestFewReadings(t *testing.T) {
	for readings, want := range map[int]Gate{11: Pass, 12: Leak} {
		d := New(RobustPolicy())
		apart := time.Hour / time.Duration(readings)
		next := time.Duration(0)
		for at := time.Duration(0); at < time.Hour; at += 30 * time.Second {
			if at >= next {
				b := Breakdown{At: at}
				b.Dim[JavaHeap] = Amount{N: int64((50 + 200*at.Hours()) * MB), Known: true}
				d.AddBreakdown(b)
				next += apart
			}
			d.AddSample(Sample{At: at, Bytes: 500 * MB})
		}
		if v := d.Verdict(); v.Gate != want {
			t.Errorf("%d readings: %v: %s", readings, v.Gate, v.Because)
		}
	}
}

// TestCritical checks that the critical value is the 99.9 % point of Student's
// t, and that it is larger if several series are judged together.
func TestCritical(t *testing.T) {
	m := newRobustMachine(RobustPolicy())
	if got := m.critical(10); math.Abs(got-4.1437) > 1e-3 {
		t.Errorf("%v", got)
	}
	if m.family = 10; math.Abs(m.critical(10)-5.694) > 2e-2 {
		t.Errorf("critical(10) for ten series = %v", m.critical(10))
	}
}

// TestReasons checks the rules of the end verdict in their order. The levels of
// each case violate only one rule.
func TestReasons(t *testing.T) {
	of := func(n int, curve func(i float64) float64) []float64 {
		y := make([]float64, n)
		for i := range y {
			y[i] = curve(float64(i)) + 0.2*math.Sin(float64(i)*2.1)
		}
		return y
	}
	quarters := func(a, b, c, d float64) func(float64) float64 {
		return func(i float64) float64 { return [4]float64{a, b, c, d}[int(i)/9] }
	}
	saturating := func(tau float64) func(float64) float64 {
		return func(i float64) float64 { return 300 * (1 - math.Exp(-i/tau)) }
	}
	for name, c := range map[string]struct {
		curve  func(float64) float64
		before float64
		want   reason
	}{
		"line":                    {func(i float64) float64 { return 5 * i }, noRecord, fires},
		"small growth":            {func(i float64) float64 { return 0.5 * i }, noRecord, small},
		"second half not higher":  {quarters(0, 60, 0, 58), noRecord, early},
		"flat at the end":         {quarters(0, 80, 160, 161), noRecord, early},
		"flat at the beginning":   {quarters(0, 1, 100, 200), noRecord, late},
		"reached before":          {func(i float64) float64 { return 5 * i }, 175 - 0.3*180 + 6, visited},
		"higher than ever before": {func(i float64) float64 { return 5 * i }, 150 - 0.3*180, fires},
		"levels off":              {saturating(9), noRecord, early},
		"slows down":              {saturating(16), noRecord, slowing},
	} {
		var f finding
		y := of(36, c.curve)
		f.drift = trend.Drift{Slope: (meanOf(y[27:]) - meanOf(y[:9])) / 27, SE: 0.01, N: 36}
		f.growth = max(30, f.drift.Slope*36)
		if name == "small growth" {
			f.growth = f.drift.Slope * 36
		}
		if got := f.decide(y, scale{hours: 8, need: 20, family: 1, before: c.before}); got != c.want {
			t.Errorf("%s: %q, want %q", name, reasonTexts[got], reasonTexts[c.want])
		}
	}
}

// TestOneLevel checks that five deaths at one level are enough and four are
// not, and that at least half of all deaths must be at that level.
func TestOneLevel(t *testing.T) {
	for _, c := range []struct {
		ends, others int
		want         bool
	}{{5, 0, true}, {4, 0, false}, {5, 5, true}, {5, 6, false}} {
		m := newRobustMachine(RobustPolicy())
		for i := range c.ends {
			m.lives.list = append(m.lives.list,
				pastLife{cause: Killed, last: 500 + float64(i%2), length: time.Duration(5+4*i) * time.Minute})
		}
		for range c.others {
			m.lives.list = append(m.lives.list, pastLife{cause: Crash, last: 100})
		}
		m.lives.count = c.ends + c.others
		level, ok := m.atOneLevel(pool{grows: true, all: ratesOfLives{rate: 600}})
		if ok != c.want || ok && math.Abs(level-500.5) > 0.2 {
			t.Errorf("%d of %d: %v, at %v MB", c.ends, m.lives.count, ok, level)
		}
		if _, ok := m.atOneLevel(pool{all: ratesOfLives{rate: 600}}); ok {
			t.Error("found one level in lives that do not grow")
		}
	}
}

// TestLargestSample checks that an implausible value is ignored and that a
// value one byte smaller is accepted.
func TestLargestSample(t *testing.T) {
	for bytes, want := range map[int64]int{0: 0, 1: 1, maxBytes: 1, maxBytes + 1: 0} {
		d := New(RobustPolicy())
		d.AddSample(Sample{At: time.Second, Bytes: bytes})
		if got := d.Verdict().Samples; got != want {
			t.Errorf("%d bytes: %d samples", bytes, got)
		}
	}
}

// TestLivesThatDifferByChance checks that a difference between lives that is
// not statistically significant is not reported as a leak, however large it is.
func TestLivesThatDifferByChance(t *testing.T) {
	lives := func(mean float64) *robustMachine {
		d := New(RobustPolicy())
		at := time.Duration(0)
		for k := range 17 {
			if k > 0 {
				d.Restart(at)
			}
			rate := mean + 80*float64(k%2*2-1)
			for begin := at; at < begin+22*time.Minute; at += 30 * time.Second {
				d.AddSample(Sample{At: at, Bytes: int64((200 + rate*(at-begin).Hours()) * MB)})
			}
		}
		return d.machine.(*robustMachine)
	}
	d, ok := lives(200).compareLives(contrast{}, []*robustMachine{lives(150)})
	if !ok || d.proved || !d.headRises || !d.matched || math.Abs(d.rate-50) > 12 || d.growth < 10 ||
		math.Abs(d.t-d.rate/d.se) > 1e-9 {
		t.Errorf("%v, %+v", ok, d)
	}
	if d, ok = lives(400).compareLives(contrast{}, []*robustMachine{lives(150)}); !ok || !d.proved || d.matched {
		t.Errorf("%v, %+v", ok, d)
	}
}

// TestGuardsOfLooks checks that a look does not treat missing data as evidence.
func TestGuardsOfLooks(t *testing.T) {
	m := fed(6, func(h float64) float64 { return 200 + 30*h + math.Sin(h*77) }).machine.(*robustMachine)
	w := &lookWindows[4] // 40 min: the ring buffer no longer contains the three preceding windows
	var out lookResult
	out.need = w.need
	if m.pooled(m.tracks[totalTrack], make([]float64, w.blocks), w, w.minutes*2, -math.MaxFloat64, &out) {
		t.Error("estimated noise from windows that were dropped")
	}
	m.first, m.firstSigma = lookResult{window: 20 * time.Minute, growth: 1e6}, 0
	if m.keepsPace(m.tracks[totalTrack]) {
		t.Error("keepsPace is true for an unreachable pace")
	}
	if m.axis.binSlots = 2 * firstBin; !m.keepsPace(m.tracks[totalTrack]) {
		t.Error("keepsPace is false although ten-minute floors cannot show the pace")
	}
	for s, want := range map[lookResult]string{
		{reason: gaps, window: time.Hour}: "memory over 60 min has too many gaps",
		{
			reason: noise, window: time.Hour, blocks: 24, growth: 5,
		}: "memory over 60 min: +5.0 MB (a leak needs 0.0 MB), " +
			"5.0 MB/h, t-value 0.0: does not grow beyond the noise",
	} {
		if got := s.text("memory"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSlowSawtooth checks that a cache that is emptied once when it is full is
// not a trimmed leak.
func TestSlowSawtooth(t *testing.T) {
	for _, period := range []float64{4.2, 5, 6} {
		v := fed(8, func(h float64) float64 {
			_, part := math.Modf(h / period)
			return 300 + 300*part + math.Sin(h*77)
		}).Verdict()
		if v.Gate == Leak {
			t.Errorf("sawtooth with a period of %v h: %s", period, v.Because)
		}
	}
}

// TestLoopsThatEnd checks that loops that ended long before the end of the run
// do not determine the verdict on the time after them.
func TestLoopsThatEnd(t *testing.T) {
	d := New(RobustPolicy())
	for at := time.Duration(0); at < 8*time.Hour; at += 30 * time.Second {
		if at < 5*time.Hour && at%(10*time.Minute) == 0 {
			d.AddMark(Mark{At: at, Text: "loop"})
		}
		s := Sample{At: at, Bytes: int64((200 + 60*max(0, at.Hours()-5.2) + math.Sin(at.Hours()*77)) * MB)}
		d.AddSample(s)
		if at < 5*time.Hour && at%(10*time.Minute) == time.Minute {
			d.AddCollected(s)
		}
	}
	if v := d.Verdict(); v.Gate != Leak {
		t.Errorf("%v: %s", v.Gate, v.Because)
	}
}
