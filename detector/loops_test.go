package detector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFamilyOf(t *testing.T) {
	tests := []struct{ text, want string }{
		{"loop 1", "loop "},
		{"loop 12345678901234567890", "loop "},
		{"Loop7", "loop"},
		{"1. SCROLL", ". scroll"},
		{"loop 3 of 10", "loop  of "},
		{"12", ""},
		{"", ""},
		{"Über ٣", "über "},
		{"schleife", "schleife"},
		{strings.Repeat("x", 64) + "y", strings.Repeat("x", 64)},
		{strings.Repeat("7", 1000) + "a", "a"},
	}
	for _, tt := range tests {
		if got := familyOf(tt.text); got != tt.want {
			t.Errorf("familyOf(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

// FuzzFamily checks that digits never matter, that the family is short, and
// that familyOf does not change a family that was not truncated.
func FuzzFamily(f *testing.F) {
	for _, s := range []string{
		"loop 1", "gc", "\x1b[31mloop\x1b[0m 2", "\xff\xfe3", strings.Repeat("ü", 40), "İ1ı", "㊿ ٣ 𝟗", "\x00",
	} {
		f.Add(s, uint16(17))
	}
	f.Fuzz(func(t *testing.T, text string, number uint16) {
		got := familyOf(text)
		if len(got) > maxFamily {
			t.Fatalf("the family has %d bytes: %q", len(got), text)
		}
		if numbered := familyOf(fmt.Sprint(number, text)); numbered != got {
			t.Fatalf("family of %q with a number: %q, want %q", text, numbered, got)
		}
		if upper := familyOf(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r - 'a' + 'A'
			}
			return r
		}, text)); utf8.ValidString(text) && upper != got {
			t.Fatalf("family of %q in capitals: %q, want %q", text, upper, got)
		}
		if strings.ContainsAny(got, "0123456789") {
			t.Fatalf("the family of %q contains digits: %q", text, got)
		}
		if utf8.ValidString(got) && len(got) < maxFamily-utf8.UTFMax && familyOf(got) != got {
			t.Fatalf("familyOf(%q) = %q, whose own family is %q", text, got, familyOf(got))
		}
	})
}

// TestMarksAreBounded checks that only a shortened name is kept for each of two
// families of marks with long names.
func TestMarksAreBounded(t *testing.T) {
	const most, long = 64 << 10, 1 << 17
	for name, unit := range map[string]string{
		"letters": "x", "letters and digits": "x1", "multibyte": "ü", "invalid": "\xff",
	} {
		got := heapOf(2, func(i int) *Detector {
			d := New(RobustPolicy())
			d.AddSample(Sample{At: time.Second, Bytes: 300 * MB})
			for k := range 2 {
				d.AddMark(Mark{At: time.Second, Text: fmt.Sprint(i, k) + strings.Repeat(unit, long)})
				d.AddMark(Mark{At: time.Second, Text: "b" + strings.Repeat(unit, long)})
			}
			return d
		})
		if got > most {
			t.Errorf("%s: marks of %d kB occupy %.0f bytes, want at most %d", name, long>>10, got, most)
		}
	}
}

// suite is a process that runs loops: one sample every 30 s, and each mark
// before the sample of the same time.
type suite struct {
	d     *Detector
	at    time.Duration
	level func(at time.Duration) float64
	marks func(at time.Duration) string
}

func newSuite(level func(at time.Duration) float64, marks func(at time.Duration) string) *suite {
	return &suite{d: New(RobustPolicy()), level: level, marks: marks}
}

func (s *suite) until(end time.Duration) *suite {
	for ; s.at < end; s.at += slotTime {
		if text := s.marks(s.at); text != "" {
			s.d.AddMark(Mark{At: s.at, Text: text})
		}
		s.d.AddSample(Sample{At: s.at, Bytes: int64(s.level(s.at) * MB)})
	}
	return s
}

func (s *suite) loops() *loops { return &s.d.machine.(*robustMachine).loops }

// each returns a function that returns the mark at a given time. Each loop of
// the given length begins with a mark; the loops are counted from 1.
func each(length time.Duration) func(time.Duration) string {
	return func(at time.Duration) string {
		if at%length != 0 {
			return ""
		}
		return fmt.Sprintf("loop %d", 1+at/length)
	}
}

// with returns a function that returns the marks in other at their times, and
// those of marks at all other times.
func with(marks func(time.Duration) string, other map[time.Duration]string) func(time.Duration) string {
	return func(at time.Duration) string {
		if text, ok := other[at]; ok {
			return text
		}
		return marks(at)
	}
}

// between is like each, but adds a second mark in the middle of each loop.
func between(length time.Duration, first, second string) func(time.Duration) string {
	return func(at time.Duration) string {
		switch n := 1 + at/length; at % length {
		case 0:
			return fmt.Sprintf(first, n)
		case length / 2:
			return fmt.Sprintf(second, n)
		}
		return ""
	}
}

func flat(time.Duration) float64 { return 300 }

// TestLoopFamilies checks which marks begin loops. Each run has 24 loops of 10
// min. The mark of the first loop comes before the process is known, and no
// mark ends the last loop.
func TestLoopFamilies(t *testing.T) {
	const length = 10 * time.Minute
	tests := map[string]struct {
		marks  func(time.Duration) string
		family string
		// loops is the minimum number of loops.
		loops int
	}{
		"numbered":       {each(length), "loop", 22},
		"a start before": {with(each(length), map[time.Duration]string{time.Minute: "start"}), "loop", 21},
		"a start and a set-up": {
			with(each(length), map[time.Duration]string{time.Minute: "start", 2 * time.Minute: "set up"}), "loop", 21,
		},
		"a remark in between": {
			with(each(length), map[time.Duration]string{45 * time.Minute: "screenshot"}), "loop", 22,
		},
		"remarks in each": {between(length, "loop %d", "half of %d"), "", 22},
		"begin and end":   {between(length, "begin loop %d", "end loop %d"), "", 22},
		"start, begin and end": {
			with(between(length, "begin loop %d", "end loop %d"), map[time.Duration]string{time.Minute: "start"}), "",
			19,
		},
		"the same text each time": {
			func(at time.Duration) string { return strings.Repeat("again", 1-min(1, int(at%length))) }, "again", 22,
		},
		"digits only": {
			func(at time.Duration) string { return strings.ReplaceAll(each(length)(at), "loop ", "") }, "", 22,
		},
		"capitals and blanks": {
			func(at time.Duration) string { return strings.ReplaceAll(each(length)(at), "loop", "\t LOOP ") }, "loop",
			22,
		},
		"collections are not loops": {between(length, "gc %d", "loop %d"), "loop", 22},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			l := newSuite(flat, tt.marks).until(24 * length).loops()
			if tt.family != "" && l.family != tt.family {
				t.Errorf("family %q, want %q", l.family, tt.family)
			}
			if n := len(l.floors.levels); n < tt.loops || n > 24 {
				t.Errorf("%d loops, want %d", n, tt.loops)
			}
		})
	}
}

