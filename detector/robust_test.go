package detector_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/leakgate/leakgate/detector"
	"github.com/leakgate/leakgate/internal/known"
	"github.com/leakgate/leakgate/internal/scenario"
)

// bootTime is the time on the device's clock when a run of package scenario
// begins.
const bootTime = 1000 * time.Second

// asThree is the setup of most tests: the process is one of three, and a
// diagnosis takes two minutes.
var asThree = scenario.Conditions{Diagnosis: 2 * time.Minute}

// watched returns the detector of one process of a scenario, watched to its
// end, and the transitions.
func watched(s scenario.Scenario, seed uint64, c scenario.Conditions) (*detector.Detector, []detector.Transition) {
	r := rand.New(rand.NewPCG(seed, 77))
	p := s.Simulate(r)
	d := detector.New(detector.RobustPolicy())
	return d, scenario.Play(p, d, c, r.Float64)
}

// robustArrows lists every allowed transition, by rule.
var robustArrows = map[string][]string{
	"first look":  {"NORMAL SUSPICIOUS"},
	"second look": {"SUSPICIOUS CONFIRMING"},
	"third look":  {"CONFIRMING LEAKING"},
	"relapse":     {"NORMAL LEAKING", "SUSPICIOUS LEAKING", "CONFIRMING LEAKING"},
	"no evidence": {"SUSPICIOUS NORMAL", "CONFIRMING NORMAL", "LEAKING NORMAL"},
	"break":       {"SUSPICIOUS NORMAL", "CONFIRMING NORMAL", "LEAKING NORMAL"},
	"jump":        {"NORMAL NORMAL", "SUSPICIOUS SUSPICIOUS", "CONFIRMING CONFIRMING", "LEAKING LEAKING"},
}

// arrowFault returns an error that says what is wrong with a transition from
// the given state, or nil if the transition is allowed.
func arrowFault(step detector.Transition, from detector.State) error {
	switch {
	case step.From != from:
		return fmt.Errorf("step %+v from %v", step, from)
	case !slices.Contains(robustArrows[step.Rule], step.From.String()+" "+step.To.String()):
		return fmt.Errorf("step %+v is not in the state diagram", step)
	case (step.To == detector.Leaking && step.From != detector.Leaking) != (step.Kind != detector.None):
		return fmt.Errorf("step %+v has the wrong kind", step)
	case step.Because == "" || step.Rule != "break" && !strings.ContainsFunc(step.Because, unicode.IsDigit):
		return fmt.Errorf("the reason of step %+v contains no number", step)
	}
	return nil
}

// demandFault returns an error if the demand does not match the state.
func demandFault(w detector.Demand, s detector.State) error {
	r := detector.RobustPolicy()
	interval := [...]time.Duration{r.NormalInterval, r.SuspiciousInterval, r.SuspiciousInterval, r.LeakingInterval}[s]
	switch {
	case w.Interval != interval:
	case w.Breakdowns < 0 || w.Breakdowns > 3 || w.Breakdowns > 0 && (s != detector.Confirming || w.Spacing <= 0):
	case w.Diagnose != detector.None && s != detector.Leaking:
	default:
		return nil
	}
	return fmt.Errorf("demand %+v in %v", w, s)
}

// verdictFault returns an error if a verdict violates the general rules.
func verdictFault(v detector.Verdict) error {
	var errs []error
	wrong := func(bad bool, what string) {
		if bad {
			errs = append(errs, errors.New(what))
		}
	}
	gates := []detector.Gate{detector.Leak, detector.Pass, detector.Settled, detector.Inconclusive}
	wrong(!slices.Contains(gates, v.Gate), "gate")
	wrong(v.State > detector.Leaking || v.Worst < v.State, "states")
	wrong(v.Because == "", "no reason")
	wrong(v.Gate == detector.Pass && !(v.MinDetectable > 0), "passes without a detection limit")
	numbers := []float64{v.Rate, v.RateLow, v.RateHigh, v.MinDetectable}
	for _, e := range v.Evidence {
		numbers = append(numbers, e.Value)
	}
	sum := 0.0
	for i, s := range v.Shares {
		numbers = append(numbers, s.Rate, s.Share)
		sum += s.Share
		wrong(s.Growth <= 0 || i > 0 && s.Growth > v.Shares[i-1].Growth, "order of shares")
		wrong(v.Duration > 0 && v.Restarts == 0 && float64(s.Growth) > s.Rate*(v.Duration+3*time.Minute).Hours()+1,
			"share that grew for longer than the process was watched")
	}
	wrong(len(v.Shares) > 0 && math.Abs(sum-1) > 1e-9, "sum of shares")
	wrong(slices.ContainsFunc(numbers, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }),
		"number not finite")
	wrong(v.RateKnown && !(v.RateLow <= v.Rate && v.Rate <= v.RateHigh), "interval")
	wrong(!v.RateKnown && v.Gate != detector.Inconclusive && !strings.Contains(v.Because, "out-of-memory deaths"),
		"no rate")
	wrong(v.MinDetectable < 0 || v.Duration < 0 || v.Samples < 0, "negative")
	wrong(len(v.Jumps) > 16 || slices.ContainsFunc(v.Jumps, func(j detector.Jump) bool { return j.Bytes <= 0 }),
		"jumps")
	wrong(v.FirstLeaking.Known != (v.Worst == detector.Leaking) ||
		v.FirstSuspicious.Known != (v.Worst > detector.Normal), "first times")
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %+v", errors.Join(errs...), v)
}

