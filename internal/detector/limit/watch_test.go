package limit

import (
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

// add adds readings at equal intervals; used returns the use at a time in
// minutes.
func add(w *Watch, r Resource, from, to, step time.Duration, limit int64,
	used func(minutes float64) float64) (out []Warning) {
	for at := from; at < to; at += step {
		out = append(out, w.Add(r, Use{At: at, Used: int64(used((at - from).Minutes())), Limit: limit})...)
	}
	return out
}

func TestResourceNames(t *testing.T) {
	for r, want := range []string{"java_heap", "file_descriptors", "threads", "address_space", "anonymous_memory"} {
		if got := Resource(r).String(); got != want {
			t.Errorf("%d is %q", r, got)
		}
		if got, err := ParseResource(want); err != nil || got != Resource(r) {
			t.Errorf("%q is %v, %v", want, got, err)
		}
	}
	if _, err := ParseResource("disk"); err == nil || NumResources.String() != "unknown" {
		t.Errorf("disk is %v", err)
	}
}

func TestDistance(t *testing.T) {
	for name, c := range map[string]struct {
		share func(minutes float64) float64
		want  []string // urgent or near
	}{
		"79 %":         {func(float64) float64 { return 0.79 }, nil},
		"81 %":         {func(float64) float64 { return 0.81 }, []string{"near"}},
		"96 % at once": {func(float64) float64 { return 0.96 }, []string{"urgent"}},
		"81 %, then 96 %": {
			func(m float64) float64 { return 0.81 + 0.15*math.Floor(m/60) }, []string{"near", "urgent"},
		},
		"swings about 80 %": {func(m float64) float64 { return 0.8 + 0.05*math.Sin(m) }, []string{"near"}},
		"swings about 95 %": {
			func(m float64) float64 { return 0.95 - 0.03*math.Sin(m) }, []string{"near", "urgent"},
		},
		"one reading of 100 %": {func(m float64) float64 { return 0.5 + 0.5*step(m == 30) }, nil},
	} {
		var got []string
		for _, w := range add(new(Watch), Threads, time.Hour, 110*time.Minute+time.Hour, 30*time.Second, 1000,
			func(m float64) float64 { return 1000 * c.share(m) }) {
			word := "near"
			if w.Urgent {
				word = "urgent"
			}
			got = append(got, word)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func step(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// After the level has been low for some time, a warning may be repeated.
func TestDistanceAgain(t *testing.T) {
	w := new(Watch)
	got := add(w, FileDescriptors, 0, 4*time.Hour, time.Minute, 1000, func(m float64) float64 {
		if int(m/90)%2 == 0 {
			return 850
		}
		return 300
	})
	if len(got) != 2 || got[1].At-got[0].At < again {
		t.Errorf("%+v", got)
	}
	quick := add(new(Watch), FileDescriptors, 0, 4*time.Hour, time.Minute, 1000, func(m float64) float64 {
		if int(m/10)%2 == 0 {
			return 850
		}
		return 300
	})
	for i := 1; i < len(quick); i++ {
		if quick[i].At-quick[i-1].At < again {
			t.Errorf("warned at %v and %v", quick[i-1].At, quick[i].At)
		}
	}
}

func TestTime(t *testing.T) {
	// The process uses 400 of 1000 and adds 300 per hour: it reaches the limit
	// after 2 h, and the last hour before that begins at 700.
	w := new(Watch)
	got := add(w, Threads, time.Hour, 3*time.Hour, 30*time.Second, 1000, func(m float64) float64 { return 400 + 5*m })
	if len(got) != 3 || got[0].Urgent || !got[0].TimeKnown {
		t.Fatalf("%+v", got)
	}
	first := got[0]
	if first.Used < 690 || first.Used > 730 || first.TimeLeft > time.Hour || first.TimeLeft < 50*time.Minute ||
		math.Abs(first.Rate.PerHour-300) > 5 {
		t.Errorf("%+v", first)
	}
	if want := "threads: "; !strings.HasPrefix(first.Text, want) || !strings.Contains(first.Text, " of 1000 (7") ||
		!strings.Contains(first.Text,
			"+300 per hour, limit reached within 1 h; reaching it causes an OutOfMemoryError: pthread_create failed") {
		t.Errorf("%q", first.Text)
	}
	// The warnings about the distance to the limit come after the warning about
	// the time left.
	if got[1].Urgent || !got[2].Urgent {
		t.Errorf("%+v", got[1:])
	}
	s := w.State()
	if len(s) != 1 || !s[0].Warned || !s[0].LevelKnown || !s[0].TimeKnown || s[0].Resource != Threads ||
		s[0].Used != 997 {
		t.Errorf("%+v", s)
	}
}

// A Java heap may fill up to the limit before each collection.
func TestJavaHeapSawtooth(t *testing.T) {
	const mb = 1 << 20
	saw := func(m float64) float64 { return mb * (150 + 100*math.Mod(m/7.3, 1)) }
	w := new(Watch)
	if got := add(w, JavaHeap, 0, 24*time.Hour, time.Minute, 256*mb, saw); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	s := w.State()[0]
	if !s.LevelKnown || s.Level > 165*mb || s.Level < 150*mb {
		t.Errorf("%+v", s)
	}
	got := add(new(Watch), JavaHeap, 0, 24*time.Hour, time.Minute, 256*mb,
		func(m float64) float64 { return min(256*mb, saw(m)*0.2+mb*m*0.4) })
	if len(got) == 0 || !strings.HasPrefix(got[0].Text, "Java heap: ") ||
		!strings.Contains(got[0].Text, " MB of 256 MB after collections (") {
		t.Fatalf("%+v", got)
	}
	if !got[len(got)-1].Urgent {
		t.Errorf("%+v", got)
	}
	// Without a collection the floor is unknown until the heap has grown by
	// more than could be garbage.
	for m, want := range map[int]int{60: 0, 130: 0, 290: 1} {
		w, warned := new(Watch), 0
		for i := range m {
			warned += len(w.Add(JavaHeap,
				Use{
					At: time.Duration(i) * time.Minute, Used: mb * int64(200+i) / 2, Limit: 256 * mb, Garbage: 24 * mb,
				}))
		}
		if min(warned, 1) != want {
			t.Errorf("%v minutes: %d warnings", m, warned)
		}
		if s := w.State()[0]; s.LevelKnown && s.Level > int64(200+m)/2*mb-24*mb {
			t.Errorf("%v minutes: %+v: the level includes garbage", m, s)
		}
	}
}

// A limit below the present use is not the real limit.
func TestExceeded(t *testing.T) {
	w := new(Watch)
	used := func(m float64) float64 { return 1000 + m }
	if got := add(w, Threads, 0, time.Hour, time.Minute, 900, used); len(got) > 0 || !w.State()[0].Exceeded ||
		w.State()[0].TimeKnown {
		t.Errorf("%+v, %+v", got, w.State())
	}
	if got := add(w, Threads, time.Hour, 2*time.Hour, time.Minute, 1100, used); len(got) == 0 || w.State()[0].Exceeded {
		t.Errorf("%+v, %+v", got, w.State())
	}
}

func TestRestart(t *testing.T) {
	w := new(Watch)
	grow := func(m float64) float64 { return 300 + 6*m }
	if got := add(w, Threads, 0, 70*time.Minute, time.Minute, 1000, grow); len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	w.Restart(80 * time.Minute)
	if len(w.State()) != 0 {
		t.Errorf("%+v", w.State())
	}
	if got := w.Add(Threads, Use{At: 79 * time.Minute, Used: 1, Limit: 2}); len(got) > 0 || len(w.State()) != 0 {
		t.Error("a reading of the old process was used")
	}
	fresh := new(Watch)
	fresh.Restart(80 * time.Minute)
	a := add(w, Threads, 80*time.Minute, 4*time.Hour, time.Minute, 1200, grow)
	b := add(fresh, Threads, 80*time.Minute, 4*time.Hour, time.Minute, 1200, grow)
	if !reflect.DeepEqual(a, b) || !reflect.DeepEqual(w.State(), fresh.State()) || len(a) == 0 {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestAbout(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "1 min", 90 * time.Second: "2 min", 17 * time.Minute: "17 min", 58 * time.Minute: "1 h",
		54 * time.Minute: "55 min",
		3 * time.Hour:    "3 h", 152 * time.Minute: "2 h 30 min",
	} {
		if got := about(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// After any stream of readings, the watch is in a valid state: bounded, in
// order, and the same whether or not impossible readings are among them.
func TestHostileReadings(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	odd := []int64{math.MinInt64, -1, 0, 1, 1 << 40, math.MaxInt64 - 1, math.MaxInt64}
	for range 200 {
		a, b := new(Watch), new(Watch)
		var at time.Duration
		for range 600 {
			at += time.Duration(rng.Int64N(int64(5 * time.Minute)))
			r := Resource(rng.IntN(int(NumResources)))
			u := Use{At: at, Used: rng.Int64N(1000), Limit: 1000}
			if rng.IntN(4) == 0 {
				u.Used, u.Limit = odd[rng.IntN(len(odd))], odd[rng.IntN(len(odd))]
			}
			got, want := a.Add(r, u), []Warning(nil)
			if u.Used >= 0 && u.Limit > 0 {
				want = b.Add(r, u)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v, want %+v", got, want)
			}
			check(t, a, got)
			// This reading is not later than the previous one.
			if u.Used >= 0 && u.Limit > 0 {
				a.Add(r, Use{At: at - time.Duration(rng.Int64N(1000)), Used: 990, Limit: 1000})
			}
		}
		if !reflect.DeepEqual(a.State(), b.State()) {
			t.Fatalf("%+v\n%+v", a.State(), b.State())
		}
	}
}

// check checks the invariants of a watch and of its warnings.
func check(t *testing.T, w *Watch, warnings []Warning) {
	t.Helper()
	if len(warnings) > 1 {
		t.Fatalf("%+v", warnings)
	}
	for _, x := range warnings {
		if x.Used < 0 || x.Limit <= 0 || x.Used > x.Limit || x.TimeLeft < 0 || x.TimeLeft > farthest || !x.TimeKnown &&
			x.TimeLeft != 0 || x.Text == "" || strings.Contains(x.Text, "NaN") || strings.Contains(x.Text, "Inf") {
			t.Fatalf("%+v", x)
		}
		if s := share(x.Used, x.Limit); x.Urgent != (s >= urgent) && x.Urgent || s < near && !x.TimeKnown {
			t.Fatalf("%+v", x)
		}
	}
	for r := range w.tracks {
		s := w.tracks[r].series.blocks
		if len(s) > maxBlocks || cap(s) > 2*maxBlocks {
			t.Fatalf("%d blocks, capacity %d", len(s), cap(s))
		}
		for i := 1; i < len(s); i++ {
			if s[i].at <= s[i-1].at {
				t.Fatalf("blocks at %v and %v", s[i-1].at, s[i].at)
			}
		}
	}
	for _, s := range w.State() {
		if s.LevelKnown && (s.Level < 0 || math.IsNaN(s.Share)) || s.TimeLeft < 0 ||
			math.IsNaN(s.Rate.PerHour+s.Rate.Low+s.Rate.High) {
			t.Fatalf("%+v", s)
		}
	}
}

func FuzzWatch(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 200, 7, 1, 9}, int64(1000), uint8(2))
	f.Fuzz(func(t *testing.T, steps []byte, limit int64, resource uint8) {
		w := new(Watch)
		r := Resource(resource % uint8(NumResources+1))
		at, used := time.Duration(0), limit/2
		for i, b := range steps[:min(len(steps), 2000)] {
			switch {
			case b == 255:
				w.Restart(at + time.Duration(i))
			case b > 250:
				at -= time.Hour
			case b > 245:
				at = math.MaxInt64 - time.Duration(b)
			case b > 240:
				limit = -limit
			case b > 235:
				limit, used = used, limit
			default:
				used += limit / 256 * (int64(b%16) - 6)
			}
			at += time.Duration(b) * time.Second
			check(t, w, w.Add(r, Use{At: at, Used: used, Limit: limit}))
		}
	})
}

// Anonymous memory rises and falls with the Java heap, which is not growth. A
// leak beneath these fluctuations causes a warning before the memory limiter
// kills the process, and a limit that was not read is reported as assumed.
func TestAnonymousMemory(t *testing.T) {
	const mb = 1 << 20
	saw := func(m float64) float64 { return 60 * mb * math.Mod(m, 7) / 7 }
	for _, assumed := range []bool{false, true} {
		w := new(Watch)
		for at := time.Duration(0); at < 12*time.Hour; at += 30 * time.Second {
			if got := w.Add(AnonymousMemory,
				Use{At: at, Used: 400*mb + int64(saw(at.Minutes())), Limit: 768 * mb, Assumed: assumed}); len(got) > 0 {
				t.Fatalf("a sawtooth: %s", got[0].Text)
			}
		}
		w = new(Watch)
		var got []Warning
		for at := time.Duration(0); at < 2*time.Hour; at += 30 * time.Second {
			used := 200*mb + saw(at.Minutes()) + 240*mb*at.Hours()
			got = append(got,
				w.Add(AnonymousMemory, Use{At: at, Used: int64(used), Limit: 768 * mb, Assumed: assumed})...)
		}
		if len(got) == 0 || got[0].At > 100*time.Minute || got[0].Assumed != assumed ||
			w.State()[0].Assumed != assumed || strings.Contains(got[0].Text, "of an assumed 768 MB") != assumed ||
			!strings.HasPrefix(got[0].Text, "anonymous memory and swap: ") ||
			!strings.HasSuffix(got[0].Text, "the memory limiter kills a process that exceeds it") {
			t.Errorf("%+v", got)
		}
	}
}