// TestLoopLevels checks that the level of each loop is the midmean of its
// samples, except the last, whose slot is not over when the next loop begins.
func TestLoopLevels(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 1))
	for range 20 {
		var begins []time.Duration
		for at := time.Duration(0); at < 6*time.Hour; at += time.Duration(2+r.IntN(100)) * slotTime {
			begins = append(begins, at)
		}
		noise := map[time.Duration]float64{}
		level := func(at time.Duration) float64 {
			if _, ok := noise[at]; !ok {
				noise[at] = 300 + 50*r.NormFloat64()
			}
			return noise[at]
		}
		s := newSuite(level, func(at time.Duration) string {
			if slices.Contains(begins, at) {
				return "loop 1"
			}
			return ""
		}).until(6 * time.Hour)
		got := s.loops().floors.levels
		base := s.d.machine.(*robustMachine).tracks[totalTrack].base / MB
		// The first mark comes before the first sample, before the process
		// exists.
		begins = begins[1:]
		if len(got) != len(begins)-1 {
			t.Fatalf("%d levels, want %d", len(got), len(begins)-1)
		}
		for i, v := range got {
			var values []float64
			for at := begins[i]; at < begins[i+1]-slotTime; at += slotTime {
				values = append(values, math.Floor(noise[at]*MB)/MB)
			}
			if want := midmean(values) - base; math.Abs(float64(v)-want) > 0.01 {
				t.Fatalf("loop %d of %d samples: %v, want %v", i, len(values), v, want)
			}
		}
	}
}

