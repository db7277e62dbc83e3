package detector

import (
	"strings"
	"testing"
	"time"

	"github.com/leakgate/leakgate/detector/trend"
)

func TestArticlePolicyIsValid(t *testing.T) {
	if err := ArticlePolicy().Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		change func(*Policy)
		want   string
	}{
		"name":           {func(p *Policy) { p.Name = "vague" }, `"vague": known policies: article`},
		"t":              {func(p *Policy) { p.Article.TMin = -1 }, "use t -1"},
		"r2":             {func(p *Policy) { p.Article.R2Min = 1 }, "use r2 1"},
		"interval":       {func(p *Policy) { p.Article.LeakingInterval = 0 }, "use interval 0s"},
		"time-out":       {func(p *Policy) { p.Article.ConfirmingMax = -1 }, "use time-out"},
		"window":         {func(p *Policy) { p.Article.HighWindow = 9 }, "use samples kept 9"},
		"huge window":    {func(p *Policy) { p.Article.LowWindow = 1 << 30 }, "use breakdowns kept"},
		"option":         {func(p *Policy) { p.Article.GPU = "sometimes" }, `use gpu_path "sometimes": must be one of graphics, literal`},
		"missing option": {func(p *Policy) { p.Article.Kind = "" }, `use kind ""`},
		"zero policy":    {func(p *Policy) { *p = Policy{Name: PolicyArticle} }, "use points 0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := ArticlePolicy()
			tt.change(&p)
			err := p.Validate()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			d := New(p)
			if d.policy != DefaultPolicy() {
				t.Error("an unusable policy is used")
			}
			if w := d.Verdict().Warnings; len(w) != 1 || !strings.Contains(w[0].Error(), tt.want) {
				t.Errorf("warnings %v", w)
			}
		})
	}
}

// TestWindowsOption: how long a steady leak takes to be SUSPICIOUS by each reading.
func TestWindowsOption(t *testing.T) {
	for windows, want := range map[Windows]time.Duration{
		WindowsWhole:    5 * minute,      // points 10 and 11
		WindowsMinute:   5*minute + 60e9, // looks at 0, 1, ... min: 11 points at 5, again at 6
		WindowsLast:     5 * minute,      //
		WindowsDisjoint: 20 * minute,     // the second block is over
	} {
		p := play(func(a *Article) { a.Windows = windows }).leak(25*minute, 600)
		if len(p.steps) == 0 || p.steps[0].At-time.Hour != want {
			t.Errorf("%s: %v, want SUSPICIOUS after %v", windows, p.steps, want)
		}
	}
}

// TestWindowsForgetLateOnset: two flat hours hide a new leak from the whole window; ten
// minutes see it at once.
func TestWindowsForgetLateOnset(t *testing.T) {
	onset := func(w Windows) time.Duration {
		p := play(func(a *Article) { a.Windows = w }).leak(2*time.Hour, 0)
		start := p.t
		p.leak(time.Hour, 600)
		for _, s := range p.steps {
			if s.To == Suspicious && s.At > start {
				return s.At - start
			}
		}
		return -1
	}
	if got := onset(WindowsWhole); got < 35*minute || got > 45*minute {
		t.Errorf("the whole window after %v, want about 40 min: a third of 2 h", got)
	}
	if got := onset(WindowsLast); got < 0 || got > 8*minute {
		t.Errorf("the last ten minutes after %v", got)
	}
}

func TestFallBackOption(t *testing.T) {
	// A plateau after a rise keeps t high while R2 sinks below 0.6.
	for rule, want := range map[FallBack]string{FallBackByT: "5.5 time-out", FallBackByAll: "5.5 not significant"} {
		p := play(func(a *Article) { a.FallBack = rule }).suspicious().leak(40*minute, 0)
		if len(p.steps) < 2 || p.steps[1].Rule != want {
			t.Errorf("%s: %v, want %s", rule, p.steps, want)
		}
	}
}

func TestFloorsFromOption(t *testing.T) {
	// A late suspicion of a series that has risen all the time: history is there already.
	for from, want := range map[FloorsFrom]time.Duration{
		FloorsFromEntry: 15 * minute, FloorsFromOpen: 12 * minute, FloorsFromHistory: 5 * minute,
	} {
		p := play(func(a *Article) { a.FloorsFrom = from; a.MinPoints = 20 }).leak(40*minute, 600)
		if len(p.steps) < 2 || p.steps[1].Rule != "5.3 floors" || p.steps[1].At-p.steps[0].At != want {
			t.Errorf("%s: %v, want floors after %v", from, p.steps, want)
		}
	}
}

func TestTotalOption(t *testing.T) {
	b := Breakdown{At: time.Second, EGL: Known(50 * MB), GL: Known(5 * MB), OtherMtrack: Known(3 * MB), GfxDev: Known(2 * MB)}
	b.Dim[Total], b.Dim[Graphics] = Known(400*MB), Known(57*MB)
	for rule, want := range map[TotalRule]float64{TotalMappedAndDriver: 358, TotalGraphics: 357} {
		a := ArticlePolicy().Article
		a.Total = rule
		s := newSeries(a)
		s.addSample(Sample{At: 0, Bytes: 300 * MB})
		s.addBreakdown(b)
		if got := s.current() / MB; got != want {
			t.Errorf("%s: %v MB, want %v", rule, got, want)
		}
	}
}