// clearScenarios are runs of 8 h with a clear result.
var clearScenarios = []struct {
	scenario.Scenario
	gate detector.Gate
	kind detector.LeakKind
}{
	{scenario.Scenario{Name: "flat", Sigma: 5}, detector.Pass, detector.None},
	{scenario.Scenario{Name: "flat, correlated", Sigma: 20, Rho: 0.7}, detector.Pass, detector.None},
	{scenario.Scenario{Name: "launch", Sigma: 5, Rho: 0.7, Warm: 120, WarmTau: 6}, detector.Pass, detector.None},
	{scenario.Scenario{Name: "sawtooth", Sigma: 5, Saw: 40, SawPeriod: 3}, detector.Pass, detector.None},
	{scenario.Scenario{Name: "load", Sigma: 5, Wave: 60, WavePeriod: 20}, detector.Pass, detector.None},
	{scenario.Scenario{Name: "java", Sigma: 5, Rho: 0.7, Leak: 100}, detector.Leak, detector.Java},
	{scenario.Scenario{Name: "native", Sigma: 20, Rho: 0.7, Leak: 300, LeakDim: scenario.Native}, detector.Leak,
		detector.Native},
	{scenario.Scenario{Name: "graphics", Sigma: 5, Rho: 0.7, Leak: 100, LeakDim: scenario.Graphics}, detector.Leak,
		detector.GPU},
	{scenario.Scenario{Name: "stack", Sigma: 5, Leak: 100, LeakDim: scenario.Stack}, detector.Leak, detector.Thread},
	{scenario.Scenario{
		Name: "launch and leak", Sigma: 5, Rho: 0.7, Leak: 100, Warm: 120, WarmTau: 6, Saw: 40, SawPeriod: 4,
	}, detector.Leak, detector.Java},
}

// TestGateOfClearRuns checks the gate, the kind and the numbers at the end.
func TestGateOfClearRuns(t *testing.T) {
	for _, c := range clearScenarios {
		c.Hours = 8
		for seed := range uint64(8) {
			d, _ := watched(c.Scenario, seed, asThree)
			v := d.Verdict()
			if err := verdictFault(v); err != nil {
				t.Errorf("%s, seed %d: %v", c.Name, seed, err)
			}
			if v.Gate != c.gate || c.gate == detector.Leak && v.Kind != c.kind || len(v.Warnings) > 0 ||
				v.Restarts != 0 {
				t.Errorf("%s, seed %d: %v %v, want %v %v: %s %v", c.Name, seed, v.Gate, v.Kind, c.gate, c.kind,
					v.Because, v.Warnings)
			}
			if v.Duration < 8*time.Hour-2*time.Minute || v.Duration > 8*time.Hour || v.Samples < 450 ||
				v.Samples > 1921 {
				t.Errorf("%s, seed %d: %d samples in %v", c.Name, seed, v.Samples, v.Duration)
			}
			if c.gate == detector.Leak {
				leakNumbers(t, c.Scenario, seed, v)
			}
		}
	}
}

// leakNumbers compares the numbers of a leak with the truth.
func leakNumbers(t *testing.T, s scenario.Scenario, seed uint64, v detector.Verdict) {
	t.Helper()
	if rate := v.Rate / detector.MB; math.Abs(rate-s.Leak) > 0.15*s.Leak {
		t.Errorf("%s, seed %d: %.0f MB/h", s.Name, seed, rate)
	}
	grown := s.Leak * 7.75 * detector.MB
	if math.Abs(float64(v.Growth)-grown) > 0.2*grown {
		t.Errorf("%s, seed %d: grew %d", s.Name, seed, v.Growth)
	}
	if len(v.Shares) == 0 || v.Shares[0].Share < 0.6 || v.Shares[0].Rate < 0.7*s.Leak*detector.MB {
		t.Errorf("%s, seed %d: shares %+v", s.Name, seed, v.Shares)
	}
	if v.MinDetectable <= 0 || v.MinDetectable > v.Rate || len(v.Evidence) == 0 {
		t.Errorf("%s, seed %d: detectable %.1f MB/h, evidence %v", s.Name, seed, v.MinDetectable/detector.MB,
			v.Evidence)
	}
	for _, word := range []string{"MB/h", "95 % interval", "since", "growth: "} {
		if !strings.Contains(v.Because, word) {
			t.Errorf("%s, seed %d: %q without %q", s.Name, seed, v.Because, word)
		}
	}
}

// TestRateInterval checks that the interval contains the true rate nearly as
// often as stated. The skipped first tenth, and noise that is more correlated
// than measured, make the interval contain the true rate slightly less often.
func TestRateInterval(t *testing.T) {
	const runs = 150
	held := 0
	for seed := range uint64(runs) {
		s := scenario.Scenario{Hours: 4, Sigma: 10, Rho: 0.7, Leak: 20 + float64(seed)}
		d, _ := watched(s, seed, asThree)
		if v := d.Verdict(); v.RateLow <= s.Leak*detector.MB && s.Leak*detector.MB <= v.RateHigh {
			held++
		}
	}
	if held < runs*88/100 || held == runs {
		t.Errorf("%d of %d intervals contain the rate", held, runs)
	}
}

