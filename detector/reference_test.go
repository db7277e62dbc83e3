package detector

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// reference is a plain implementation of the default interpretation of the
// article. It keeps every reading, selects the readings that it needs each
// time, and uses no table of transitions. Times are in seconds.
type reference struct {
	x, smaps, total       []float64
	bx                    []float64
	b                     []Breakdown
	gpu, rest             []float64
	offset                float64
	offsetKnown           bool
	egl, gl               float64
	state                 State
	entered, now          float64
	rising, fading, fresh int
	level, gpuSince       float64
	spiked, event         bool
	diagnosed             float64
	steps                 []string
	gpuNew                bool
	lastKind              LeakKind
}

func newReference() *reference {
	return &reference{diagnosed: math.Inf(-1), gpuSince: math.Inf(-1)}
}

type textbook struct{ slope, r2, t, growth float64 }

// regression is the two-pass regression of textbooks, with R2 and t computed
// from their definitions.
func regression(x, y []float64) (f textbook) {
	n := float64(len(x))
	var mx, my float64
	for i := range x {
		mx, my = mx+x[i]/n, my+y[i]/n
	}
	var sxy, sxx, sst, sse float64
	for i := range x {
		sxy += (x[i] - mx) * (y[i] - my)
		sxx += (x[i] - mx) * (x[i] - mx)
		sst += (y[i] - my) * (y[i] - my)
	}
	f.slope = sxy / sxx
	for i := range x {
		e := y[i] - my - f.slope*(x[i]-mx)
		sse += e * e
	}
	f.r2 = 1 - sse/sst
	f.t = f.slope / math.Sqrt(sse/(n-2)/sxx)
	f.growth = f.slope * (x[len(x)-1] - x[0])
	return f
}

func p25Of(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	h := 0.25 * float64(len(v)-1)
	k := int(h)
	if k == len(v)-1 {
		return v[k]
	}
	return v[k]*(1-(h-float64(k))) + v[k+1]*(h-float64(k))
}

func (r *reference) move(to State, rule string) {
	r.steps = append(r.steps, stepText(r.now, r.state, to, rule, r.kindOf(to)))
	if r.state == Leaking && to == Normal {
		r.gpuSince, r.event = r.now, false
	}
	if to == Suspicious {
		r.level = r.total[len(r.total)-1]
	}
	if to == Leaking {
		r.event = r.now-r.diagnosed < 1800
	}
	r.state, r.entered, r.rising, r.fading, r.fresh = to, r.now, 0, 0, 0
}

func (r *reference) kindOf(to State) LeakKind {
	if to == Leaking {
		return r.lastKind
	}
	return None
}

func (r *reference) sample(t, bytes float64) {
	r.now = max(r.now, t)
	r.x, r.smaps, r.total = append(r.x, t), append(r.smaps, bytes), append(r.total, bytes+r.offset)
	first := max(0, len(r.x)-240)
	x, y := r.x[first:], r.total[first:]
	spike := r.spike(x, y)
	fresh := !r.spiked
	if !spike {
		r.spiked = false
	}
	if (r.state == Normal || r.state == Suspicious) && len(x) >= 10 {
		f := regression(x, y)
		if f.slope > 0 && f.t > 2 && f.r2 > 0.6 {
			r.rising++
		} else {
			r.rising = 0
		}
		if f.t <= 2 {
			r.fading++
		} else {
			r.fading = 0
		}
	}
	switch {
	case r.state == Normal && spike && fresh:
		r.spiked, r.lastKind = true, Unknown
		r.move(Leaking, "5.4 spike")
	case r.timedOut():
	case r.gpuFound():
	case r.state == Normal && r.rising >= 2:
		r.move(Suspicious, "5.5 trend")
	case r.state == Suspicious && r.fading >= 2:
		r.move(Normal, "5.5 not significant")
	case r.state == Suspicious && r.floorsRise(x, y):
		r.move(Confirming, "5.3 floors")
	case r.confirmed():
		r.move(Leaking, "5.6 dimensions")
	}
}

// A spike must end before the next one counts. With too few points, the
// previous result is kept.
func (r *reference) spike(x, y []float64) bool {
	now := x[len(x)-1]
	var recent []float64
	for i := range x {
		if x[i] > now-300 {
			recent = append(recent, y[i])
		}
	}
	if len(recent) < 5 {
		return r.spiked
	}
	floor := p25Of(recent)
	return y[len(y)-1]-floor > max(floor*0.5, 200*MB)
}

