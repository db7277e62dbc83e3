package detector

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

func TestGate(t *testing.T) {
	tests := map[string]struct {
		p       *player
		gate    Gate
		because string
	}{
		"no samples": {play(nil), Inconclusive, "only 0 uninterrupted samples"},
		"few samples": {
			play(nil).leak(4*minute, 0), Inconclusive,
			"only 8 uninterrupted samples in 3.5 min; first evidence needs 11",
		},
		"20.5 minutes": {
			play(nil).leak(21*minute, 0), Inconclusive,
			"only 20 min of uninterrupted data; LEAKING needs at least 21 min",
		},
		"21 minutes":       {play(nil).leak(21*minute+time.Second, 0), Pass, "no sustained growth"},
		"leak":             {play(nil).leaking(), Leak, "Java Heap rises"},
		"leak, diagnosed":  {play(nil).leaking().diagnosed().leak(40*minute, 0), Leak, "Java Heap rises"},
		"still suspicious": {play(nil).leak(21*minute, 0).leak(14*minute, 900), Inconclusive, "still SUSPICIOUS after"},
		"no breakdowns": {
			play(nil).confirming().leak(11*minute, 600).leak(5*time.Hour, 0), Inconclusive, "fewer than 3 breakdowns",
		},
		"settled": {play(nil).suspicious().leak(minute, 600).leak(60*minute, 0), Settled, "memory grew"},
		"shrank again": {
			play(nil).suspicious().leak(minute, 600).leak(2*minute, 0).jump(-61).leak(60*minute, 0), Pass,
			"no sustained growth",
		},
		"settled, then restarted": {
			play(nil).suspicious().leak(minute, 600).leak(60*minute, 0).restart().leak(minute, 0),
			Settled, "memory grew"},
		"two short halves": {
			play(nil).leak(15*minute, 0).gap().leak(15*minute, 0), Inconclusive, "only 14 min of uninterrupted data",
		},
		"restarts early": {play(nil).leak(minute, 0).restart().leak(25*minute, 0), Pass, "no sustained growth"},
		"restarts late":  {play(nil).leak(25*minute, 0).restart().leak(minute, 0), Pass, "no sustained growth"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := tt.p.d.Verdict()
			if v.Gate != tt.gate || !strings.Contains(v.Because, tt.because) {
				t.Errorf("gate %s because %q, want %s because %q; steps %v", v.Gate, v.Because, tt.gate, tt.because,
					tt.p.steps)
			}
		})
	}
}

func TestVerdictNumbers(t *testing.T) {
	p := play(nil).leaking()
	v := p.d.Verdict()
	if !v.RateKnown || math.Abs(v.Rate/MB-600) > 5 || v.RateLow >= v.Rate || v.RateHigh <= v.Rate {
		t.Errorf("rate %.1f in %.1f..%.1f MB/h, want 600", v.Rate/MB, v.RateLow/MB, v.RateHigh/MB)
	}
	if v.Samples != p.n || v.Duration != p.steps[2].At-time.Hour+minute-15*time.Second && v.Duration <= 0 {
		t.Errorf("%d samples in %v, want %d", v.Samples, v.Duration, p.n)
	}
	if got, want := float64(v.Growth)/MB, 600*v.Duration.Hours(); math.Abs(got-want) > 5 {
		t.Errorf("growth %.0f MB, want %.0f", got, want)
	}
	if v.FirstSuspicious != (known.OfDuration(time.Hour+5*minute)) ||
		v.FirstLeaking != (known.OfDuration(p.steps[2].At)) {
		t.Errorf("first suspicious %v, first leaking %v", v.FirstSuspicious, v.FirstLeaking)
	}
	names := map[string]float64{}
	for _, e := range v.Evidence {
		names[e.Name] = e.Value
	}
	if names["points"] != float64(p.n) || math.Abs(names["Java Heap rate"]-600) > 20 || names["t"] <= 2 {
		t.Errorf("evidence %v", v.Evidence)
	}
	p.restart()
	if v := p.d.Verdict(); v.Samples != 0 || v.Duration != 0 || v.RateKnown || v.Worst != Leaking ||
		v.State != Normal || v.Restarts != 1 {
		t.Errorf("after a restart: %+v", v)
	}
}

func TestReadingsOutOfOrder(t *testing.T) {
	d := New(ArticlePolicy())
	d.AddSample(Sample{At: minute, Bytes: 1})
	d.AddSample(Sample{At: minute, Bytes: 2})
	d.AddSample(Sample{At: minute - 1, Bytes: 3})
	d.AddSample(Sample{At: 2 * minute, Bytes: -1})
	d.AddSample(Sample{At: -minute, Bytes: 1})
	d.AddBreakdown(Breakdown{At: minute})
	d.AddBreakdown(Breakdown{At: minute})
	d.AddSample(Sample{At: 2 * minute, Bytes: 5})
	if v := d.Verdict(); v.Samples != 2 || len(v.Warnings) != 1 ||
		!strings.Contains(v.Warnings[0].Error(), "5 readings") {
		t.Errorf("%d samples, warnings %v", v.Samples, v.Warnings)
	}
	// Readings from before a restart belong to the old process.
	d.Restart(3 * minute)
	d.AddSample(Sample{At: 3*minute - 1, Bytes: 5})
	d.AddBreakdown(Breakdown{At: 3*minute - 1})
	if v := d.Verdict(); v.Samples != 0 || !strings.Contains(v.Warnings[0].Error(), "7 readings") {
		t.Errorf("%d samples, warnings %v", v.Samples, v.Warnings)
	}
	// After a reboot the clock starts over.
	d.Restart(10 * time.Second)
	d.AddSample(Sample{At: 10 * time.Second, Bytes: 5})
	if v := d.Verdict(); v.Samples != 1 || v.Restarts != 2 {
		t.Errorf("%+v", v)
	}
}