// TestTransitionsOfALeak checks each state on the way to LEAKING, with its
// demand.
func TestTransitionsOfALeak(t *testing.T) {
	for seed := range uint64(20) {
		s := scenario.Scenario{Hours: 2, Sigma: 5, Rho: 0.7, Leak: 600, LeakDim: scenario.Native}
		p := s.Simulate(rand.New(rand.NewPCG(seed, 78)))
		d := detector.New(detector.RobustPolicy())
		w := scenario.NewWatch(p, d, scenario.Conditions{}, nil)
		var words []string
		state, seen, extra := detector.Normal, 0, 0
		for i := range p.Len() {
			w.Until(i + 1)
			for _, step := range w.Steps()[seen:] {
				if err := arrowFault(step, state); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				state = step.To
				words = append(words, state.String())
				if d.Verdict().State != state || d.Verdict().Worst < state {
					t.Fatalf("seed %d: verdict %v %v in %v", seed, d.Verdict().State, d.Verdict().Worst, state)
				}
				if step.At%(5*time.Minute) != 0 || state == detector.Leaking && step.At < 25*time.Minute {
					t.Errorf("seed %d: %v at %v", seed, state, step.At)
				}
			}
			seen = len(w.Steps())
			want := d.Demand()
			if err := demandFault(want, state); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if state == detector.Confirming {
				extra = max(extra, want.Breakdowns)
			}
			if state == detector.Leaking && want.Diagnose != detector.Native {
				t.Fatalf("seed %d: demands %v", seed, want.Diagnose)
			}
		}
		// A failed look restarts the count. A breakdown that arrives with the
		// second look counts.
		if got := strings.Join(words, " "); !strings.HasSuffix(got, "SUSPICIOUS CONFIRMING LEAKING") || extra < 2 ||
			extra > 3 {
			t.Errorf("seed %d: %s, %d breakdowns", seed, got, extra)
		}
		end := bootTime + 2*time.Hour
		if steps := d.DiagnosisFinished(end); len(steps) != 0 || d.Demand().Diagnose != detector.None ||
			d.Demand().Interval != time.Minute {
			t.Errorf("seed %d: steps %v and demand %+v after the diagnosis", seed, steps, d.Demand())
		}
		if v := d.Verdict(); v.State != detector.Leaking || v.Gate != detector.Leak {
			t.Errorf("seed %d: state %v, gate %v after the diagnosis", seed, v.State, v.Gate)
		}
	}
}

// TestExtraBreakdownsRunOut checks that exactly three extra breakdowns are
// requested.
func TestExtraBreakdownsRunOut(t *testing.T) {
	d := detector.New(detector.RobustPolicy())
	at := bootTime
	next := func() detector.State {
		d.AddSample(detector.Sample{At: at, Bytes: 200*detector.MB + int64(at.Hours()*600*detector.MB)})
		at += 15 * time.Second
		return d.Verdict().State
	}
	for next() != detector.Confirming {
		if at > bootTime+time.Hour {
			t.Fatal("never CONFIRMING")
		}
	}
	for want := 3; want >= 0; want-- {
		got := d.Demand()
		if got.Breakdowns != want || want > 0 && got.Spacing <= 0 || got.Interval != 15*time.Second {
			t.Errorf("demand %+v, want %d breakdowns", got, want)
		}
		d.AddBreakdown(wholeReading(at, 200))
		at += time.Second
	}
}

// wholeReading returns a reading with all values; mb is spread over the
// dimensions.
func wholeReading(at time.Duration, mb int64) detector.Breakdown {
	b := detector.Breakdown{
		At: at, EGL: known.Of(mb / 10 * detector.MB), GL: known.Of(0), OtherMtrack: known.Of(0), GfxDev: known.Of(0),
	}
	for d := range b.Dim {
		b.Dim[d] = known.Of(mb / 10 * detector.MB)
	}
	b.Dim[detector.Total] = known.Of(mb * detector.MB)
	return b
}

// TestTransitionsAreInDiagram checks that, whatever a process does, its
// transitions are in the diagram, the worst state never improves and LEAKING
// needs a series of 25 minutes.
func TestTransitionsAreInDiagram(t *testing.T) {
	counts := map[string]int{}
	dies := night(t, "OOM at 512 MB, app, 1200 MB/h").Draw(rand.New(rand.NewPCG(4, 79)))
	for _, s := range slices.Concat(scenario.Null(4), scenario.Shapes(4), scenario.Leaks(0, 2),
		[]scenario.Scenario{dies}) {
		p := s.Simulate(rand.New(rand.NewPCG(3, 79)))
		d := detector.New(detector.RobustPolicy())
		w := scenario.NewWatch(p, d, asThree, nil)
		state, worst, seen := detector.Normal, detector.Normal, 0
		for i := 0; i <= p.Len(); i += 20 {
			w.Until(i)
			for _, step := range w.Steps()[seen:] {
				if err := arrowFault(step, state); err != nil {
					t.Errorf("%s: %v", s.Name, err)
				}
				if step.Rule == "third look" && step.At < 25*time.Minute {
					t.Errorf("%s: LEAKING after %v", s.Name, step.At)
				}
				state = step.To
				counts[step.Rule]++
				worst = max(worst, state)
			}
			seen = len(w.Steps())
			if err := demandFault(d.Demand(), state); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			if i%480 != 0 {
				continue
			}
			v := d.Verdict()
			if err := verdictFault(v); err != nil || v.State != state || v.Worst != worst {
				t.Errorf("%s at %d: %v %v, want %v %v: %v", s.Name, i, v.State, v.Worst, state, worst, err)
			}
		}
	}
	for rule := range robustArrows {
		if counts[rule] < 3 {
			t.Errorf("only %d steps by rule %q, want at least 3", counts[rule], rule)
		}
	}
}

