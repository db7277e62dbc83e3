package detector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// player adds the readings of an invented process to a machine, one at a time,
// with noise of plus or minus 1 MB.
type player struct {
	d     *Detector
	t     time.Duration
	level float64
	n     int
	java  float64
	climb float64
	steps []Transition
}

// play returns a player that starts after an hour of uptime with 260 MB.
func play(change func(*articleRules)) *player {
	return &player{d: articleDetector(change), t: time.Hour, level: 260, java: 60}
}

// articleDetector returns a detector of policy "article" with changed
// constants.
func articleDetector(change func(*articleRules)) *Detector {
	d := New(ArticlePolicy())
	if change != nil {
		change(&articleOf(d).a)
	}
	return d
}

// feed adds samples for the given duration, at a rate in MB/h, with breakdowns
// if requested.
func (p *player) feed(length time.Duration, rate float64, breakdowns bool) *player {
	end := p.t + length
	var due time.Duration
	for p.t < end {
		p.sample()
		if breakdowns && p.t >= due {
			p.breakdown(0)
			due = p.t + 30*time.Second
		}
		dt := p.d.Demand().Interval
		p.t += dt
		p.level += rate * dt.Hours()
		p.java += rate * dt.Hours()
	}
	return p
}

func (p *player) leak(length time.Duration, rate float64) *player { return p.feed(length, rate, false) }

func (p *player) sample() {
	p.n++
	p.keep(p.d.AddSample(Sample{At: p.t, Bytes: int64((p.level + float64(p.n%2*2-1)) * MB)}))
}

// breakdown adds a breakdown in which everything above the first 200 MB is Java
// heap, with additional EGL memory.
func (p *player) breakdown(egl float64) {
	wobble := float64(p.n % 2)
	b := Breakdown{At: p.t, EGL: known.Of(int64(egl * MB))}
	values := [NumDimensions]float64{p.java + wobble, 70 + wobble, 45, 2, egl, 28 - wobble, 20, p.java + 165 + egl}
	for d, v := range values {
		b.Dim[d] = known.Of(int64(v * MB))
	}
	p.keep(p.d.AddBreakdown(b))
}

// textures adds breakdowns with growing graphics memory and no samples.
func (p *player) textures(n int) *player {
	for i := range n {
		p.breakdown(30 + 8*float64(i) + float64(i%2))
		p.t += 30 * time.Second
	}
	return p
}

func (p *player) keep(steps []Transition) { p.steps = append(p.steps, steps...) }

func (p *player) jump(mb float64) *player { p.level += mb; return p }

func (p *player) restart() *player { p.keep(p.d.Restart(p.t)); return p }

func (p *player) gap() *player { p.keep(p.d.Gap(p.t)); return p }

func (p *player) diagnosed() *player { p.keep(p.d.DiagnosisFinished(p.t)); return p }

// suspicious, confirming and leaking add the readings that lead to the state of
// the same name.
func (p *player) suspicious() *player { return p.leak(5*time.Minute+10*time.Second, 600) }
func (p *player) confirming() *player { return p.suspicious().leak(15*time.Minute, 600) }
func (p *player) leaking() *player    { return p.confirming().feed(2*time.Minute, 600, true) }

const minute = time.Minute

