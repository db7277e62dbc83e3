package detector

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The words of states, kinds and gates are parsed back to their values, and any
// other word is an error, so that an invalid verdict is never accepted.
func TestWordsOfAVerdict(t *testing.T) {
	type words struct {
		State State
		Kind  LeakKind
		Gate  Gate
	}
	for s := Normal; s <= Leaking; s++ {
		for k := None; k <= Thread; k++ {
			for _, g := range []Gate{Pass, Leak, Settled, Inconclusive} {
				want := words{s, k, g}
				text, err := json.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}
				var got words
				if err := json.Unmarshal(text, &got); err != nil || got != want {
					t.Errorf("%s: %+v, %v", text, got, err)
				}
			}
		}
	}
	for _, text := range []string{
		`{"State":"normal"}`, `{"State":""}`, `{"State":1}`, `{"Kind":"leak"}`, `{"Gate":"LEAK"}`, `{"Gate":""}`,
	} {
		if err := json.Unmarshal([]byte(text), new(words)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// A pass needs samples for half of the time; other verdicts do not.
func TestCoverage(t *testing.T) {
	d := New(RobustPolicy())
	for i := range 480 {
		d.AddSample(Sample{At: time.Duration(i) * 30 * time.Second, Bytes: 300 * MB})
	}
	for absent, want := range map[int]Gate{0: Pass, 120: Pass, 121: Inconclusive} {
		d.SetCoverage(time.Duration(absent)*time.Minute, 4*time.Hour)
		if v := d.Verdict(); v.Gate != want ||
			(v.Gate == Inconclusive) != strings.HasPrefix(v.Because, "no samples for 2h1m of 4h0m: ") {
			t.Errorf("%d min without samples: %s, %s", absent, v.Gate, v.Because)
		}
	}
}

// TestMinutesText checks the limits at which the unit changes.
func TestMinutesText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 59 * time.Second: "59 s", time.Minute: "1.0 min", 9 * time.Minute: "9.0 min",
		119 * time.Minute: "119 min", 2 * time.Hour: "2.0 h", 30 * time.Hour: "30 h",
	} {
		if got := minutesText(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

// TestIntervalText checks that no interval is printed with two equal bounds.
func TestIntervalText(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{{49.8, 50.3, "49.80 to 50.30"}, {49, 51, "49 to 51"}, {5, 5, "5.0 to 5.0"}, {-3.21, 8, "-3.2 to 8.0"}} {
		if got := intervalText(c.low, c.high); got != c.want {
			t.Errorf("%v to %v: %q, want %q", c.low, c.high, got, c.want)
		}
	}
}