// TestEvidenceFades checks that a process that stops growing goes back to
// NORMAL, and that its evidence is reported.
func TestEvidenceFades(t *testing.T) {
	for seed := range uint64(15) {
		s := scenario.Scenario{Hours: 6, Sigma: 5, Rho: 0.7, Leak: 300, LeakEnd: 60}
		d, steps := watched(s, seed, asThree)
		v := d.Verdict()
		last := steps[len(steps)-1]
		if v.State != detector.Normal || v.Worst != detector.Leaking || v.Gate != detector.Settled {
			t.Errorf("seed %d: %v %v %v", seed, v.State, v.Worst, v.Gate)
		}
		if last.Rule != "no evidence" || last.Kind != detector.None || last.At < time.Hour {
			t.Errorf("seed %d: last step %+v", seed, last)
		}
		if !strings.ContainsFunc(v.Because, unicode.IsDigit) || v.FirstLeaking.N < bootTime+25*time.Minute ||
			v.FirstSuspicious.N >= v.FirstLeaking.N {
			t.Errorf("seed %d: %q %v %v", seed, v.Because, v.FirstSuspicious, v.FirstLeaking)
		}
		if d.Demand() != (detector.Demand{Interval: 30 * time.Second}) {
			t.Errorf("seed %d: demand %+v", seed, d.Demand())
		}
	}
}

// leaker is a process that leaks 600 MB/h; the test itself adds its samples.
type leaker struct {
	d     *detector.Detector
	at    time.Duration
	seen  int
	steps []detector.Transition
}

func newLeaker() *leaker {
	return &leaker{d: detector.New(detector.RobustPolicy()), at: bootTime}
}

// grow adds samples for the given time: one sample every 30 s and a breakdown
// every 90 s.
func (l *leaker) grow(d time.Duration) []detector.Transition {
	seen := len(l.steps)
	for end := l.at + d; l.at < end; l.at += 30 * time.Second {
		mb := 200 + l.at.Hours()*600
		b := wholeReading(l.at, 200)
		b.Dim[detector.JavaHeap] = known.Of(int64(mb * detector.MB))
		if l.seen++; l.seen%3 == 1 {
			l.steps = append(l.steps, l.d.AddBreakdown(b)...)
		}
		l.steps = append(l.steps, l.d.AddSample(detector.Sample{At: l.at, Bytes: int64(mb * detector.MB)})...)
	}
	return l.steps[seen:]
}

// TestBreaks checks that a restart, a change of the quantity or a long gap
// changes any state to NORMAL and states the reason. The new series needs 25
// minutes again.
func TestBreaks(t *testing.T) {
	breaks := map[string]struct {
		do   func(l *leaker) []detector.Transition
		want string
	}{
		"restart": {func(l *leaker) []detector.Transition { return l.d.Restart(l.at) }, "restarted"},
		"change of quantity": {
			func(l *leaker) []detector.Transition { return l.d.ChangeQuantity(l.at) }, "measured differently",
		},
		"gap": {func(l *leaker) []detector.Transition {
			l.at += time.Hour
			steps := l.d.Gap(l.at)
			return append(steps, l.grow(30*time.Second)...)
		}, "60 min"},
	}
	for name, b := range breaks {
		for minutes, state := range map[int]detector.State{
			10: detector.Normal, 16: detector.Suspicious, 21: detector.Confirming, 26: detector.Leaking,
		} {
			l := newLeaker()
			l.grow(time.Duration(minutes) * time.Minute)
			if v := l.d.Verdict(); v.State != state || v.Worst != state {
				t.Fatalf("%v %v after %d min, want %v", v.State, v.Worst, minutes, state)
			}
			steps := b.do(l)
			begin := l.at
			if state == detector.Normal {
				if len(steps) != 0 {
					t.Errorf("%s in NORMAL: %v", name, steps)
				}
			} else if len(steps) != 1 || steps[0].Rule != "break" || steps[0].To != detector.Normal ||
				!strings.Contains(steps[0].Because, b.want) {
				t.Errorf("%s in %v: %+v, want %q", name, state, steps, b.want)
			}
			v := l.d.Verdict()
			if v.State != detector.Normal || v.Worst != state || l.d.Demand().Diagnose != detector.None ||
				l.d.Demand().Breakdowns != 0 {
				t.Errorf("%s in %v: %v %v, demand %+v", name, state, v.State, v.Worst, l.d.Demand())
			}
			if (v.Restarts == 1) != (name == "restart") {
				t.Errorf("%s: %d restarts", name, v.Restarts)
			}
			if warned := strings.Contains(warningText(v), "nothing was measured"); warned != (name == "gap") {
				t.Errorf("%s: warnings %v", name, v.Warnings)
			}
			steps = l.grow(40 * time.Minute)
			third := slices.IndexFunc(steps, func(s detector.Transition) bool { return s.To == detector.Leaking })
			if third < 0 || steps[third].At < begin+24*time.Minute {
				t.Errorf("%s in %v: then %+v", name, state, steps)
			}
		}
	}
}

func warningText(v detector.Verdict) string {
	if err := errors.Join(v.Warnings...); err != nil {
		return err.Error()
	}
	return ""
}