// articleRows lists the rows of the article's machine in the order of its
// sections: the transition, when it must happen, and inputs that cause it.
var articleRows = []struct {
	section  string
	from, to State
	// after is the exact time in the old state; 0 if it depends on the data.
	after time.Duration
	kind  LeakKind
	drive func() *player
}{
	{"5.4 spike", Normal, Leaking, 0, Unknown,
		func() *player { return play(nil).leak(10*minute, 0).jump(250).leak(time.Second, 0) }},
	{"5.4 gpu", Normal, Leaking, 0, GPU, func() *player { return play(nil).textures(10) }},
	{"5.4 gpu", Suspicious, Leaking, 0, GPU, func() *player {
		return play(func(a *articleRules) { a.suspiciousMax = time.Hour }).suspicious().textures(10)
	}},
	{"5.4 gpu", Confirming, Leaking, 0, GPU, func() *player {
		// There are too few breakdowns for the dimensions, but enough for the
		// graphics path.
		return play(func(a *articleRules) { a.extraBreakdowns = 100 }).confirming().textures(10)
	}},
	{"5.5 trend", Normal, Suspicious, 0, None, func() *player { return play(nil).suspicious() }},
	{"5.5 not significant", Suspicious, Normal, 0, None,
		func() *player { return play(nil).suspicious().leak(10*minute, -900) }},
	{"5.5 time-out", Suspicious, Normal, 30 * minute, None,
		func() *player { return play(nil).suspicious().leak(time.Minute, 600).leak(31*minute, 0) }},
	{"5.3 floors", Suspicious, Confirming, 15 * minute, None, func() *player { return play(nil).confirming() }},
	{"5.6 dimensions", Confirming, Leaking, 0, Java, func() *player { return play(nil).leaking() }},
	{"5.5 time-out", Confirming, Normal, 10 * minute, None,
		func() *player { return play(nil).confirming().leak(11*minute, 600) }},
	{"6.4 diagnosis done", Leaking, Normal, 0, None, func() *player { return play(nil).leaking().diagnosed() }},
	{"6.4 cooldown", Leaking, Normal, 0, None, func() *player {
		return play(nil).leak(10*minute, 0).diagnosed().jump(250).leak(2*minute, 0)
	}},
	{"8.3 restart", Suspicious, Normal, 0, None, func() *player { return play(nil).suspicious().restart() }},
	{"8.3 restart", Confirming, Normal, 0, None, func() *player { return play(nil).confirming().restart() }},
	{"8.3 restart", Leaking, Normal, 0, None, func() *player { return play(nil).leaking().restart() }},
	{"gap", Suspicious, Normal, 0, None, func() *player { return play(nil).suspicious().gap() }},
	{"gap", Confirming, Normal, 0, None, func() *player { return play(nil).confirming().gap() }},
}

func TestArticleTable(t *testing.T) {
	type arrow struct {
		rule     string
		from, to State
	}
	taken := map[arrow]bool{}
	for _, row := range articleRows {
		name := fmt.Sprintf("%s %v to %v", row.section, row.from, row.to)
		if row.after > 0 {
			name += " after " + row.after.String()
		}
		t.Run(name, func(t *testing.T) {
			p := row.drive()
			if len(p.steps) == 0 {
				t.Fatal("no transition")
			}
			var entered time.Duration
			for i, s := range p.steps {
				if s.Rule != row.section || s.From != row.from || s.To != row.to {
					entered = s.At
					continue
				}
				if row.after > 0 && s.At-entered != row.after {
					t.Errorf("after %v in %v, want %v", s.At-entered, row.from, row.after)
				}
				if s.Kind != row.kind {
					t.Errorf("kind %v, want %v", s.Kind, row.kind)
				}
				if s.Because == "" || strings.Contains(s.Because, "NaN") || strings.Contains(s.Because, "Inf") {
					t.Errorf("because %q", s.Because)
				}
				if i == len(p.steps)-1 && p.d.Verdict().State != row.to {
					t.Errorf("state %v", p.d.Verdict().State)
				}
				taken[arrow{s.Rule, s.From, s.To}] = true
				return
			}
			t.Fatalf("steps %v", p.steps)
		})
	}
	for _, r := range articleTable {
		if !taken[arrow{r.rule, r.from, r.to}] {
			t.Errorf("row %q, %v to %v, has no test", r.rule, r.from, r.to)
		}
	}
}

