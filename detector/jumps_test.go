package detector_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/scenario"
)

// ride is a process whose level in MB is set for each minute, sampled every 30
// s.
type ride struct {
	d     *detector.Detector
	r     *rand.Rand
	at    time.Duration
	sigma float64
	// jumps holds the transitions caused by jumps.
	jumps []detector.Transition
}

func newRide(seed uint64, sigma float64) *ride {
	return &ride{d: detector.New(detector.RobustPolicy()), r: rand.New(rand.NewPCG(43, seed)), sigma: sigma}
}

// until adds samples up to the given minute.
func (p *ride) until(minute float64, level func(minute float64) float64) *ride {
	for ; p.at.Minutes() < minute; p.at += 30 * time.Second {
		mb := level(p.at.Minutes()) + p.sigma*p.r.NormFloat64()
		p.take(p.d.AddSample(detector.Sample{At: p.at, Bytes: int64(mb * detector.MB)}))
	}
	return p
}

func (p *ride) take(steps []detector.Transition) {
	for _, s := range steps {
		if s.Rule == "jump" {
			p.jumps = append(p.jumps, s)
		}
	}
}

// risesAt returns a function of the minute: a level of 300 MB that rises by the
// given amount at each of the given minutes.
func risesAt(mb float64, minutes ...float64) func(float64) float64 {
	return func(minute float64) float64 {
		level := 300.0
		for _, m := range minutes {
			if minute >= m {
				level += mb
			}
		}
		return level
	}
}

func TestJump(t *testing.T) {
	for _, sigma := range []float64{1, 5, 20} {
		for seed := range uint64(10) {
			p := newRide(seed, sigma).until(60, risesAt(250, 60))
			if len(p.jumps) != 0 {
				t.Fatalf("s%v: %d jumps before memory rises, want none", sigma, len(p.jumps))
			}
			p.until(89, risesAt(250, 60))
			if len(p.jumps) != 1 {
				t.Fatalf("s%v: %d jumps, want 1", sigma, len(p.jumps))
			}
			step := p.jumps[0]
			if step.At != time.Hour || step.From != detector.Normal || step.To != detector.Normal ||
				step.Kind != detector.None || step.Because == "" {
				t.Errorf("s%v: step %+v", sigma, step)
			}
			list := p.d.Verdict().Jumps
			if len(list) != 1 || list[0].At != time.Hour || list[0].Stayed {
				t.Fatalf("s%v: %+v after 29 min", sigma, list)
			}
			// The size of the jump is the difference between one sample and a
			// level computed from ten samples.
			if mb := float64(list[0].Bytes) / detector.MB; math.Abs(mb-250) > 4.5*sigma {
				t.Errorf("s%v: %.1f MB, want 250", sigma, mb)
			}
			// Half an hour after a rise, memory may still continue to rise;
			// after 3 h, it has settled.
			for minutes, gate := range map[float64]detector.Gate{95: detector.Inconclusive, 270: detector.Settled} {
				v := newRide(seed, sigma).until(minutes, risesAt(250, 60)).d.Verdict()
				if len(v.Jumps) != 1 || !v.Jumps[0].Stayed || v.Gate != gate && sigma < 20 ||
					v.State != detector.Normal {
					t.Errorf("s%v: after %g min %+v, %v in %v: %s", sigma, minutes, v.Jumps, v.Gate, v.State, v.Because)
				}
			}
		}
	}
}

// TestJumpFallsBack checks that a rise that falls back within half an hour has
// not stayed.
func TestJumpFallsBack(t *testing.T) {
	for _, minutes := range []float64{0.5, 2, 10, 24} {
		level := func(minute float64) float64 {
			if minute >= 60 && minute < 60+minutes {
				return 550
			}
			return 300
		}
		p := newRide(1, 5).until(150, level)
		v := p.d.Verdict()
		if len(v.Jumps) != 1 || v.Jumps[0].Stayed || v.Gate != detector.Pass {
			t.Errorf("memory back after %v min: %+v, %v: %s", minutes, v.Jumps, v.Gate, v.Because)
		}
	}
}