// TestCooldown checks that a second leak within 30 min of a diagnosis is
// reported, without requesting a second diagnosis.
func TestCooldown(t *testing.T) {
	// The second leak leads to LEAKING 25 min after the restart.
	for rest, want := range map[time.Duration]detector.LeakKind{
		0: detector.None, 4 * time.Minute: detector.None, 6 * time.Minute: detector.Java,
		20 * time.Minute: detector.Java,
	} {
		l := newLeaker()
		l.grow(26 * time.Minute)
		if l.d.Demand().Diagnose != detector.Java {
			t.Fatalf("demands %v", l.d.Demand().Diagnose)
		}
		l.d.DiagnosisFinished(l.at)
		l.grow(rest)
		if l.d.Demand().Diagnose != detector.None {
			t.Errorf("%v after the diagnosis: demands %v, want none", rest, l.d.Demand().Diagnose)
		}
		l.d.Restart(l.at)
		steps := l.grow(26 * time.Minute)
		last := steps[len(steps)-1]
		if last.To != detector.Leaking || last.Kind != detector.Java || l.d.Demand().Diagnose != want {
			t.Errorf("%v after the diagnosis: %+v, demands %v", rest, last, l.d.Demand().Diagnose)
		}
		if said := strings.Contains(last.Because, "no diagnosis"); said != (want == detector.None) {
			t.Errorf("%v after the diagnosis: %q", rest, last.Because)
		}
	}
}

// TestRestartOfTheClock checks that the age of the last diagnosis is unknown
// after a reboot.
func TestRestartOfTheClock(t *testing.T) {
	l := newLeaker()
	l.grow(26 * time.Minute)
	l.d.DiagnosisFinished(l.at)
	l.at = 10 * time.Second
	if steps := l.d.Restart(l.at); len(steps) != 1 || steps[0].At != l.at {
		t.Errorf("%+v", steps)
	}
	l.grow(26 * time.Minute)
	v := l.d.Verdict()
	if v.State != detector.Leaking || l.d.Demand().Diagnose != detector.Java || len(v.Warnings) != 0 {
		t.Errorf("%v, demands %v, %v", v.State, l.d.Demand().Diagnose, v.Warnings)
	}
}

// TestGaps checks that a gap within MaxGap changes no verdict, and that a
// longer one ends the stretch.
func TestGaps(t *testing.T) {
	for _, c := range clearScenarios {
		c.Hours = 6
		for seed := range uint64(4) {
			for _, gap := range []struct {
				from, minutes float64
			}{{20, 10}, {100, 10}, {200, 29}, {340, 10}, {100, 44}, {100, 60}} {
				s := c.Scenario
				s.Gaps = []scenario.Gap{{From: gap.from, To: gap.from + gap.minutes}}
				d, steps := watched(s, seed, asThree)
				v := d.Verdict()
				if v.Gate != c.gate || c.gate == detector.Leak && v.Kind != c.kind {
					t.Errorf("%s, seed %d, %.0f min from %.0f: %v %v, want %v %v: %s", c.Name, seed, gap.minutes,
						gap.from, v.Gate, v.Kind, c.gate, c.kind, v.Because)
				}
				long := gap.minutes > 45
				if strings.Contains(warningText(v), "nothing was measured for more than 45 min") != long {
					t.Errorf("%s, seed %d, %.0f min: %v", c.Name, seed, gap.minutes, v.Warnings)
				}
				broke := slices.ContainsFunc(steps, func(s detector.Transition) bool { return s.Rule == "break" })
				if broke && !long || !broke && long && c.gate == detector.Leak {
					t.Errorf("%s, seed %d, %.0f min: %+v", c.Name, seed, gap.minutes, steps)
				}
			}
		}
	}
}

// TestGapIsNoEvidence checks that a process that grows in a straight line
// before and after a gap does not return to a lower state.
func TestGapIsNoEvidence(t *testing.T) {
	for _, minutes := range []int{5, 10, 20, 29} {
		for _, from := range []int{16, 17, 21, 22, 26, 60, 61} {
			l := newLeaker()
			l.grow(time.Duration(from) * time.Minute)
			state := l.d.Verdict().State
			l.at += time.Duration(minutes) * time.Minute
			for _, step := range l.grow(40 * time.Minute) {
				if step.To == detector.Normal {
					t.Errorf("gap of %d min from minute %d on in state %v: got step %+v, want no return to NORMAL",
						minutes, from, state, step)
				}
			}
		}
	}
}

// TestMaxGap checks that the limit that the user sets is used.
func TestMaxGap(t *testing.T) {
	for _, bound := range []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		for _, over := range []time.Duration{0, time.Minute} {
			p := detector.RobustPolicy()
			p.MaxGap = bound
			l := newLeaker()
			l.d = detector.New(p)
			l.grow(26 * time.Minute)
			l.at += bound + over - 30*time.Second // grow leaves the clock 30 s after its last sample
			l.grow(time.Minute)
			if broke := len(l.d.Verdict().Warnings) > 0; broke != (over > 0) {
				t.Errorf("gap of %v with a limit of %v: warned %v, steps %+v", bound+over, bound, broke, l.steps)
			}
		}
	}
}