// TestRebootForgetsCooldown checks that the cooldown ends at a reboot, because
// the age of the last diagnosis cannot be computed once the clock has
// restarted.
func TestRebootForgetsCooldown(t *testing.T) {
	for at, want := range map[time.Duration]LeakKind{time.Hour + 11*minute: None, minute: Unknown} {
		p := play(nil).leak(10*minute, 0).diagnosed()
		p.t = at
		p.restart().leak(10*minute, 0).jump(250).leak(time.Second, 0)
		if got := p.d.Demand().Diagnose; got != want || articleOf(p.d).state != Leaking {
			t.Errorf("restart at %v: diagnosis demanded %v in state %v, want %v", at, got, articleOf(p.d).state, want)
		}
	}
}

func TestSentences(t *testing.T) {
	p := play(nil).leaking()
	want := []string{
		"memory rises 600 MB/h (t 47.6, R2 1.00) over 5.0 min in 2 windows in a row",
		"the floors (P25) of 5.0 min rise: 321, 371, 421 MB",
		"java_leak: Java Heap rises",
	}
	for i, w := range want {
		if !strings.HasPrefix(p.steps[i].Because, w) {
			t.Errorf("step %d: %q, want %q", i, p.steps[i].Because, w)
		}
	}
	for d, want := range map[time.Duration]string{
		45 * time.Second: "45 s", 9 * minute: "9.0 min", 90 * minute: "90 min", 150 * minute: "2.5 h",
	} {
		if got := minutesText(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := tText(math.Inf(1)); got != "over 9999" || finite(math.Inf(-1)) != -9999 {
		t.Errorf("an infinite t is written as %q", got)
	}
}

// TestPerfectLine checks that a series without noise does not cause infinities
// in a verdict.
func TestPerfectLine(t *testing.T) {
	d := New(ArticlePolicy())
	for i := range 200 {
		at := time.Duration(i) * 30 * time.Second
		d.AddSample(Sample{At: at, Bytes: int64(i) * MB})
		b := Breakdown{At: at}
		b.Dim[Total] = known.Of(int64(i) * MB)
		d.AddBreakdown(b)
	}
	v := d.Verdict()
	if v.Worst != Leaking || v.Kind != Unknown {
		t.Errorf("%+v", v)
	}
	for _, e := range v.Evidence {
		if math.IsInf(e.Value, 0) || math.IsNaN(e.Value) {
			t.Errorf("evidence %+v", e)
		}
	}
	if math.IsNaN(v.RateLow) || v.RateLow != v.RateHigh {
		t.Errorf("%+v", v)
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		Normal.String(): "NORMAL", Leaking.String(): "LEAKING", State(9).String(): "unknown",
		JavaHeap.String(): "Java Heap", Total.String(): "Total", Dimension(99).String(): "unknown",
		GPU.String(): "gpu_leak", Thread.String(): "thread_leak", None.String(): "", LeakKind(99).String(): "unknown",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestMapped(t *testing.T) {
	b := rows(0, 50, 5, 3, 2, 57)
	if got := b.Mapped(); got != known.Of((500-58)*MB) {
		t.Errorf("Mapped() = %+v", got)
	}
	b.Dim[Total] = Amount{}
	if got := b.Mapped(); got.Known {
		t.Errorf("Mapped() = %+v without TOTAL", got)
	}
}

// TestArticleRate checks that policy "article" returns no rate until it has the
// minimum number of points.
func TestArticleRate(t *testing.T) {
	d := New(ArticlePolicy())
	for i := range 40 {
		d.AddSample(Sample{At: time.Duration(i) * 30 * time.Second, Bytes: int64(100+i) * MB})
		if v, want := d.Verdict(), i+1 >= 10; v.RateKnown != want {
			t.Fatalf("%d points: RateKnown %v, want %v", i+1, v.RateKnown, want)
		}
	}
}

// TestArticleFreshBreakdown checks that a breakdown from the moment at which
// CONFIRMING began is one of the extra ones.
func TestArticleFreshBreakdown(t *testing.T) {
	d := New(ArticlePolicy())
	for at := time.Duration(0); at < 2*time.Hour; at += 30 * time.Second {
		mb := int64(200+at.Minutes()*10) * MB
		d.AddSample(Sample{At: at, Bytes: mb})
		confirming := d.Verdict().State == Confirming
		before := d.Demand().Breakdowns
		b := Breakdown{At: at}
		b.Dim[JavaHeap], b.Dim[Total] = Amount{N: mb, Known: true}, Amount{N: mb, Known: true}
		d.AddBreakdown(b)
		if confirming {
			if after := d.Demand().Breakdowns; after != before-1 {
				t.Errorf("demand of %d breakdowns became %d, want one less", before, after)
			}
			return
		}
	}
	t.Fatal("never CONFIRMING")
}