// TestTimeoutsToTheSecond checks that one second before the timeout the state
// is unchanged.
func TestTimeoutsToTheSecond(t *testing.T) {
	tests := map[string]struct {
		start func() *player
		stay  time.Duration
		state State
	}{
		"SUSPICIOUS 30 min": {func() *player { return play(nil).suspicious() }, 30 * minute, Suspicious},
		"CONFIRMING 10 min": {func() *player { return play(nil).confirming() }, 10 * minute, Confirming},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := tt.start()
			entered := p.steps[len(p.steps)-1].At
			p.t = entered + tt.stay - time.Second
			p.sample()
			if got := p.d.Verdict().State; got != tt.state {
				t.Fatalf("%v one second before the timeout, want %v", got, tt.state)
			}
			p.t += time.Second
			p.sample()
			if got := p.d.Verdict().State; got != Normal {
				t.Fatalf("%v at the timeout, want NORMAL", got)
			}
		})
	}
	t.Run("timeout by a breakdown", func(t *testing.T) {
		p := play(nil).suspicious()
		p.t += 40 * minute
		if p.breakdown(0); p.d.Verdict().State != Normal {
			t.Error("still " + p.d.Verdict().State.String())
		}
	})
	t.Run("cooldown 30 min", func(t *testing.T) {
		for _, after := range []time.Duration{30*minute - time.Second, 30 * minute} {
			p := play(nil).diagnosed()
			done := p.t
			p.t = done + after - 10*minute
			for range 20 {
				p.sample()
				p.t += 30 * time.Second
			}
			p.jump(250).sample()
			if want := after >= 30*minute; (p.d.Demand().Diagnose == Unknown) != want ||
				p.d.Verdict().State != Leaking {
				t.Errorf("%v after the diagnosis: %+v", after, p.d.Demand())
			}
		}
	})
}

func TestDemand(t *testing.T) {
	tests := map[string]struct {
		p    *player
		want Demand
	}{
		"NORMAL":     {play(nil), Demand{Interval: 30 * time.Second}},
		"SUSPICIOUS": {play(nil).suspicious(), Demand{Interval: 15 * time.Second}},
		"CONFIRMING": {
			play(nil).confirming(), Demand{Interval: 15 * time.Second, Breakdowns: 3, Spacing: 30 * time.Second},
		},
		"CONFIRMING after one breakdown": {
			play(nil).confirming().textures(1),
			Demand{Interval: 15 * time.Second, Breakdowns: 2, Spacing: 30 * time.Second},
		},
		"LEAKING":             {play(nil).leaking(), Demand{Interval: time.Minute, Diagnose: Java}},
		"LEAKING after a gap": {play(nil).leaking().gap(), Demand{Interval: time.Minute, Diagnose: Java}},
		"LEAKING during the cooldown": {
			play(nil).leak(10*minute, 0).diagnosed().jump(250).leak(time.Second, 0), Demand{Interval: time.Minute},
		},
		"diagnosed": {play(nil).leaking().diagnosed(), Demand{Interval: 30 * time.Second}},
	}
	for name, tt := range tests {
		if got := tt.p.d.Demand(); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// TestWindowsAreKept checks that after a diagnosis the windows are kept, but
// two new windows of evidence are needed (6.4), and that after a restart ten
// new points are needed (8.3, 8.1).
func TestWindowsAreKept(t *testing.T) {
	after := func(p *player) (n int) {
		for before := len(p.steps); len(p.steps) == before; n++ {
			p.leak(time.Second, 600)
		}
		return n
	}
	if n := after(play(nil).leaking().diagnosed()); n != 2 {
		t.Errorf("SUSPICIOUS after %d samples following a diagnosis, want 2", n)
	}
	if n := after(play(nil).leaking().restart()); n != 11 {
		t.Errorf("SUSPICIOUS after %d samples following a restart, want 11", n)
	}
}

// TestSpikeOnce checks that one spike is one event, however long it stays above
// the floor.
func TestSpikeOnce(t *testing.T) {
	p := play(nil).leak(10*minute, 0).jump(250).leak(2*minute, 0).diagnosed().leak(3*time.Hour, 0)
	n := 0
	for _, s := range p.steps {
		if s.Rule == "5.4 spike" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("one jump caused %d spikes: %v", n, p.steps)
	}
	if p.jump(300).leak(time.Second, 0); p.d.Verdict().State != Leaking {
		t.Error("a second jump is not reported as a spike")
	}
}
