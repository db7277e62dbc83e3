package detector

import (
	"slices"
	"testing"
	"time"

	"github.com/leakgate/leakgate/internal/known"
)

// rows returns a breakdown of the graphics rows in MB; a negative number means
// that the row is absent.
func rows(at time.Duration, egl, gl, other, gfx, summary int64) Breakdown {
	amount := func(mb int64) Amount {
		if mb < 0 {
			return Amount{}
		}
		return known.Of(mb * MB)
	}
	b := Breakdown{At: at, EGL: amount(egl), GL: amount(gl), OtherMtrack: amount(other), GfxDev: amount(gfx)}
	b.Dim[Graphics], b.Dim[Total] = amount(summary), known.Of(500*MB)
	return b
}

func newArticleSeries() *series {
	a := defaultArticle()
	return newSeries(&a)
}

// TestDriverMemory checks by how much the samples are raised, and when.
func TestDriverMemory(t *testing.T) {
	const no = -1
	tests := map[string]struct {
		breakdowns []Breakdown
		// total is the total in MB of the samples before each breakdown and
		// after the last; each sample is 300 MB.
		total []float64
	}{
		"first breakdown applies to earlier samples": {
			[]Breakdown{rows(1, 50, 5, no, 2, 57)}, []float64{355, 355}},
		"growth stays visible": {
			[]Breakdown{rows(1, 50, 0, 0, 0, 50), rows(2, 80, 0, 0, 0, 80)}, []float64{350, 350, 380}},
		"no rows and no graphics: known to be zero": {
			[]Breakdown{rows(1, no, no, no, no, 0), rows(2, 40, no, no, no, 40)}, []float64{300, 300, 340}},
		"no rows but graphics: unknown": {
			[]Breakdown{rows(1, no, no, no, no, 40), rows(2, 40, no, no, no, 40)}, []float64{340, 340, 340}},
		"missing row keeps its value": {
			[]Breakdown{rows(1, 50, 5, 3, no, 55), rows(2, no, 6, no, no, no)}, []float64{358, 358, 359}},
		"new row counts as growth": {
			[]Breakdown{rows(1, 50, no, no, no, 50), rows(2, 50, 7, no, no, 57)}, []float64{350, 350, 357}},
		"all graphics released": {
			[]Breakdown{rows(1, 50, 5, 3, no, 55), rows(2, no, no, no, no, 0)}, []float64{358, 358, 303}},
		"all values unknown": {
			[]Breakdown{rows(1, no, no, no, no, no)}, []float64{300, 300}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newArticleSeries()
			for i, b := range tt.breakdowns {
				s.addSample(Sample{At: time.Duration(i) * time.Second, Bytes: 300 * MB})
				b.At = time.Duration(i)*time.Second + time.Millisecond
				s.addBreakdown(b)
			}
			s.addSample(Sample{At: time.Hour, Bytes: 300 * MB})
			got := slices.Clone(s.total.Y())
			for i := range got {
				got[i] /= MB
			}
			if !slices.Equal(got, tt.total) {
				t.Errorf("totals %v, want %v", got, tt.total)
			}
		})
	}
}

// TestFirstBreakdownIsNotAJump watches a process with 300 MB of textures for
// ten minutes before its first breakdown.
func TestFirstBreakdownIsNotAJump(t *testing.T) {
	p := play(nil).leak(10*minute, 0)
	p.breakdown(300)
	p.leak(10*minute, 0)
	if len(p.steps) != 0 {
		t.Errorf("steps %v", p.steps)
	}
	// The level at the entry to SUSPICIOUS is raised too; otherwise the 300 MB
	// would count as growth.
	p = play(nil).suspicious()
	p.breakdown(300)
	if p.sample(); articleOf(p.d).grown() > 10*MB {
		t.Errorf("grew by %s, want at most 10 MB", mbText(articleOf(p.d).grown()))
	}
}

// TestGraphicsSources checks that the summary and the rows are never mixed in
// one series.
func TestGraphicsSources(t *testing.T) {
	s := newArticleSeries()
	s.addBreakdown(rows(1, -1, -1, -1, -1, 40))
	s.addBreakdown(rows(2, -1, -1, -1, -1, 41))
	if got := s.graphics.Len(); got != 2 {
		t.Fatalf("%d points from the summary, want 2", got)
	}
	s.addBreakdown(rows(3, 30, 5, 2, 9, 44))
	if got := s.graphics.Y(); len(got) != 1 || got[0] != 44*MB {
		t.Errorf("graphics %v, want only EGL + GL + Gfx dev", got)
	}
	if got := s.rest.Y(); got[0] != (500-30-5-2-9)*MB {
		t.Errorf("rest %v", got)
	}
	b := rows(4, 30, 5, 2, 9, 44)
	b.Dim[Total] = Amount{}
	if s.addBreakdown(b); s.graphics.Len() != 1 {
		t.Error("breakdown without TOTAL was split")
	}
}