// TestTooShort checks that less than half an hour is not judged, however much
// memory grows.
func TestTooShort(t *testing.T) {
	short := []scenario.Scenario{
		{Name: "flat", Sigma: 5},
		{Name: "fast leak", Sigma: 5, Leak: 2000},
		{Name: "launch", Sigma: 5, Rho: 0.7, Warm: 300, WarmTau: 2},
		{Name: "linear launch", Sigma: 5, Cache: 400, CacheTime: 30},
		{Name: "leak", Sigma: 5, Leak: 600},
	}
	for _, s := range short {
		for _, minutes := range []float64{1, 4, 8, 15, 28.5} {
			s.Hours = minutes / 60
			for seed := range uint64(5) {
				d, _ := watched(s, seed, asThree)
				v := d.Verdict()
				if err := verdictFault(v); err != nil {
					t.Errorf("%s, %g min: %v", s.Name, minutes, err)
				}
				if v.Gate != detector.Inconclusive || !strings.Contains(v.Because, "a trend needs 30 min") {
					t.Errorf("%s, %g min, seed %d: %v: %s", s.Name, minutes, seed, v.Gate, v.Because)
				}
			}
		}
	}
	d, _ := watched(scenario.Scenario{Hours: 31.0 / 60, Sigma: 5}, 1, asThree)
	if v := d.Verdict(); v.Gate != detector.Pass {
		t.Errorf("flat for 31 min: %v: %s", v.Gate, v.Because)
	}
}

// TestUndecided checks that a cache that is still filling is not distinguished
// from a leak, and that the message states how long a run must be to decide.
// One cache in ten happens to fill more slowly at its end.
func TestUndecided(t *testing.T) {
	const runs = 60
	undecided := 0
	for seed := range uint64(runs) {
		s := scenario.Scenario{Hours: 1, Sigma: 5, Rho: 0.7, Cache: 200, CacheTime: 180}
		d, _ := watched(s, seed, asThree)
		v := d.Verdict()
		if v.Gate == detector.Leak || v.Gate == detector.Pass || !v.RateKnown || v.Growth < 20*detector.MB {
			t.Errorf("seed %d: %v, grew %d: %s", seed, v.Gate, v.Growth, v.Because)
		}
		if v.Gate != detector.Inconclusive {
			continue
		}
		undecided++
		if !strings.Contains(v.Because, "run for ") || !strings.Contains(v.Because, "--base") {
			t.Errorf("seed %d: %s %v", seed, v.Because, v.Warnings)
		}
	}
	if undecided < runs*8/10 {
		t.Errorf("%d of %d undecided", undecided, runs)
	}
}

// TestEndsInTheMiddle checks that the verdict on a run that ends in CONFIRMING
// or LEAKING is leak or inconclusive.
func TestEndsInTheMiddle(t *testing.T) {
	seen := map[string]int{}
	for i, s := range slices.Concat(scenario.Null(4), scenario.Shapes(4), scenario.Leaks(120, 4)) {
		p := s.Simulate(rand.New(rand.NewPCG(uint64(i), 83)))
		d := detector.New(detector.RobustPolicy())
		w := scenario.NewWatch(p, d, asThree, nil)
		for point := 140; point <= p.Len(); point += 20 {
			w.Until(point)
			v := d.Verdict()
			if err := verdictFault(v); err != nil {
				t.Fatalf("%s at %d: %v", s.Name, point, err)
			}
			if v.State < detector.Confirming {
				continue
			}
			seen[v.State.String()+" "+string(v.Gate)]++
			if v.Gate != detector.Leak && v.Gate != detector.Inconclusive {
				t.Errorf("%s at %d: %v %v: %s", s.Name, point, v.State, v.Gate, v.Because)
			}
		}
	}
	for _, word := range []string{
		"CONFIRMING leak", "CONFIRMING inconclusive", "LEAKING leak", "LEAKING inconclusive",
	} {
		if seen[word] < 5 {
			t.Errorf("%q only %d times", word, seen[word])
		}
	}
}

// TestSettled checks that growth that stopped is reported with its numbers.
func TestSettled(t *testing.T) {
	for _, tt := range []struct {
		scenario.Scenario
		want string
	}{
		{scenario.Scenario{Name: "step", Sigma: 5, Steps: []scenario.Jump{{At: 120, MB: 80}}}, "settled: flat since"},
		{scenario.Scenario{Name: "cache", Sigma: 5, Rho: 0.7, Cache: 100, CacheTime: 180}, "settled"},
		{scenario.Scenario{Name: "jump", Sigma: 5, Steps: []scenario.Jump{{At: 120, MB: 300}}}, "jumped"},
		{scenario.Scenario{Name: "ending leak", Sigma: 5, Leak: 200, LeakEnd: 120}, "was LEAKING"},
	} {
		tt.Hours = 8
		for seed := range uint64(6) {
			d, _ := watched(tt.Scenario, seed, asThree)
			v := d.Verdict()
			if v.Gate != detector.Settled || !strings.Contains(v.Because, tt.want) ||
				!strings.Contains(v.Because, " MB") || v.Growth <= 0 {
				t.Errorf("%s, seed %d: %v: %s", tt.Name, seed, v.Gate, v.Because)
			}
			if (len(v.Jumps) == 1) != (tt.want == "jumped") || len(v.Jumps) == 1 &&
				(!v.Jumps[0].Stayed || v.Jumps[0].Bytes < 280*detector.MB) {
				t.Errorf("%s, seed %d: jumps %+v", tt.Name, seed, v.Jumps)
			}
		}
	}
}

