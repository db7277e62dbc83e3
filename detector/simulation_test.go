package detector

import (
	"math/rand/v2"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// simulation is a process with known growth and noise, sampled as the machine
// demands.
type simulation struct {
	// policy is the policy under which the run is judged; if it has no name, it
	// is "article" with changed constants.
	policy Policy
	change func(*articleRules)
	seed   uint64
	length time.Duration
	// sigma is the standard deviation of the noise of the total in MB; rho is
	// its AR(1) coefficient per 30 s.
	sigma float64
	// rate is the growth of each dimension in MB/h; shape returns an additional
	// level in MB at the time t.
	rate  [NumDimensions]float64
	start time.Duration
	shape func(t time.Duration) float64
	// rotation is the time between two breakdowns; 0 means 90 s, as with three
	// processes in turn.
	rotation time.Duration
	// diagnosis is the duration of one diagnosis; 0 means that there is none.
	diagnosis time.Duration
}

// These are the shares of the App Summary's dimensions, without TOTAL, in the
// level and in the noise.
var (
	simBase = [Total]float64{
		JavaHeap: 60, NativeHeap: 70, Code: 45, Stack: 2, Graphics: 35, PrivateOther: 28, System: 20,
	}
	simNoise = [Total]float64{
		JavaHeap: .70, NativeHeap: .60, Code: .02, Stack: .01, Graphics: .20, PrivateOther: .30, System: .12,
	}
)

func (s simulation) dims(t time.Duration, r *rand.Rand) (dims [NumDimensions]float64) {
	hours := max(0, t-s.start).Hours()
	for d := range Total {
		dims[d] = simBase[d] + s.rate[d]*hours + s.sigma*simNoise[d]*r.NormFloat64()
		if d == JavaHeap && s.shape != nil {
			dims[d] += s.shape(t)
		}
		dims[Total] += dims[d]
	}
	return dims
}

func (s simulation) sample(t time.Duration, r *rand.Rand) Sample {
	dims := s.dims(t, r)
	return Sample{At: t, Bytes: int64((dims[Total] - dims[Graphics]) * MB)}
}

func (s simulation) breakdown(t time.Duration, r *rand.Rand) Breakdown {
	dims := s.dims(t, r)
	b := Breakdown{At: t, EGL: known.Of(int64(dims[Graphics] * MB)), GL: known.Of(0), GfxDev: known.Of(0)}
	for d, v := range dims {
		b.Dim[d] = known.Of(int64(v * MB))
	}
	return b
}

// run plays the simulation and returns the detector and its transitions.
func (s simulation) run() (*Detector, []Transition) {
	if s.rotation == 0 {
		s.rotation = 90 * time.Second
	}
	const boot = 1000 * time.Second
	r := rand.New(rand.NewPCG(s.seed, 1))
	d := articleDetector(s.change)
	if s.policy.Name != "" {
		d = New(s.policy)
	}
	var steps []Transition
	var nextBreakdown, lastBreakdown, diagnosed time.Duration
	for t := time.Duration(0); t <= s.length; {
		want := d.Demand()
		extra := want.Breakdowns > 0 && t >= lastBreakdown+want.Spacing
		if t >= nextBreakdown || extra {
			b := s.breakdown(t, r)
			b.At += boot
			steps = append(steps, d.AddBreakdown(b)...)
			lastBreakdown = t
			if t >= nextBreakdown {
				nextBreakdown += s.rotation
			}
		}
		v := s.sample(t, r)
		v.At += boot
		steps = append(steps, d.AddSample(v)...)
		want = d.Demand()
		if want.Diagnose != None && s.diagnosis > 0 {
			if diagnosed == 0 {
				diagnosed = t + s.diagnosis
			}
			if t >= diagnosed {
				steps = append(steps, d.DiagnosisFinished(t+boot)...)
				diagnosed = 0
			}
		}
		t += d.Demand().Interval
	}
	for i := range steps {
		steps[i].At -= boot
	}
	return d, steps
}

// leakAt returns the time at which LEAKING was first reached, and the kind of
// the leak.
func leakAt(steps []Transition) (time.Duration, LeakKind, bool) {
	for _, t := range steps {
		if t.To == Leaking {
			return t.At, t.Kind, true
		}
	}
	return 0, None, false
}