func TestDimensionsAndVotes(t *testing.T) {
	// Java heap grew for long but stands still now; TOTAL grows on.
	confirm := func(change func(*Article)) (LeakKind, bool) {
		p := play(func(a *Article) { a.GPU = GPUOff; change(a) })
		p.feed(5*minute+10*time.Second, 600, true).leak(15*minute, 600)
		for i := range 4 {
			p.t += 30 * time.Second
			b := Breakdown{At: p.t}
			b.Dim[JavaHeap], b.Dim[Total] = Known(int64(200-i%2)*MB), Known(int64(500+10*i)*MB)
			p.keep(p.d.AddBreakdown(b))
			p.sample()
		}
		return articleOf(p.d).kind, p.d.Verdict().Worst == Leaking
	}
	if kind, ok := confirm(func(*Article) {}); !ok || kind != Java {
		t.Errorf("whole window: %v %v", kind, ok)
	}
	if kind, ok := confirm(func(a *Article) { a.Dimensions = DimensionsFresh }); !ok || kind != Unknown {
		t.Errorf("fresh breakdowns: %v %v, want unknown by TOTAL", kind, ok)
	}
	if _, ok := confirm(func(a *Article) { a.Dimensions = DimensionsFresh; a.TotalVote = TotalSilent }); ok {
		t.Error("confirmed though only TOTAL rises and is silent")
	}
}

func TestCooldownOption(t *testing.T) {
	for rule, want := range map[CooldownRule]State{CooldownReports: Leaking, CooldownBlocks: Suspicious} {
		p := play(func(a *Article) { a.CooldownRule = rule }).diagnosed().leak(5*minute, 0)
		p.feed(24*minute, 600, true)
		highest := Normal
		for _, s := range p.steps {
			if s.To == Leaking {
				highest = Leaking
				if !strings.Contains(s.Because, "reported only: diagnosed") {
					t.Errorf("%q does not tell of the cooldown", s.Because)
				}
			} else if highest != Leaking && s.To == Suspicious {
				highest = Suspicious
			}
		}
		if highest != want {
			t.Errorf("%s: %v, want %v", rule, p.steps, want)
		}
	}
}

// line makes a rising dimension for the kinds.
func line(growth, t float64) trend.Line {
	return trend.Line{N: 10, Span: 3600, Slope: growth * MB / 3600, SE: 1, T: t}
}

func TestKindOption(t *testing.T) {
	type dims map[Dimension]trend.Line
	tests := map[string]struct {
		dims                   dims
		byShare, byT, byStrict LeakKind
	}{
		"java":                    {dims{JavaHeap: line(100, 5)}, Java, Java, Java},
		"native":                  {dims{NativeHeap: line(100, 5), Total: line(101, 9)}, Native, Native, Native},
		"thread":                  {dims{Stack: line(30, 5), System: line(90, 40)}, Thread, Thread, Thread},
		"gpu":                     {dims{Graphics: line(100, 5), Code: line(5, 1.9)}, GPU, GPU, GPU},
		"private other":           {dims{PrivateOther: line(100, 5)}, Unknown, Unknown, Unknown},
		"java with a little code": {dims{JavaHeap: line(100, 5), Code: line(2, 9)}, Java, Unknown, Unknown},
		"java and quiet stack":    {dims{JavaHeap: line(100, 5), Stack: line(2, 9)}, Java, Thread, Unknown},
		"java and native alike":   {dims{JavaHeap: line(100, 5), NativeHeap: line(100, 5)}, Unknown, Java, Unknown},
		"three":                   {dims{JavaHeap: line(45, 5), NativeHeap: line(30, 6), Graphics: line(25, 7)}, Unknown, GPU, Unknown},
		"total alone":             {dims{Total: line(100, 9)}, Unknown, Unknown, Unknown},
		"system alone":            {dims{System: line(100, 9)}, Unknown, Unknown, Unknown},
		"nothing":                 {dims{JavaHeap: line(100, 2)}, Unknown, Unknown, Unknown},
	}
	for name, tt := range tests {
		var r rises
		for d, l := range tt.dims {
			r[d] = rise{line: l, significant: l.T > 2}
		}
		for rule, want := range map[KindRule]LeakKind{KindByShare: tt.byShare, KindByT: tt.byT, KindStrict: tt.byStrict} {
			if got, why := r.kind(rule); got != want || why == "" {
				t.Errorf("%s by %s: %v (%s), want %v", name, rule, got, why, want)
			}
		}
	}
}

// TestGPUOption: graphics memory that grows is found; noise is nothing to the default, and
// mostly a leak to the literal reading, which compares two windows.
func TestGPUOption(t *testing.T) {
	const seeds = 20
	found := func(g GPUPath, s simulation) (n int) {
		s.policy = ArticlePolicy()
		s.policy.Article.GPU = g
		s.policy.Article.MinSegments = 1000 // the GPU path alone
		s.policy.Article.SpikeMin = 1 << 40
		for s.seed = range uint64(seeds) {
			_, steps := s.run()
			at, kind, ok := leakAt(steps)
			if ok {
				n++
			}
			if ok && kind != GPU {
				t.Errorf("%s: %v at %v", g, kind, at)
			}
		}
		return n
	}
	textures := simulation{length: 35 * minute, sigma: 2, rate: [NumDimensions]float64{Graphics: 120}}
	noise := simulation{length: 8 * time.Hour, sigma: 20}
	tests := []struct {
		path                               GPUPath
		texturesMin, texturesMax, noiseMin int
		noiseMax                           int
	}{
		{GPUGraphics, 20, 20, 0, 0},
		{GPULiteral, 10, 20, 10, 20},
		{GPULiteralCorrected, 0, 3, 10, 20},
		{GPUOff, 0, 0, 0, 0},
	}
	for _, tt := range tests {
		if n := found(tt.path, textures); n < tt.texturesMin || n > tt.texturesMax {
			t.Errorf("%s: growing textures found in %d of %d", tt.path, n, seeds)
		}
		if n := found(tt.path, noise); n < tt.noiseMin || n > tt.noiseMax {
			t.Errorf("%s: %d of %d on noise", tt.path, n, seeds)
		}
	}
}