// TestNoJumps checks rises that must not be reported as jumps.
func TestNoJumps(t *testing.T) {
	tests := map[string]func(minute float64) float64{
		"100 MB at once":            risesAt(100, 60),
		"fall of 250 MB":            risesAt(-250, 60),
		"600 MB/h":                  func(minute float64) float64 { return 300 + 10*minute },
		"250 MB in an hour":         func(minute float64) float64 { return 300 + 250*min(1, max(0, minute-60)/60) },
		"wave of 60 MB every 5 min": func(minute float64) float64 { return 330 + 30*math.Sin(2*math.Pi*minute/5) },
	}
	for name, level := range tests {
		if p := newRide(2, 5).until(240, level); len(p.jumps) != 0 {
			t.Errorf("%s: %+v", name, p.jumps)
		}
	}
}

// TestJumpAfterJump checks that one jump does not hide another, however far
// apart the two are.
func TestJumpAfterJump(t *testing.T) {
	for _, apart := range []float64{11, 15, 20, 30, 45, 60, 90} {
		for first := 40.0; first < 170; first++ {
			p := newRide(3, 3).until(first+apart+5, risesAt(250, first, first+apart))
			if len(p.jumps) != 2 {
				t.Errorf("250 MB at minute %v and again %v min later: %d jumps, want 2", first, apart, len(p.jumps))
			}
		}
	}
}

// TestManyJumps adds 250 MB every 25 min. Each jump is reported, and the latest
// 16 are kept.
func TestManyJumps(t *testing.T) {
	var minutes []float64
	for m := 30.0; m < 600; m += 25 {
		minutes = append(minutes, m)
	}
	p := newRide(4, 3).until(660, risesAt(250, minutes...))
	if len(p.jumps) != len(minutes) {
		t.Errorf("%d jumps reported, want %d", len(p.jumps), len(minutes))
	}
	list := p.d.Verdict().Jumps
	if len(list) != 16 {
		t.Fatalf("%d jumps are kept, want 16", len(list))
	}
	if last := list[len(list)-1].At; last != time.Duration(minutes[len(minutes)-1])*time.Minute {
		t.Errorf("the last jump is at %v, want minute %v", last, minutes[len(minutes)-1])
	}
}

// TestEachJumpStays checks that the next jump does not affect whether a jump is
// reported as having stayed.
func TestEachJumpStays(t *testing.T) {
	for _, apart := range []float64{11, 15, 20, 29, 40} {
		p := newRide(5, 3).until(200, risesAt(250, 61, 61+apart))
		list := p.d.Verdict().Jumps
		if len(list) != 2 || !list[0].Stayed || !list[1].Stayed {
			t.Errorf("two jumps of 250 MB, %v min apart: %+v", apart, list)
		}
	}
}

// TestNoiseIsNotAJump checks that noise of 50 MB causes jumps in at most one of
// a hundred runs of 8 h, whatever its autocorrelation.
func TestNoiseIsNotAJump(t *testing.T) {
	const runs = 100
	for _, rho := range []float64{0, 0.7, 0.9, 0.97} {
		s := scenario.Scenario{Hours: 8, Sigma: 50, Rho: rho}
		with, all, first := 0, 0, 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 44))
			d := detector.New(detector.RobustPolicy())
			scenario.Play(s.Simulate(r), d, scenario.Conditions{}, r.Float64)
			v := d.Verdict()
			if len(v.Jumps) > 0 {
				with++
				if v.Jumps[0].At < time.Hour+1000*time.Second {
					first++
				}
			}
			all += len(v.Jumps)
		}
		t.Logf("AR %v s50: %d of %d runs of 8 h have jumps, %d of them in the first hour; %d jumps in total", rho, with,
			runs, first, all)
		if with > runs/100 {
			t.Errorf("AR %v s50: jumps in %d of %d runs", rho, with, runs)
		}
	}
}