// TestHiddenLeak checks that a dimension that leaks is found while the kernel
// reclaims as much memory elsewhere.
func TestHiddenLeak(t *testing.T) {
	for dim, kind := range map[scenario.Dim]detector.LeakKind{
		scenario.Java: detector.Java, scenario.Native: detector.Native, scenario.Graphics: detector.GPU,
		scenario.Stack: detector.Thread,
	} {
		for seed := range uint64(5) {
			s := scenario.Scenario{Hours: 8, Sigma: 5, Rho: 0.7, Leak: 80, LeakDim: dim, Trimmed: 90}
			d, _ := watched(s, seed, asThree)
			v := d.Verdict()
			if v.Gate != detector.Leak || v.Kind != kind || v.Worst != detector.Leaking ||
				!strings.Contains(v.Because, "hidden") {
				t.Errorf("%v, seed %d: %v %v %v: %s", kind, seed, v.Gate, v.Kind, v.Worst, v.Because)
			}
			if math.Abs(v.Rate/detector.MB-80) > 8 {
				t.Errorf("%v, seed %d: %.0f MB/h", kind, seed, v.Rate/detector.MB)
			}
		}
	}
}

// TestNoFalseGPULeak checks that two equal measurements of graphics memory, or
// memory that moves to swap, are not a leak of graphics memory.
func TestNoFalseGPULeak(t *testing.T) {
	type change func(x *seen)
	// All memory is in smaps, and graphics memory does not change.
	equal := func(x *seen) {
		b := &x.breakdown
		b.Dim[detector.Total].N -= b.Dim[detector.Graphics].N
		b.Dim[detector.Graphics], b.EGL = known.Of(0), known.Of(0)
	}
	absent := func(x *seen) {
		equal(x)
		x.breakdown.EGL, x.breakdown.GL, x.breakdown.GfxDev = detector.Amount{}, detector.Amount{}, detector.Amount{}
	}
	// Heaps are swapped out at 60 MB/h. dumpsys counts swapped memory under
	// System. The sample is the sum of both.
	swapped := func(x *seen) {
		gone := int64((x.breakdown.At - bootTime).Hours() * 60 * detector.MB)
		gone = min(gone, x.breakdown.Dim[detector.NativeHeap].N)
		x.breakdown.Dim[detector.NativeHeap].N -= gone
		x.breakdown.Dim[detector.System].N += gone
	}
	for name, c := range map[string]change{"equal": equal, "absent": absent, "swap": swapped} {
		for i, s := range append(scenario.Null(8), scenario.Leaks(0, 4)...) {
			d, steps := playInputs(written(s, uint64(i)), c)
			v := d.Verdict()
			if v.Kind == detector.GPU ||
				slices.ContainsFunc(steps, func(s detector.Transition) bool { return s.Kind == detector.GPU }) {
				t.Errorf("%s, %s: %v: %s", name, s.Name, v.Kind, v.Because)
			}
			if blind := strings.Contains(warningText(v), "graphics memory"); blind != (name != "swap") {
				t.Errorf("%s, %s: %v", name, s.Name, v.Warnings)
			}
		}
		for i, s := range scenario.Noise(8)[:4] {
			d, _ := playInputs(written(s, uint64(i)), c)
			if v := d.Verdict(); v.Gate != detector.Pass {
				t.Errorf("%s, %s: %v: %s", name, s.Name, v.Gate, v.Because)
			}
		}
	}
}

// TestNoBreakdowns checks that the gate does not need breakdowns, although the
// kind does.
func TestNoBreakdowns(t *testing.T) {
	for seed := range uint64(5) {
		for _, rate := range []float64{0, 100} {
			s := scenario.Scenario{Hours: 6, Sigma: 5, Rho: 0.7, Leak: rate}
			d, _ := watched(s, seed, scenario.Conditions{NoBreakdowns: true})
			v := d.Verdict()
			want, kind := detector.Pass, detector.None
			if rate > 0 {
				want, kind = detector.Leak, detector.Unknown
			}
			if v.Gate != want || v.Kind != kind || len(v.Shares) != 0 ||
				!strings.Contains(warningText(v), "no breakdowns arrived") {
				t.Errorf("%g MB/h, seed %d: %v %v %v", rate, seed, v.Gate, v.Kind, v.Warnings)
			}
		}
	}
}

