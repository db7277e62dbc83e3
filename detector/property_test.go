package detector

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// script is a list of inputs that can be replayed with changes.
type script []func(d *Detector, shift time.Duration, raise int64) []Transition

func randomScript(seed uint64) script {
	r := rand.New(rand.NewPCG(seed, 5))
	l := newLife(r)
	var s script
	for at := 500.0; at < 500+4*3600; at += 10 + float64(r.IntN(40)) {
		l.step(r, at)
		stamp := time.Duration(at) * time.Second
		if r.IntN(3) == 0 {
			b := l.breakdown(r, stamp)
			s = append(s, func(d *Detector, shift time.Duration, raise int64) []Transition {
				b := b
				b.At += shift
				b.Dim[Total].N += raise
				b.Dim[PrivateOther].N += raise
				return d.AddBreakdown(b)
			})
		}
		bytes := l.smaps(r)
		s = append(s, func(d *Detector, shift time.Duration, raise int64) []Transition {
			return d.AddSample(Sample{At: stamp + shift, Bytes: bytes + raise})
		})
		if r.IntN(100) == 0 {
			s = append(s, func(d *Detector, shift time.Duration, _ int64) []Transition {
				return d.DiagnosisFinished(stamp + shift)
			})
		}
		if r.IntN(500) == 0 {
			s = append(s, func(d *Detector, shift time.Duration, _ int64) []Transition {
				return d.Restart(stamp + shift + time.Second)
			})
		}
	}
	return s
}

func (s script) play(change func(*articleRules), shift time.Duration, raise int64) (*Detector, []string) {
	d := articleDetector(change)
	var steps []string
	for _, input := range s {
		for _, t := range input(d, shift, raise) {
			steps = append(steps, stepText((t.At-shift).Seconds(), t.From, t.To, t.Rule, t.Kind))
		}
	}
	return d, steps
}

// TestOriginDoesNotMatter checks that neither the clock's origin nor a constant
// level is evidence. The detection of spikes is off, because a spike is
// measured relative to the level.
func TestOriginDoesNotMatter(t *testing.T) {
	noSpikes := func(a *articleRules) { a.spikeMin = 1 << 50 }
	steps := 0
	for seed := range uint64(40) {
		s := randomScript(seed)
		d, want := s.play(noSpikes, 0, 0)
		steps += len(want)
		later, got := s.play(noSpikes, 45*24*time.Hour, 0)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d, 45 days later: %v, want %v", seed, got, want)
		}
		higher, got := s.play(noSpikes, 0, 1024*MB)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d, 1 GB more: %v, want %v", seed, got, want)
		}
		v := d.Verdict()
		for _, w := range []Verdict{later.Verdict(), higher.Verdict()} {
			if w.Gate != v.Gate || w.Rate != v.Rate || w.RateLow != v.RateLow || w.Growth != v.Growth {
				t.Errorf("seed %d: %+v, want %+v", seed, w, v)
			}
		}
	}
	if steps < 200 {
		t.Errorf("only %d transitions in total, want at least 200", steps)
	}
}