// TestLaunchCurve checks that a launch either ends before there is a floor to
// compare with or is reported as at most one jump, and that it is not a leak.
func TestLaunchCurve(t *testing.T) {
	for _, launch := range []struct{ mb, tau float64 }{{150, 2}, {300, 2}, {400, 3}, {300, 0.5}, {600, 5}} {
		reported := 0
		for seed := range uint64(20) {
			p := newRide(100+seed, 5).until(120, func(minute float64) float64 {
				return 100 + launch.mb*(1-math.Exp(-minute/launch.tau))
			})
			v := p.d.Verdict()
			reported += len(p.jumps)
			if len(p.jumps) > 1 || v.Gate == detector.Leak || v.Worst == detector.Leaking {
				t.Errorf("+%v MB, tau %v min: %d jumps, %v, worst %v: %s", launch.mb, launch.tau, len(p.jumps), v.Gate,
					v.Worst, v.Because)
			}
		}
		t.Logf("+%v MB, tau %v min: %d jumps in 20 launches", launch.mb, launch.tau, reported)
	}
}

// TestFirstDriverMemoryIsNotAJump checks that driver memory that is measured
// for the first time counts as having existed before, and that its later growth
// is a jump.
func TestFirstDriverMemoryIsNotAJump(t *testing.T) {
	breakdown := func(p *ride, egl int64) {
		b := detector.Breakdown{At: p.at, EGL: known.Of(egl * detector.MB), GL: known.Of(0)}
		b.Dim[detector.Total] = known.Of((300 + egl) * detector.MB)
		p.take(p.d.AddBreakdown(b))
	}
	p := newRide(6, 3).until(60, risesAt(0))
	breakdown(p, 400)
	p.until(61, risesAt(0))
	breakdown(p, 410)
	if p.until(120, risesAt(0)); len(p.jumps) != 0 {
		t.Fatalf("driver memory became known and caused jumps: %+v", p.jumps)
	}
	breakdown(p, 710)
	p.until(121, risesAt(0))
	if len(p.jumps) != 1 || math.Abs(float64(p.d.Verdict().Jumps[0].Bytes)/detector.MB-300) > 15 {
		t.Errorf("driver memory grew by 300 MB: got jumps %+v, want one of 300 MB", p.d.Verdict().Jumps)
	}
}

// TestJumpAndRestart checks that a new process has its own floor, and that the
// jumps of the old one are kept.
func TestJumpAndRestart(t *testing.T) {
	p := newRide(7, 3).until(70, risesAt(250, 60))
	p.take(p.d.Restart(p.at))
	p.until(130, risesAt(500, 70))
	if len(p.jumps) != 1 {
		t.Fatalf("got jumps %+v after a restart with more memory, want one from before it", p.jumps)
	}
	p.until(170, risesAt(500, 70, 130))
	list := p.d.Verdict().Jumps
	if len(p.jumps) != 2 || len(list) != 2 || list[0].Stayed || !list[1].Stayed {
		t.Errorf("want one jump in each of two processes, the second one lasting: %+v", list)
	}
}

// TestJumpOfAnotherQuantity checks that a change of the quantity is not a jump.
func TestJumpOfAnotherQuantity(t *testing.T) {
	p := newRide(8, 3).until(60, risesAt(0))
	p.take(p.d.ChangeQuantity(p.at))
	p.until(120, risesAt(300, 60))
	p.until(130, risesAt(300, 60, 120))
	if len(p.jumps) != 1 || p.jumps[0].At != 2*time.Hour {
		t.Errorf("%+v", p.jumps)
	}
}

// TestJumpAcrossGap checks that levels are not compared across a gap that ends
// the trend.
func TestJumpAcrossGap(t *testing.T) {
	p := newRide(9, 3).until(60, risesAt(0))
	p.at += 40 * time.Minute
	if p.until(160, risesAt(300, 80)); len(p.jumps) != 0 {
		t.Errorf("jumps reported across a gap of 40 min: %+v", p.jumps)
	}
}