// TestStretches checks the verdict on a run that was interrupted.
func TestStretches(t *testing.T) {
	flat := scenario.Scenario{Sigma: 5, Rho: 0.7}
	leak := scenario.Scenario{Sigma: 5, Rho: 0.7, Leak: 300}
	step := scenario.Scenario{Sigma: 5, Rho: 0.7, Steps: []scenario.Jump{{At: 60, MB: 80}}}
	type part struct {
		scenario.Scenario
		hours float64
	}
	tests := map[string]struct {
		parts []part
		want  detector.Gate
	}{
		"leak, then flat":         {[]part{{leak, 3}, {flat, 3}}, detector.Leak},
		"leak, then nothing":      {[]part{{leak, 3}, {flat, 0}}, detector.Leak},
		"flat, then leak":         {[]part{{flat, 3}, {leak, 3}}, detector.Leak},
		"flat, then nothing":      {[]part{{flat, 3}, {flat, 0}}, detector.Pass},
		"flat, then short":        {[]part{{flat, 3}, {flat, 0.2}}, detector.Pass},
		"short, then flat":        {[]part{{flat, 0.2}, {flat, 3}}, detector.Pass},
		"only short parts":        {[]part{{flat, 0.3}, {flat, 0.3}, {flat, 0.3}, {flat, 0.3}}, detector.Inconclusive},
		"step, then flat":         {[]part{{step, 4}, {flat, 3}}, detector.Settled},
		"leak between flat parts": {[]part{{flat, 2}, {leak, 3}, {flat, 2}, {flat, 0.1}}, detector.Leak},
		"flat, then short leak": {
			[]part{{flat, 3}, {scenario.Scenario{Sigma: 5, Rho: 0.7, Leak: 120}, 0.9}}, detector.Inconclusive,
		},
		"leak, then short cache": {
			[]part{{leak, 3}, {scenario.Scenario{Sigma: 5, Rho: 0.7, Leak: 120}, 0.9}}, detector.Leak,
		},
	}
	for name, tt := range tests {
		for seed := range uint64(4) {
			d := detector.New(detector.RobustPolicy())
			begin := time.Duration(0)
			r := rand.New(rand.NewPCG(seed, 84))
			for i, part := range tt.parts {
				if i > 0 {
					d.Restart(bootTime + begin)
				}
				part.Hours = part.hours
				p := part.Simulate(r)
				for k := 0; k < p.Len() && part.hours > 0; k += 2 {
					b, s := p.Breakdown(k), p.Sample(k)
					b.At, s.At = b.At+begin, s.At+begin
					if k%6 == 0 {
						d.AddBreakdown(b)
					}
					d.AddSample(s)
				}
				begin += time.Duration(part.hours*float64(time.Hour)) + time.Minute
			}
			v := d.Verdict()
			if err := verdictFault(v); err != nil {
				t.Errorf("%s, seed %d: %v", name, seed, err)
			}
			if v.Gate != tt.want || v.Restarts != len(tt.parts)-1 {
				t.Errorf("%s, seed %d: %v after %d restarts, want %v: %s", name, seed, v.Gate, v.Restarts, tt.want,
					v.Because)
			}
			if v.Gate == detector.Leak && (v.Kind != detector.Java || math.Abs(v.Rate/detector.MB-300) > 30) {
				t.Errorf("%s, seed %d: %v, %.0f MB/h", name, seed, v.Kind, v.Rate/detector.MB)
			}
		}
	}
}

// TestSetFamilySize checks that a larger family never causes an additional
// alarm.
func TestSetFamilySize(t *testing.T) {
	alone, together := 0, 0
	for i, s := range slices.Concat(lively(8), scenario.Leaks(0, 2)) {
		for seed := range uint64(2) {
			list := written(s, uint64(i)<<8+seed)
			gates := map[int]detector.Gate{}
			for _, n := range []int{-1, 1, 100} {
				d := detector.New(detector.RobustPolicy())
				d.SetFamilySize(n)
				for _, x := range list {
					x.to(d)
				}
				gates[n] = d.Verdict().Gate
			}
			if gates[100] == detector.Leak && gates[1] != detector.Leak || gates[-1] != gates[1] {
				t.Errorf("%s, seed %d: %v", s.Name, seed, gates)
			}
			if gates[1] == detector.Leak {
				alone++
			}
			if gates[100] == detector.Leak {
				together++
			}
		}
	}
	if together >= alone || together < alone*3/4 {
		t.Errorf("%d leaks found for a single process, %d in a family of 100", alone, together)
	}
}

// TestOnLook checks that looks are reported as they happen, and that reporting
// them does not change the verdict.
func TestOnLook(t *testing.T) {
	series := []string{"memory", "Java Heap", "Native Heap", "Graphics", "Stack"}
	hidden := scenario.Scenario{
		Name: "ending hidden leak", Hours: 5, Sigma: 5, Rho: 0.7, Leak: 80, LeakEnd: 150, Trimmed: 90,
	}
	for i, s := range append(lively(4), hidden) {
		list := written(s, uint64(i))
		d, want := playInputs(list, nil)
		observed := detector.New(detector.RobustPolicy())
		var looks []detector.Look
		observed.OnLook(func(l detector.Look) { looks = append(looks, l) })
		var steps []detector.Transition
		for _, x := range list {
			steps = append(steps, x.to(observed)...)
		}
		if !slices.Equal(steps, want) || fmt.Sprint(observed.Verdict()) != fmt.Sprint(d.Verdict()) {
			t.Errorf("%s: %v, want %v", s.Name, steps, want)
		}
		moments := map[time.Duration]bool{}
		fired := map[time.Duration]bool{}
		for _, l := range looks {
			if !slices.Contains(series, l.Series) || !strings.HasPrefix(l.Text, l.Series) ||
				l.Fired != strings.Contains(l.Text, "shows a leak") || (l.At-bootTime)%(5*time.Minute) != 0 &&
				len(s.Gaps) == 0 {
				t.Errorf("%s: %+v", s.Name, l)
			}
			moments[l.At], fired[l.At] = true, fired[l.At] || l.Fired
		}
		if len(moments) < 40 {
			t.Errorf("%s: got looks at %d points in time, want at least 40", s.Name, len(moments))
		}
		for _, step := range steps {
			if strings.HasSuffix(step.Rule, " look") && !fired[step.At] {
				t.Errorf("%s: no look fired for %+v", s.Name, step)
			}
			// The numbers of a transition are those of the look that caused it;
			// slower growth afterwards becomes known only later.
			seen := func(l detector.Look) bool {
				return l.At == step.At && strings.HasPrefix(step.Because, strings.TrimSuffix(l.Text, "shows a leak"))
			}
			if step.Rule != "jump" && step.Rule != "break" && !slices.ContainsFunc(looks, seen) {
				t.Errorf("%s: no look matches the time and numbers of step %+v", s.Name, step)
			}
		}
	}
}
