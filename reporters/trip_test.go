package reporters

import (
	"bytes"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/leakgate/leakgate/internal/text"
	"github.com/leakgate/leakgate/reporters/record"
)

func tripOf() record.Trip {
	known := func(values ...float64) (out []*float64) {
		for _, v := range values {
			out = append(out, &v)
		}
		return out
	}
	return record.Trip{
		Schema: record.TripSchema, Device: "phone-a", Process: "com.shop", PID: 100, WarmUp: 2, Loops: 10,
		LoopsPerReading: 2, Readings: 6, Dumps: 7,
		Stopped: record.TripStoppedLoops, Reason: "all loops are done", Verdict: record.VerdictLeak, Judged: true,
		Text: "native_heap +204 kB per loop; CartCache.sItems (ArrayList): +1 object per loop",
		Measures: []record.TripMeasure{
			{
				Name: "native_heap", Unit: record.UnitKB, PerLoop: new(204.3), Interval: []float64{181, 227.9},
				Values: known(61440, 61848, 62260, 62661, 63071, 63480), Grows: true, Verdict: record.VerdictLeak,
				Text: "grows with every loop",
			},
			{
				Name: "heap", Unit: record.UnitCount, PerLoop: new(1.0), Values: known(), Grows: true,
				Verdict: record.VerdictLeak, Text: "1 place grows in each of 6 heap dumps", SmallestFound: new(1.0),
			},
			{
				Name: "graphics", Unit: record.UnitKB, PerLoop: new(310.0), Interval: []float64{100, 520},
				Values: known(1, 2), Verdict: record.VerdictInconclusive,
				Text: "grows, but unevenly; needs more loops",
			},
			{
				Name: "threads", Unit: record.UnitCount, PerLoop: new(-0.1), Interval: []float64{-0.4, 0.2},
				Values: known(30, 29), Verdict: record.VerdictPass, Text: "does not grow", SmallestFound: new(1.0),
			},
			{
				Name: "Activities", Unit: record.UnitCount, PerLoop: new(0.0), Interval: []float64{-0.1, 0.1},
				Values: known(1, 1, 1), Verdict: record.VerdictPass, Text: "does not grow", SmallestFound: new(0.5),
			},
			{
				Name: "AppContexts", Unit: record.UnitCount, PerLoop: new(0.0), Interval: []float64{-0.1, 0.1},
				Values: known(4, 4, 4), Verdict: record.VerdictPass, Text: "does not grow", SmallestFound: new(0.5),
			},
			{
				Name: "files", Unit: record.UnitCount, Values: []*float64{nil, new(7.0)},
				Verdict: record.VerdictInconclusive, Text: "only 1 reading",
			},
		},
		Found: 2,
		Growing: []record.Finding{{
			Type: "growing", Name: "CartCache.sItems (ArrayList)", Key: strings.Repeat("ab", 20),
			CountDelta: new(int64(10)), Bytes: new(int64(5000)), BytesDelta: new(int64(1240)),
			Trace: []string{"STICKY_CLASS -> class com.shop.App", "com.shop.CartCache.sItems -> java.util.ArrayList"},
		}},
		Warnings: []string{"the process did not settle before 1 of 6 readings"},
	}
}

// The report of a trip fits on one screen: first the verdict, then what grows,
// then the other measures.
func TestWriteTrip(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTrip(&out, tripOf()); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/trip.golden"
	if *update {
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || out.String() != string(want) {
		t.Errorf("%v\n%s", err, out.String())
	}
	if lines := strings.Count(out.String(), "\n"); lines > 24 {
		t.Errorf("%d lines", lines)
	}
}

// Whatever a trip contains, its lines are printable and not too wide.
func TestWriteTripHostile(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	words := []string{
		"", "\x1b[2J", "漢字漢字", strings.Repeat("x", 500), "a b\nc", "com.shop", "\xff\xfe", strings.Repeat("word ", 60),
	}
	word := func() string { return words[random.IntN(len(words))] }
	number := func() *float64 {
		return []*float64{nil, new(0.0), new(math.NaN()), new(math.Inf(-1)), new(1e300), new(-3.25)}[random.IntN(6)]
	}
	for range 500 {
		r := record.Trip{
			Process: word(), Verdict: record.CheckVerdict(word()), Text: word(), Reason: word(),
			Found: random.IntN(100), Loops: random.IntN(1 << 30),
		}
		for range random.IntN(8) {
			m := record.TripMeasure{
				Name: word(), Unit: []string{record.UnitKB, record.UnitCount, word()}[random.IntN(3)],
				PerLoop: number(), SmallestFound: number(), Text: word(), Grows: random.IntN(2) == 0,
				Verdict: record.VerdictPass,
			}
			for range random.IntN(20) {
				m.Values = append(m.Values, number())
			}
			if a, b := number(), number(); a != nil && b != nil {
				m.Interval = []float64{*a, *b}
			}
			r.Measures = append(r.Measures, m)
			r.Growing = append(r.Growing,
				record.Finding{
					Name: word(), BytesDelta: new(int64(math.MinInt64)), CountDelta: new(int64(math.MaxInt64)),
					Trace: []string{word(), word()},
				})
			r.Warnings = append(r.Warnings, word())
		}
		var out bytes.Buffer
		if err := WriteTrip(&out, r); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if text.Printable(line) != line || text.Columns(line) > tripWidth {
				t.Fatalf("%d columns: %q", text.Columns(line), line)
			}
		}
	}
}