// TestAlignedAgainstAll checks that each level is the mean of the same number
// of neighboring values, that the levels cover all values ever added, and that
// there are at most maxAligned levels.
func TestAlignedAgainstAll(t *testing.T) {
	r := rand.New(rand.NewPCG(42, 2))
	var a aligned
	var all []float64
	for i := range 3000 {
		v := float64(r.IntN(1000))
		a.add(v, i)
		all = append(all, v)
		if len(a.levels) >= maxAligned || len(a.levels) != len(all)/a.each || a.last != i {
			t.Fatalf("after %d values: got %d levels of %d values each, the last in slot %d", i+1, len(a.levels),
				a.each, a.last)
		}
		for k, got := range a.levels {
			if want := meanOf(all[k*a.each : (k+1)*a.each]); math.Abs(float64(got)-want) > 0.01 {
				t.Fatalf("level %d of %d each: %v, want %v", k, a.each, got, want)
			}
		}
		if i < 8 {
			continue
		}
		blocks := a.blocks()
		each := (len(a.levels) + endBlocks - 1) / endBlocks
		if len(blocks) > endBlocks || len(blocks)*2 < min(len(a.levels), endBlocks) {
			t.Fatalf("%d blocks of %d levels", len(blocks), len(a.levels))
		}
		for k, got := range blocks {
			// The position is counted from the end, because the latest levels
			// are never skipped.
			to := len(a.levels) - (len(blocks)-1-k)*each
			want := 0.0
			for _, v := range a.levels[to-each : to] {
				want += float64(v) / float64(each)
			}
			if math.Abs(got-want) > 1e-6 {
				t.Fatalf("block %d of %d: %v, want %v", k, len(blocks), got, want)
			}
		}
	}
	if a.each != 16 {
		t.Errorf("%d loops per level after 3000 loops, want 16", a.each)
	}
}

func TestAlignedAgainst(t *testing.T) {
	levels := func(n int, f func(i int) float64) *aligned {
		a := &aligned{}
		for i := range n {
			a.add(f(i), i)
		}
		return a
	}
	wave := func(i int) float64 { return 100 * math.Sin(float64(i)) }
	leaking := levels(30, func(i int) float64 { return wave(i) + float64(5*i) })
	got, part := leaking.against(levels(30, wave))
	if len(got) != 30 || part != 1 {
		t.Fatalf("%d differences", len(got))
	}
	for i, v := range got {
		if math.Abs(v-float64(5*i)) > 0.001 {
			t.Errorf("difference %d: %v, want %d", i, v, 5*i)
		}
	}
	if got, part := leaking.against(levels(20, wave)); len(got) != 20 || math.Abs(part-2./3) > 1e-9 ||
		math.Abs(got[19]-95) > 0.001 {
		t.Errorf("against fewer loops: %v", got)
	}
	for name, tt := range map[string]struct{ a, b *aligned }{
		"too few":         {levels(leastLoops-1, wave), levels(30, wave)},
		"too few in base": {levels(30, wave), levels(leastLoops-1, wave)},
		"none":            {&aligned{}, &aligned{}},
	} {
		if got, _ := tt.a.against(tt.b); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	// In a long run each level covers two loops; in the short base run it
	// covers one.
	slow := func(i int) float64 { return wave(i) + float64(i) }
	got, part = levels(300, slow).against(levels(30, wave))
	if len(got) != 15 || math.Abs(part-0.1) > 1e-9 || math.Abs(got[14]-28.5) > 0.001 {
		t.Errorf("levels of two loops compared with levels of one: got %v, %v of the base run", got, part)
	}
}

// TestJudgedByLoops checks that a run is judged by loops if at least twelve
// loops cover at least half of it and end when it ends.
func TestJudgedByLoops(t *testing.T) {
	const length = 10 * time.Minute
	tests := map[string]struct {
		marks func(time.Duration) string
		end   time.Duration
		want  string
	}{
		"no marks":     {func(time.Duration) string { return "" }, 4 * time.Hour, ""},
		"eleven loops": {each(length), 12 * length, ""},
		// The mark at 0 comes before the first sample; the mark of the last
		// loop ends it.
		"twelve loops": {each(length), 14 * length, "loops"},
		"loops cover less than half": {
			func(at time.Duration) string { return each(length)(min(at, 14*length+1)) }, 30 * length, "",
		},
		"loops ended long ago": {
			func(at time.Duration) string { return each(length)(min(at, 14*length+1)) }, 23 * length, "",
		},
		"loops ended recently": {
			func(at time.Duration) string { return each(length)(min(at, 14*length+1)) }, 15 * length, "loops",
		},
		"collections":                  {between(length, "remark %d", "gc %d"), 20 * length, "collections"},
		"collections with other marks": {between(length, "gc %d", "of %d"), 20 * length, "collections"},
		"loops and collections":        {between(length, "loop %d", "GC %d"), 20 * length, "collections"},
		"loops and one collection": {
			with(each(length), map[time.Duration]string{time.Hour + time.Minute: "gc"}), 20 * length, "loops",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSuite(flat, tt.marks).until(tt.end)
			levels, hours, got, ok := s.loops().judged(s.d.machine.(*robustMachine))
			if ok != (tt.want != "") || got != tt.want {
				t.Fatalf("judged by %q: %v, want %q", got, ok, tt.want)
			}
			if ok && (len(levels) < leastLoops || hours <= 0 || hours > tt.end.Hours()) {
				t.Errorf("%d levels over %v h of %v", len(levels), hours, tt.end)
			}
		})
	}
}