func (r *reference) timedOut() bool {
	switch stay := r.now - r.entered; {
	case r.state == Suspicious && stay >= 1800, r.state == Confirming && stay >= 600:
		r.move(Normal, "5.5 time-out")
		return true
	case r.state == Leaking && r.event:
		r.move(Normal, "6.4 cooldown")
		return true
	}
	return false
}

func (r *reference) floorsRise(x, y []float64) bool {
	var floors []float64
	for from := r.entered; from+300 <= x[len(x)-1]; from += 300 {
		var in []float64
		for i := range x {
			if x[i] >= from && x[i] < from+300 {
				in = append(in, y[i])
			}
		}
		if len(in) > 0 {
			floors = append(floors, p25Of(in))
		}
	}
	if len(floors) < 3 {
		return false
	}
	for i := 1; i < len(floors); i++ {
		if floors[i] <= floors[i-1] {
			return false
		}
	}
	return true
}

func (r *reference) breakdown(b Breakdown) {
	t := b.At.Seconds()
	r.now = max(r.now, t)
	r.bx, r.b = append(r.bx, t), append(r.b, b)
	if b.EGL.Known {
		r.egl, r.gl = float64(b.EGL.N), float64(b.GL.N)
		if !r.offsetKnown {
			for i := range r.total {
				r.total[i] += r.egl + r.gl
			}
			r.level += r.egl + r.gl
		}
		r.offset, r.offsetKnown = r.egl+r.gl, true
	}
	r.gpu = append(r.gpu, r.egl+r.gl)
	r.rest = append(r.rest, float64(b.Dim[Total].N)-r.egl-r.gl)
	if r.state == Confirming && t >= r.entered {
		r.fresh++
	}
	r.gpuNew = true
	switch {
	case r.timedOut():
	case r.gpuFound():
	case r.confirmed():
		r.move(Leaking, "5.6 dimensions")
	}
}

func (r *reference) gpuFound() bool {
	if r.state == Leaking || !r.gpuNew {
		return false
	}
	r.gpuNew = false
	first := max(0, len(r.bx)-60)
	for first < len(r.bx) && r.bx[first] <= r.gpuSince {
		first++
	}
	if len(r.bx)-first < 10 {
		return false
	}
	rise, rest := regression(r.bx[first:], r.gpu[first:]), regression(r.bx[first:], r.rest[first:])
	if rise.t > 2 && rise.r2 > 0.6 && rise.growth >= 20*MB && rest.t < 1 {
		r.lastKind = GPU
		r.move(Leaking, "5.4 gpu")
		return true
	}
	return false
}

func (r *reference) confirmed() bool {
	if r.state != Confirming || r.fresh < 3 || r.total[len(r.total)-1]-r.level <= 20*MB {
		return false
	}
	first := max(0, len(r.bx)-60)
	voted, sum, best := false, 0.0, 0.0
	kind := Unknown
	for d := range NumDimensions {
		var y []float64
		for _, b := range r.b[first:] {
			y = append(y, float64(b.Dim[d].N))
		}
		if len(y) < 3 {
			continue
		}
		f := regression(r.bx[first:], y)
		if !(f.t > 2) {
			continue
		}
		voted = true
		if d == Total || d == System {
			continue
		}
		sum += f.growth
		if f.growth > best {
			best = f.growth
			kind = map[Dimension]LeakKind{JavaHeap: Java, NativeHeap: Native, Stack: Thread, Graphics: GPU}[d]
		}
	}
	if !(best > sum/2) || kind == None {
		kind = Unknown
	}
	r.lastKind = kind
	return voted
}

func (r *reference) diagnosis(t float64) {
	r.now = max(r.now, t)
	r.diagnosed = t
	if r.state == Leaking {
		r.move(Normal, "6.4 diagnosis done")
	}
}

func (r *reference) interrupt(t float64, restart bool) {
	r.now = max(r.now, t)
	r.x, r.smaps, r.total, r.bx, r.b, r.gpu, r.rest = nil, nil, nil, nil, nil, nil, nil
	r.rising, r.fading, r.fresh, r.spiked, r.gpuNew = 0, 0, 0, false, false
	r.gpuSince = math.Inf(-1)
	if restart {
		r.offset, r.offsetKnown, r.egl, r.gl = 0, false, 0, 0
	}
	switch {
	case restart && r.state != Normal:
		r.move(Normal, "8.3 restart")
	case !restart && (r.state == Suspicious || r.state == Confirming):
		r.move(Normal, "gap")
	}
}

func stepText(at float64, from, to State, rule string, kind LeakKind) string {
	return time.Duration(math.Round(at*1000)*1e6).String() + " " + from.String() + " " + to.String() + " " + rule +
		" " + kind.String()
}