// FuzzDetector adds any inputs in any order.
func FuzzDetector(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	r := rand.New(rand.NewPCG(1, 1))
	for range 6 {
		data := make([]byte, 4000)
		for i := range data {
			data[i] = byte(r.IntN(256))
		}
		f.Add(data)
	}
	arrows := map[string]bool{}
	for _, row := range articleRows {
		arrows[row.section+row.from.String()+row.to.String()] = true
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d := New(ArticlePolicy())
		state, worst, at, level := Normal, Normal, int64(0), int64(200*MB)
		for len(data) >= 4 {
			op, a, b := data[0], data[1], binary.LittleEndian.Uint16(data[2:])
			data = data[4:]
			if op%16 != 15 {
				at += int64(a) * int64(time.Second) / 4
			} else {
				at -= int64(a) * int64(time.Second)
			}
			level += int64(int16(b)) * 200
			for _, step := range fuzzInput(d, op, time.Duration(at), level, b) {
				if !arrows[step.Rule+step.From.String()+step.To.String()] || step.From != state || step.Because == "" {
					t.Fatalf("step %+v from %v is not in the table", step, state)
				}
				if (step.To == Leaking) != (step.Kind != None) {
					t.Fatalf("kind of %+v", step)
				}
				state = step.To
			}
			want := d.Demand()
			interval := map[State]time.Duration{Normal: 30e9, Suspicious: 15e9, Confirming: 15e9, Leaking: 60e9}[state]
			if want.Interval != interval || want.Breakdowns < 0 || want.Breakdowns > 3 {
				t.Fatalf("demand %+v in %v", want, state)
			}
			if want.Diagnose != None && state != Leaking || want.Breakdowns > 0 && state != Confirming {
				t.Fatalf("demand %+v in %v", want, state)
			}
			if articleOf(d).worst < worst || articleOf(d).state != state || articleOf(d).worst < state {
				t.Fatalf("worst %v after %v in %v", articleOf(d).worst, worst, articleOf(d).state)
			}
			worst = articleOf(d).worst
		}
		v := d.Verdict()
		if v.Worst != worst || v.State != state || v.Because == "" || (v.Gate == Leak) != (worst == Leaking) {
			t.Fatalf("verdict %+v", v)
		}
		if v.RateKnown && !(v.RateLow <= v.Rate && v.Rate <= v.RateHigh) || v.Duration < 0 {
			t.Fatalf("verdict %+v", v)
		}
	})
}

func fuzzInput(d *Detector, op byte, at time.Duration, level int64, b uint16) []Transition {
	switch op % 16 {
	case 0, 1, 2, 3:
		v := Breakdown{
			At: at, EGL: Amount{N: int64(b) << 12, Known: b%3 > 0}, GfxDev: Amount{N: int64(b), Known: b%5 > 0},
		}
		for i := range v.Dim {
			v.Dim[i] = Amount{N: level / int64(i+1), Known: b>>i&1 == 0}
		}
		return d.AddBreakdown(v)
	case 4:
		if op == 4 {
			return d.Restart(at)
		}
		return d.DiagnosisFinished(at)
	case 5:
		if op == 5 {
			return d.Gap(at)
		}
	case 6:
		if op == 6 {
			// This value is far outside any range.
			return d.AddSample(Sample{At: at + 1<<62, Bytes: 1<<63 - 1})
		}
	}
	return d.AddSample(Sample{At: at, Bytes: level})
}

func TestAddSampleDoesNotAllocate(t *testing.T) {
	for name, drive := range map[string]func() *player{
		"NORMAL": func() *player { return play(nil).leak(3*time.Hour, 0) },
		"SUSPICIOUS": func() *player {
			return play(func(a *articleRules) { a.minSegments = 1000; a.suspiciousMax = 500 * time.Hour }).
				leak(3*time.Hour, 600)
		},
		"LEAKING": func() *player { return play(nil).leaking() },
	} {
		p := drive()
		if name == "SUSPICIOUS" {
			p.climb = 1
		}
		if articleOf(p.d).state.String() != name {
			t.Fatalf("%s is %v", name, articleOf(p.d).state)
		}
		allocs := testing.AllocsPerRun(200, func() {
			p.sample()
			p.t += 15 * time.Second
			p.level += p.climb
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations a sample", name, allocs)
		}
		if articleOf(p.d).state.String() != name {
			t.Fatalf("%s became %v", name, articleOf(p.d).state)
		}
	}
}

func BenchmarkAddSample(b *testing.B) {
	p := play(nil).leak(3*time.Hour, 0)
	b.ReportAllocs()
	for b.Loop() {
		p.sample()
		p.t += 30 * time.Second
	}
}

func BenchmarkVerdict(b *testing.B) {
	p := play(nil).leak(3*time.Hour, 0)
	b.ReportAllocs()
	for b.Loop() {
		p.d.Verdict()
	}
}