// TestRateByLoops checks that the rate of an exact line is found both by loops
// and by collections, however many there are.
func TestRateByLoops(t *testing.T) {
	const rate = 60
	level := func(at time.Duration) float64 { return 300 + rate*at.Hours() }
	for name, marks := range map[string]func(time.Duration) string{
		"loops": each(10 * time.Minute),
		"collections": func(at time.Duration) string {
			return strings.ReplaceAll(each(10*time.Minute)(at), "loop", "gc")
		},
	} {
		for _, count := range []int{14, 20, 36, 39, 60, 76, 113, 200, 300} {
			s := newSuite(level, marks).until(time.Duration(count) * 10 * time.Minute)
			m := s.d.machine.(*robustMachine)
			levels, hours, by, ok := m.loops.judged(m)
			if !ok || by != name {
				t.Fatalf("%d %s: judged by %q", count, name, by)
			}
			if got := m.judgeLevels(levels, hours, 1).rate; math.Abs(got-rate) > 0.02*rate {
				t.Errorf("%d %s: %.2f MB/h, want %v", count, name, got, rate)
			}
		}
	}
}

// TestRateAgainstBase checks that the rate of a difference does not depend on
// how much longer one of the runs was.
func TestRateAgainstBase(t *testing.T) {
	const rate, length = 60, 10 * time.Minute
	leaking := func(at time.Duration) float64 { return 300 + rate*at.Hours() }
	for name, marks := range map[string]func(time.Duration) string{
		"by loops": each(length), "by time": func(time.Duration) string { return "" },
	} {
		for _, count := range [][2]int{{36, 36}, {36, 18}, {18, 36}, {70, 30}} {
			head := newSuite(leaking, marks).until(time.Duration(count[0]) * length)
			base := newSuite(flat, marks).until(time.Duration(count[1]) * length)
			v, err := head.d.CompareTo(base.d)
			if err != nil || !v.RateKnown || !strings.Contains(v.Because, name) && v.Gate == Leak {
				t.Fatalf("%s, %d loops compared with %d: %v, %+v", name, count[0], count[1], err, v)
			}
			if got := v.Rate / MB; math.Abs(got-rate) > 0.04*rate {
				t.Errorf("%s, %d loops compared with %d: %.1f MB/h, want %v", name, count[0], count[1], got, rate)
			}
		}
	}
}

// TestMarksOutOfPlace checks that marks from before the process, after a
// restart or from the future, in any number, neither panic nor permanently end
// the loops.
func TestMarksOutOfPlace(t *testing.T) {
	const length = 10 * time.Minute
	loopsAfter := func(s *suite) int {
		before := len(s.loops().floors.levels)
		s.until(s.at + 10*length)
		return len(s.loops().floors.levels) - before
	}
	tests := map[string]func(s *suite){
		"mark long ago": func(s *suite) { s.d.AddMark(Mark{At: -1 << 62, Text: "loop 3"}) },
		"many marks at once": func(s *suite) {
			for i := range 1000 {
				s.d.AddMark(Mark{At: s.at, Text: fmt.Sprint("loop ", i)})
			}
		},
		"mark in a minute": func(s *suite) { s.d.AddMark(Mark{At: s.at + time.Minute, Text: "loop 3"}) },
		"mark far ahead":   func(s *suite) { s.d.AddMark(Mark{At: s.at + 1000*time.Hour, Text: "loop 3"}) },
		"gc far ahead":     func(s *suite) { s.d.AddMark(Mark{At: 1<<63 - 1, Text: "gc"}) },
		"many families": func(s *suite) {
			for i := range 1000 {
				s.d.AddMark(Mark{At: s.at, Text: strings.Repeat("x", i%70)})
			}
		},
		"no text": func(s *suite) { s.d.AddMark(Mark{At: s.at}) },
	}
	for name, disturb := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSuite(flat, each(length)).until(3*time.Hour + 5*time.Minute)
			disturb(s)
			if n := loopsAfter(s); n < 9 || n > 11 {
				t.Errorf("%d loops after the disturbance, want 9 to 11", n)
			}
		})
	}
	t.Run("before the first sample", func(t *testing.T) {
		s := newSuite(flat, each(length))
		for i := range 5 {
			s.d.AddMark(Mark{At: time.Duration(i), Text: "loop 0"})
		}
		if n := loopsAfter(s); n != 8 {
			t.Errorf("%d loops", n)
		}
	})
	t.Run("a restart", func(t *testing.T) {
		s := newSuite(flat, each(length)).until(3*time.Hour + 5*time.Minute)
		s.d.Restart(s.at)
		if n := len(s.loops().floors.levels); n != 0 {
			t.Errorf("%d loops left from the previous process, want none", n)
		}
		if s.until(s.at + 10*length); len(s.loops().floors.levels) < 8 {
			t.Errorf("%d loops after a restart, want at least 8", len(s.loops().floors.levels))
		}
	})
}