// TestAgainstReference feeds random lives of a process to both machines.
func TestAgainstReference(t *testing.T) {
	rules := map[string]int{}
	for seed := range 120 {
		r := rand.New(rand.NewPCG(uint64(seed), 77))
		d, ref := New(ArticlePolicy()), newReference()
		var got []string
		keep := func(steps []Transition) {
			for _, s := range steps {
				got = append(got, stepText(s.At.Seconds(), s.From, s.To, s.Rule, s.Kind))
				rules[s.Rule]++
			}
		}
		life := newLife(r)
		for at := 500.0; at < 500+6*3600; {
			life.step(r, at)
			stamp := time.Duration(at * float64(time.Second))
			if r.IntN(6) == 0 || d.Demand().Breakdowns > 0 && r.IntN(3) > 0 {
				b := life.breakdown(r, stamp)
				keep(d.AddBreakdown(b))
				ref.breakdown(b)
			}
			bytes := life.smaps(r)
			keep(d.AddSample(Sample{At: stamp, Bytes: bytes}))
			ref.sample(at, float64(bytes))
			switch r.IntN(900) {
			case 0:
				keep(d.Restart(stamp + time.Second))
				ref.interrupt(at+1, true)
			case 1:
				keep(d.Gap(stamp + time.Second))
				ref.interrupt(at+1, false)
			}
			if d.Demand().Diagnose != None && r.IntN(2) == 0 {
				keep(d.DiagnosisFinished(stamp + 2*time.Second))
				ref.diagnosis(at + 2)
			}
			at += d.Demand().Interval.Seconds() + float64(r.IntN(4))
		}
		if !slices.Equal(got, ref.steps) {
			for i := range max(len(got), len(ref.steps)) {
				if i >= len(got) || i >= len(ref.steps) || got[i] != ref.steps[i] {
					t.Fatalf("seed %d: step %d differs:\ngot  %v\nwant %v", seed, i, got[i:], ref.steps[i:])
				}
			}
		}
	}
	t.Logf("steps by rule: %v", rules)
	for _, rule := range []string{
		"5.4 spike", "5.4 gpu", "5.5 trend", "5.5 time-out", "5.5 not significant", "5.3 floors",
		"5.6 dimensions", "6.4 diagnosis done", "6.4 cooldown", "8.3 restart", "gap"} {
		if rules[rule] == 0 {
			t.Errorf("no random run applied rule %q", rule)
		}
	}
}

// life is a process that changes its behavior at random.
type life struct {
	dims  [Total]float64
	rate  [Total]float64
	noise float64
	last  float64
}

func newLife(r *rand.Rand) *life {
	return &life{dims: simBase, noise: []float64{0.5, 3, 12}[r.IntN(3)], last: 500}
}

func (l *life) step(r *rand.Rand, at float64) {
	for d := range l.dims {
		l.dims[d] += l.rate[d] * (at - l.last) / 3600
		l.dims[d] = max(2, l.dims[d])
	}
	l.last = at
	if r.IntN(80) > 0 {
		return
	}
	l.rate = [Total]float64{}
	switch r.IntN(8) {
	case 0:
		l.dims[JavaHeap] += 300
	case 1:
		l.dims = simBase
	case 2, 3:
		l.rate[Graphics] = 400 * r.Float64()
	case 4:
		l.rate[r.IntN(int(Total))] = 900 * r.Float64()
		l.rate[r.IntN(int(Total))] += 900 * r.Float64()
	case 5, 6:
		l.rate[[]Dimension{JavaHeap, NativeHeap, Stack, PrivateOther}[r.IntN(4)]] = 700 * r.Float64()
	}
}

func (l *life) smaps(r *rand.Rand) int64 {
	sum := l.noise * r.NormFloat64()
	for d, v := range l.dims {
		if Dimension(d) != Graphics {
			sum += v
		}
	}
	return int64(max(1, sum) * MB)
}

func (l *life) breakdown(r *rand.Rand, at time.Duration) Breakdown {
	b := Breakdown{At: at}
	var total int64
	for d, v := range l.dims {
		bytes := int64(max(0, v+0.3*l.noise*r.NormFloat64()) * MB)
		b.Dim[d] = known.Of(bytes)
		total += bytes
	}
	b.Dim[Total] = known.Of(total)
	b.EGL, b.GL = known.Of(b.Dim[Graphics].N/4), known.Of(b.Dim[Graphics].N-b.Dim[Graphics].N/4)
	return b
}