// TestCollections checks that the level after a collection is that of the
// minute after it.
func TestCollections(t *testing.T) {
	const length = 10 * time.Minute
	// Garbage accumulates for ten minutes at a time, until it is collected at a
	// mark, on top of live memory that grows.
	level := func(at time.Duration) float64 {
		return 300 + 12*float64(at/length) + 15*(at%length).Minutes()
	}
	s := newSuite(level, func(at time.Duration) string {
		if at%length == 0 {
			return []string{"gc", "GC", "Gc 3", " gc "}[int(at/length)%4]
		}
		return ""
	}).until(20 * length)
	got := s.loops().live.levels
	if len(got) != 19 {
		t.Fatalf("%d levels after 20 collections, want 19: the first one precedes all samples", len(got))
	}
	for i, v := range got {
		if want := 12*float64(i+1) + 15*0.25; math.Abs(float64(v)-want) > 0.01 {
			t.Errorf("collection %d: %v, want %v", i+1, v, want)
		}
	}
	if len(s.loops().floors.levels) != 0 {
		t.Errorf("%d loops", len(s.loops().floors.levels))
	}
}

// TestSuite checks a suite whose loops of 20 min each allocate 150 MB and free
// them. The load alone is not a leak. Additional growth of 30 MB/h is a leak,
// and the loops reveal its rate.
func TestSuite(t *testing.T) {
	const length, runs = 20 * time.Minute, 10
	for _, rate := range []float64{0, 30} {
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(42, 10+seed))
			level := func(at time.Duration) float64 {
				return 300 + 150*float64(at%length)/float64(length) + rate*at.Hours() + 5*r.NormFloat64()
			}
			v := newSuite(level, each(length)).until(6*time.Hour + time.Minute).d.Verdict()
			switch {
			case rate == 0:
				if v.Gate != Pass || v.Worst == Leaking {
					t.Errorf("seed %d, without a leak: %v, worst %v: %s", seed, v.Gate, v.Worst, v.Because)
				}
			case v.Gate != Leak || !strings.Contains(v.Because, "judged by loops"):
				t.Errorf("seed %d, 30 MB/h: %v: %s", seed, v.Gate, v.Because)
			case math.Abs(v.Rate/MB-rate) > 6 || v.RateLow > rate*MB*1.1 || v.RateHigh < rate*MB*0.9:
				t.Errorf("seed %d, 30 MB/h: %.1f (%.1f to %.1f)", seed, v.Rate/MB, v.RateLow/MB, v.RateHigh/MB)
			}
		}
	}
}

// TestLoopsOfAMonth checks that loops continue when the axis drops its oldest
// floors.
func TestLoopsOfAMonth(t *testing.T) {
	const day, length = 24 * time.Hour, 4 * time.Hour
	defer func() {
		if r := recover(); r != nil {
			t.Fatal(r)
		}
	}()
	s := newSuite(flat, each(length))
	for s.until(31 * day); s.at < 36*day; {
		// If there are many levels, they are merged, so the test counts the
		// loops that the levels cover.
		count := func() int { f := s.loops().floors; return len(f.levels)*f.each + f.n }
		before, gone := count(), s.d.machine.(*robustMachine).axis.origin > 0
		if s.until(s.at + day); count() != before+6 {
			t.Fatalf("%d loops in the day before %v, want 6; old data already dropped: %v", count()-before, s.at, gone)
		}
	}
	m := s.d.machine.(*robustMachine)
	if m.axis.origin == 0 {
		t.Error("nothing was dropped")
	}
	if _, hours, _, ok := m.loops.judged(m); !ok || math.Abs(hours-35.8*24) > 36 {
		t.Errorf("judged by loops: %v, over %v h", ok, hours)
	}
}
